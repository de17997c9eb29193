"""A site whose tables are lost, all of them, and filled again from what its streams brought into the lake."""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from adapters.book_store import BookStore
from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.projections import Projections
from adapters.platform.item_tables import ItemTable
from adapters.platform.items import encode_item
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.objects import FolderObjects
from adapters.platform.publishing import DeliveryStream
from adapters.platform.redis import Redis
from adapters.privacy.tombstones import Tombstones
from adapters.questions.phone_table import PhoneTable
from adapters.questions.subscription_store import KEY, subscription_counter
from analytics.curation.curate import curate
from analytics.lake.layout import Partition
from analytics.questions.restore import PhonesRestorer
from analytics.reconcile.reconcile_user import Reconciler
from analytics.restore.restorer import RESTORED, Restorer, RestoreReport
from analytics.restore.user_rows import LakeBefore
from infra.marks import PUBLISHED_TABLES
from local.cloud.streams import matches
from processors.publisher import Publisher, TableItemRows, table_of
from rules.engagement.proof import chain_of, link_of
from rules.lake.entities import DAILY_ACTIVITY, EVENTS, LEDGER, RULES, STREAKS
from rules.lake.packed_records import HEADER
from rules.lake.table_items import KEYS
from rules.questions.lake_entities import NOTIFICATIONS, QUESTIONS
from rules.questions.phone_items import CHANGED, PHONES
from tests.support.effort import effort
from tests.support.engine import TABLES
from tests.support.firehose import Firehose
from tests.support.memory import forget
from tests.support.pipeline import Stream
from tests.support.questions.subscribers import Phones, World
from tests.support.raw_lake import ARRIVED
from tests.support.site import FULFILMENT, PRODUCERS, Site
from tests.support.template import table_definition

ENTITIES_OF = {
    "BPEvents": EVENTS,
    "DailyActivity": DAILY_ACTIVITY,
    "RewardsLedger": LEDGER,
    "UserStreaks": STREAKS,
    "RuleBooks": RULES,
    "Questions": QUESTIONS,
    "Subscriptions": NOTIFICATIONS,
}
SHARDS = 2
ZONES = ("Europe/Berlin", "Asia/Tokyo", "America/Lima", "UTC")
KINDS = ("CHECK_IN", "LESSON_COMPLETED", "WORKOUT_COMPLETED")
SHOWN = (
    *("", "/balance", "/ledger?limit=100", "/streaks", "/achievements", "/redemptions", "/rewards"),
    *("/events?limit=100", "/activity?limit=100"),
)
Told = dict[str, tuple[int, Any]]


def keys_of(table: str) -> tuple[str, ...]:
    return tuple(each["AttributeName"] for each in table_definition(table, table)["KeySchema"])


