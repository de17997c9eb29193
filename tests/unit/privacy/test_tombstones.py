"""Tombstones refuse what was before, whatever the order of what is written, and tell nobody who it was."""

import random

from hypothesis import given
from hypothesis import strategies as st

from rules.privacy.tombstones import (
    Act,
    ErasureLogEntry,
    Tombstone,
    digest_of,
    identity_subject,
    lead_subject,
    lift_entries,
    name_in_logs,
    user_subject,
    with_entries,
)

AT = [f"2026-11-{day:02}T10:00:00.000000Z" for day in range(1, 21)]
ENTRIES = st.lists(
    st.builds(
        ErasureLogEntry,
        at=st.sampled_from(AT),
        digest=st.sampled_from(["ann", "bob"]),
        act=st.sampled_from(list(Act)),
        erasure_id=st.sampled_from(["e1", "e2"]),
    ),
    max_size=8,
    unique_by=lambda each: (each.at, each.digest),
)


def history(digest: str, entries: list[ErasureLogEntry]) -> Tombstone | None:
    """What the entries of one digest say, one after the other."""
    found: Tombstone | None = None
    for each in sorted((one for one in entries if one.digest == digest), key=lambda one: one.at):
        if each.act is Act.ERASED:
            found = Tombstone(each.at, each.erasure_id)
        elif found:
            found = Tombstone(found.erased_at, found.erasure_id, each.at)
    return found


@given(ENTRIES)
def test_of_a_whole_journal_the_newest_act_decides(entries: list[ErasureLogEntry]) -> None:
    found = with_entries({}, entries)
    for digest in ("ann", "bob"):
        assert found.get(digest) == history(digest, entries)


@given(ENTRIES, st.integers(0, 8), st.randoms())
def test_reading_again_and_in_parts_changes_nothing(
    entries: list[ErasureLogEntry], cut: int, shuffle: random.Random
) -> None:
    ordered = sorted(entries, key=lambda each: each.place)
    whole = with_entries({}, ordered)
    mixed = ordered[:]
    shuffle.shuffle(mixed)
    assert with_entries({}, mixed) == whole
    # A reader takes the journal in parts, and each part begins a little before the last one ended.
    assert with_entries(with_entries({}, ordered[:cut]), ordered[max(0, cut - 2) :]) == whole


@given(st.sampled_from(AT), st.sampled_from(AT))
def test_while_it_stands_all_is_refused_and_afterwards_what_was_before(lifted: str, happened: str) -> None:
    assert Tombstone("2026-01-01", "e").forbids(happened)
    assert Tombstone("2026-01-01", "e", lifted).forbids(happened) is (happened < lifted)


def test_lifting_one_identity_lifts_all_of_the_person() -> None:
    known = {
        "address": Tombstone(AT[0], "ann's"),
        "phone": Tombstone(AT[1], "ann's"),
        "before": Tombstone(AT[0], "ann's", AT[1]),
        "other": Tombstone(AT[0], "bob's"),
    }
    assert {each.digest for each in lift_entries(known, "phone", AT[5])} == {"address", "phone"}
    after = with_entries(known, lift_entries(known, "phone", AT[5]))
    assert not after["address"].stands
    assert after["other"].stands
    assert list(lift_entries(after, "phone", AT[6])) == []
    assert list(lift_entries(known, "unknown", AT[6])) == []


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_digest_tells_subjects_and_keys_apart(one: str, other: str) -> None:
    assert (digest_of("k", one) == digest_of("k", other)) == (one == other)
    assert digest_of("k", one) != digest_of("l", one)
    assert len(digest_of("k", one)) == 32


def test_kinds_of_subjects_never_meet() -> None:
    subjects = {user_subject("7"), lead_subject("7"), identity_subject("7", "email", "7")}
    assert len({digest_of("k", each) for each in subjects}) == 3


def test_an_id_with_half_an_emoji_has_a_name_in_logs_too() -> None:
    assert len({name_in_logs(each) for each in ("ann", "ann\ud83d", "ann\ud83e")}) == 3
