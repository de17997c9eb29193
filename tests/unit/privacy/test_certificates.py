"""A certificate is genuine, or it says why not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.privacy.erasures import problem_of, sign_certificate

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
BODIES = st.dictionaries(st.text(max_size=8).filter(lambda name: name != "signature"), VALUES, max_size=5)


@given(BODIES)
def test_what_was_signed_is_genuine_also_as_text_and_signed_again(body: dict[str, Any]) -> None:
    made = sign_certificate(body, "key")
    assert problem_of(made, "key") is None
    assert problem_of(json.loads(json.dumps(made, indent=2)), "key") is None
    assert sign_certificate(made, "key") == made


@given(BODIES, BODIES)
def test_what_was_changed_is_found_out(body: dict[str, Any], other: dict[str, Any]) -> None:
    forged = {**other, "signature": sign_certificate(body, "key")["signature"]}
    same = json.dumps(body, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (problem_of(forged, "key") is None) == same


@pytest.mark.parametrize(
    ("certificate", "told"),
    [
        ([], "no signature"),
        ({"signature": "x"}, "no signature"),
        ({"signature": {"algorithm": "none"}}, "not by HMAC-SHA256"),
        (sign_certificate({"a": 1}, "another"), "another key"),
        ({**sign_certificate({"a": 1}, "key"), "a": float("nan")}, "no plain JSON"),
    ],
)
def test_each_problem_has_its_sentence(certificate: Any, told: str) -> None:
    assert told in str(problem_of(certificate, "key"))
