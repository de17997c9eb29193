"""Whether a night has anything to do in the warehouse, which wakes when it is asked: the lake's notes tell.

state/warehouse.json is of the run that asked last. If its report was whole and found nothing there, and
nothing has come since, then its tables, models and tests are what they would be made again: a model depends
on rows alone, and on no date. Slices of leads and users that are compared by turns have one in 28 nights, so
a warehouse is asked again after as many.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import WAREHOUSE_ASKED
from analytics.warehouse.nightly.night import WarehouseNight
from rules.engagement.reconciliation import NIGHTS

SUNDAY = 6
QUIET_MAX = timedelta(days=NIGHTS)
PACKAGED = Path(__file__).resolve().parents[3]
MADE_BY = ("analytics", "rules", "sql")  # what tables, models and tests follow from


@dataclass(slots=True)
class LastAsked:
    """at: when it began. version: by which code (see `version`). is_settled: it left nothing to be done.

    are_all_tested: the tests were of all rows. curation: the report's counts by entity.
    """

    run_id: str
    at: str
    version: str
    is_settled: bool = False
    are_all_tested: bool = False
    curation: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, objects: Objects) -> "LastAsked | None":
        """Return what is noted; None if no run has asked yet."""
        try:
            return cls(**json.loads(objects.get(WAREHOUSE_ASKED)))
        except NoObject:
            return None

    def save(self, objects: Objects) -> None:
        """Store it."""
        objects.put(WAREHOUSE_ASKED, json.dumps(asdict(self)).encode())

    def is_of(self, version: str, today: date) -> bool:
        """Whether the warehouse is still what this run has left, as far as code and dates can tell."""
        is_tested = self.are_all_tested or today.weekday() != SUNDAY
        is_young = today - datetime.fromisoformat(self.at).date() < QUIET_MAX
        return self.is_settled and self.version == version and is_tested and is_young


def settle(objects: Objects, run_id: str, curation: list[dict[str, Any]]) -> None:
    """Note that a run has left nothing to be done, unless it did not ask, or another one has since."""
    last, night = LastAsked.read(objects), WarehouseNight.read(objects, run_id)
    if last and night and last.run_id == run_id:
        last.is_settled, last.are_all_tested, last.curation = True, night.full_tests, curation
        last.save(objects)


@cache
def version(url: str, grace_days: int) -> str:
    """Return a digest of the code that fills a warehouse, of its setting, and of where that is."""
    digest = hashlib.sha256(f"{url} {grace_days}".encode())
    for folder in MADE_BY:
        for path in sorted((PACKAGED / folder).rglob("*")):
            if path.suffix in (".py", ".sql", ".yml"):
                digest.update(f"\0{path.relative_to(PACKAGED)}\0".encode() + path.read_bytes())
    return digest.hexdigest()
