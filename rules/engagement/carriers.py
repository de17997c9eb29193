"""Carriers: how several ledger entries are written at the price of a few.

If a writer appends several entries, its transaction writes only the carriers among them. A carrier names the
EARN entries just before it, the carried entries. The writer puts those after the transaction, at half the
price. If it dies first, the next writer rebuilds them from their carrier (`unfold_carrier`). Example: twenty
events are three carriers and seventeen carried entries.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from rules.book.point_rules import Cap
from rules.days import MICROSECOND, stamp, unstamp
from rules.engagement.ledger import Draft, Entry, EntryKind

# Words of a kind (_kind_of): a passive event, the days until points expire, and measures.
PASSIVE, LASTS, MEASURED = "passive", "+", "#"
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
FRAME_BYTES = 30  # of the lists of kinds and lines, with their names
WRITE_UNIT_BYTES = 1024  # a write is billed in steps of this many bytes
CARRIERS_MAX = 50  # of entries that can be carried; a transaction takes 100 actions
CARRIER_BYTES_MAX = 2**18  # an item may have 400 KB
# The bytes of a carrier's attribute names, of its values of fixed length, and of the hash and the stream
# position that it gets later.
FIXED_BYTES = 265
# Fields of a draft that a carrier may have in addition. Each costs the bytes of its name and its value.
OPTIONAL = (
    *("cap", "is_passive", "expires_on", "measures"),
    *("reward_id", "reverses", "freeze", "freeze_date", "held_at", "reason", "brand"),
)


def split_carriers(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Split appended entries into the carriers, which the transaction writes, and the carried entries.

    A carrier names as many entries as fit beside its own attributes into one write unit. If there are so many
    entries that the carriers would not fit into a transaction, it names more. The last entry is always a
    carrier, and becomes the head.
    """
    drafts_min = len(entries) // CARRIERS_MAX
    carriers: list[Entry] = []
    carried_entries: list[Entry] = []
    carried = CarriedDrafts()  # those that the next carrier will name
    for entry, follower in zip_longest(entries, entries[1:]):
        is_carried = False
        if follower and not entry.salt:  # an entry that begins a chain is stored with the chain's salt
            room = CARRIER_BYTES_MAX if len(carried.drafts) < drafts_min else _free_bytes(follower)
            is_carried = carried.add_if_fits(entry.draft, room)
        if is_carried:
            carried_entries.append(entry)
        else:
            carriers.append(replace(entry, carried=tuple(carried.drafts), active=follower is None))
            carried = CarriedDrafts()
    return carriers, carried_entries


def unfold_carrier(carrier: Entry) -> list[Entry]:
    """Return the carried entries that a carrier names, oldest first."""
    entries: list[Entry] = []
    seq, moment = carrier.seq, unstamp(carrier.created_at)
    balance = carrier.balance - carrier.draft.points
    for draft in reversed(carrier.carried):
        seq, moment = seq - 1, moment - MICROSECOND
        entries.append(Entry(carrier.account_id, stamp(moment), seq, balance, draft))
        balance -= draft.points
    return entries[::-1]


