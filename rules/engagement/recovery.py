"""An account's entries and events from their rows in the lake, with what only rows have (rule 21)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from rules.book.point_rules import Cap
from rules.days import stamp
from rules.engagement.events import NUMBERS, OPTIONAL, REQUIRED_TEXTS, Event
from rules.engagement.ledger import Draft, Entry, draft_from
from rules.engagement.seals import ZERO, content_of, link_hash

Row = Mapping[str, Any]


def entries_of(rows: Iterable[Row]) -> tuple[list[Entry], str]:
    """Return an account's entries, oldest first, as far as the lake has them without a gap; and what lacks.

    rows: of one account, as they are curated. An opening may be there twice. "": nothing lacks.
    """
    by_seq = {row["seq"]: row for row in rows}
    found: list[Entry] = []
    balance = 0
    for seq in sorted(by_seq):
        row = by_seq[seq]
        balance += row["points"]
        if seq != len(found):
            return _with_marks(found), f"the lake lacks seq {len(found)}"
        if balance != row["balance"]:
            return _with_marks(found), f"the balance of seq {seq} is not the sum of the points"
        found.append(_entry(row))
    return _with_marks(found), ""


def merged_entries(from_lake: Sequence[Entry], there: Sequence[Entry]) -> tuple[list[Entry], str]:
    """Return the entries of lake and table, which knows best of what both have; and what is wrong, or "".

    They have the marks that all of them together lead to.
    """
    by_seq = {each.seq: each for each in there}
    for each in from_lake:
        if (other := by_seq.get(each.seq)) and _content(other) != _content(each):
            return list(there), f"seq {each.seq} is another one in the lake"
    by_seq = {each.seq: each for each in from_lake} | by_seq
    every = [by_seq[seq] for seq in sorted(by_seq)]
    if [each.seq for each in every] != list(range(len(every))):
        return list(there), "neither lake nor table has all entries"
    return _with_marks(every), ""


def _content(entry: Entry) -> tuple[str, int, Draft]:
    return entry.created_at, entry.balance, entry.draft


def _with_marks(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries with their marks: the head, who is reversed by whom, and their hashes."""
    by = {each.draft.reverses: each.created_at for each in entries if each.draft.reverses}
    marked = [
        replace(each, reversed_by=by.get(each.created_at), active=False, applied_through="", folded=())
        for each in entries
    ]
    if marked:
        marked[-1] = replace(marked[-1], active=True)
    return with_hashes(marked)


def with_hashes(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries with the hashes that follow from them; those before the first salt have none."""
    found: list[Entry] = []
    before, salt = ZERO, b""
    for each in entries:
        if each.begins:
            before, salt = ZERO, each.begins
        if salt:
            before = link_hash(before, content_of(each, salt))
        found.append(replace(each, chain=before + salt if salt else b""))
    return found


def _entry(row: Row) -> Entry:
    dates = {name: _text(row[name]) for name in ("activity_date", "freeze_date", "expires_on")}
    return Entry(
        account_id=row["account_id"],
        created_at=stamp(row["created_at"]),
        seq=row["seq"],
        balance=row["balance"],
        draft=draft_from({**row, **dates}),
        begins=bytes.fromhex(row["seal"] or ""),
    )


def _text(day: date | None) -> str | None:
    return day.isoformat() if day else None


def event_of(row: Mapping[str, Any], *, by_server: bool = False) -> Event:
    """Return the event of a row as it is curated. by_server: what its claim says, which the row does not."""
    plain = {name: row[name] for name in (*REQUIRED_TEXTS, *NUMBERS, *OPTIONAL) if name in row}
    texts = {"occurred_at": row["occurred_local"], "created_at": stamp(row["created_at"])}
    return Event(
        **plain | texts,
        activity_date=row["activity_date"],
        cap=Cap.of(row["cap"]),
        is_passive=bool(row["is_passive"]),
        by_server=by_server,
    )
