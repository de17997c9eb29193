"""Carriers: how several ledger entries are written at the price of a few.

If a writer appends several entries, its transaction writes only the carriers among them. A carrier names the
EARN entries just before it, the carried entries. The writer puts those after the transaction, at half the
price. If it dies first, the next writer rebuilds them from their carrier (`unfold_carrier`). Example: twenty
events are three carriers and seventeen carried entries.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import zip_longest
from typing import Any

from rules.book.point_rules import Cap
from rules.days import MICROSECOND, stamp, unstamp
from rules.engagement.ledger import Draft, Entry, EntryKind

# Words of a kind (_kind_of): a passive event, the days until points expire, measures, and a zone.
PASSIVE, LASTS, MEASURED, IN_ZONE = "passive", "+", "#", "@"
FRAME_BYTES = 30  # of the lists of kinds and lines, with their names
WRITE_UNIT_BYTES = 1024  # a write is billed in steps of this many bytes
CARRIERS_MAX = 50  # of entries that can be carried; a transaction takes 100 actions
CARRIER_BYTES_MAX = 2**18  # an item may have 400 KB
# The bytes of a carrier's attribute names, of its values of fixed length, and of the stream position that it
# gets later.
FIXED_BYTES = 213
# Fields of a draft that a carrier may have in addition. Each costs the bytes of its name and its value.
OPTIONAL = (
    *("cap", "is_passive", "expires_on", "measures", "timezone"),
    *("reward_id", "reverses", "freeze", "freeze_date", "held_at", "reason", "brand", "setting", "set_to"),
)


def split_carriers(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Split appended entries into the carriers, which the transaction writes, and the carried entries.

    A carrier names as many entries as fit beside its own attributes into one write unit. If there are so many
    entries that the carriers would not fit into a transaction, it names more. The last entry is always a
    carrier, and becomes the head.
    """
    named_min = len(entries) // CARRIERS_MAX
    carriers: list[Entry] = []
    carried: list[Entry] = []
    named: list[Draft] = []  # those that the next carrier will name
    for entry, follower in zip_longest(entries, entries[1:]):
        if follower and entry.draft.kind is EntryKind.EARN and entry.draft.event_id:
            room = CARRIER_BYTES_MAX if len(named) < named_min else _free_bytes(follower)
            if _size([*named, entry.draft]) <= room:
                named.append(entry.draft)
                carried.append(entry)
                continue
        carriers.append(replace(entry, carried=tuple(named), active=follower is None))
        named = []
    return carriers, carried


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


def carried_text(drafts: Iterable[Draft]) -> dict[str, list[str]]:
    """Return EARN drafts as texts that an operator can read: {"kinds", "lines"}.

    A line has the number of the draft's kind (_kind_of), its points, its date and its event's id, such as
    `0 10 2026-06-01 2026-06-01T08:30:00Z#ac815fe5-92f6-5c51-9d3e-0c6a6d0f7f8e`.
    """
    numbers: dict[str, int] = {}  # by kind
    lines = []
    for draft in drafts:
        number = numbers.setdefault(_kind_of(draft), len(numbers))
        lines.append(f"{number} {draft.points} {draft.activity_date} {draft.event_id}")
    return {"kinds": list(numbers), "lines": lines}


def carried_drafts(text: Mapping[str, Sequence[str]]) -> list[Draft]:
    """Read what carried_text returned; raises ValueError, IndexError or KeyError for anything else."""
    kinds = [_fields_of_kind(each) for each in text["kinds"]]
    drafts = []
    for line in text["lines"]:
        number, points, activity_date, event_id = line.split(" ")
        fields = dict(kinds[int(number)])
        if (lasts := fields.pop("lasts", None)) is not None:
            fields["expires_on"] = (date.fromisoformat(activity_date) + timedelta(lasts)).isoformat()
        drafts.append(Draft(EntryKind.EARN, int(points), event_id, activity_date=activity_date, **fields))
    return drafts


def _size(drafts: Iterable[Draft]) -> int:
    """Return how many bytes the text of drafts takes in a table."""
    text = carried_text(drafts)
    return FRAME_BYTES + sum(1 + len(each.encode()) for each in (*text["kinds"], *text["lines"]))


def _free_bytes(entry: Entry) -> int:
    """Return how many bytes an entry leaves for carried drafts in the first write unit of its item."""
    draft = entry.draft
    values = (entry.account_id, draft.event_id, draft.event_type, draft.activity_date)
    used = FIXED_BYTES + sum(len(value.encode()) for value in values if value)
    for name in OPTIONAL:
        value = draft.cap.text if name == "cap" and draft.cap else getattr(draft, name)
        if value:
            used += len(name) + (1 if value is True else len(str(value).encode()))  # a truth value has a byte
    return WRITE_UNIT_BYTES - used


def _kind_of(draft: Draft) -> str:
    """Return the part of a draft that many drafts share, as one text.

    Example: `CHECK_IN v2 5/day +90 #n @Asia/Tokyo` has the event type, the book's version, the cap, the days
    until the points expire, the measures, and the zone that the event named.
    """
    words = [draft.event_type or ""]
    if draft.rules_version is not None:
        words.append(f"v{draft.rules_version}")
    if draft.cap:
        words.append(draft.cap.text)
    if draft.is_passive:
        words.append(PASSIVE)
    if draft.expires_on:
        lasts = date.fromisoformat(draft.expires_on) - draft.day
        words.append(f"{LASTS}{lasts.days}")
    if draft.measures is not None:
        words.append(f"{MEASURED}{draft.measures}")
    if draft.timezone is not None:
        words.append(f"{IN_ZONE}{draft.timezone}")
    return " ".join(words)


def _fields_of_kind(kind: str) -> dict[str, Any]:
    """Return the fields of a draft that a kind contains; raises ValueError.

    In place of `expires_on` it has `lasts`, the days until the points expire.
    """
    event_type, *words = kind.split(" ")
    values: dict[str, Any] = {"event_type": event_type}
    for word in words:
        if word.startswith("v"):
            values["rules_version"] = int(word[1:])
        elif word == PASSIVE:
            values["is_passive"] = True
        elif word.startswith(LASTS):
            values["lasts"] = int(word.removeprefix(LASTS))
        elif word.startswith(MEASURED):
            values["measures"] = word.removeprefix(MEASURED)
        elif word.startswith(IN_ZONE):
            values["timezone"] = word.removeprefix(IN_ZONE)
        else:
            values["cap"] = Cap.of(word)
    return values