def with_carried(stored: Iterable[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return stored and carried entries, oldest first; and those of them that are not stored yet."""
    by_place = {entry.created_at: entry for entry in stored}
    missing = [
        entry
        for carrier in list(by_place.values())
        for entry in unfold_carrier(carrier)
        if entry.created_at not in by_place
    ]
    everything = {**by_place, **{entry.created_at: entry for entry in missing}}
    return [everything[key] for key in sorted(everything)], missing


@dataclass(slots=True)
class CarriedDrafts:
    """EARN drafts that one carrier names, as texts that an operator can read."""

    drafts: list[Draft] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)  # see _kind_of; each once
    # For each draft the number of its kind, its points, its date and its event's id, such as
    # `0 10 2026-06-01 2026-06-01T08:30:00.000000Z#ac815fe5-92f6-5c51-9d3e-0c6a6d0f7f8e`
    lines: list[str] = field(default_factory=list)
    size: int = FRAME_BYTES  # how many bytes all of them take in a table

    def add_if_fits(self, draft: Draft, room: int) -> bool:
        """Add a draft if all drafts then take `room` bytes at most. Returns whether it was added."""
        if not _is_carriable(draft):
            return False
        kind = _kind_of(draft)
        is_known = kind in self.kinds
        number = self.kinds.index(kind) if is_known else len(self.kinds)
        line = f"{number} {draft.points} {draft.activity_date} {draft.event_id}"
        added_bytes = 1 + len(line.encode()) + (0 if is_known else 1 + len(kind.encode()))
        if self.size + added_bytes > room:
            return False
        self.drafts.append(draft)
        self.lines.append(line)
        if not is_known:
            self.kinds.append(kind)
        self.size += added_bytes
        return True


def carried_text(drafts: Iterable[Draft]) -> dict[str, list[str]]:
    """Return drafts as {"kinds", "lines"}; raises ValueError for one that no carrier can name."""
    carried = CarriedDrafts()
    for draft in drafts:
        if not carried.add_if_fits(draft, CARRIER_BYTES_MAX):
            raise ValueError(f"no carrier can name {draft}")
    return {"kinds": carried.kinds, "lines": carried.lines}


def carried_drafts(text: Mapping[str, Sequence[str]]) -> list[Draft]:
    """Read what carried_text returned; raises ValueError, IndexError or KeyError for anything else."""
    kinds = [_fields_of_kind(each) for each in text["kinds"]]
    drafts = []
    for line in text["lines"]:
        number, points, activity_date, event_id = line.split(" ")
        judged = dict(kinds[int(number)])
        if (lasts := judged.pop("lasts", None)) is not None:
            judged["expires_on"] = (date.fromisoformat(activity_date) + timedelta(lasts)).isoformat()
        drafts.append(Draft(EntryKind.EARN, int(points), event_id, activity_date=activity_date, **judged))
    return drafts


def _free_bytes(entry: Entry) -> int:
    """Return how many bytes an entry leaves for carried drafts in the first write unit of its item."""
    draft = entry.draft
    values = (entry.account_id, draft.event_id, draft.event_type, draft.activity_date)
    used = FIXED_BYTES + sum(len(value.encode()) for value in values if value)
    for name in OPTIONAL:
        if each := getattr(draft, name):
            used += len(name) + (1 if each is True else len(str(getattr(each, "text", each)).encode()))
    return WRITE_UNIT_BYTES - used


def _is_carriable(draft: Draft) -> bool:
    """Whether a line and a kind can hold all of a draft."""
    event_id, activity_date, expires_on = draft.event_id, draft.activity_date, draft.expires_on
    if draft.kind is not EntryKind.EARN or not (event_id and activity_date and draft.event_type):
        return False
    if draft.reward_id or draft.reverses or draft.freeze or draft.freeze_date or draft.held_at or draft.brand:
        return False
    if draft.reason or " " in event_id or " " in draft.event_type:
        return False
    return all(map(_is_date, filter(None, (activity_date, expires_on))))


@lru_cache(maxsize=1024)  # there are few dates
def _is_date(text: str) -> bool:
    with suppress(ValueError):
        return bool(DATE.fullmatch(text) and date.fromisoformat(text))
    return False


def _kind_of(draft: Draft) -> str:
    """Return the part of a draft that many drafts share, as one text.

    Example: `CHECK_IN v2 5/day +90 #n` has the event type, the book's version, the cap, the days until the
    points expire, and the measures.
    """
    lasts = _days_between(draft.activity_date or "", draft.expires_on) if draft.expires_on else None
    return _kind_text(
        (draft.event_type or "", draft.rules_version, draft.cap, draft.is_passive, lasts, draft.measures)
    )


@lru_cache(maxsize=2048)  # a writer needs it for each entry, and there are few dates
def _days_between(first: str, last: str) -> int:
    return date.fromisoformat(last).toordinal() - date.fromisoformat(first).toordinal()


@lru_cache(maxsize=1024)  # a writer needs it for each entry, and there are few kinds
def _kind_text(values: tuple[str, int | None, Cap | None, bool, int | None, str | None]) -> str:
    event_type, version, cap, is_passive, lasts, measures = values
    judged = [
        "" if version is None else f"v{version}",
        cap.text if cap else "",
        PASSIVE if is_passive else "",
        "" if lasts is None else f"{LASTS}{lasts}",
        "" if measures is None else f"{MEASURED}{measures}",
    ]
    return " ".join([event_type, *filter(None, judged)])


def _fields_of_kind(kind: str) -> dict[str, Any]:
    """Return the fields of a draft that a kind contains; raises ValueError."""
    event_type, *judged = kind.split(" ")
    values: dict[str, Any] = {"event_type": event_type}
    for each in judged:
        if each.startswith("v"):
            values["rules_version"] = int(each[1:])
        elif each == PASSIVE:
            values["is_passive"] = True
        elif each.startswith(LASTS):
            values["lasts"] = int(each.removeprefix(LASTS))
        elif each.startswith(MEASURED):
            values["measures"] = each.removeprefix(MEASURED)
        else:
            values["cap"] = Cap.of(each)
    return values
