"""The packed form of what a carrier names: 22 bytes an entry, where the text of an event's id alone has 64.

An event's id is a moment and a uuid (rules.engagement.events), so it is written as numbers. After the form's
number, two counts and the earliest moment come the kinds (`entry_kinds`), each once, with their lengths. Then
come the cases, each once: the place of a kind, how many days an entry's date is after its moment's date in
UTC, and points. Last comes a record for each entry: its microseconds after the earliest moment, its uuid, and
the place of its case. An entry that does not go into a record is not carried.
"""

import re
import struct
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from rules.days import EPOCH, MICROSECOND, stamp, unstamp
from rules.engagement.carrying.entry_kinds import judged_by, kind_bytes, kind_of
from rules.engagement.ledger import Draft, EntryKind

FORM = 2
STAMP_LENGTH = len(stamp(EPOCH))
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
ID = re.compile(
    DATE.pattern + r"T\d\d:\d\d:\d\d\.\d{6}Z#[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII
)
_HEADER = struct.Struct(">BBB7s")
_CASE = struct.Struct(">BbH")
_RECORD = struct.Struct(">5s16sB")
HEADER_BYTES, CASE_BYTES, RECORD_BYTES = _HEADER.size, _CASE.size, _RECORD.size
SPAN_MAX = 2**40 - 1  # microseconds between the earliest and the latest moment: twelve days


@dataclass(slots=True)
class Packing:
    """Drafts that are packed together. size: how many bytes they take, all of them."""

    drafts: list[Draft] = field(default_factory=list)
    size: int = HEADER_BYTES
    _kinds: dict[str, int] = field(default_factory=dict)
    _cases: dict[tuple[int, int, int], int] = field(default_factory=dict)
    _records: list[tuple[int, bytes, int]] = field(default_factory=list)
    _first: int = 0
    _last: int = 0

    def takes(self, draft: Draft, room: int) -> bool:
        """Add a draft if all of them then take `room` bytes at most; whether it was added."""
        told = _told(draft)
        if told is None:
            return False
        kind, micros, unique, days = told
        first = min(micros, self._first) if self.drafts else micros
        last = max(micros, self._last)
        case = self._kinds.get(kind, len(self._kinds)), days, draft.points
        more = RECORD_BYTES
        more += 0 if kind in self._kinds else kind_bytes(kind)
        more += 0 if case in self._cases else CASE_BYTES
        if self.size + more > room or last - first > SPAN_MAX or len(self._cases) == 2**8 - 1:
            return False
        self._first, self._last = first, last
        self._kinds.setdefault(kind, len(self._kinds))
        place = self._cases.setdefault(case, len(self._cases))
        self._records.append((micros, unique, place))
        self.drafts.append(draft)
        self.size += more
        return True

    def packed(self) -> bytes:
        """Return the packed form of all drafts."""
        first = self._first
        return b"".join(
            [
                _HEADER.pack(FORM, len(self._kinds), len(self._cases), first.to_bytes(7, "big")),
                *(bytes([len(each.encode())]) + each.encode() for each in self._kinds),
                *(_CASE.pack(*case) for case in self._cases),
                *(
                    _RECORD.pack((micros - first).to_bytes(5, "big"), unique, place)
                    for micros, unique, place in self._records
                ),
            ]
        )


def pack(drafts: Iterable[Draft]) -> bytes:
    """Pack drafts; raises ValueError for one that is not packable, or not together with those before it."""
    packing = Packing()
    for draft in drafts:
        if not packing.takes(draft, 2**20):
            raise ValueError(f"not packable: {draft}")
    return packing.packed()


def _told(draft: Draft) -> tuple[str, int, bytes, int] | None:
    """Return a draft's kind, moment, uuid and days, if its record would be read as the same draft."""
    event_id, activity_date, expires_on = draft.event_id, draft.activity_date, draft.expires_on
    if draft.kind is not EntryKind.EARN or not (event_id and activity_date and draft.event_type):
        return None
    if draft.reward_id or draft.reverses or draft.freeze or draft.freeze_date or draft.held_at or draft.brand:
        return None
    if expires_on and not DATE.fullmatch(expires_on):
        return None
    numbers = _numbers(event_id, activity_date)
    if numbers is None or not 0 <= draft.points < 2**16 or " " in draft.event_type:
        return None
    kind = kind_of(draft)
    return None if kind_bytes(kind) > 2**8 else (kind, *numbers)


@lru_cache(maxsize=4096)  # of an entry, hashing, carrying and packing ask
def _numbers(event_id: str, activity_date: str) -> tuple[int, bytes, int] | None:
    """Return an event's moment in microseconds, its uuid, and its date's days after the moment's."""
    if not (ID.fullmatch(event_id) and DATE.fullmatch(activity_date)):
        return None
    with suppress(ValueError):
        moment = unstamp(event_id[:STAMP_LENGTH])
        days = date.fromisoformat(activity_date).toordinal() - moment.toordinal()
        if moment >= EPOCH and -128 <= days < 128:
            unique = bytes.fromhex(event_id[STAMP_LENGTH + 1 :].replace("-", ""))
            return (moment - EPOCH) // MICROSECOND, unique, days
    return None


def unpack(packed: bytes) -> list[Draft]:
    """Read what pack() wrote; raises ValueError or IndexError for what it cannot have written."""
    form, kind_count = packed[:2]
    if form != FORM:
        raise ValueError(f"entries packed in form {form}, which this version does not know")
    if len(packed) < HEADER_BYTES:
        raise ValueError(f"packed entries of {len(packed)} bytes, which are cut off")
    _, _, case_count, first = _HEADER.unpack_from(packed)
    kinds, place = _kinds_from(packed, HEADER_BYTES, kind_count)
    end = place + case_count * CASE_BYTES
    if len(packed) < end or (len(packed) - end) % RECORD_BYTES:
        raise ValueError(f"packed entries of {len(packed)} bytes, which are cut off")
    cases = list(_CASE.iter_unpack(packed[place:end]))
    drafts = []
    for after, unique, case in _RECORD.iter_unpack(packed[end:]):
        of, days, points = cases[case]
        micros = int.from_bytes(first, "big") + int.from_bytes(after, "big")
        drafts.append(_draft(micros, unique, days, kinds[of], points))
    return drafts


def _kinds_from(packed: bytes, place: int, count: int) -> tuple[list[dict[str, Any]], int]:
    """Return what the kinds from a place on tell, and the place after them."""
    kinds = []
    for _ in range(count):
        end = place + 1 + packed[place]
        kinds.append(judged_by(packed[place + 1 : end].decode()))
        place = end
    return kinds, place


def _draft(micros: int, unique: bytes, days: int, kind: dict[str, Any], points: int) -> Draft:
    moment = EPOCH + micros * MICROSECOND
    when = moment.date() + timedelta(days)
    told = dict(kind)
    lasts = told.pop("lasts", None)
    expires = None if lasts is None else (when + timedelta(lasts)).isoformat()
    event_id = f"{stamp(moment)}#{UUID(bytes=unique)}"
    return Draft(EntryKind.EARN, points, event_id, activity_date=when.isoformat(), expires_on=expires, **told)
