"""Users and leads with a canary in every text are erased while others come, and are nowhere afterwards.

Doors, processors, publisher, curation, nights and the warehouse are the real ones, on the engine, on
PostgreSQL, Redis and a folder. Erasures and nights die at calls of the test's choice.
"""

import json
import random
import uuid
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.bootstrap import process_client
from adapters.platform.items import decode_item
from adapters.platform.objects import FolderObjects
from adapters.platform.redis import Redis
from adapters.privacy.erasers import Clients
from adapters.privacy.erasure_jobs import ErasureJobs
from adapters.privacy.stores import ErasureSettings, all_stores
from adapters.privacy.tombstones import tombstones_of
from adapters.settings import read_settings
from analytics.curation.curate import curate
from analytics.lake.layout import Partition, raw_prefix
from analytics.steps import warehouse_function
from analytics.steps.forget_function import ForgetSteps
from analytics.steps.warehouse_function import WarehouseSteps
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.night import State, WarehouseNight
from ingest import privacy_api
from processors import engagement, erasure, publisher, ranks
from processors.erasure import ErasureRunner
from processors.leads.lead_events import note_at_roots
from processors.publisher import Publisher, TableItemRows
from rules.lake.entities import TABLE_ITEMS
from rules.lake.packed_records import HEADER
from rules.lake.residues import is_residue
from rules.lake.table_items import KEYS
from rules.leads.lead_events import from_item
from tests.support import site as users_site
from tests.support.byte_scan import everything
from tests.support.dying import FAILURES, Dying, DyingFolder, Killed
from tests.support.effort import only_soak
from tests.support.engine import Engine, running
from tests.support.exports import downloaded, made_in_process
from tests.support.forgetting import having
from tests.support.gateway import CONTEXT
from tests.support.http_requests import called
from tests.support.identity_server import Registry
from tests.support.lead_processors import Leads
from tests.support.lead_site import Site as LeadSite
from tests.support.logged import logged_lines
from tests.support.memory import forget
from tests.support.pipeline import Stream
from tests.support.raw_lake import rows
from tests.support.restore_drill import is_published
from tests.support.site import ADMIN, PRODUCERS, Site
from tests.support.webhooks import ORDER

pytestmark = pytest.mark.xdist_group("identity")
CANARY = "zqcanary"  # begins each word of whoever is erased; nobody else has it
USERS = LEADS = 50
OTHERS = ("ann", "ben", "cleo")
FOREVER = float("inf")
SETTLES = timedelta(hours=1)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running() as started:
        yield started


class LakeStream:
    """Stands for a delivery stream: each call of `put` becomes raw objects, by the heads of its records."""

    def __init__(self, lake: FolderObjects, entity: str) -> None:
        self.lake, self.entity, self.touched = lake, entity, set[Partition]()

    def put(self, records: Sequence[bytes]) -> list[int]:
        by_head: dict[bytes, list[bytes]] = {}
        for each in records:
            found = HEADER.match(each)
            assert found
            by_head.setdefault(found[0], []).append(each)
        for head, some in by_head.items():
            where = json.loads(head.strip() + b"]}")
            place = Partition(self.entity, where["dt"], where["hour"])
            arrived = datetime.now(UTC).date().isoformat()
            key = raw_prefix(place.entity, arrived, place.dt, place.hour) + uuid.uuid4().hex
            self.lake.put(key, b"".join(some))
            self.touched.add(place)
        return []


