"""Exports are jobs: whoever has much gets it, in bounded memory, once for all who ask, whatever dies."""

import csv
import hashlib
import io
import json
import tempfile
import threading
import tracemalloc
import uuid
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from adapters import settings
from adapters.engagement.account_items import profile_attributes
from adapters.engagement.account_store import AccountStore
from adapters.engagement.event_store import EventStore
from adapters.engagement.leagues import Leagues, LeagueStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.aws import Unavailable, client
from adapters.platform.items import encode_item
from adapters.platform.tables import put_all
from adapters.privacy.erasers import Clients
from adapters.privacy.export_jobs import ExportJobs
from adapters.privacy.stores import READ_AT_ONCE, ErasureSettings, ObjectEraser, all_stores
from ingest import privacy_api
from processors import erasure
from processors.person_exports import Exporter, write_export
from rules.days import key_of_stamp, stamp, unstamp
from rules.engagement.board_settings import with_settings
from rules.engagement.boards import Standing, pack_rows
from rules.engagement.events import Event
from rules.privacy.erasures import Person
from rules.privacy.tombstones import user_subject
from tests.support import site as users_site
from tests.support.dying import Dying, Killed
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.exports import Functions, downloaded, made_in_process
from tests.support.gateway import CONTEXT
from tests.support.league_town import CLOSED_W48, IN_W48, TERMS, W48, player
from tests.support.memory import forget
from tests.support.site import Site

BYTES = 460
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def site(engine: Engine) -> Iterator[Site]:
    with users_site.site(engine) as prepared:
        yield prepared


@pytest.fixture
def functions(site: Site) -> Iterator[Functions]:
    with pytest.MonkeyPatch.context() as patch:
        made = made_in_process(patch)
        forget()
        yield made
    forget()


def user_with(site: Site, events: int, size: int = BYTES) -> str:
    """Somebody with stored events, each of which has `size` bytes of properties."""
    user = f"much{uuid.uuid4().hex[:10]}"

    def stored(number: int) -> Event:
        at = stamp(NOW + timedelta(seconds=number))
        properties = json.dumps({"note": f"{number} ".ljust(size - 12, "x")})
        return Event(
            user_id=user,
            event_id=f"{key_of_stamp(at)}#{number:08x}",
            idempotency_key=str(number),
            event_type="CHECK_IN",
            occurred_at=at,
            activity_date=NOW.date(),
            zone="UTC",
            points_awarded=5,
            source="app",
            created_at=stamp(datetime.now(UTC)),
            properties=properties,
        )

    EventStore(site.engine.client("dynamodb"), "BPEvents").put([stored(each) for each in range(events)])
    return user


def ask(site: Site, user: str) -> dict[str, Any]:
    status, told = site.call(user, "POST", f"/v1/users/{user}/export")
    assert status == 202, told
    return dict(told)


def look(site: Site, user: str) -> dict[str, Any]:
    status, told = site.call(user, "GET", f"/v1/users/{user}/export")
    assert status == 200, told
    return dict(told)


def objects_of(site: Site, user: str) -> list[str]:
    """The exports of a user that are in the bucket."""
    digest = privacy_api._parts().digest(user_subject(user))
    told = site.engine.client("s3").list_objects_v2(Bucket="payloads", Prefix=f"exports/{digest}/")
    return [each["Key"] for each in told.get("Contents", ())]


def test_whoever_has_much_gets_all_of_it(site: Site, functions: Functions) -> None:
    number = effort(150, soak=14_000)
    user = user_with(site, number)
    ask(site, user)
    assert len(functions.asked) == 1
    with downloaded(look(site, user)) as archive:
        events = json.loads(archive.read("BPEvents.json"))
        assert json.loads(events[-1]["properties"])["note"].startswith(f"{number - 1} x")
        table = list(csv.DictReader(io.StringIO(archive.read("BPEvents.csv").decode(), newline="")))
        assert [each["event_id"] for each in events] == [each["event_id"] for each in table]
        manifest = {each["file"]: each for each in json.loads(archive.read("manifest.json"))["files"]}
        assert manifest["BPEvents.json"]["rows"] == manifest["BPEvents.csv"]["rows"] == number
        for name, told in manifest.items():
            data = archive.read(name)
            assert (len(data), hashlib.sha256(data).hexdigest()) == (told["bytes"], told["sha256"])


