"""Hashes of entries, and what they tell of a copy of the ledger that was changed (rule 19)."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.days import unstamp
from rules.engagement.carriers import split_carriers, unfold_carrier, with_carried
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote, Head, Setting, append_drafts
from rules.engagement.proof import (
    ADDED,
    DROPPED,
    FLIPPED,
    HIDDEN_FIELDS,
    REORDERED,
    SHOWN_FIELDS,
    LedgerFault,
    LedgerLink,
    chain_differences,
    chain_of,
    encoded_fields,
    fields_of,
    hidden_fields,
    link_of,
    own_faults,
    shown_fields,
)
from tests.support.effort import effort
from tests.support.ledger_strategies import clocks, drafts, earn, earns

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SALT = b"s" * 16
MANIPULATIONS = effort(60, soak=10_000)
RICH = Draft(EntryKind.EARN, 60_000, "an event", "GIFT", "2026-06-01")


def journal(wanted: list[Draft], batches: int = 3, now: datetime = NOW, salt: bytes = SALT) -> list[Entry]:
    """Append drafts in several batches, as the table has them: carried entries and all."""
    stored: list[Entry] = []
    head: Head | None = None
    size = len(wanted) // batches + 1
    for start in range(0, len(wanted), size):
        new = append_drafts("ann", head, wanted[start : start + size], now)
        carriers, rest = split_carriers([replace(new[0], salt=b"" if head else salt), *new[1:]])
        stored = [*(replace(each, active=False) for each in stored), *carriers, *rest]
        head = new[-1].head
    return sorted(stored, key=lambda each: each.seq)


def links(entries: list[Entry]) -> list[LedgerLink]:
    return list(map(link_of, entries))


@given(earns, clocks, st.integers(1, 5))
def test_a_journal_that_nobody_touched_has_no_faults(
    wanted: list[Draft], now: datetime, batches: int
) -> None:
    entries = journal(wanted, batches, now)
    assert own_faults(links(entries)) == []
    chain = chain_of("ann", links(entries))
    assert chain
    assert chain.leaf == chain.leaf_at(entries[-1].seq)


@given(earns, st.integers(1, 5))
def test_a_carried_entry_has_the_hash_of_a_stored_one(wanted: list[Draft], batches: int) -> None:
    """A dead writer may have stored the carriers alone. The chain is the same."""
    stored = journal(wanted, batches)
    carried = {each.created_at for entry in stored for each in unfold_carrier(entry)}
    again, missing = with_carried([each for each in stored if each.created_at not in carried])
    assert len(missing) == len(carried)
    assert chain_of("ann", links(again)) == chain_of("ann", links(stored))


def plain_hash(before: bytes, entry: Entry, salt: bytes) -> bytes:
    """A second reading of docs/rules.md, rule 19, that shares nothing with rules/."""

    def text(*fields: tuple[str, str, object]) -> bytes:
        told = [(name, kind, str(value)) for name, kind, value in fields if value is not None]
        return b"".join(
            b"%d:%b%b%d:%b" % (len(n.encode()), n.encode(), k.encode(), len(v.encode()), v.encode())
            for n, k, v in told
        )

    draft = entry.draft
    shown = text(
        *(("seq", "i", entry.seq), ("kind", "t", draft.kind), ("points", "i", draft.points)),
        *(("balance", "i", entry.balance), ("event_type", "t", draft.event_type)),
        ("activity_date", "t", draft.activity_date),
        *(("freeze", "t", draft.freeze), ("freeze_date", "t", draft.freeze_date)),
        *(("rules_version", "i", draft.rules_version), ("cap", "t", draft.cap and draft.cap.text)),
        *(("is_passive", "b", 1 if draft.is_passive else None), ("expires_on", "t", draft.expires_on)),
        *(("brand", "t", draft.brand), ("measures", "t", draft.measures), ("setting", "t", draft.setting)),
    )
    hidden = text(
        *(("account_id", "t", entry.account_id), ("created_at", "t", entry.created_at)),
        *(("event_id", "t", draft.event_id), ("reward_id", "t", draft.reward_id)),
        *(("reverses", "t", draft.reverses), ("held_at", "t", draft.held_at), ("reason", "t", draft.reason)),
        *(("timezone", "t", draft.timezone), ("set_to", "t", draft.set_to)),
    )
    own_salt = sha256(b"\2" + salt + entry.seq.to_bytes(8, "big")).digest()
    committed = sha256(b"\3" + own_salt + hidden).digest()
    return sha256(b"\5" + before + sha256(b"\4" + committed + shown).digest()).digest()


@given(drafts)
def test_hashes_are_those_of_a_second_reading(wanted: list[Draft]) -> None:
    before = bytes(32)
    opening, *others = append_drafts("jürgen", None, [RICH, *wanted], NOW)
    told = [replace(opening, salt=SALT), *others]
    chain = chain_of("jürgen", links(told))
    assert chain
    for entry in told:
        before = plain_hash(before, entry, SALT)
        assert chain.hashes[entry.seq] == before


fields = st.lists(
    st.tuples(st.text(max_size=3), st.sampled_from("itb"), st.text("1:i aé", max_size=4)), max_size=4
)


@given(fields, fields)
def test_different_fields_are_never_the_same_bytes(
    one: list[tuple[str, str, str]], other: list[tuple[str, str, str]]
) -> None:
    assert (encoded_fields(one) == encoded_fields(other)) == (one == other)


def row_of(entry: Entry) -> dict[str, object]:
    """An entry as the lake and the warehouse have it."""
    draft = entry.draft
    return {
        **{name: getattr(draft, name, None) for name in (*SHOWN_FIELDS, *HIDDEN_FIELDS)},
        "account_id": entry.account_id,
        "created_at": unstamp(entry.created_at),
        "seq": entry.seq,
        "balance": entry.balance,
        "is_passive": draft.is_passive or None,
        "cap": draft.cap and draft.cap.text,
        "activity_date": draft.activity_date and datetime.fromisoformat(draft.activity_date).date(),
    }


@given(drafts)
def test_a_row_of_the_lake_has_the_same_canonical_form(wanted: list[Draft]) -> None:
    for entry in append_drafts("ann", Head("2026-01-01T00:00:00.000000Z", 3, 10**9), wanted, NOW):
        row = row_of(entry)
        assert fields_of(row, SHOWN_FIELDS) == shown_fields(entry)
        assert fields_of(row, HIDDEN_FIELDS) == hidden_fields(entry)


@pytest.mark.parametrize("at", [1, 3])
def test_a_chain_begins_with_the_account_alone(at: int) -> None:
    """A salt at a later entry, or the first one's salt gone or changed, is a fault of the copy."""
    entries = journal([earn(1, number) for number in range(4)])
    again = [replace(each, salt=b"t" * 16) if each.seq == at else each for each in entries]
    assert [each.seq for each in own_faults(links(again))] == [at]
    headless = [replace(each, salt=b"") for each in entries]
    assert chain_of("ann", links(headless)) is None
    assert [each.seq for each in own_faults(links(headless))] == [0]
    other = [replace(entries[0], salt=b"t" * 16), *entries[1:]]
    assert [each.seq for each in chain_differences(links(other), links(entries))] == [0]