@dataclass
class Drill:
    """seed: of what users do. redis_url: of the Redis that is lost, too; "": there is none."""

    api: Site
    folder: Path
    seed: int
    redis_url: str = ""
    sent: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    redeemed: dict[str, Any] = field(default_factory=dict)
    leaves: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.phones = Phones()
        self.chance = random.Random(self.seed)
        self.streams = {name: Stream(self.api.engine, name) for name in {*ENTITIES_OF, *KEYS}}
        self.objects = FolderObjects(self.folder / "lake")
        self.users = [f"drill{self.seed}-{number}" for number in range(effort(2, soak=4))]
        self.dynamodb = self.api.engine.client("dynamodb")
        self.puts = 0

    # ---- what users do

    def live(self) -> None:
        for user in self.users:
            self.sent[user] = [self.event(number) for number in range(self.chance.randrange(8, 16))]
            for some in (self.sent[user][::2], self.sent[user][1::2], self.sent[user][:3]):
                self.api.send("server", *[{**each, "user_id": user} for each in some], groups=(PRODUCERS,))
            for _ in range(effort(12, soak=6)):
                self.command(user)
            self.subscribe(user)
        self.told = [self.ask(), self.ask("it")]
        adjusted = {"points": 500, "reason": "for the drill", "idempotency_key": "adjusted"}
        self.api.admin("POST", f"/v1/users/{self.users[0]}/adjustments", adjusted)
        self.command(self.users[0], "redeem")
        self.note_leaves()
        self.shown()  # who looks at achievements is shown them: that is kept

    def subscribe(self, user: str, **more: Any) -> dict[str, Any]:
        """Register a phone of a user; it wants all questions, and those with a tag."""
        asked = {"fcm_token": f"{user}-phone", "audience": ["it"], "min_interval_minutes": 0, **more}
        scope = "streakline/audience/it"
        _, told = self.api.call(user, "POST", "/v1/subscriptions", asked, scope)
        return dict(told)

    def ask(self, *audience: str) -> str:
        """Ask a question, and tell the phones that hear of it; returns its id."""
        body: dict[str, Any] = {
            "idempotency_key": f"q{self.chance.randrange(10**9)}",
            "type": "text",
            "prompt": "Well?",
        }
        body |= {"required_responses": 3, "audience": audience}
        status, asked = self.api.call("agent", "POST", "/v1/questions", body, "streakline/agents")
        assert status == 201, asked
        self.announce(asked["question_id"])
        return str(asked["question_id"])

    def announce(self, question_id: str) -> None:
        """Tell all phones of a question, as its INSERT on the stream lets the queue do."""
        town = World(self.dynamodb, "Questions", "Subscriptions", self.phones)
        town.announce(
            {"dynamodb": {"Keys": encode_item({"question_id": question_id})}},
        )

    def subscriptions(self, user: str) -> list[Any]:
        """What the tables hold of a user's phones: no request shows it."""
        held = [own for each in self.items("Limits") if is_of(each, user) for own in each["held"]["M"]]
        found = {each[KEY]["S"]: each for each in self.items("Subscriptions")}
        return [
            (key, {name: each for name, each in one.items() if name != CHANGED})
            for key, one in sorted(found.items())
            if any(own in (key.partition("#")[0], one.get("of", {}).get("S")) for own in held)
        ]

    def event(self, number: int) -> dict[str, Any]:
        days = self.chance.choice((0, 0, 1, 2, 3, 4, 6, 30))
        at = datetime.now(UTC) - timedelta(days=days, minutes=3 * number)
        said = {"properties": {"minutes": number}} if self.chance.random() < 0.4 else {}
        zone = {"timezone": self.chance.choice(ZONES)} if self.chance.random() < 0.6 else {}
        kind = self.chance.choice(KINDS)
        return {
            "idempotency_key": f"k{number}",
            "event_type": kind,
            "occurred_at": at.isoformat(),
            **zone,
            **said,
        }

    def command(self, user: str, kind: str = "") -> None:
        today, path = datetime.now(UTC).date(), f"/v1/users/{user}"
        kind = kind or self.chance.choice(("zone", "pause", "freeze", "alias", "hold", "redeem", "spend"))
        key = f"c{self.chance.randrange(10**9)}"
        first, last = today + timedelta(days=2), today + timedelta(days=4)
        bodies: dict[str, tuple[str, str, Any]] = {
            "zone": ("PUT", "/timezone", {"timezone": self.chance.choice(ZONES)}),
            "pause": ("POST", "/pauses", {"first": f"{first}", "last": f"{last}"}),
            "freeze": ("POST", "/freezes", {"idempotency_key": key}),
            "alias": ("PUT", "/alias", {"alias": f"Ann {self.chance.randrange(99)}"}),
            "hold": ("POST", "/holds", {"points": 5, "reward_id": "tea", "idempotency_key": key}),
            "redeem": ("POST", "/redemptions", {"reward": "mug", "idempotency_key": key}),
            "spend": ("POST", "/redemptions", {"points": 1, "reward_id": "tea", "idempotency_key": key}),
        }
        method, rest, body = bodies[kind]
        groups = (FULFILMENT,) if kind in ("hold", "spend") else ()
        status, told = self.api.call("desk" if groups else user, method, path + rest, body, *groups)
        assert status < 500, told
        if status == 201 and kind in ("spend", "redeem"):
            self.redeemed[user] = (body, told)
            if self.chance.random() < 0.3:
                undo = f"{path}/redemptions/{told['entry_id']}/reversal"
                self.api.call("desk", "POST", undo, None, FULFILMENT)

    def shown(self) -> dict[str, Told]:
        """Everything that is answered about each user."""
        forget()
        found = {}
        for user in self.users:
            dates = {each["occurred_at"][:10] for each in self.sent.get(user, ())}
            told = {
                path: self.api.admin("GET", f"/v1/users/{user}{path}")
                for path in (*SHOWN, *(f"/streak/explain?date={each}" for each in sorted(dates)))
            }
            for path, (status, answer) in told.items():
                assert status == 200, (path, answer)
                answer.pop("as_of", None)  # the instant of asking
            found[user] = told | {"phones": (200, {"phones": self.subscriptions(user)})}
        return found

    def note_leaves(self) -> None:
        """Note what the chains of hashes come to (rule 19)."""
        ledger = LedgerStore(self.dynamodb, "RewardsLedger")
        for user in self.users:
            chain = chain_of(user, [link_of(each) for each in ledger.after(user, "0")[0]])
            assert chain
            self.leaves[user] = chain.leaf.hex()

    # ---- the lake

    def folder_of(self, key: str) -> Path:
        """Return where an object of the lake is."""
        return Path(self.objects.root, key)

    def publish(self, *tables: str) -> None:
        """Bring what the streams have into the lake, as publisher, Firehose and curation do.

        tables: only the streams of these; of all if none is named.
        """
        boxes = {entity.name: Firehose() for entity in ENTITIES_OF.values()} | {"table_items": Firehose()}
        streams = {name: DeliveryStream(each, name) for name, each in boxes.items()}
        kept = TableItemRows({name: name for name in KEYS}, streams["table_items"])
        places = {table: [(entity, streams[entity.name])] for table, entity in ENTITIES_OF.items()}
        publisher = Publisher(places, item_rows=kept)
        for records in self._changes(tables or tuple(self.streams)):
            if records:
                outcome = publisher.publish([each for each in records if is_published(each)])
                assert (outcome.poison, outcome.again) == ([], [])
        for name, box in boxes.items():
            self._curate(name, box.taken)

    def _changes(self, tables: Sequence[str]) -> Iterator[list[Any]]:
        """Yield what streams have."""
        for table in tables:
            while records := self.streams[table].read():
                yield records

    def items(self, table: str) -> list[Any]:
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=table)
        return sorted((each for page in pages for each in page["Items"]), key=repr)

    def _curate(self, entity: str, taken: Iterable[bytes]) -> None:
        tasks = set()
        for number, data in enumerate(taken):
            head = HEADER.match(data)
            assert head
            dt, hour = data[7:17].decode(), data[27:29].decode()
            self.puts += 1
            self.objects.put(f"raw/{entity}/arrived={ARRIVED}/dt={dt}/hour={hour}/{self.puts}-{number}", data)
            tasks.add(Partition(entity, dt, hour))
        for task in sorted(tasks, key=str):
            curate(self.objects, task)

    # ---- loss and restore

    def lose(self, *tables: str) -> None:
        """Lose tables; all of them, and Redis, if none is named."""
        if self.redis_url and not tables:
            Redis(self.redis_url).call("FLUSHALL")
        for table in tables or TABLES:
            for each in self.items(table):
                key = {name: each[name] for name in keys_of(table)}
                self.dynamodb.delete_item(TableName=table, Key=key)
        forget()

    def restore(self, until: datetime | None = None, client: Any = None, **more: Any) -> RestoreReport:
        now = datetime.now(UTC)
        restorer = restorer_of(
            client or self.dynamodb, self.objects, until or now + timedelta(seconds=2), now, self.redis_url
        )
        told: RestoreReport = restorer(**more).run(now)
        lake = restorer().lake
        phones = PhoneTable(client or self.dynamodb, "Subscriptions", "Limits")
        PhonesRestorer(lake, phones, tombstones(self.dynamodb), **more).run(told, now)
        forget()
        return told

    def tables(self) -> dict[str, list[Any]]:
        """All items of the tables that are restored, in order."""
        return {table: self.items(table) for table in (*RESTORED, PHONES)}