def test_an_export_has_the_boards_and_leagues_of_a_person_and_nobody_else(
    site: Site, functions: Functions
) -> None:
    """A cohort and a standing name others: what they say of the person is in the profile, ledger and place."""
    ann, others = f"ann{uuid.uuid4().hex[:9]}", [f"member{uuid.uuid4().hex[:9]}" for _ in range(3)]
    dynamodb = site.engine.client("dynamodb")
    ledger = LedgerStore(dynamodb, "RewardsLedger")
    accounts = AccountStore(dynamodb, "UserStreaks", "DailyActivity", ledger, 1, daily_terms=lambda: TERMS)
    leagues = Leagues(LeagueStore(dynamodb, "Boards", "DailyActivity"), accounts)
    settings_ = with_settings((), {"class": "4b"}, IN_W48)
    players = [
        player(ann, {W48: 71}, board_settings=settings_),
        *(player(each, {W48: 30}) for each in others),
    ]
    put_all(dynamodb, "UserStreaks", [encode_item(profile_attributes(each)) for each in players])
    assert leagues.join_all(players, IN_W48) == 4
    place = leagues.store.membership(ann).place
    assert place
    cohort = leagues.store.cohort(place)
    assert cohort
    assert cohort.members >= {ann, *others}
    rows = [Standing(71, ann), *(Standing(30, each) for each in others)]
    page = {"board": "contest export", "part": "final-1#rows0"}
    put_all(dynamodb, "Boards", [encode_item(page) | {"data": {"B": pack_rows(rows)}}])
    for outcome_is_known in (False, True):
        if outcome_is_known:
            leagues.close_due(CLOSED_W48, float("inf"))
        with tempfile.TemporaryFile() as file:
            write_export(file, Person(uuid.uuid4().hex, ann), exporter().stores(NOW), NOW)
            archive = zipfile.ZipFile(file)
            texts = {name: archive.read(name).decode() for name in archive.namelist()}
        (profile,) = json.loads(texts["UserStreaks.json"])
        assert "+71" in profile["period_points"]
        assert "4b" in json.dumps(profile["board_settings"])
        (kept,) = [
            each for each in json.loads(texts["DailyActivity.json"]) if each["activity_date"] == "league"
        ]
        assert ("outcome" in kept["league"]) == outcome_is_known
        assert [each for each in others for text in texts.values() if each in text] == []


def test_an_export_holds_some_rows_in_memory_at_a_time_and_no_more(site: Site, functions: Functions) -> None:
    number, size = 400, 50_000
    user = user_with(site, number, size)
    ask(site, user_with(site, 1))  # the first export of a process imports much
    functions.is_kept_back = True
    ask(site, user)
    tracemalloc.start()
    try:
        assert erasure.handler(functions.asked[-1], CONTEXT) == {"exports": 1}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert look(site, user)["status"] == "finished"
    assert peak < number * size / 4


class Together:
    """S3, which answers no read of an object before so many are asked for at the same time."""

    def __init__(self, real: Any, number: int) -> None:
        self._real, self._barrier = real, threading.Barrier(number, timeout=30)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def get_object(self, **asked: Any) -> Any:
        self._barrier.wait()
        return self._real.get_object(**asked)


def exporter(**clients: Any) -> Exporter:
    """The real one, of a process that starts now, with clients of the test."""
    erasure._parts.cache_clear()
    config = settings.read_settings(ErasureSettings)
    dynamodb, s3 = clients.get("dynamodb", client("dynamodb")), clients.get("s3", client("s3"))
    reached = Clients(dynamodb, lambda: s3, lambda: None)
    return replace(
        erasure._parts().exporter,
        jobs=ExportJobs(dynamodb, config.limits_table),
        stores=lambda now: all_stores(reached, config, now),
        s3=lambda: s3,
    )


def test_a_lead_s_objects_are_read_side_by_side(site: Site) -> None:
    lead, s3 = uuid.uuid4().hex, site.engine.client("s3")
    ids = [f"{lead}{number}" for number in range(2 * READ_AT_ONCE)]
    for each in ids:
        s3.put_object(Bucket="payloads", Key=f"leads/{each}/payload.json", Body=each.encode())
    together = Together(s3, READ_AT_ONCE)
    objects = ObjectEraser(lambda: together, "payloads", lambda _: [f"leads/{each}/" for each in ids])
    found = list(objects.contents(Person(lead, leads=(lead,))))
    assert found == [(f"leads/{each}/payload.json", each.encode()) for each in ids]


