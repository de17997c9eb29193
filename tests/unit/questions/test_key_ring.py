"""Whatever the pace of an operator: two processes that answer at one moment always know each other's key."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.operate.fingerprint_keys import NEEDED_FOR
from rules.days import EPOCH, stamp
from rules.key_ring import (
    KEYS_MAX,
    KNOWN_WITHIN,
    PROMOTED_AFTER,
    KeyRing,
    StepRefused,
    announce_key,
    from_text,
    promote_key,
    retire_key,
    to_text,
)
from rules.questions.questions import OPEN_MAX, STORED_WITHIN

NOW = EPOCH + timedelta(days=20_000)
# A process has read its ring so long ago at most when its answer is stored.
BEHIND_MAX = KNOWN_WITHIN + STORED_WITHIN
PAUSES = st.sampled_from([timedelta(), timedelta(minutes=1), timedelta(days=1), NEEDED_FOR])
STEPS = st.lists(st.tuples(st.sampled_from(["announce", "promote", "retire"]), PAUSES), max_size=12)
PATIENCE = {"promote": timedelta(seconds=10), "retire": timedelta(minutes=10)}


def history(steps: list[tuple[str, timedelta]]) -> list[tuple[timedelta, KeyRing]]:
    """When each ring was stored: an operator takes each step that is possible at all as early as it is."""
    at, ring = timedelta(), KeyRing(("key 0",))
    found = [(at, ring)]
    for number, (step, pause) in enumerate(steps, 1):
        at += pause
        while True:
            try:
                ring = stepped(ring, step, f"key {number}", at)
            except StepRefused as refused:
                if "not before" in str(refused):
                    at += PATIENCE[step]
                    continue
            else:
                found.append((at, from_text(to_text(ring))))
            break
    return found


def stepped(ring: KeyRing, step: str, key: str, at: timedelta) -> KeyRing:
    if step == "announce":
        return announce_key(ring, key, NOW + at)
    return promote_key(ring, NOW + at) if step == "promote" else retire_key(ring, NEEDED_FOR, NOW + at)


def others(ring: KeyRing) -> set[str]:
    return {*ring.keys[1:], *([ring.next] if ring.next else [])}


@given(STEPS)
def test_processes_five_minutes_apart_know_each_other_s_keys(steps: list[tuple[str, timedelta]]) -> None:
    rings = history(steps)
    for at, _ in rings:
        until = [*(since for since, _ in rings[1:]), at + BEHIND_MAX]
        known = [
            ring for (since, ring), end in zip(rings, until, strict=True) if since <= at < end + BEHIND_MAX
        ]
        assert all(one.keys[0] in {other.keys[0], *others(other)} for one in known for other in known)


@given(STEPS)
def test_a_key_is_known_while_a_question_may_be_open_that_was_answered_under_it(
    steps: list[tuple[str, timedelta]],
) -> None:
    rings = history(steps)
    for place, (_, ring) in enumerate(rings):
        for _, newer in rings[place + 1 :]:
            assert len(newer.keys) + bool(newer.next) <= KEYS_MAX
        until = next((at for at, each in rings[place:] if each.keys[0] != ring.keys[0]), None)
        if until is not None:
            later = [each for at, each in rings[place:] if at < until + BEHIND_MAX + OPEN_MAX]
            assert all(ring.keys[0] in each.keys for each in later)


def test_steps_are_refused_with_the_instant_from_which_on_they_are_not() -> None:
    ring = KeyRing(("a",))
    with pytest.raises(StepRefused, match="no key has been announced"):
        promote_key(ring, NOW)
    ring = announce_key(ring, "b", NOW)
    with pytest.raises(StepRefused, match="announced at"):
        announce_key(ring, "c", NOW)
    early = NOW + PROMOTED_AFTER - timedelta(microseconds=1)
    with pytest.raises(StepRefused, match=f"not before {stamp(NOW + PROMOTED_AFTER)}"):
        promote_key(ring, early)
    with pytest.raises(StepRefused, match="one key"):
        retire_key(ring, NEEDED_FOR, NOW)
    ring = promote_key(ring, NOW + PROMOTED_AFTER)
    assert (ring.keys, ring.next) == (("b", "a"), None)
    with pytest.raises(StepRefused, match="not before"):
        retire_key(ring, NEEDED_FOR, NOW + NEEDED_FOR)
    full = KeyRing(("c", "b", "a"), promoted_at=stamp(NOW))
    with pytest.raises(StepRefused, match="retire the oldest"):
        announce_key(full, "d", NOW)
    assert retire_key(full, NEEDED_FOR, NOW + NEEDED_FOR).keys == ("c", "b")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{",
            '{"keys": []}',
            '{"keys": [""]}',
            '{"keys": "ab"}',
            '{"keys": ["a"], "next": 1}',
            '{"keys": [1]}',
        ),
        *('{"next": "a"}', '{"keys": ["a"], "older": "b"}', '{"keys": ["a"], "next": ""}'),
    ],
)
def test_a_damaged_secret_is_no_key(text: str) -> None:
    with pytest.raises(ValueError, match="the secret") as raised:
        from_text(text)
    assert raised.value.__context__ is None or raised.value.__suppress_context__


def test_a_generated_key_may_begin_with_a_brace() -> None:
    key = "{" + '"keys:' + 57 * "x"
    assert len(key) == 64
    assert from_text(key) == from_text(to_text(KeyRing((key,)))) == KeyRing((key,))
    with pytest.raises(ValueError, match="ring"):
        from_text(key[:-1])