CHANGES = (
    *("points", "balance", "event", "date", "kind", "type", "freeze", "reason", "version", "place"),
    *("zone", "setting", "set to"),
)


def flipped(entry: Entry, what: str) -> Entry:
    draft = entry.draft
    changed = {
        "points": replace(draft, points=draft.points + 1),
        "event": replace(draft, event_id="another"),
        "date": replace(draft, activity_date="2025-01-01"),
        "kind": replace(draft, kind=EntryKind.ADJUST),
        "type": replace(draft, event_type="ANOTHER"),
        "freeze": replace(draft, freeze=FreezeNote.GRANTED),
        "reason": replace(draft, reason="none"),
        "version": replace(draft, rules_version=9),
        "zone": replace(draft, timezone="Asia/Dubai"),
        "setting": replace(draft, setting=Setting.PAUSE),
        "set to": replace(draft, set_to="2026-03-10/2026-03-12"),
    }
    if what == "balance":
        return replace(entry, balance=entry.balance + 1)
    if what == "place":
        later = unstamp(entry.created_at) + timedelta(days=1)
        return replace(entry, created_at=f"{later:%Y-%m-%dT%H:%M:%S.%f}Z")
    return replace(entry, draft=changed[what])


def manipulated(entries: list[Entry], luck: random.Random) -> tuple[list[Entry], LedgerFault]:
    """Change one entry of a copy that has no hashes, as lake and warehouse are; return what must be named."""
    what = luck.choice([FLIPPED, DROPPED, ADDED, REORDERED])
    at = luck.randrange(1, len(entries))
    entry = entries[at]
    if what == FLIPPED:
        return [*entries[:at], flipped(entry, luck.choice(CHANGES)), *entries[at + 1 :]], LedgerFault(
            entry.seq, what
        )
    if what == DROPPED:
        return [*entries[:at], *entries[at + 1 :]], LedgerFault(entry.seq, what)
    if what == ADDED:
        last = entries[-1]
        seq, at = luck.choice([(entry.seq, at), (last.seq + 1, len(entries))])
        return [*entries[:at], flipped(replace(entry, seq=seq), "event"), *entries[at:]], LedgerFault(
            seq, what
        )
    at = luck.randrange(2, len(entries))
    moved = [*entries[: at - 1], entries[at], entries[at - 1], *entries[at + 1 :]]
    return moved, LedgerFault(entries[at - 1].seq, what)


