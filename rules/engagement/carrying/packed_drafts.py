"""The packed form of what a carrier names: 27 bytes an entry, where the text of an event's id alone has 64.

An event's id is a moment and a uuid (rules.engagement.events), so it is written as numbers. After the form's
number and a count come the kinds, each once, with their lengths. A kind is an event type and what it was
judged by, such as `CHECK_IN v2 5/day +90 #n`: version, cap, after how many days its points expire, and what
it adds to streaks. Then comes a record for each entry: the moment in microseconds, the uuid, how many days
the entry's date is after the moment's date in UTC, the place of its kind, and its points. An entry that does
not go into a record is not carried.
"""

import re
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from rules.book.book import Cap
from rules.days import EPOCH, MICROSECOND, stamp, unstamp
from rules.engagement.ledger import Draft, EntryKind

FORM = 1
PASSIVE = "passive"
LASTS = "+"
MEASURED = "#"
HEADER_BYTES = 2
STAMP_LENGTH = len(stamp(EPOCH))
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
ID = re.compile(
    DATE.pattern + r"T\d\d:\d\d:\d\d\.\d{6}Z#[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII
)
_RECORD = struct.Struct(">7s16sbBH")
RECORD_BYTES = _RECORD.size


def kind_of(draft: Draft) -> str:
    """Return an entry's event type and what its event was judged by, as one text."""
    lasts = _days_between(draft.activity_date or "", draft.expires_on) if draft.expires_on else None
    more = lasts, draft.measures
    return _kind(draft.event_type or "", draft.rules_version, draft.cap, draft.is_passive, more)


@lru_cache(maxsize=2048)  # a writer asks for each entry, and there are few dates
def _days_between(first: str, last: str) -> int:
    return date.fromisoformat(last).toordinal() - date.fromisoformat(first).toordinal()


@lru_cache(maxsize=1024)  # a writer asks for each entry, and there are few kinds
def _kind(
    event_type: str,
    version: int | None,
    cap: Cap | None,
    is_passive: bool,
    more: tuple[int | None, str | None],
) -> str:
    lasts, measures = more
    judged = [
        "" if version is None else f"v{version}",
        cap.text if cap else "",
        PASSIVE if is_passive else "",
        "" if lasts is None else f"{LASTS}{lasts}",
        "" if measures is None else f"{MEASURED}{measures}",
    ]
    return " ".join([event_type, *filter(None, judged)])


def _judged_by(kind: str) -> dict[str, Any]:
    """Return the fields of a draft that a kind tells; raises ValueError."""
    event_type, *judged = kind.split(" ")
    told: dict[str, Any] = {"event_type": event_type}
    for each in judged:
        if each.startswith("v"):
            told["rules_version"] = int(each[1:])
        elif each == PASSIVE:
            told["is_passive"] = True
        elif each.startswith(LASTS):
            told["lasts"] = int(each.removeprefix(LASTS))
        elif each.startswith(MEASURED):
            told["measures"] = each.removeprefix(MEASURED)
        else:
            told["cap"] = Cap.of(each)
    return told


def kind_bytes(kind: str) -> int:
    """Return the bytes that a kind takes in the list of kinds."""
    return 1 + len(kind.encode())


def is_packable(draft: Draft) -> bool:
    """Whether an entry goes into a record."""
    return _numbers(draft) is not None


def pack(drafts: Sequence[Draft]) -> bytes:
    """Pack drafts; raises ValueError for one that is not packable."""
    if odd := [draft for draft in drafts if not is_packable(draft)]:
        raise ValueError(f"not packable: {odd[0]}")
    kinds = sorted(set(map(kind_of, drafts)))
    head = bytes([FORM, len(kinds)])
    head += b"".join(bytes([len(each.encode())]) + each.encode() for each in kinds)
    return head + b"".join(_record(draft, kinds) for draft in drafts)


def _record(draft: Draft, kinds: Sequence[str]) -> bytes:
    place = kinds.index(kind_of(draft))
    return _RECORD.pack(*(_numbers(draft) or ()), place, draft.points)


@lru_cache(maxsize=2048)  # a writer asks what fits before it packs
def _numbers(draft: Draft) -> tuple[bytes, bytes, int] | None:
    """Return a draft's moment, uuid and days, if its record would be read as the same draft."""
    event_id, activity_date = draft.event_id, draft.activity_date
    if draft.kind is not EntryKind.EARN or not (event_id and activity_date and draft.event_type):
        return None
    if draft.reward_id or draft.reverses or draft.freeze or draft.freeze_date or draft.held_at or draft.brand:
        return None
    dates = (activity_date, draft.expires_on or activity_date)
    if not (ID.fullmatch(event_id) and all(map(DATE.fullmatch, dates))):
        return None
    if not 0 <= draft.points < 2**16 or kind_bytes(kind_of(draft)) > 2**8 or " " in draft.event_type:
        return None
    with suppress(ValueError):
        moment = unstamp(event_id[:STAMP_LENGTH])
        days = date.fromisoformat(activity_date).toordinal() - moment.toordinal()
        if moment >= EPOCH and -128 <= days < 128:
            micros = (moment - EPOCH) // MICROSECOND
            return (
                micros.to_bytes(7, "big"),
                bytes.fromhex(event_id[STAMP_LENGTH + 1 :].replace("-", "")),
                days,
            )
    return None


def unpack(packed: bytes) -> list[Draft]:
    """Read what pack() wrote; raises ValueError or IndexError for what it cannot have written."""
    form, count = packed[:HEADER_BYTES]
    if form != FORM:
        raise ValueError(f"entries packed in form {form}, which this version does not know")
    place, kinds = HEADER_BYTES, []
    for _ in range(count):
        end = place + 1 + packed[place]
        kinds.append(_judged_by(packed[place + 1 : end].decode()))
        place = end
    if (len(packed) - place) % RECORD_BYTES:
        raise ValueError(f"packed entries of {len(packed)} bytes, which are cut off")
    drafts = []
    for micros, unique, days, of, points in _RECORD.iter_unpack(packed[place:]):
        moment = EPOCH + int.from_bytes(micros, "big") * MICROSECOND
        event_id = f"{stamp(moment)}#{UUID(bytes=unique)}"
        when = moment.date() + timedelta(days)
        told = dict(kinds[of])
        lasts = told.pop("lasts", None)
        expires = None if lasts is None else (when + timedelta(lasts)).isoformat()
        earned = {"activity_date": when.isoformat(), "expires_on": expires, **told}
        drafts.append(Draft(EntryKind.EARN, points, event_id, **earned))
    return drafts


def from_texts(texts: Iterable[str]) -> list[Draft]:
    """Read the form of earlier versions: `10|CHECK_IN|2026-03-01|ID` for each entry."""
    fields = (text.split("|", 3) for text in texts)
    return [
        Draft(EntryKind.EARN, int(points), event_id, event_type, activity_date)
        for points, event_type, activity_date, event_id in fields
    ]