@dataclass
class World:
    """Everything that a deployment has, in one process."""

    engine: Engine
    users: Site
    leads: LeadSite
    folder: Path
    redis_url: str
    streams: dict[str, Stream] = field(default_factory=dict)
    records: list[dict[str, Any]] = field(default_factory=list)
    nights: int = 0

    def __post_init__(self) -> None:
        self.lake = FolderObjects(self.folder / "lake")
        self.destinations = {
            table: [(entity, LakeStream(self.lake, entity.name)) for entity, _ in some]
            for table, some in publisher._parts().destinations.items()
        }
        self.kept = TableItemRows({name: name for name in KEYS}, LakeStream(self.lake, TABLE_ITEMS.name))  # type: ignore[arg-type]
        self.streams = {table: Stream(self.engine, table) for table in {*self.destinations, *KEYS}}
        self.warehouse = DuckWarehouse(self.folder / "warehouse.duckdb", str(self.folder / "lake"), self.lake)

    def flow(self) -> None:
        """Let what is stored go on: applied, remembered, published."""
        self.users.settle()
        dynamodb = self.engine.client("dynamodb")
        leads = Leads(dynamodb, "x")
        for each in dynamodb.scan(TableName="Event")["Items"]:
            event = from_item(decode_item(each))
            note_at_roots([event], leads.features, leads.rows)
            leads.both(event)
        fresh = [record for stream in self.streams.values() for record in stream.read()]
        self.records += fresh
        self.publish(fresh)

    def publish(self, records: list[dict[str, Any]]) -> None:
        erased = tombstones_of(read_settings(ErasureSettings), process_client)
        told = Publisher(self.destinations, erased, self.kept).publish(  # type: ignore[arg-type]  # into a folder
            [each for each in records if is_published(each)]
        )
        assert (told.again, told.poison) == ([], [])

    def night(self, at: datetime, dies: random.Random | None = None) -> None:
        """A nightly run, begun again after each death until it is through."""
        self.nights += 1
        event = {"run_id": f"n{self.nights}", "tasks_key": f"runs/n{self.nights}/tasks.json"}
        rows = (stream for some in self.destinations.values() for _, stream in some)
        streams: list[Any] = [self.kept.stream, *rows]
        places = {place for stream in streams for place in stream.touched}
        for stream in streams:
            stream.touched.clear()
        tasks = [{"entity": each.entity, "dt": each.dt, "hour": each.hour} for each in places]
        self.lake.put(event["tasks_key"], json.dumps(tasks).encode())
        config = read_settings(ErasureSettings)
        jobs = ErasureJobs(self.engine.client("dynamodb"), config.erasures_table)
        for attempt in range(500):
            how = dies.choice(["before", "after"]) if dies else ""
            calls = dies.randrange(2, 12 + 4 * attempt) if dies else 10**9
            lake = DyingFolder.at(self.lake.root, calls, how)
            steps = ForgetSteps(lake, jobs, tombstones_of(config, process_client), timedelta(0))
            try:
                for place in sorted(places, key=str):
                    curate(lake, place)
                while steps.forget(event, at)["is_left"]:
                    pass
                self._warehouse(lake, jobs, event, at, is_dying=dies is not None)
                steps.finish(event)
            except Killed:
                assert dies
                continue
            return

    def _warehouse(self, lake: Any, jobs: Any, event: Any, at: datetime, *, is_dying: bool) -> None:
        steps = WarehouseSteps(self.warehouse, lake, str(self.lake.root), "role", jobs.opened)
        while steps.work(event, at)["left"]:
            pass
        found = WarehouseNight.read(self.lake, event["run_id"])
        assert found
        wrong = [(each.name, each.reason) for each in found.items if each.state is not State.DONE]
        # An item in which a function has ended twice is left to the next night.
        assert (wrong, [(each.name, each.found) for each in found.items if each.found]) == (
            [],
            [],
        ) or is_dying

    def left(self, word: str) -> set[str]:
        """Return every store that holds a word, in any form that it has there."""
        found = {
            f"{store} {text[:60]}" for store, text in everything(self.engine, self.redis_url) if word in text
        }
        found |= {f"lake {each}" for each in having(self.folder, [word])}
        dumped = self.leads.registry.dump()
        found |= self.tables_with(word)
        return found | {f"identity.{table}" for table, held in dumped.items() if word in str(held)}

    def tables_with(self, word: str) -> set[str]:
        """Return the warehouse's tables that hold a word."""
        listed = "SELECT table_schema || '.' || table_name AS name FROM information_schema.tables"
        with self.warehouse.kept_open():
            names = [each["name"] for each in self.warehouse.rows(listed)]
            return {name for name in names if word in str(self.warehouse.rows(f"SELECT * FROM {name}"))}

    def sums(self, before: str) -> dict[str, Any]:
        """What is told of all users up to a date."""
        ledger = [each for each in rows(self.lake, "ledger") if str(each["activity_date"] or before) < before]
        days = [each for each in rows(self.lake, "daily_activity") if str(each["activity_date"]) < before]
        with self.warehouse.kept_open():
            actives = self.warehouse.rows(
                f"SELECT * FROM marts.daily_actives WHERE date_day < DATE '{before}' ORDER BY date_day"
            )
        return {
            "points": sum(each["points"] for each in ledger),
            "entries": len(ledger),
            "actives": Counter(str(each["activity_date"]) for each in days),
            "daily_actives": [repr(each) for each in actives],
        }