def test_whatever_is_done_to_a_copy_is_named_with_its_place() -> None:
    luck = random.Random(4)
    entries = journal([RICH, *(earn(number % 7, number) for number in range(30))], 4)
    sound = links(entries)
    for _ in range(MANIPULATIONS):
        changed, must = manipulated(entries, luck)
        faults = chain_differences(links(changed), sound)
        assert (must.seq, must.change) in {(each.seq, each.change) for each in faults}
    assert chain_differences(sound, sound) == []


def test_whatever_is_done_to_an_entry_leads_to_another_leaf() -> None:
    luck = random.Random(5)
    entries = journal([RICH, *(earn(number % 7, number) for number in range(30))], 4)
    chain = chain_of("ann", links(entries))
    assert chain
    for _ in range(MANIPULATIONS):
        at = luck.randrange(1, len(entries))
        what = luck.choice([each for each in CHANGES if each != "place"])
        broken = chain_of("ann", links([*entries[:at], flipped(entries[at], what), *entries[at + 1 :]]))
        assert broken
        assert broken.leaf_at(at - 1) == chain.leaf_at(at - 1)
        assert all(broken.leaf_at(seq) != chain.leaf_at(seq) for seq in range(at, len(entries)))


@given(earns, st.randoms(use_true_random=False))
def test_an_erased_persons_chain_still_verifies(wanted: list[Draft], luck: random.Random) -> None:
    entries = journal([RICH, *wanted])
    chain = chain_of("ann", links(entries))
    assert chain
    residue = [
        replace(
            each,
            hidden=None,
            salt=b"",
            committed=chain.commitments[each.seq],
            tag=chain.tag if each.salt else b"",
        )
        for each in links(entries)
    ]
    left = chain_of("erased/x", residue)
    assert left
    assert left.leaf == chain.leaf
    at = luck.randrange(len(residue))
    residue[at] = replace(residue[at], shown=residue[at].shown + b"1")
    other = chain_of("erased/x", residue)
    assert other
    assert other.leaf != chain.leaf