def is_of(held: Any, user: str) -> bool:
    return bool(held["counter"]["S"] == subscription_counter(user))


def is_published(record: Any) -> bool:
    """Whether the mapping's filter lets a record pass; of other tables than that of phones all but removals."""
    if table_of(record) != PHONES:
        return "NewImage" in record["dynamodb"]
    return any(matches(json.loads(each), record) for each in PUBLISHED_TABLES["notifications"].changes)


def restorer_of(
    dynamodb: Any, objects: FolderObjects, until: datetime, now: datetime, redis_url: str = ""
) -> Any:
    """Return what makes a Restorer of the engine's tables."""
    ledger = LedgerStore(dynamodb, "RewardsLedger")
    store = BookStore(dynamodb, "RuleBooks")
    accounts = AccountStore(
        *(dynamodb, "UserStreaks", "DailyActivity", ledger, SHARDS),
        daily_terms=store.daily_terms,
        pay_bonuses=store.pay_bonuses,
    )
    cache = EngagementCache(redis_url)
    projections = Projections(dynamodb, "UserStreaks", "DailyActivity")
    reconciler = Reconciler(accounts, projections, cache, may_repair=True, books=store.look)

    def made(**more: Any) -> Restorer:
        return Restorer(
            LakeBefore(objects, until.replace(microsecond=0), now),
            {name: ItemTable(dynamodb, name, keys_of(name)) for name in RESTORED},
            accounts,
            reconciler,
            cache,
            tombstones(dynamodb),
            **more,
        )

    return made


def tombstones(dynamodb: Any) -> Tombstones:
    return Tombstones(dynamodb, "Erasures", KeyedHash(_Secrets, "erasures"))


class _Secrets:
    def get_secret_value(self, **_: Any) -> dict[str, str]:
        return {"SecretString": "a key for tests"}