@pytest.fixture
def world(
    engine: Engine,
    lone_redis_url: str,
    registry: Registry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    Redis(lone_redis_url).call("FLUSHALL")
    monkeypatch.setattr(warehouse_function, "grant_analysts", lambda _: None)
    secret = engine.client("secretsmanager").create_secret(
        Name=f"erase-{uuid.uuid4()}", SecretString="k" * 32
    )
    more = {
        "ERASURE_SECRET_ARN": secret["ARN"],
        "SETTLE_SECONDS": str(int(SETTLES.total_seconds())),
        "IDENTITY_URL": registry.url,
        "FAILURE_QUEUE_URL": engine.queue_url,
    }
    with users_site.site(engine, lone_redis_url, **more) as users:
        leads = LeadSite(engine, registry)
        yield World(engine, users, leads, tmp_path, lone_redis_url)


def event_of(user: str, number: int, at: datetime) -> dict[str, Any]:
    """An event with the sender's own words in each text; every eighth has many."""
    return {
        "idempotency_key": f"{user} key {number}",
        "event_type": "LESSON_COMPLETED",
        "occurred_at": at.isoformat(),
        "timezone": "Europe/Berlin",
        "user_id": user,
        "source": f"{user}-app"[:60],
        "properties": {"note": f"{user} wrote this " * (60 if number % 8 == 0 else 1), user: [user]},
    }


def post(world: World, events: Sequence[dict[str, Any]]) -> None:
    for start in range(0, len(events), 100):
        body = {"events": events[start : start + 100]}
        world.users.call("producer", "POST", "/v1/events", body, PRODUCERS)


def lives(world: World, user: str) -> None:
    """What only requests of the user's own leave: a name, a phone, an answer."""
    site = world.users
    assert site.call(user, "PUT", f"/v1/users/{user}/alias", {"alias": user[:20]})[0] == 200
    phone = {"fcm_token": f"{user}-phone", "streak_reminders": True}
    assert site.call(user, "POST", "/v1/subscriptions", phone)[0] == 201
    question = {
        "idempotency_key": f"q {uuid.uuid4()}",
        "type": "text",
        "prompt": "Well?",
        "required_responses": 3,
    }
    asked = site.call("agent", "POST", "/v1/questions", question, "streakline/agents")[1]
    path = f"/v1/questions/{asked['question_id']}/responses"
    assert site.call(user, "POST", path, {"answer": f"{user} thinks", "response_time_ms": 900})[0] == 201
    reversal = {"points": 5, "reason": f"{user} asked for it", "idempotency_key": f"{user} adjusts"}
    site.admin("POST", f"/v1/users/{user}/adjustments", reversal)


def order(number: int, word: str) -> dict[str, Any]:
    customer = {**ORDER["customer"], "id": f"c-{word}", "email": f"{word}@example.com", "phone": None}
    customer |= {"first_name": word, "last_name": word}
    note = f"{word} says " * (300 if number % 10 == 0 else 1)
    return {**ORDER, "id": number, "customer": customer, "note": note, "name": f"#{word}"}


def lead_of(world: World, word: str) -> str:
    query = (
        "SELECT DISTINCT lead_organization_id FROM identity.lead_organization JOIN identity.channel_identity"
        " USING (lead_id, organization_id) WHERE external_id LIKE %s"
    )
    return str(world.leads.registry.rows(query, f"%{word}%")[0][0])


def admin(method: str, path: str) -> dict[str, Any]:
    claims = {"sub": "operator", "cognito:groups": [ADMIN]}
    context = {
        "http": {"method": method, "path": path},
        "stage": "$default",
        "authorizer": {"jwt": {"claims": claims}},
    }
    kind = path.split("/")[2]  # API Gateway names a route by its template
    return called(
        privacy_api.handler, method, path, requestContext=context, routeKey=f"{method} /v1/{kind}/{{id}}"
    )


def runner(world: World, chance: random.Random | None) -> ErasureRunner:
    """A process that goes on with erasures, and dies after so many calls."""
    erasure._parts.cache_clear()
    made, config = erasure._parts().runner, read_settings(ErasureSettings)
    if chance is None:
        return made
    dynamodb: Any = Dying(
        world.engine.client("dynamodb"), chance.randrange(2, 8 * USERS), chance.choice(FAILURES[:2])
    )
    clients = Clients(dynamodb, lambda: world.engine.client("s3"), lambda: None)
    return ErasureRunner(
        ErasureJobs(dynamodb, config.erasures_table),
        made.tombstones,
        lambda now: all_stores(clients, config, now),
        made.hashes,
        made.key,
        made.settles,
    )


def sweep(world: World, chance: random.Random, fresh: Iterator[dict[str, Any]], now: datetime) -> int:
    """Let erasures go on until none is due online, with events beside it; returns how often a process died."""
    deaths = 0
    for _ in range(400):
        if not any(each.is_due(now) and not each.is_in_lake for each in runner(world, None).jobs.opened()):
            return deaths
        try:
            runner(world, chance if deaths < 150 else None).run(now, FOREVER)
        except Killed:
            deaths += 1
        if deaths % 3 == 0 and (event := next(fresh, None)):
            post(world, [event])
            world.flow()
    raise AssertionError("erasures do not come to an end")


@only_soak(
    "tests/integration/test_erasure.py::test_nothing_is_left_and_the_certificate_says_so,"
    " test_it_survives_death_at_any_call_and_finishes, test_late_records_of_the_stream_and_redrives_bring_nobody_back,"
    " tests/integration/test_forget_versions.py of the lake and tests/sql/test_forgetting.py of the warehouse"
)
def test_nobody_who_was_erased_is_anywhere_and_nothing_brings_them_back(world: World) -> None:
    run, chance = uuid.uuid4().hex[:6], random.Random(7)
    users = [f"{CANARY}-{run}-u{number:02}" for number in range(USERS)]
    words = [f"{CANARY}-{run}-l{number:02}" for number in range(LEADS)]
    past, today = datetime.now(UTC) - timedelta(days=2), datetime.now(UTC).date().isoformat()
    everybody = [*users, *OTHERS]
    old = [
        event_of(user, number, past + timedelta(hours=5 * number)) for user in everybody for number in (0, 1)
    ]
    orders = [order(number, word) for number, word in enumerate([*words, *OTHERS], 1)]
    with logged_lines() as lines:
        post(world, old)
        for user in (*users[:3], OTHERS[0]):
            world.users.settle()
            lives(world, user)
        for each in orders:
            world.leads.send(each)
        world.flow()
        ranks._parts().build(datetime.now(UTC))
        world.night(datetime.now(UTC))
        assert len(world.left(CANARY)) > 20, "every store has them"
        sums = world.sums(today)
        assert sums["points"] > 0
        others = [world.users.profile(each) for each in OTHERS]
        leads = [lead_of(world, word) for word in words]
        exports = [exported(f"/v1/users/{users[0]}/export"), exported(f"/v1/leads/{leads[9]}/export")]

        for user in users:
            assert world.users.call(user, "DELETE", f"/v1/users/{user}")[0] == 202
        for lead in leads:
            assert admin("DELETE", f"/v1/leads/{lead}")["statusCode"] == 202
        beside = (
            event_of(user, 7, datetime.now(UTC))
            for pair in zip(users, OTHERS * USERS, strict=False)
            for user in pair
        )
        now = datetime.now(UTC)
        deaths = sweep(world, chance, beside, now)
        forget()  # every process has the news before the second sweep begins
        object.__setattr__(
            world.leads.consumer, "erased", tombstones_of(read_settings(ErasureSettings), process_client)
        )
        deaths += sweep(world, chance, beside, now + SETTLES)
        for dies in (chance, None, None):
            world.night(now + 2 * SETTLES, dies)
        erasure._parts.cache_clear()
        told = erasure._parts().runner.run(now + 2 * SETTLES, FOREVER)
        assert (deaths > 5, told["open"]) == (True, 0)

        assert world.left(CANARY) == set()
        for lead in leads[:5]:  # our own random ids; Redis has them for an hour, under digests
            assert {each for each in world.left(lead) if not each.startswith("Redis identity:")} == set()
        assert world.sums(today) == sums
        for other, before in zip(OTHERS, others, strict=True):
            after = world.users.profile(other)
            assert after["longest_streak"] >= before["longest_streak"]
            assert after["total_bestie_points"] >= before["total_bestie_points"]
        held_all(exports, users[0], words[9])

        post(world, old)
        for each in orders:
            world.leads.send(each)
        of_events = [each for each in world.records if "/BPEvents/" in each["eventSourceARN"]]
        engagement.handler({"Records": of_events, "streakline_redrive": True}, CONTEXT)
        world.publish(world.records)
        world.flow()
        world.night(now + 3 * SETTLES)
        assert world.left(CANARY) == set(), "a re-import, late records and redeliveries bring nothing back"
        assert world.sums(today) == sums
    assert lines.getvalue().count("\n") > 2 * USERS
    assert [each for each in lines.getvalue().splitlines() if CANARY in each] == []
    assert any(is_residue(each["account_id"]) for each in rows(world.lake, "ledger"))


def exported(path: str) -> zipfile.ZipFile:
    with pytest.MonkeyPatch.context() as patch:
        made_in_process(patch)
        privacy_api._parts.cache_clear()
        assert admin("POST", path)["statusCode"] == 202
    return downloaded(json.loads(admin("GET", path)["body"]))


def held_all(exports: Sequence[zipfile.ZipFile], user: str, word: str) -> None:
    """The exports held what was erased."""
    of_user, of_lead = exports
    texts = {name: of_user.read(name).decode() for name in of_user.namelist()}
    assert f"{user} wrote this" in "".join(texts.values())
    assert f"{user} thinks" in texts["Responses.json"]
    assert f"{user}-phone" in texts["Subscriptions.json"]
    assert len(json.loads(texts["BPEvents.json"])) >= 2
    assert f"{word}@example.com" in of_lead.read("PostgreSQL.json").decode()
    assert any(f"{word} says" in of_lead.read(each).decode() for each in of_lead.namelist())
