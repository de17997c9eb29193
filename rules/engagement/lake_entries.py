"""An account's entries and events, rebuilt from curated rows of the lake (docs/rules.md, rule 21)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rules.book.point_rules import Cap
from rules.days import stamp
from rules.engagement.events import NUMBERS, OPTIONAL, REQUIRED_TEXTS, Event
from rules.engagement.ledger import Draft, Entry, draft_from

Row = Mapping[str, Any]


def entries_of(rows: Iterable[Row]) -> tuple[list[Entry], str]:
    """Return an account's entries from its curated rows, oldest first, up to the first gap.

    Also returns what is wrong with the next row, in words; "" if all rows became entries. rows: in any order.
    The row of an opening entry may occur twice.
    """
    row_by_seq = {row["seq"]: row for row in rows}
    entries: list[Entry] = []
    balance, fault = 0, ""
    for seq in sorted(row_by_seq):
        row = row_by_seq[seq]
        balance += row["points"]
        if seq != len(entries):
            fault = f"the lake lacks seq {len(entries)}"
        elif balance != row["balance"]:
            fault = f"the balance of seq {seq} is not the sum of the points"
        if fault:
            break
        entries.append(_entry(row))
    return _with_marks(entries), fault


def merged_entries(lake: Sequence[Entry], table: Sequence[Entry]) -> tuple[list[Entry], str]:
    """Return the entries that lake and table have together, with the marks that follow from all of them.

    Of an entry that both have, the table's is taken. Also returns a fault in words, "" for none. With a fault
    the table's entries come back unchanged.
    """
    table_by_seq = {entry.seq: entry for entry in table}
    for entry in lake:
        table_entry = table_by_seq.get(entry.seq)
        if table_entry and _content(table_entry) != _content(entry):
            return list(table), f"seq {entry.seq} is another one in the lake"
    by_seq = {entry.seq: entry for entry in lake} | table_by_seq
    if sorted(by_seq) != list(range(len(by_seq))):
        return list(table), "neither lake nor table has all entries"
    return _with_marks([by_seq[seq] for seq in sorted(by_seq)]), ""


def event_of(row: Row, *, by_server: bool = False) -> Event:
    """Return the event of a curated row.

    by_server: whether only a server may declare the event; its claim says so, and the row does not.
    """
    plain = {name: row[name] for name in (*REQUIRED_TEXTS, *NUMBERS, *OPTIONAL) if name in row}
    times = {"occurred_at": row["occurred_local"], "created_at": stamp(row["created_at"])}
    return Event(
        **plain | times,
        activity_date=row["activity_date"],
        cap=Cap.of(row["cap"]),
        is_passive=bool(row["is_passive"]),
        by_server=by_server,
    )


def _content(entry: Entry) -> tuple[str, int, Draft]:
    """Return what never changes about an entry. Its marks do: they depend on later entries."""
    return entry.created_at, entry.balance, entry.draft


def _with_marks(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries, oldest first, with the marks that rows do not have: reversals and the head."""
    reversal_of = {entry.draft.reverses: entry.created_at for entry in entries if entry.draft.reverses}
    return [
        replace(
            entry,
            carried=(),
            active=number == len(entries),
            reversed_by=reversal_of.get(entry.created_at),
            applied_through="",
        )
        for number, entry in enumerate(entries, 1)
    ]


def _entry(row: Row) -> Entry:
    dates = {
        name: row[name] and row[name].isoformat() for name in ("activity_date", "freeze_date", "expires_on")
    }
    return Entry(
        account_id=row["account_id"],
        created_at=stamp(row["created_at"]),
        seq=row["seq"],
        balance=row["balance"],
        draft=draft_from({**row, **dates}),
        salt=bytes.fromhex(row["seal"] or ""),
    )
