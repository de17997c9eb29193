"""A lake and a laptop's warehouse with what the stores of journeys hold, and their readings: night, SQL, what-if."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from adapters.book_store import DOCUMENTS, BookStore, Publication, _items
from adapters.platform.items import Item, decode_item
from adapters.platform.objects import FolderObjects
from adapters.platform.publishing import DeliveryStream
from adapters.platform.tables import query_all
from analytics.curation.curate import curate
from analytics.lake.layout import Partition, raw_partition
from analytics.recompute.lake_users import LakeUsers
from analytics.recompute.recompute import recompute
from analytics.recompute.user_shares import ALL
from analytics.recompute.warehouse_disagreements import disagreements
from analytics.reconcile.user_goals import GoalRows
from analytics.warehouse.build import build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.load import Loader
from analytics.warehouse.models import ancestors, check_model, models
from analytics.what_if.figures import WhatIfQuestion
from analytics.what_if.what_if import what_if
from processors.publisher import Publisher
from rules.book.book import Books, Version
from rules.book.document import read_book
from rules.days import EPOCH, unstamp
from rules.lake.entities import DAILY_ACTIVITY, EVENTS, LEDGER, RULES, STREAKS, Entity
from tests.support.firehose import Firehose
from tests.support.point_story import partition_of
from tests.support.published_books import Table
from tests.support.raw_lake import ARRIVED

MARTS = (
    *("marts.points_recomputed", "marts.streaks_recomputed", "marts.user_levels", "marts.streak_repairs"),
    *("marts.bonuses", "marts.goal_streaks_recomputed", "marts.achievements_recomputed"),
)
WEEKS, DAYS = "facts.user_point_weeks", "facts.daily_activity"
Rows = list[dict[str, Any]]
# What the streams of tables tell the lake. BPEvents' own is read as it comes: some events are deleted later.
STORES: tuple[tuple[str, str, Entity], ...] = (
    ("RewardsLedger", "account_id", LEDGER),
    ("DailyActivity", "user_id", DAILY_ACTIVITY),
    ("UserStreaks", "user_id", STREAKS),
)


class JourneyBooks:
    """Documents, as versions 1, 2 and so on of the table RuleBooks."""

    def __init__(self, documents: Sequence[tuple[datetime | None, Mapping[str, Any]]]) -> None:
        self.table, self.documents = Table(), documents
        for number, (at, document) in enumerate(documents, 1):
            found = Publication(document, at or EPOCH, at or EPOCH, "ann", "")
            self.table.items += _items(number, found)
        self.books: Books = BookStore(self.table, "RuleBooks").look()

    @property
    def versions(self) -> tuple[Version, ...]:
        return self.books.versions

    @property
    def items(self) -> list[Item]:
        """The items that are handed to the publisher."""
        return [each for each in self.table.items if decode_item(each)["book"] == DOCUMENTS]


def records_of(table: str, items: Iterable[Item], at: datetime) -> list[dict[str, Any]]:
    """Return the records that a table's stream has of new items. at: when they came."""
    return [
        {
            "eventName": "INSERT",
            "eventSourceARN": f"arn:aws:dynamodb:eu-west-1:1:table/{table}/stream/s",
            "dynamodb": {
                "ApproximateCreationDateTime": at.timestamp(),
                "NewImage": each,
                "SequenceNumber": f"1{number:09}",
            },
        }
        for number, each in enumerate(items)
    ]


