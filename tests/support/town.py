"""A town of users whose accounts the real code wrote, and the lake that its writes lead to."""

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from adapters.book_store import shipped_version
from adapters.engagement.account_store import AccountStore
from adapters.engagement.claims import ClaimStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.event_store import EventStore
from adapters.engagement.expiry import Settler
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.projections import Projections
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.objects import FolderObjects
from analytics.curation.curate import curate
from analytics.lake.layout import Partition
from analytics.reconcile.run_report import FINDINGS_OF_PARTS
from analytics.reconcile.share_steps import ShareSteps
from analytics.steps.reconcile_function import ReconcileSteps
from analytics.warehouse import night
from analytics.warehouse.build import build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.load import Loader
from analytics.warehouse.models import ancestors, models
from ingest.engagement.points.commands import Commands, SpendingCommands
from ingest.engagement.preferences import Preferences
from ingest.web.caller import ApiError
from processors.engagement import EngagementProcessor
from rules.days import AT_MIDNIGHT, date_of, parse_moment, stamp
from rules.engagement.events import Event, event_id, to_item
from rules.lake.entities import ENTITIES, row_of
from rules.user_ids import KEPT
from tests.support.books import TYPES, KnownBooks, judged, repairing
from tests.support.engine import Engine
from tests.support.raw_lake import ARRIVED

START = datetime(2026, 3, 20, 12, tzinfo=UTC)
SHARDS = 2
ENTITY = {
    "BPEvents": "events",
    "DailyActivity": "daily_activity",
    "RewardsLedger": "ledger",
    "UserStreaks": "streaks",
}
ZONES = ("Europe/Berlin", "Asia/Tokyo", "America/Lima", "+05:45")
KINDS = ("CHECK_IN", "CONTRIBUTION", "LESSON_COMPLETED")


REPAIRS = {"price_points": 1, "within_days": 7, "dates_max": 7, "a_year": 12}
# Of what parts find in the warehouse
FINDING_SETTINGS = SimpleNamespace(event_table="Event", feature_table="Feature", feature_queue_url="")


class Recorder:
    """A DynamoDB client that notes every item written, as the tables' streams do. paused: notes nothing."""

    def __init__(self, real: Any) -> None:
        self._real, self.exceptions, self.paused = real, real.exceptions, False
        self.rows: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        self.writes = 0

    def __getattr__(self, operation: str) -> Any:
        real = getattr(self._real, operation)

        def call(**arguments: Any) -> Any:
            answer = real(**arguments)
            for table, written in _puts(operation, arguments):
                self.note(table, written)
            self.writes += operation in ("put_item", "update_item", "delete_item", "transact_write_items")
            return answer

        return call

    def note(self, table: str, written: Item) -> None:
        if not self.paused and table in ENTITY and not written.get("user_id", {}).get("S", "").endswith(KEPT):
            entity = ENTITIES[ENTITY[table]]
            row = row_of(entity, decode_item(written), START)
            self.rows[entity.name, row["dt"], row["hour"]].append(json.dumps(row))


def _puts(operation: str, arguments: dict[str, Any]) -> Iterable[tuple[str, Item]]:
    if operation == "put_item":
        yield arguments["TableName"], arguments["Item"]
    for action in arguments.get("TransactItems", ()):
        if "Put" in action:
            yield action["Put"]["TableName"], action["Put"]["Item"]
    if operation == "batch_write_item":
        for table, requests in arguments["RequestItems"].items():
            yield from ((table, each["PutRequest"]["Item"]) for each in requests)


