"""Which recompute a night takes: the lake's, column by column, or the warehouse's, by UNLOAD.

The lake's is the rule. The warehouse is asked where so much has to be read that even the most shares would be
too large. Repair does not wait for it long: if it has not loaded and built the night within half an hour, or
fails, the lake's recompute is taken, and the report says so.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import run_key
from analytics.recompute.settled_users import FOLDER, lake_files
from analytics.recompute.warehouse_recompute import COUNT, accounts_query
from analytics.reconcile.shares.night_plan import bytes_to_read, is_of_all, read_compared
from analytics.warehouse.copy_unload import Unload
from analytics.warehouse.night import Kind, State, WarehouseNight
from analytics.warehouse.statements import StatementFailed
from analytics.warehouse.warehouse import NoWarehouse, Warehouse
from rules.engagement.reconciliation import LAKE_LAG, slices_due

LAKE, WAREHOUSE = "lake", "warehouse"
WAIT_MAX = timedelta(minutes=30)
MODEL = "marts.streaks_recomputed"
WAY, UNLOADED = FOLDER + "way.json", FOLDER + "unloaded/"
GIGABYTE = 2**30
# Up to 4 GB are 512 shares of 8 MB, which is the most: 3.5 million daily actives, or a year of 100,000
# read anew.
FROM_GB = 4


@dataclass(slots=True)
class RecomputeChoice:
    """way: LAKE or WAREHOUSE. at: when it was chosen. users: how many there are, once all is unloaded."""

    way: str
    why: str
    at: str
    users: int | None = None

    @classmethod
    def load(cls, objects: Objects, run_id: str) -> "RecomputeChoice":
        """Return which way a run takes."""
        try:
            return cls(**json.loads(objects.get(run_key(run_id, WAY))))
        except NoObject:
            return cls(LAKE, "nothing was chosen", "")

    @classmethod
    def settled(cls, objects: Objects, run_id: str) -> "RecomputeChoice":
        """Return the way that a run goes on with. If nothing was unloaded, it is the lake's."""
        way = cls.load(objects, run_id)
        if way.way == WAREHOUSE and way.users is None:
            way.way, way.why = LAKE, f"{way.why}; the warehouse did not answer"
            way.save(objects, run_id)
        return way

    def save(self, objects: Objects, run_id: str) -> str:
        """Store it; returns the way."""
        objects.put(run_key(run_id, WAY), json.dumps(asdict(self)).encode())
        return self.way


@dataclass(frozen=True, slots=True)
class WarehouseRecompute:
    """lake: the bucket's URL; role_arn: by which Redshift writes there. from_gb: see `choose`; 0: never."""

    objects: Objects
    warehouse: Warehouse
    lake: str
    role_arn: str
    from_gb: float

    def choose(self, event: Mapping[str, Any], now: datetime) -> dict[str, str]:
        """{"run_id", "everybody"?, "from"?, "to"?} -> {"way"}: the warehouse if there is so much to read."""
        size = bytes_to_read(self.objects, lake_files(self.objects), now.date())
        told = (
            f"{size / GIGABYTE:.3f} GB of curated files are to be read, and {self.from_gb} GB are the limit"
        )
        compared = read_compared(self.objects)
        if is_of_all(event) or not compared or None in compared:
            way = RecomputeChoice(LAKE, "all accounts are to be compared", now.isoformat())
        elif isinstance(self.warehouse, NoWarehouse) or not self.from_gb:
            way = RecomputeChoice(LAKE, "there is no warehouse to ask", now.isoformat())
        else:
            way = RecomputeChoice(
                LAKE if size < self.from_gb * GIGABYTE else WAREHOUSE, told, now.isoformat()
            )
        return {"way": way.save(self.objects, event["run_id"])}

    def unload(self, event: Mapping[str, Any], now: datetime) -> dict[str, str]:
        """{"run_id"} -> {"state"}: waiting, done, or away: then the lake's recompute is taken."""
        run_id = event["run_id"]
        way = RecomputeChoice.load(self.objects, run_id)
        state, reason = self._state(run_id)
        if state == "waiting":
            if now - datetime.fromisoformat(way.at) < WAIT_MAX:
                return {"state": state}
            state, reason = "away", f"the warehouse was not ready within {WAIT_MAX}"
        if state == "done":
            try:
                way.users = self._unload(run_id, now)
            except StatementFailed as error:
                state, reason = "away", f"the warehouse failed: {error.reason}"
        if state == "away":
            way.way, way.why = LAKE, f"{way.why}; {reason}"
        way.save(self.objects, run_id)
        return {"state": state}

    def _state(self, run_id: str) -> tuple[str, str]:
        """Return whether the night's loads and the model are done, or why they will not be."""
        night = WarehouseNight.read(self.objects, run_id)
        if night and night.quiet_since:
            return "away", "nothing has come since it was asked"
        items = night.items if night else []
        needed = [
            each for each in items if each.kind is Kind.LOAD or (each.kind, each.name) == (Kind.MODEL, MODEL)
        ]
        for each in needed:
            if each.state in (State.FAILED, State.SKIPPED):
                return "away", f"{each.kind} {each.name} {each.state}: {each.reason}"
        is_done = bool(needed) and all(each.state is State.DONE for each in needed)
        return ("done" if is_done else "waiting"), ""

    def _unload(self, run_id: str, now: datetime) -> int:
        """Unload the accounts to look at; returns how many users there are."""
        before = min(datetime.fromisoformat(each) for each in read_compared(self.objects) if each)
        query = accounts_query(before - LAKE_LAG, slices_due(before.date(), now.date()))
        folder = run_key(run_id, UNLOADED)
        self.objects.delete([each.key for each in self.objects.list(folder)])
        to = f"{self.lake}/{folder}"
        self.warehouse.run([Unload(query, to, self.role_arn).sql()])
        (row,) = self.warehouse.rows(COUNT)
        return int(row["users"])
