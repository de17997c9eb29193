"""The newest run that has asked the warehouse, and whether it left anything to do.

The warehouse wakes when it is asked, and costs money then. So state/warehouse.json notes the run that asked
last. A night does not ask if that run left nothing to do and no rows have come since: a model depends on rows
alone, and on no date. Slices of leads and users are compared in turn, each once in 28 nights, so after 28
nights without a question the warehouse is asked again.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import WAREHOUSE_ASKED
from rules.turns import NIGHTS

QUIET_MAX = timedelta(days=NIGHTS)  # after so long the warehouse is asked again
PACKAGED = Path(__file__).resolve().parents[2]
MADE_BY = ("analytics", "rules", "sql")  # the folders whose files make tables, models and tests


@dataclass(slots=True)
class LastWarehouseRun:
    """The newest run that has asked the warehouse (state/warehouse.json)."""

    run_id: str
    at: str  # when it began, ISO 8601
    version: str  # of the code (see `version`)
    is_settled: bool = False  # whether it left nothing to be done
    curation: list[dict[str, Any]] = field(default_factory=list)  # the report's counts by entity

    @classmethod
    def read(cls, objects: Objects) -> "LastWarehouseRun | None":
        """Return the stored note; None if no run has asked yet."""
        try:
            note = json.loads(objects.get(WAREHOUSE_ASKED))
        except NoObject:
            return None
        # Notes of earlier versions have further fields.
        return cls(**{each.name: note[each.name] for each in fields(cls) if each.name in note})

    def save(self, objects: Objects) -> None:
        """Store the note."""
        objects.put(WAREHOUSE_ASKED, json.dumps(asdict(self)).encode())

    def still_holds(self, version: str, today: date) -> bool:
        """Whether a night with this version of the code may rely on what this run has left.

        The run must have left nothing to be done, and be younger than QUIET_MAX.
        """
        is_young = today - datetime.fromisoformat(self.at).date() < QUIET_MAX
        return self.is_settled and self.version == version and is_young


def settle(objects: Objects, run_id: str, curation: list[dict[str, Any]]) -> None:
    """Note that a run has left nothing to be done, if it was the last one that asked the warehouse."""
    last = LastWarehouseRun.read(objects)
    if last and last.run_id == run_id:
        last.is_settled, last.curation = True, curation
        last.save(objects)


@cache
def version(url: str, grace_days: int) -> str:
    """Return a digest of the code that fills a warehouse, of its URL, and of the grace days of campaigns."""
    digest = hashlib.sha256(f"{url} {grace_days}".encode())
    for folder in MADE_BY:
        for path in sorted((PACKAGED / folder).rglob("*")):
            if path.suffix in (".py", ".sql", ".yml"):
                digest.update(f"\0{path.relative_to(PACKAGED)}\0".encode() + path.read_bytes())
    return digest.hexdigest()
