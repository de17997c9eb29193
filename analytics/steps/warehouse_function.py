"""The nightly run's work in the warehouse.

It loads the curated files that the warehouse lacks, deletes the rows of erased persons, builds the models and
tests them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.platform.objects import Objects, S3Objects
from adapters.privacy.erasure_jobs import ErasureJobs
from adapters.settings import with_settings
from adapters.settings.choices import MODEL_SETTINGS, ModelSettings
from adapters.settings.parts import deployed_parts
from analytics.curation.plan import curated_tasks
from analytics.forgetting.erasees import AllErasees
from analytics.forgetting.lake_pass import Progress, changed_partitions
from analytics.forgetting.warehouse_rows import WarehouseRows
from analytics.lake import run_notes
from analytics.warehouse.build import Builder
from analytics.warehouse.ddl import prepare
from analytics.warehouse.load import DAYS_MAX, Loader
from analytics.warehouse.models import Model, ancestors, check_model, models
from analytics.warehouse.night import (
    SUNDAY,
    Item,
    Kind,
    LastWarehouseRun,
    State,
    WarehouseNight,
    do_items,
    items_of,
    version,
)
from analytics.warehouse.redshift_warehouse import RedshiftWarehouse
from analytics.warehouse.warehouse import (
    NoWarehouse,
    Warehouse,
    ensure_daily_limit,
    grant_analysts,
    warehouse_at,
)
from rules.parts import ALL_PARTS, Part
from rules.privacy.erasures import Erasure

logger = Logger(service="warehouse")
metrics = Metrics(namespace="Streakline", service="warehouse")
WAREHOUSE = "Warehouse"  # in the inventory
# Until all items of these kinds are done, words of an erased person may be in a table.
NEEDED_TO_FORGET = (Kind.FORGET, Kind.MODEL)


@dataclass(frozen=True, slots=True)
class OwnWarehouseSettings:
    """Settings of this function."""

    lake_bucket: str
    warehouse_url: str  # see analytics.warehouse.warehouse.warehouse_at
    copy_role_arn: str  # the role that Redshift reads the lake with; a DuckDB file needs none
    # The workgroup of Redshift that gets the daily limit; "": the deployment has no workgroup of its own
    warehouse_workgroup_arn: str
    warehouse_daily_rpu_hours: int
    erasures_table: str


@dataclass(frozen=True, slots=True)
class WarehouseSteps:
    """The nightly run's step in the warehouse, and the stores that it uses."""

    warehouse: Warehouse
    objects: Objects
    lake: str  # lake, role_arn: as the Loader takes them
    role_arn: str
    open_erasures: Callable[[], Iterable[Erasure]] = tuple  # returns the erasures under way
    filled_by: str = ""  # the version of the code that fills the warehouse (night.version)
    settings: ModelSettings = MODEL_SETTINGS
    deployed: frozenset[Part] = ALL_PARTS

    def models(self) -> dict[str, Model]:
        """Return the deployment's models."""
        return models(self.settings, self.deployed)

    def work(self, event: Mapping[str, Any], now: datetime) -> dict[str, int]:
        """Begin or continue the night's work, and return {"left", "failed"}.

        event: {"run_id", "tasks_key", "full"?, "everybody"?}. full: build all models anew, and test all rows.
        everybody: ask the warehouse even if it lacks no rows, because all users are to be compared. left: how
        many items are left for the next call. failed: how many have failed so far. Raises what the warehouse
        raises if it is away.
        """
        earlier_night = WarehouseNight.read(self.objects, event["run_id"])
        night = earlier_night or self._begin(event, now)
        left = 0
        if night.items:
            with self.warehouse.kept_open():
                if not earlier_night:
                    prepare(self.warehouse, self.deployed)
                needs = partial(_needs, self.models())
                left = do_items(night, needs, ItemWorker(self, night).do, self.objects, clock.now)
                if not left and isinstance(self.warehouse, RedshiftWarehouse):
                    grant_analysts(self.warehouse)  # a table that was made anew has lost its grants
        else:
            night.save(self.objects)  # for the report, which says since when there is nothing to do
        if not left:
            self._note_forgotten(night)
        return {"left": left, "failed": len(night.of(State.FAILED))}

    def _note_forgotten(self, night: WarehouseNight) -> None:
        """If no table of the warehouse names any person whom the night was to forget, note that.

        A model that was not built may still hold such a person's words, for example a source that nobody else
        has.
        """
        progress = Progress.read(self.objects, night.run_id)
        if progress is None or not progress.is_done:
            return
        if any(item.kind in NEEDED_TO_FORGET and item.state is not State.DONE for item in night.items):
            return
        # A file keeps the bytes of deleted rows until it is written anew. Redshift frees them by itself.
        if progress.due and (compact := getattr(self.warehouse, "compact", None)):
            compact()
        progress.is_warehouse_done = True
        progress.save(self.objects)

    def _begin(self, event: Mapping[str, Any], now: datetime) -> WarehouseNight:
        """Return a new night with its items.

        It has no items if the warehouse lacks no rows and nothing else is to be done: then the warehouse,
        which costs money while it is awake, stays asleep.
        """
        run_id, full = event["run_id"], event.get("full") is True
        night = WarehouseNight(run_id, now.isoformat(), full, full or now.weekday() == SUNDAY, [])
        if isinstance(self.warehouse, NoWarehouse):
            return night
        curated_places = curated_tasks(self.objects, run_id, event["tasks_key"])
        run_notes.note_unloaded(
            self.objects, run_id, [*curated_places, *changed_partitions(self.objects, run_id)]
        )
        unloaded_by_run = run_notes.read_unloaded(self.objects).values()
        unloaded_entities = {place.entity for places in unloaded_by_run for place in places}
        progress = Progress.read(self.objects, run_id)
        forgets = progress is not None and bool(progress.due)
        compares_all_users = event.get("everybody") is True
        has_work = bool(unloaded_entities) or forgets or full or compares_all_users
        last = LastWarehouseRun.read(self.objects)
        if not has_work and last and last.still_holds(self.filled_by, now.date()):
            night.quiet_since = last.run_id
        else:
            night.items = items_of(unloaded_entities, self.models(), forgets=forgets)
            # Stored before the work. The report settles it: if this run dies, the next one asks again.
            LastWarehouseRun(run_id, night.began, self.filled_by).save(self.objects)
        return night


