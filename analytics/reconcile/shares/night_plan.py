"""The plan of a night's comparison: when each share of the users was compared last.

Each share has its own watermark. So if a share fails, the next night compares it from its old watermark, and
the other shares from their new ones.
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
    """Return when each share's ledgers were last compared with the lake; None: never.

    If the number of shares has changed since then, no share counts as compared.
    """
    try:
        texts = json.loads(objects.get(LEDGERS_COMPARED))["compared_at"]
    except NoObject:
        texts = []
    compared = [text and datetime.fromisoformat(text) for text in texts]
    return compared if len(compared) == shares else [None] * shares


@dataclass(frozen=True, slots=True)
class NightPlan:
    """A night's comparison."""

    run_id: str
    at: datetime  # when the night began, and up to when it compares
    everybody: bool  # whether to examine all users
    span: tuple[date, date] | None  # first and last activity date to compare; None: the changed dates
    last_compared_at: list[datetime | None]  # for each share, by its number; None: never

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
        values = json.loads(objects.get(run_key(run_id, PLAN)))
        span = None
        if values["span"]:
            first, last = values["span"]
            span = (date.fromisoformat(first), date.fromisoformat(last))
        last_compared_at = [text and datetime.fromisoformat(text) for text in values["last_compared_at"]]
        at = datetime.fromisoformat(values["at"])
        return cls(values["run_id"], at, values["everybody"], span, last_compared_at)

    @property
    def shares(self) -> int:
        """The number of shares of all users."""
        return len(self.last_compared_at)

    def note_compared(self, objects: Objects, failed: Collection[int]) -> None:
        """Note that all ledgers whose turn it was were compared, except for those of failed shares."""
        compared_at = [
            last if number in failed else self.at for number, last in enumerate(self.last_compared_at)
        ]
        values = {"compared_at": [instant and instant.isoformat() for instant in compared_at]}
        objects.put(LEDGERS_COMPARED, json.dumps(values).encode())
