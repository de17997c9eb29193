"""Names of smoke tests: whoever has one may be removed, so nobody else may."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.smoke_names import is_smoke, smoke_name


@given(st.integers(0, 2**48 - 1))
def test_a_smoke_test_s_name_is_one_and_a_second_user_s_too(number: int) -> None:
    assert is_smoke(smoke_name(number))
    assert is_smoke(f"{smoke_name(number)}-kinesis")


@given(st.text(max_size=24))
def test_no_other_text_is_one(text: str) -> None:
    assert not is_smoke(text)


@pytest.mark.parametrize(
    "name",
    [
        "smoke-",
        "smoke-signal",
        "smoke-0123456789AB",
        "smoke-0123456789abc",
        "smoke-0123456789ab\n",
        "x-smoke-0123456789ab",
    ],
)
def test_what_is_only_alike_is_none(name: str) -> None:
    assert not is_smoke(name)