def _needs(model_of: Mapping[str, Model], item: Item) -> list[str]:
    """Return the names of the models that must be built before an item is done.

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
            steps = self.steps
            self._builders[item.kind] = Builder.read(steps.warehouse, full, steps.settings, steps.deployed)
        builder = self._builders[item.kind]
        if item.kind is Kind.MODEL:
            metrics.add_metric("ModelsBuilt", MetricUnit.Count, int(builder.build(item.name)))
        else:
            item.found = self._test(builder, builder.model_of[item.name])
        return True

    def _load(self, entity: str) -> bool:
        """Load the oldest days that the warehouse lacks, as many as one transaction takes.

        Returns whether it lacks no other days of the entity.
        """
        steps = self.steps
        notes = run_notes.read_unloaded(steps.objects)
        unloaded_places = {place for places in notes.values() for place in places if place.entity == entity}
        oldest_days = sorted({place.dt for place in unloaded_places})[:DAYS_MAX]
        oldest_places = {place for place in unloaded_places if place.dt in oldest_days}
        loader = Loader(steps.warehouse, steps.objects, steps.lake, steps.role_arn)
        files = loader.load(self.night.run_id, sorted(oldest_places, key=str))
        # A place is struck out after its load: if the call ends in between, the place is loaded once more.
        run_notes.strike_out_unloaded(steps.objects, notes, oldest_places)
        metrics.add_metric("LoadedFiles", MetricUnit.Count, sum(files.values()))
        return len(oldest_places) == len(unloaded_places)

    def _forget(self) -> bool:
        """Delete the rows of erased persons. Raises RuntimeError if they may still come from the lake."""
        steps = self.steps
        progress = Progress.read(steps.objects, self.night.run_id)
        if progress is None or not progress.is_done:
            raise RuntimeError(
                "the lake's files may still name these persons, and a load would bring them back"
            )
        erasees = AllErasees.of(steps.open_erasures(), datetime.fromisoformat(self.night.began))
        rows = WarehouseRows(steps.warehouse, erasees.by_kind)
        progress.add_counts(steps.objects, WAREHOUSE, WAREHOUSE, rows.count())
        rows.remove()
        progress.confirm_counts()
        progress.save(steps.objects)
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


WarehouseSettings = with_settings(OwnWarehouseSettings, {name: int for name, _ in MODEL_SETTINGS})


@bootstrap(WarehouseSettings)
def _parts(config: OwnWarehouseSettings, client: ClientOf) -> WarehouseSteps:
    settings = tuple((name, getattr(config, name)) for name, _ in MODEL_SETTINGS)
    lake = f"s3://{config.lake_bucket}"
    if config.warehouse_workgroup_arn:  # a workgroup of this stack: it has the limit before it computes
        ensure_daily_limit(
            client("redshift-serverless"), config.warehouse_workgroup_arn, config.warehouse_daily_rpu_hours
        )
    return WarehouseSteps(
        warehouse_at(config.warehouse_url, lake),
        S3Objects(client("s3"), config.lake_bucket),
        lake,
        config.copy_role_arn,
        open_erasures=ErasureJobs(client("dynamodb"), config.erasures_table).opened,
        filled_by=version(config.warehouse_url, settings, deployed_parts()),
        settings=settings,
        deployed=deployed_parts(),
    )


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: {"run_id", "tasks_key", "full"?, "everybody"?}. It is called until 0 items are left."""
    metrics.add_metric("Steps", MetricUnit.Count, 1)
    answer = _parts().work(event, clock.now())
    logger.info("done", extra={"run_id": event["run_id"], **answer})
    return {"run_id": event["run_id"], **answer}
