"""Hashes of entries, and what they tell of a copy of the ledger that was changed (rule 19)."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.days import unstamp
from rules.engagement.carriers import split_carriers
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
    seal_entries,
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
        new = seal_entries(append_drafts("ann", head, wanted[start : start + size], now), head, salt)
        carriers, rest = split_carriers(new)
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
    assert own_faults("ann", links(entries)) == []
    chain = chain_of("ann", links(entries))
    assert chain
    newest = entries[-1]
    assert (chain.seq, chain.newest_hash + SALT) == (newest.seq, newest.chain)
    assert chain.leaf == chain.leaf_at(newest.seq)


@given(earns, st.integers(1, 5))
def test_the_hash_of_a_carried_entry_follows_from_its_carrier(wanted: list[Draft], batches: int) -> None:
    """How often a batch ends decides which entries are carried, and changes no hash."""
    one, other = (chain_of("ann", links(journal(wanted, each))) for each in (1, batches))
    assert one
    assert other
    assert [one.hashes[seq] for seq in (0, 1)] == [other.hashes[seq] for seq in (0, 1)]
    implied = [each for each in journal(wanted, 1) if not each.chain]
    assert len(implied) >= min(5, len(wanted) - 1)


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
    head = Head("2026-01-01T00:00:00.000000Z", 3, 10**9, before + SALT)
    told = seal_entries(append_drafts("jürgen", head, wanted, NOW), head, b"")
    for entry in told:
        before = plain_hash(before, entry, SALT)
        assert entry.chain in (b"", before + SALT)
    assert not told or told[-1].chain


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
    """A salt at a later entry, or the first one's salt gone, is a fault of the copy."""
    entries = journal([earn(1, number) for number in range(4)])
    again = [replace(each, salt=b"t" * 16) if each.seq == at else each for each in entries]
    assert [each.seq for each in own_faults("ann", links(again))] == [at]
    headless = [replace(each, salt=b"") for each in entries]
    assert chain_of("ann", links(headless)) is None
    assert [each.seq for each in own_faults("ann", links(headless))] == [0]


def test_entries_behind_a_head_without_a_hash_have_none() -> None:
    head = Head("2026-01-01T00:00:00.000000Z", 3, 10)
    told = append_drafts("ann", head, [earn(1)], NOW)
    assert seal_entries(told, head, SALT) == told


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


@pytest.mark.parametrize("copy", ["table", "lake"])
def test_whatever_is_done_to_a_copy_is_named_with_its_place(copy: str) -> None:
    luck = random.Random(copy)
    entries = journal([RICH, *(earn(number % 7, number) for number in range(30))], 4)
    sound = links(entries)
    for _ in range(MANIPULATIONS):
        changed, must = manipulated(entries, luck)
        told = links(changed if copy == "table" else [replace(each, chain=b"") for each in changed])
        assert (must.seq, must.change) in {(each.seq, each.change) for each in chain_differences(told, sound)}
    assert chain_differences(sound, sound) == []


def test_a_changed_entry_of_the_table_breaks_its_own_chain() -> None:
    """Without any other copy the first hash that does not follow is named: of the entry, or its carrier."""
    luck = random.Random(5)
    entries = journal([RICH, *(earn(number % 7, number) for number in range(30))], 4)
    for _ in range(MANIPULATIONS):
        at = luck.randrange(1, len(entries))
        what = luck.choice([each for each in CHANGES if each != "place"])
        broken = links([*entries[:at], flipped(entries[at], what), *entries[at + 1 :]])
        (fault,) = own_faults("ann", broken)
        carrier = next(each for each in entries[at:] if each.chain)
        assert (fault.seq, fault.change, fault.place) == (carrier.seq, FLIPPED, carrier.created_at)


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
            stored_hash=b"",
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