@dataclass
class Town:
    """users: by their names, which are unique in the engine."""

    real: Any
    folder: Path
    name: str
    size: int
    redis: EngagementCache = field(default_factory=lambda: EngagementCache(""))
    now: datetime = START
    shares: int = 1
    gives_up: tuple[type[Exception], ...] = ()
    has_time: Callable[[], bool] = lambda: True

    def __post_init__(self) -> None:
        self.chance = random.Random(self.name)
        self.repairing = random.Random(f"repair {self.name}")
        self.tasks: list[Partition] = []
        self.users = [f"{self.name}-{number:03}" for number in range(self.size)]
        self.dynamodb = Recorder(self.real)
        ledger = LedgerStore(self.dynamodb, "RewardsLedger")
        self.accounts = AccountStore(self.dynamodb, "UserStreaks", "DailyActivity", ledger, SHARDS)
        self.engagement = EngagementProcessor(self.accounts, self.redis)
        self.events = EventStore(self.dynamodb, "BPEvents")
        claims = ClaimStore(self.dynamodb, "IdempotencyKeys")
        settler = Settler(self.accounts, KnownBooks())
        commands = Commands(self.accounts, claims, "IdempotencyKeys", self.redis, settler)
        self.rewards = SpendingCommands(commands, KnownBooks([repairing(shipped_version(), REPAIRS)]))
        self.preferences = Preferences(self.accounts, self.redis, KnownBooks())
        self.projections = Projections(self.dynamodb, "UserStreaks", "DailyActivity")
        self.objects = FolderObjects(self.folder / "lake")
        self.warehouse = DuckWarehouse(
            self.folder / "warehouse.duckdb", str(self.folder / "lake"), self.objects
        )

    @property
    def steps(self) -> ReconcileSteps:
        clients = {"dynamodb": self.dynamodb, "sqs": None}
        return ReconcileSteps(
            self.objects,
            self.warehouse,
            ShareSteps(
                *(self.objects, self.accounts, self.projections, self.redis),
                self.shares,
                roots=FolderObjects(self.folder / "roots"),
            ),
            finds={
                each.field: each.find_of(FINDING_SETTINGS, clients.__getitem__, self.objects, self.warehouse)
                for each in FINDINGS_OF_PARTS
            },
        )

    # ---- what users do

    def tick(self) -> datetime:
        self.now += timedelta(milliseconds=7)
        return self.now

    def event(self, user: str, number: int, days_ago: int) -> Event:
        zone = self.chance.choice(ZONES) if self.chance.random() < 0.8 else None
        moment = parse_moment((START - timedelta(days=days_ago, minutes=3 + number)).isoformat())
        day, read_in = date_of(moment, zone, None, AT_MIDNIGHT)
        kind = self.chance.choice(KINDS)
        return Event(
            user_id=user,
            event_id=event_id(user, f"k{number}", moment),
            idempotency_key=f"k{number}",
            event_type=kind,
            occurred_at=moment.utc.isoformat(),
            activity_date=day,
            zone=read_in,
            points_awarded=TYPES[kind].points,
            **judged(kind),
            source="test",
            created_at=stamp(self.tick()),
            timezone=zone,
        )

    def apply(self, events: Iterable[Event]) -> None:
        """Store events, and hand them to the processor in a batch."""
        listed = list(events)
        self.events.put(list({each.event_id: each for each in listed}.values()))
        records = [
            {
                "eventName": "INSERT",
                "dynamodb": {"SequenceNumber": str(place), "NewImage": encode_item(to_item(each))},
            }
            for place, each in enumerate(listed)
        ]
        outcome = self.engagement.apply(records, self.tick())
        assert not outcome.poison
        assert not outcome.again

    def live(self) -> None:
        """Shuffled, late and repeated events; freezes, repairs, redemptions, pauses, moves between them."""
        events = [
            self.event(user, number, self.chance.choice((0, 1, 2, 3, 6, 7)))
            for user in self.users
            for number in range(self.chance.randrange(2, 6))
        ]
        self.chance.shuffle(events)
        for first in range(0, len(events), 60):
            batch = events[first : first + 60]
            self.apply([*batch, *self.chance.sample(batch, min(5, len(batch)))])
            for user in self.chance.sample(self.users, self.size // 4):
                self.command(user)

    def command(self, user: str) -> None:
        if self.repairing.random() < 0.5:
            with suppress(ApiError):
                self.rewards.repair(user, None, None, self.tick())
        with suppress(ApiError):
            now, kind = self.tick(), self.chance.randrange(4)
            if kind == 0:
                granted = (START - timedelta(days=self.chance.randrange(9))).date()
                outcome = self.rewards.give_freeze(user, None, granted, now)
                if self.chance.random() < 0.4:
                    self.rewards.reverse(user, outcome.entry.created_at, self.tick())
            elif kind == 1:
                self.rewards.redeem(user, 5, "mug", f"r{now}", now)
            elif kind == 2:
                self.preferences.pause(
                    user, now.date() + timedelta(days=2), now.date() + timedelta(days=4), now
                )
            else:
                self.preferences.set_timezone(user, self.chance.choice(ZONES[:3]), now)

    # ---- the lake, the run

    def curate(self) -> None:
        """Bring the writes noted so far into the lake."""
        for (entity, dt, hour), lines in self.dynamodb.rows.items():
            key = f"raw/{entity}/arrived={ARRIVED}/dt={dt}/hour={hour}/{self.now:%H%M%S%f}-{len(lines)}"
            self.objects.put(key, "\n".join(lines).encode())
            self.tasks.append(Partition(entity, dt, hour))
            curate(self.objects, self.tasks[-1])
        self.dynamodb.rows.clear()

    def load(self) -> None:
        """Bring the lake into the warehouse, for the models."""
        prepare(self.warehouse)
        loader = Loader(self.warehouse, self.objects, str(self.folder / "lake"), "")
        loader.load(f"load-{self.now:%H%M%S%f}", self.tasks)
        self.tasks = []

    def reconcile(self, run_id: str, repair: bool = True, **more: Any) -> dict[str, Any]:
        """Do all steps of the comparison, as the state machine does; returns differences.json."""
        steps = self.steps
        planned = steps.shares.plan({"run_id": run_id, "repair": repair, **more}, self.now)
        now = self.tick()
        for each in planned["items"]:
            try:
                while steps.shares.reconcile(each, now, self.has_time)["is_left"]:
                    pass
            except self.gives_up as error:
                steps.shares.give_up({**each, "error": {"Error": type(error).__name__, "Cause": str(error)}})
        steps.collect({"run_id": run_id, "repair": repair}, now)
        told: dict[str, Any] = json.loads(self.objects.get(f"runs/{run_id}/differences.json"))
        return told

    def models(self, run_id: str) -> None:
        """Load, and build what reports ask, as a run's work in the warehouse."""
        self.load()
        asked, known = ("marts.streaks_recomputed", "marts.lead_quality"), models()
        wanted = {*asked, *(made.name for each in asked for made in ancestors(known[each], known))}
        built = build(self.warehouse, wanted)
        items = [night.Item(night.Kind.MODEL, each, night.State.DONE) for each in built]
        night.WarehouseNight(run_id, self.now.isoformat(), False, False, items).save(self.objects)

    # ---- the tables

    def profile(self, user: str) -> Item:
        found = self.projections.profile(user)
        assert found
        return found

    def entries(self, user: str) -> list[Item]:
        """Return the stored items of a user's ledger, oldest first."""
        condition = {"KeyConditionExpression": "account_id = :user", "ConsistentRead": True}
        found: list[Item] = self.real.query(
            TableName="RewardsLedger", ExpressionAttributeValues=encode_item({":user": user}), **condition
        )["Items"]
        return found

    def put(self, table: str, changed: Item) -> None:
        """Write an item by hand, past the code and its stream."""
        self.real.put_item(TableName=table, Item=changed)

    def delete(self, table: str, **key: str) -> None:
        self.real.delete_item(TableName=table, Key=encode_item(key))

    def tables(self) -> dict[str, Any]:
        """Return all of the town's projections, without what a repair may change."""
        told: dict[str, Any] = {}
        for user in self.users:
            profile = self.projections.profile(user) or {}
            # That the newest change was of the past is not kept: it only keeps it from being told as news.
            changing = ("version", "streak_updated_at", "backfilled")
            kept = {name: value for name, value in profile.items() if name not in changing}
            told[user] = (kept, self.projections.days(user))
        return told

    def clear(self) -> None:
        """Empty the tables that reconciliation reads whole: another test's users are not of this town."""
        for table, key in (("UserStreaks", ("user_id",)), ("DailyActivity", ("user_id", "activity_date"))):
            for page in self.real.get_paginator("scan").paginate(TableName=table):
                for each in page["Items"]:
                    self.real.delete_item(TableName=table, Key={name: each[name] for name in key})


@contextmanager
def lived_in(engine: Engine, folder: Path, name: str, size: int) -> Iterator[Town]:
    """A town that has lived, and is in the lake; gone afterwards."""
    made = Town(engine.client("dynamodb"), folder, name, size)
    made.clear()
    made.live()
    made.curate()
    yield made