@dataclass
class JourneyLake:
    """Readings of the lake as of an instant."""

    objects: FolderObjects
    warehouse: DuckWarehouse
    books: JourneyBooks
    now: datetime
    _places: set[Partition] = field(default_factory=set)
    _curated: set[Partition] = field(default_factory=set)

    def take_in(self, dynamodb: Any, users: Iterable[str], events: Sequence[dict[str, Any]]) -> None:
        """Publish what tables hold of users, and the records of events."""
        at = {"ApproximateCreationDateTime": self.now.timestamp()}
        told = [{**each, "dynamodb": {**each["dynamodb"], **at}} for each in events]
        self._publish("BPEvents", EVENTS, told)
        self._publish("RuleBooks", RULES, records_of("RuleBooks", self.books.items, self.now))
        for table, key, entity in STORES:
            records = []
            for user in users:
                items = items_of(dynamodb, table, key, user)
                records += records_of(table, items, opened_at(items) or self.now)
            self._publish(table, entity, records)

    def recompute(self) -> LakeUsers:
        """Curate what was published; returns the nightly recompute of it."""
        self._curate()
        return recompute(self.objects, self.now.date(), anew=True)

    @cached_property
    def goal_rows(self) -> GoalRows:
        """Takes the ledgers that the night has read."""
        return GoalRows(self.objects, "one", self.now, lambda: self.books.books)

    def load(self) -> None:
        """Curate what the night has written, load all, and build the marts."""
        self.goal_rows.write(self.now)
        places = {raw_partition(each.key) for each in self.objects.list("raw/user_goals/")}
        self._places |= {Partition(each.entity, each.dt, each.hour) for each in places if each}
        self._curate()
        Loader(self.warehouse, self.objects, str(self.objects.root)).load(
            "one", sorted(self._curated, key=str)
        )
        known = models()
        build(
            self.warehouse, {*MARTS, *(each.name for mart in MARTS for each in ancestors(known[mart], known))}
        )

    def _curate(self) -> None:
        for each in self._places - self._curated:
            curate(self.objects, each)
        self._curated |= self._places

    def _publish(self, table: str, entity: Entity, records: list[Any]) -> None:
        client = Firehose()
        outcome = Publisher({table: [(entity, DeliveryStream(client, "d"))]}).publish(records)
        assert outcome.poison == [], outcome
        for name, data in enumerate(client.taken):
            dt, hour = (part.decode() for part in partition_of(data))
            place = f"raw/{entity.name}/arrived={ARRIVED}/dt={dt}/hour={hour}/{self.now:%Y%m%d}-{name}"
            self.objects.put(place, data)
            self._places.add(Partition(entity.name, dt, hour))

    # ---- what the readers say

    def rows(self, sql: str) -> Rows:
        """Ask the warehouse."""
        return self.warehouse.rows(sql)

    def by_user(self, model: str) -> dict[str, Rows]:
        """Return a model's rows by user."""
        found: dict[str, Rows] = {}
        for row in self.rows(f"SELECT * FROM {model}"):
            found.setdefault(row["user_id"], []).append(row)
        return found

    def broken_tests(self) -> list[Any]:
        """Return what the models' own tests find."""
        known = models()
        return [found for name in (*MARTS, WEEKS) for found in check_model(self.warehouse, known[name])]

    def disagreements(self, night: LakeUsers) -> Any:
        """Return the users for whom the night and SQL differ."""
        return disagreements(self.warehouse, [(ALL, night.table)])

    def what_ifs(self) -> list[Any]:
        """Ask what would have been: by the versions as they judged, and by the newest document for its own time."""
        at, document = self.books.documents[-1]
        questions = (
            WhatIfQuestion(None, self.now),
            WhatIfQuestion(read_book(document), self.now, at, None),
        )
        return [what_if(self.objects, each) for each in questions]


def items_of(dynamodb: Any, table: str, key: str, user: str) -> list[Item]:
    """Return a user's items of a table."""
    wanted = {":user": {"S": user}}
    return list(
        query_all(
            dynamodb,
            TableName=table,
            KeyConditionExpression=f"{key} = :user",
            ExpressionAttributeValues=wanted,
            ConsistentRead=True,
        )
    )


def opened_at(items: Sequence[Item]) -> datetime | None:
    """Return when a ledger came to the lake: with its first entry. None: these are no entries, or only the opening."""
    entries = sorted(str(decode_item(each).get("created_at")) for each in items if "seq" in each)
    return unstamp(entries[1]) if len(entries) > 1 else None


@contextmanager
def journey_lake(folder: Path, books: JourneyBooks, now: datetime) -> Iterator[JourneyLake]:
    """Give an empty lake with an open warehouse over it."""
    objects = FolderObjects(folder / "lake")
    warehouse = DuckWarehouse(folder / "w.duckdb", str(objects.root), objects)
    with warehouse.kept_open():
        prepare(warehouse)
        yield JourneyLake(objects, warehouse, books, now)
