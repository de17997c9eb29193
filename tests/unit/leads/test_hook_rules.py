"""A hook's secrets: at most two are valid, the newest always, and nothing of them is told."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.leads.hooks import (
    OVERLAP,
    Hook,
    HookSecret,
    challenge_token,
    hook_from_text,
    hook_text,
    rotate_hook,
)

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
texts = st.text(max_size=8)
hooks = st.builds(
    Hook,
    texts,
    texts,
    st.lists(st.builds(HookSecret, texts), min_size=1, max_size=2).map(tuple),
    st.lists(texts, max_size=2).map(tuple),
    st.none() | texts,
    texts,
    st.integers(1, 100),
)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 100)), max_size=8))
def test_however_often_it_changes_two_are_valid_and_the_one_before_until_it_ends(
    changes: list[tuple[int, int]],
) -> None:
    now, hook = NOW, Hook("acme", "generic", (HookSecret("0"),))
    before, ends = "0", NOW
    for number, (waited, overlap) in enumerate(changes, 1):
        now += timedelta(hours=waited)
        before, ends = hook.secrets[0].value, now + timedelta(hours=overlap)
        hook = rotate_hook(hook, str(number), now, timedelta(hours=overlap))
        for at in (now, ends - timedelta(microseconds=1), ends, ends + OVERLAP):
            old = (before,) if now <= at < ends else ()
            assert hook.valid(max(at, now)) == (str(number), *(old if at >= now and overlap else ()))
    assert len(hook.secrets) <= 2


@given(hooks)
def test_what_is_written_is_read(hook: Hook) -> None:
    assert hook_from_text(hook_text(hook)) == hook


@given(st.text() | st.recursive(st.none() | texts, st.lists).map(json.dumps))
def test_anything_else_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(ValueError, match=r"^a hook's secret is not what"):
        hook_from_text(text)


# HMAC fills a key up with zero bytes, so a secret that ends in one has the token of that without.
SECRETS = st.text(st.characters(exclude_characters="\x00", codec="utf-8"))


@given(SECRETS, SECRETS)
def test_a_token_does_not_tell_its_secret(one: str, other: str) -> None:
    assert len(challenge_token(one)) == 32
    assert (challenge_token(one) == challenge_token(other)) is (one == other)
