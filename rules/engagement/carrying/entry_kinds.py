"""An entry's kind as one text: its event type, and what its event was judged by.

Example: `CHECK_IN v2 5/day +90 #n` tells the version, the cap, after how many days the points expire, and
what the event adds to streaks.
"""

from datetime import date
from functools import lru_cache
from typing import Any

from rules.book.point_rules import Cap
from rules.engagement.ledger import Draft

PASSIVE = "passive"
LASTS = "+"
MEASURED = "#"


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


def judged_by(kind: str) -> dict[str, Any]:
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