def test_the_same_export_asked_for_twice_is_one_job(site: Site, functions: Functions) -> None:
    user = user_with(site, 3)
    assert site.call(user, "GET", f"/v1/users/{user}/export")[0] == 404
    functions.is_kept_back = True
    told = ask(site, user)
    assert told["status"] == "running"
    assert ask(site, user) == look(site, user) == told
    assert site.admin("POST", f"/v1/users/{user}/export") == (202, told)
    assert len(functions.asked) == 1
    for asked, made in ((functions.asked[0], 1), (functions.asked[0], 0)):
        assert erasure.handler(asked, CONTEXT) == {"exports": made}
    assert look(site, user)["export_id"] == told["export_id"]
    assert len(objects_of(site, user)) == 1
    assert ask(site, user)["export_id"] != told["export_id"]
    for method in ("GET", "POST"):
        assert site.call("stranger", method, f"/v1/users/{user}/export")[0] == 403


def test_of_many_who_ask_at_once_one_begins_it(site: Site) -> None:
    digest, woken = uuid.uuid4().hex, list[str]()

    def asked(_: int) -> str:
        jobs = ExportJobs(site.engine.client("dynamodb"), "Limits")
        return jobs.ask(digest, "", NOW, lambda job: woken.append(job.job_id)).job_id

    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(asked, range(24)))
    assert ids == set(woken)
    assert len(woken) == 1


def test_an_export_that_nobody_could_be_woken_for_begins_when_it_is_asked_for_again(
    site: Site, functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = user_with(site, 1)

    def away(**_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="lambda")

    with monkeypatch.context() as patch:
        patch.setattr(functions, "invoke", away)
        assert site.call(user, "POST", f"/v1/users/{user}/export")[0] == 503
    ask(site, user)
    assert look(site, user)["status"] == "finished"


@pytest.mark.parametrize(
    ("service", "how"), [("dynamodb", "dies after"), ("dynamodb", "throttled"), ("s3", "dies before")]
)
def test_an_export_that_is_killed_at_any_call_goes_on_when_it_is_asked_for_again(
    site: Site, functions: Functions, monkeypatch: pytest.MonkeyPatch, service: str, how: str
) -> None:
    user = user_with(site, 3)
    clock = [datetime.now(UTC)]
    monkeypatch.setattr("adapters.clock.now", lambda: clock[0])
    functions.is_kept_back = True
    # In make test each way of DynamoDB at every second call: a refused call leaves what a death behind the one before it does.
    for dies_at in range(1, 100, effort(1 + (service == "dynamodb"), soak=1)):
        job = ask(site, user)
        assert ask(site, user) == job, "it may be under way yet"
        dying = exporter(**{service: Dying(client(service), dies_at, how)})
        with suppress(Killed, *Unavailable):
            dying.make(functions.asked[-1]["export"], clock[0])
            break
        clock[0] += timedelta(minutes=3)
        if look(site, user)["status"] == "running":
            assert ask(site, user)["export_id"] == job["export_id"]
            assert erasure.handler(functions.asked[-1], CONTEXT) == {"exports": 1}
        with downloaded(look(site, user)) as archive:
            assert len(json.loads(archive.read("BPEvents.json"))) == 3
        clock[0] += timedelta(minutes=3)
    assert 1 < dies_at < 99, "there was no call left to die at"


def test_an_export_ends_after_a_day(
    site: Site, functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = user_with(site, 1)
    clock = [datetime.now(UTC)]
    monkeypatch.setattr("adapters.clock.now", lambda: clock[0])
    ask(site, user)
    told = look(site, user)
    assert unstamp(told["url_expires_at"]) <= clock[0] + timedelta(hours=1)
    clock[0] += timedelta(hours=23, minutes=30)
    assert look(site, user)["url_expires_at"] == told["expires_at"]
    clock[0] += timedelta(minutes=31)
    assert site.call(user, "GET", f"/v1/users/{user}/export")[0] == 404
    assert ask(site, user)["export_id"] != told["export_id"]


def test_of_whoever_is_erased_meanwhile_no_export_is_made(site: Site, functions: Functions) -> None:
    user = user_with(site, 2)
    functions.is_kept_back = True
    ask(site, user)
    assert site.call(user, "DELETE", f"/v1/users/{user}")[0] == 202
    forget()
    assert erasure.handler(functions.asked[0], CONTEXT) == {"exports": 0}
    assert objects_of(site, user) == []
    for method in ("GET", "POST"):
        assert site.call(user, method, f"/v1/users/{user}/export")[0] == 410
