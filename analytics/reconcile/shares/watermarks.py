"""When each share was compared with the lake before: state/ledgers_compared.json."""

import json
from collections.abc import Collection
from datetime import datetime

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import LEDGERS_COMPARED
from analytics.lake.shares import UserShare


def read_compared(objects: Objects) -> list[str | None]:
    """Return when each share's ledgers were compared with the lake before; an empty list: never."""
    try:
        held = json.loads(objects.get(LEDGERS_COMPARED))["compared_at"]
    except NoObject:
        return []
    return held if isinstance(held, list) else [held]


def compared_before(compared: list[str | None], share: UserShare) -> datetime | None:
    """Return when a share was compared; None: never. Of other numbers, the oldest that it meets."""
    met = [
        each
        for number, each in enumerate(compared)
        if number * share.of // len(compared) == share.number
        or share.number * len(compared) // share.of == number
    ]
    return None if not met or None in met else min(datetime.fromisoformat(each) for each in met if each)


def note_compared(objects: Objects, shares: int, now: datetime, failed: Collection[int]) -> None:
    """Note that all ledgers whose turn it was have been compared, but for the shares that failed."""
    compared = read_compared(objects)
    at = [
        _text(compared_before(compared, UserShare(number, shares))) if number in failed else _text(now)
        for number in range(shares)
    ]
    objects.put(LEDGERS_COMPARED, json.dumps({"compared_at": at}).encode())


def _text(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
