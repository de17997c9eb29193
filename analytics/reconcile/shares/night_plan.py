"""From when on each share of a night compares.

A share has its own watermark and its own settled users. So one that failed is taken up by the next night,
from where it was, and the others go on.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import LEDGERS_COMPARED, run_key
from analytics.recompute.user_shares import FOLDER

PLAN = FOLDER + "plan.json"


def read_compared(objects: Objects, shares: int) -> list[datetime | None]:
    """Return when each share's ledgers were compared with the lake before; None: never.

    Of another number of shares nothing is known.
    """
    try:
        held = json.loads(objects.get(LEDGERS_COMPARED))["compared_at"]
    except NoObject:
        held = []
    known = [each and datetime.fromisoformat(each) for each in held]
    return known if len(known) == shares else [None] * shares


@dataclass(frozen=True, slots=True)
class NightPlan:
    """at: up to when the night compares. span: first and last activity date to compare, if given.

    before: for each share, when it was compared last.
    """

    run_id: str
    at: datetime
    everybody: bool
    span: tuple[date, date] | None
    before: list[datetime | None]

    @classmethod
    def of(cls, objects: Objects, now: datetime, shares: int, event: Mapping[str, Any]) -> "NightPlan":
        """Plan and store a night's comparison. event: `run_id`; and `everybody`, `from` and `to` if given."""
        span = None
        if event.get("from") and event.get("to"):
            span = (date.fromisoformat(event["from"]), date.fromisoformat(event["to"]))
        everybody = event.get("everybody") is True
        plan = cls(event["run_id"], now, everybody, span, read_compared(objects, shares))
        objects.put(run_key(plan.run_id, PLAN), json.dumps(asdict(plan), default=str).encode())
        return plan

    @classmethod
    def load(cls, objects: Objects, run_id: str) -> "NightPlan":
        """Read a run's plan. Raises NoObject if there is none."""
        held = json.loads(objects.get(run_key(run_id, PLAN)))
        span = tuple(map(date.fromisoformat, held["span"])) if held["span"] else None
        before = [each and datetime.fromisoformat(each) for each in held["before"]]
        return cls(**{**held, "at": datetime.fromisoformat(held["at"]), "span": span, "before": before})

    @property
    def shares(self) -> int:
        """How many shares all users are compared in."""
        return len(self.before)

    def note_compared(self, objects: Objects, failed: Collection[int]) -> None:
        """Note that all ledgers whose turn it was have been compared, but for the shares that failed."""
        at = [before if number in failed else self.at for number, before in enumerate(self.before)]
        held = {"compared_at": [each and each.isoformat() for each in at]}
        objects.put(LEDGERS_COMPARED, json.dumps(held).encode())
