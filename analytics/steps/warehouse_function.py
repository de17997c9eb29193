"""The nightly run's work in the warehouse: it loads what is lacking, builds models, and tests them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import cache, partial
from typing import Any

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from adapters import clock, settings
from adapters.logs import Logger
from adapters.platform.aws import client
from adapters.platform.fence import fence_writer
from adapters.platform.objects import Objects, objects_at
from adapters.privacy.erasure_jobs import ErasureJobs
from adapters.settings.lake import WarehouseSettings
from analytics.curation.plan import curated_tasks
from analytics.forgetting.erasees import AllErasees
from analytics.forgetting.progress import Progress, changed_places
from analytics.forgetting.warehouse_rows import WarehouseRows
from analytics.lake import run_notes
from analytics.warehouse.build import Builder
from analytics.warehouse.ddl import prepare
from analytics.warehouse.last_run import SUNDAY, LastWarehouseRun, version
from analytics.warehouse.load import DAYS_MAX, Loader
from analytics.warehouse.models import Model, ancestors, check_model, models
from analytics.warehouse.night import Item, Kind, State, WarehouseNight, do_items, items_of
from analytics.warehouse.redshift_warehouse import RedshiftWarehouse
from analytics.warehouse.warehouse import (
    CompactableWarehouse,
    NoWarehouse,
    Warehouse,
    ensure_daily_limit,
    grant_analysts,
    warehouse_at,
)
from rules.leads.features import CAMPAIGN_GRACE_DAYS
from rules.privacy.erasures import Erasure

logger = Logger(service="warehouse")
metrics = Metrics(namespace="Streakline", service="warehouse")
WAREHOUSE = "Warehouse"  # in the inventory
# Until all items of these kinds are done, words of an erased person may be in a table.
NEEDED_TO_FORGET = (Kind.FORGET, Kind.MODEL)


@dataclass(frozen=True, slots=True)
class WarehouseSteps:
    """The step, with what it uses."""

    warehouse: Warehouse
    objects: Objects
    lake: str  # lake, role_arn: as the Loader takes them
    role_arn: str
    open_erasures: Callable[[], Iterable[Erasure]] = tuple  # returns the erasures under way
    filled_by: str = ""  # the version of what fills the warehouse (last_run.version)
    grace_days: int = CAMPAIGN_GRACE_DAYS  # of campaigns, the setting

    def work(self, event: Mapping[str, Any], now: datetime) -> dict[str, int]:
        """{"run_id", "tasks_key", "full"?, "everybody"?} -> {"left", "failed"}.

        full: build all models anew, and test all rows. everybody: ask the warehouse even if nothing has come,
        because all users are to be compared. left: how many items are left for the next call. failed: how
        many have failed so far. Raises what the warehouse raises if it is away.
        """
        earlier_night = WarehouseNight.read(self.objects, event["run_id"])
        night = earlier_night or self._begin(event, now)
        left = 0
        if night.items:
            with self.warehouse.kept_open():
                if not earlier_night:
                    prepare(self.warehouse)
                left = do_items(
                    night,
                    partial(_needs, models(self.grace_days)),
                    ItemWorker(self, night).do,
                    self.objects,
                    clock.now,
                )
                if not left and isinstance(self.warehouse, RedshiftWarehouse):
                    grant_analysts(self.warehouse)  # a table that was made anew has lost its grants
        else:
            night.save(self.objects)
        if not left:
            self._note_forgotten(night)
        return {"left": left, "failed": len(night.of(State.FAILED))}

    def _note_forgotten(self, night: WarehouseNight) -> None:
        """Note that the warehouse has nobody any more whom the night was to forget, if that is so.

        A model that was not built may still hold somebody's words, such as a source that nobody else has.
        """
        progress = Progress.read(self.objects, night.run_id)
        if progress is None or not progress.is_done:
            return
        if any(item.kind in NEEDED_TO_FORGET and item.state is not State.DONE for item in night.items):
            return
        if isinstance(self.warehouse, CompactableWarehouse) and progress.due:
            self.warehouse.compact()
        progress.warehouse = True
        progress.save(self.objects)

    def _begin(self, event: Mapping[str, Any], now: datetime) -> WarehouseNight:
        """Return a new night with its items. It has none if the warehouse need not be asked."""
        run_id, full = event["run_id"], event.get("full") is True
        night = WarehouseNight(run_id, now.isoformat(), full, full or now.weekday() == SUNDAY, [])
        if isinstance(self.warehouse, NoWarehouse):
            return night
        places = curated_tasks(self.objects, run_id, event["tasks_key"])
        run_notes.note_unloaded(self.objects, run_id, [*places, *changed_places(self.objects, run_id)])
        notes = run_notes.read_unloaded(self.objects).values()
        lacking = {place.entity for places in notes for place in places}
        progress = Progress.read(self.objects, run_id)
        forgets = progress is not None and bool(progress.due)
        is_wanted = full or event.get("everybody") is True
        nothing_to_do = not (lacking or forgets or is_wanted)
        last = LastWarehouseRun.read(self.objects)
        if last and last.is_of(self.filled_by, now.date()) and nothing_to_do:  # same code, and left complete
            night.quiet_since = last.run_id
        else:
            night.items = items_of(lacking, models(self.grace_days), forgets=forgets)
            LastWarehouseRun(run_id, night.began, self.filled_by).save(self.objects)
        return night


def _needs(model_of: Mapping[str, Model], item: Item) -> list[str]:
    """Return the names of the models without which an item makes no sense.

    model_of: all models, by name. A test also needs the models with which it compares.
    """
    if item.kind is Kind.FORGET:
        return []
    if item.kind is Kind.MODEL:
        return [ancestor.name for ancestor in ancestors(model_of[item.name], model_of)]
    targets: Iterable[str] = model_of[item.name].tests.get("relationships", {}).values()
    return [item.name, *(target.rpartition(".")[0] for target in targets)]


@dataclass(slots=True)
class ItemWorker:
    """Does the items of one call. Earlier builds are read once for all models, and once for all tests."""

    steps: WarehouseSteps
    night: WarehouseNight
    _builders: dict[Kind, Builder] = field(default_factory=dict)

    def do(self, item: Item) -> bool:
        """Do one item; returns whether all of it is done."""
        if item.kind is Kind.LOAD:
            return self._load(item.name)
        if item.kind is Kind.FORGET:
            return self._forget()
        if item.kind not in self._builders:
            full = self.night.full if item.kind is Kind.MODEL else self.night.full_tests
            self._builders[item.kind] = Builder.read(self.steps.warehouse, full, self.steps.grace_days)
        builder = self._builders[item.kind]
        if item.kind is Kind.MODEL:
            metrics.add_metric("ModelsBuilt", MetricUnit.Count, int(builder.build(item.name)))
        else:
            item.found = self._test(builder, builder.known[item.name])
        return True

    def _load(self, entity: str) -> bool:
        """Load the oldest days that the warehouse lacks, as many as one transaction takes.

        Returns whether it lacks no other days of the entity.
        """
        steps = self.steps
        notes = run_notes.read_unloaded(steps.objects)
        lacking = {place for places in notes.values() for place in places if place.entity == entity}
        oldest_days = sorted({place.dt for place in lacking})[:DAYS_MAX]
        oldest_places = {place for place in lacking if place.dt in oldest_days}
        loader = Loader(steps.warehouse, steps.objects, steps.lake, steps.role_arn)
        files = loader.load(self.night.run_id, sorted(oldest_places, key=str))
        # A place is struck out after its load: if the call ends in between, the place is loaded once more.
        run_notes.strike_out_unloaded(steps.objects, notes, oldest_places)
        metrics.add_metric("LoadedFiles", MetricUnit.Count, sum(files.values()))
        return len(oldest_places) == len(lacking)

    def _forget(self) -> bool:
        """Delete the rows of erased persons. Raises RuntimeError if they may still come from the lake."""
        steps = self.steps
        progress = Progress.read(steps.objects, self.night.run_id)
        if progress is None or not progress.is_done:
            raise RuntimeError("the lake's pass is not done")
        everybody = AllErasees.of(steps.open_erasures(), datetime.fromisoformat(self.night.began))
        rows = WarehouseRows(steps.warehouse, everybody.by_kind)
        progress.note(steps.objects, WAREHOUSE, WAREHOUSE, rows.count())
        rows.remove()
        return True

    def _test(self, builder: Builder, model: Model) -> list[dict[str, Any]]:
        """Run a model's tests; returns those that failed, with the fields of models.Failure."""
        scope = builder.scope(model)
        if scope is None:
            return []
        failures = [asdict(failure) for failure in check_model(self.steps.warehouse, model, scope)]
        metrics.add_metric("ModelTestsFailed", MetricUnit.Count, len(failures))
        if not failures:
            builder.note_tested(model)
        return failures


def set_daily_limit(config: WarehouseSettings) -> None:
    """Set the daily limit of a workgroup of this stack, before anything is computed in it."""
    if config.warehouse_workgroup_arn:
        redshift = client("redshift-serverless")
        ensure_daily_limit(redshift, config.warehouse_workgroup_arn, config.warehouse_daily_rpu_hours)


@cache
def _steps() -> WarehouseSteps:
    config = settings.read_settings(WarehouseSettings)
    lake = f"s3://{config.lake_bucket}"
    set_daily_limit(config)
    jobs = ErasureJobs(fence_writer(client("dynamodb")), config.erasures_table)
    url, grace_days = config.warehouse_url, config.campaign_grace_days
    filled_by = version(url, grace_days)
    warehouse, role = warehouse_at(url, lake), config.copy_role_arn
    return WarehouseSteps(warehouse, objects_at(lake), lake, role, jobs.opened, filled_by, grace_days)


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: {"run_id", "tasks_key", "full"?, "everybody"?}. It is called until 0 are left."""
    metrics.add_metric("Steps", MetricUnit.Count, 1)
    answer = _steps().work(event, clock.now())
    logger.info("done", extra={"run_id": event["run_id"], **answer})
    return {"run_id": event["run_id"], **answer}
