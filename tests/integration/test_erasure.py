"""A user who is erased is in no online store any more, whenever the process dies, and nothing brings them back."""

import json
import random
import uuid
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.engagement.stretch_store import StretchStore
from adapters.platform.redis import Redis
from adapters.privacy.erasers import Clients
from adapters.privacy.erasure_jobs import ErasureJobs
from adapters.privacy.stores import ErasureSettings, all_stores
from adapters.settings import read_settings
from local.operate import persons
from local.stack import Stack
from processors import engagement, erasure, ranks
from processors.erasure import ErasureRunner
from rules.engagement.offline import Stretch
from rules.privacy.erasures import problem_of, sign_certificate
from rules.privacy.tombstones import digest_of, lead_subject, user_subject
from tests.support import site as users_site
from tests.support.byte_scan import stores_with
from tests.support.dying import Dying, Killed
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.exports import downloaded
from tests.support.forgetting import two_nights
from tests.support.gateway import CONTEXT
from tests.support.memory import forget
from tests.support.pipeline import Stream
from tests.support.site import ADMIN, PRODUCERS, Site

SECRET = "k" * 32
FOREVER = float("inf")


@pytest.fixture(scope="module")
def site(engine: Engine, lone_redis_url: str) -> Iterator[Site]:
    Redis(lone_redis_url).call("FLUSHALL")
    secret = engine.client("secretsmanager").create_secret(Name=f"erase-{uuid.uuid4()}", SecretString=SECRET)
    more = {"ERASURE_SECRET_ARN": secret["ARN"], "SETTLE_SECONDS": "0"}
    with users_site.site(engine, lone_redis_url, **more) as prepared:
        for module in (erasure, ranks):
            module._parts.cache_clear()
        finish()  # what other modules have left open
        yield prepared
        for module in (erasure, ranks):
            module._parts.cache_clear()


def test_pairs_requests_and_blocks_leave_both_sides(site: Site) -> None:
    user, friend, asked, asking, blocked, blocking = (canary() for _ in range(6))
    for one, other in ((user, friend), (friend, user), (user, asked), (asking, user), (friend, asked)):
        assert site.call(one, "PUT", f"/v1/users/{one}/friends/{other}")[0] == 200
    assert site.call(user, "PUT", f"/v1/users/{user}/blocked/{blocked}")[0] == 200
    assert site.call(blocked, "PUT", f"/v1/users/{blocked}/friends/{user}")[0] == 200
    assert site.call(blocking, "PUT", f"/v1/users/{blocking}/blocked/{user}")[0] == 200
    assert site.call(user, "POST", f"/v1/users/{user}/export")[0] == 202
    export = downloaded(site.call(user, "GET", f"/v1/users/{user}/export")[1])
    told = b"".join(map(export.read, export.namelist())).decode()
    assert friend in told
    assert blocking not in told, "whom they have blocked people do not learn"
    erase(site, user)
    finish()
    items = site.engine.client("dynamodb").scan(TableName="Friends")["Items"]
    assert not [item for item in items if user in str(item)]
    left = {(item["user_id"]["S"], item["friend_id"]["S"]) for item in items if friend in str(item)}
    assert left >= {(friend, asked), (asked, friend)}, "others keep what they have"


def test_who_blocks_leaves_nothing_with_the_blocked(site: Site) -> None:
    user, other = canary(), canary()
    for method in ("PUT", "DELETE", "PUT"):
        assert site.call(user, method, f"/v1/users/{user}/blocked/{other}")[0] == 200
    erase(site, user)
    finish()
    items = site.engine.client("dynamodb").scan(TableName="Friends")["Items"]
    assert not [item for item in items if user in str(item)]


def canary() -> str:
    return f"canary{uuid.uuid4().hex[:12]}"


def events_of(user: str, number: int = 6, days: float = 1) -> list[dict[str, Any]]:
    """Events with the user's own words in every text; the first has many of them."""
    at = datetime.now(UTC) - timedelta(days=days)
    return [
        {
            "idempotency_key": f"{user} key {each}",
            "event_type": "LESSON_COMPLETED",
            "occurred_at": (at + timedelta(minutes=each)).isoformat(),
            "timezone": "Europe/Berlin",
            "user_id": user,
            "properties": {"note": f"{user} wrote this " * (40 if each == 0 else 1)},
        }
        for each in range(number)
    ]


def live(site: Site, user: str) -> None:
    """Let a user do what leaves something in every store."""
    site.send("producer", *events_of(user), groups=(PRODUCERS,))
    assert site.call(user, "PUT", f"/v1/users/{user}/alias", {"alias": user[:20]})[0] == 200
    assert site.call(user, "PUT", f"/v1/users/{user}/timezone", {"timezone": "Europe/Berlin"})[0] == 200
    assert site.call(user, "POST", f"/v1/users/{user}/freezes", {"idempotency_key": f"{user} f"})[0] == 201
    phone = {"fcm_token": f"{user} phone".replace(" ", "-"), "streak_reminders": True}
    assert site.call(user, "POST", "/v1/subscriptions", phone)[0] == 201
    question = {
        "idempotency_key": f"q {uuid.uuid4()}",
        "type": "text",
        "prompt": "What do you think?",
        "required_responses": 3,
    }
    status, asked = site.call("agent", "POST", "/v1/questions", question, "streakline/agents")
    assert status == 201, asked
    path = f"/v1/questions/{asked['question_id']}/responses"
    status, told = site.call(user, "POST", path, {"answer": f"{user} thinks", "response_time_ms": 900})
    assert status == 201, told
    site.settle()
    now = datetime.now(UTC)
    at_sea = Stretch("0" * 16, now - timedelta(days=7), now - timedelta(days=7), now, now)
    store = StretchStore(site.engine.client("dynamodb"), "IdempotencyKeys", "BPEvents")
    store.find_or_begin(user, lambda _: at_sea, now)


def runner(**clients: Any) -> ErasureRunner:
    """The real runner, as a process that starts now; clients: some that die."""
    erasure._parts.cache_clear()
    made = erasure._parts().runner
    if not clients:
        return made
    config = read_settings(ErasureSettings)
    dynamodb = clients["dynamodb"]
    return ErasureRunner(
        ErasureJobs(dynamodb, config.erasures_table),
        made.tombstones,
        lambda now: all_stores(Clients(dynamodb, lambda: clients["s3"], lambda: None), config, now),
        made.hashes,
        made.key,
        made.settles,
    )


def run(made: ErasureRunner) -> dict[str, int]:
    return made.run(datetime.now(UTC), FOREVER)


def nights() -> None:
    """Two nights go through the lake."""
    two_nights(runner().jobs, datetime.now(UTC))


def finish() -> dict[str, int]:
    """Everything that an erasure takes, nights included."""
    run(runner())
    nights()
    return run(runner())


def erase(site: Site, user: str) -> str:
    status, told = site.call(user, "DELETE", f"/v1/users/{user}")
    assert status == 202, told
    return str(told["erasure_id"])


def test_nothing_is_left_and_the_certificate_says_so(
    site: Site, lone_redis_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    user, other = canary(), canary()
    for each in (user, other):
        live(site, each)
    ranks._parts().build(datetime.now(UTC))
    before = site.profile(other), site.admin("GET", f"/v1/users/{other}/ledger")
    assert stores_with(site.engine, user, lone_redis_url) >= {
        *("UserStreaks", "BPEvents", "DailyActivity", "RewardsLedger", "IdempotencyKeys", "Limits"),
        *("Responses", "Subscriptions", "Redis"),
    }
    assert site.call(user, "POST", f"/v1/users/{user}/export")[0] == 202
    export = downloaded(site.call(user, "GET", f"/v1/users/{user}/export")[1])

    capsys.readouterr()
    erasure_id = erase(site, user)
    assert erase(site, user) == erasure_id
    assert site.admin("GET", f"/v1/erasures/{erasure_id}")[1]["status"] == "open"
    assert run(runner()) == {"finished": 0, "open": 1, "late": 0}
    assert stores_with(site.engine, user, lone_redis_url) == {"Erasures"}, "until the lake is done"
    told = site.admin("GET", f"/v1/erasures/{erasure_id}")[1]
    assert {"events", "ledger", "Warehouse", "raw, quarantine, errors"} <= set(told["awaits"])
    assert "BPEvents" not in told["awaits"]
    assert told["deadline"] > told["started_at"]
    assert run(runner()) == {"finished": 0, "open": 1, "late": 0}
    nights()
    assert run(runner()) == {"finished": 1, "open": 0, "late": 0}

    assert stores_with(site.engine, user, lone_redis_url) == set(), "also no table of erasures"
    assert user not in capsys.readouterr().out
    assert (site.profile(other), site.admin("GET", f"/v1/users/{other}/ledger")) == before
    told = site.admin("GET", f"/v1/erasures/{erasure_id}")[1]
    assert told["status"] == "finished"
    certificate = told["certificate"]
    assert problem_of(certificate, SECRET) is None
    removed = {each["store"]: each["removed"] for each in certificate["stores"]}
    assert removed["BPEvents"] == 7  # six, and the answer's
    assert removed["UserStreaks"] == removed["Subscriptions"] == removed["Responses"] == 1
    assert removed["PayloadBucket"] == 1  # the export
    _held_all(export, user)


def _held_all(export: zipfile.ZipFile, user: str) -> None:
    """The export held what was erased, and its manifest describes every file."""
    with export as archive:
        names = set(archive.namelist()) - {"manifest.json"}
        manifest = json.loads(archive.read("manifest.json"))
        assert {each["file"] for each in manifest["files"]} == names
        assert len(json.loads(archive.read("BPEvents.json"))) == 7
        notes = archive.read("BPEvents.json") + b"".join(
            archive.read(each) for each in names if each.startswith("objects/")
        )
        assert notes.count(f"{user} wrote this".encode()) >= 6 + 40 - 1
        assert f"{user} thinks".encode() in archive.read("Responses.json")
        assert f"{user}-phone".encode() in archive.read("Subscriptions.csv")
        assert len(archive.read("RewardsLedger.csv").splitlines()) > 6


def test_whoever_was_erased_is_answered_410_until_an_admin_lifts_it(site: Site) -> None:
    user = canary()
    live(site, user)
    old = events_of(user)
    erasure_id = erase(site, user)
    forget()  # half a minute passes for every process
    for method, path in (("GET", ""), ("GET", "/ledger"), ("GET", "/export"), ("GET", "/balance")):
        assert site.call(user, method, f"/v1/users/{user}{path}")[0] == 410, path
    assert site.call(user, "PUT", f"/v1/users/{user}/timezone", {"timezone": "UTC"})[0] == 410
    assert site.call(user, "POST", "/v1/subscriptions", {"fcm_token": "again"})[0] == 410
    fresh = [{**each, "idempotency_key": f"new {number}"} for number, each in enumerate(old)]
    assert site.call(user, "POST", "/v1/events", {"events": fresh})[0] == 410
    assert site.admin("POST", f"/v1/users/{user}/lift")[0] == 409
    finish()
    assert site.call(user, "POST", f"/v1/users/{user}/lift")[0] == 403
    assert site.admin("POST", f"/v1/users/{user}/lift") == (200, {"lifted": 1})
    forget()  # half a minute passes for every process
    told = site.call("producer", "POST", "/v1/events", {"events": old}, PRODUCERS)
    assert told[0] == 410, "what was before never comes back"
    now = {
        **old[0],
        "idempotency_key": "anew",
        "occurred_at": datetime.now(UTC).isoformat(),
        "properties": {},
    }
    assert site.send(user, now)["accepted"] == 1
    assert site.profile(user)["total_bestie_points"] > 0
    assert site.admin("GET", f"/v1/erasures/{erasure_id}")[1]["status"] == "finished"


def test_late_records_of_the_stream_and_redrives_bring_nobody_back(site: Site, lone_redis_url: str) -> None:
    user = canary()
    stream = Stream(site.engine, "BPEvents")
    status, _ = site.call("producer", "POST", "/v1/events", {"events": events_of(user)}, PRODUCERS)
    assert status == 202
    records = stream.read()
    erase(site, user)
    forget()  # half a minute passes for every process
    finish()
    for redrive in ({}, {"streakline_redrive": True}):
        assert engagement.handler({"Records": records, **redrive}, CONTEXT) == {"batchItemFailures": []}
    site.settle()
    assert stores_with(site.engine, user, lone_redis_url) == set()


def test_what_a_process_without_the_news_lets_in_is_found_by_the_second_sweep(
    site: Site, lone_redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = canary()
    live(site, user)
    monkeypatch.setenv("SETTLE_SECONDS", "60")
    made = runner()
    erase(site, user)
    now = datetime.now(UTC)
    assert made.run(now, FOREVER)["open"] == 1  # the first sweep is done
    site.send("producer", *events_of(user, 3, days=0.5), groups=(PRODUCERS,))  # knows nothing of it yet
    assert stores_with(site.engine, user, lone_redis_url)
    assert made.run(now + timedelta(seconds=50), FOREVER)["open"] == 1
    assert made.run(now + timedelta(seconds=70), FOREVER)["open"] == 1
    nights()
    assert made.run(now + timedelta(seconds=80), FOREVER)["finished"] == 1
    assert stores_with(site.engine, user, lone_redis_url) == set()
    erasure._parts.cache_clear()


DEATHS = ("dies after", "throttled")


@pytest.mark.parametrize(
    "hows",
    [DEATHS, *((each,) for each in DEATHS[: effort(0, soak=2)])],
    ids=" or ".join,
)
def test_it_survives_death_at_any_call_and_finishes(
    site: Site, lone_redis_url: str, hows: tuple[str, ...]
) -> None:
    """The process dies at one call after the other, further and further on, until it is through."""
    user, deaths = canary(), 0
    live(site, user)
    erasure_id = erase(site, user)
    chance = random.Random(" ".join(hows))
    for _ in range(500):
        dynamodb = Dying(site.engine.client("dynamodb"), chance.randrange(2, 14), chance.choice(hows))
        try:
            if run(runner(dynamodb=dynamodb, s3=site.engine.client("s3")))["finished"]:
                break
            if all(each.is_in_lake for each in runner().jobs.opened()):
                nights()
        except Killed:
            pass
        deaths += 1
    assert deaths > 5
    if not site.admin("GET", f"/v1/erasures/{erasure_id}")[1].get("certificate"):
        finish()
    assert stores_with(site.engine, user, lone_redis_url) == set()
    certificate = site.admin("GET", f"/v1/erasures/{erasure_id}")[1]["certificate"]
    removed = {each["store"]: each["removed"] for each in certificate["stores"]}
    assert (removed["BPEvents"], removed["UserStreaks"], removed["Responses"]) == (7, 1, 1)


def test_others_may_not(site: Site) -> None:
    user = canary()
    for method, path in (("DELETE", ""), ("GET", "/export")):
        assert site.call("somebody", method, f"/v1/users/{user}{path}")[0] == 403
    others = ("producers", "fulfilment", "agents", "leads/acme", f"audience/{user}", "admins", "admin/x")
    asked = (("DELETE", ""), ("GET", "/export"), ("POST", "/lift"))
    for group in others:
        for method, path in asked:
            told = site.call("somebody", method, f"/v1/users/{user}{path}", None, f"streakline/{group}")
            assert told[0] == 403, (group, method, path)
    assert site.call(user, "POST", f"/v1/users/{user}/lift")[0] == 403, "nobody lifts their own"
    assert site.call("operator", "DELETE", "/v1/users/%20", None, ADMIN)[0] == 400
    assert site.admin("GET", f"/v1/erasures/{'0' * 32}")[0] == 404
    assert site.admin("GET", "/v1/erasures/x")[0] == 400


def test_a_certificate_is_about_one_person(engine: Engine, tmp_path: Path) -> None:
    secret = engine.client("secretsmanager").create_secret(Name=f"c-{uuid.uuid4()}", SecretString=SECRET)
    stack = Stack("", engine.endpoint, "us-east-1", {"ErasureSecretId": secret["ARN"]}, {}, "")
    digests = {
        who: digest_of(SECRET, subject(who)) for subject, who in ((user_subject, "ann"), (lead_subject, "l1"))
    }
    for whom, wrong in ((("ann", ""), ("bob", "")), (("", "l1"), ("", "ann"))):
        body = {"finished_at": "2026-03-10T06:00:00Z", "subject_digest": digests["".join(whom)]}
        file = tmp_path / "certificate.json"
        file.write_text(json.dumps(sign_certificate(body, SECRET)))
        told = persons.certificate(file, *whom, stack)
        assert told == {"genuine": True, "about": "".join(whom), "finished_at": body["finished_at"]}
        with pytest.raises(RuntimeError, match="somebody else"):
            persons.certificate(file, *wrong, stack)


def _twice(text: str, key: str, value: str) -> str:
    """Say another value of a key, before the one that was signed."""
    return text.replace(f'"{key}":', f'"{key}": {value}, "{key}":', 1)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (lambda text: _twice(text, "stores", '[{"store": "BPEvents", "left": 7}]'), "'stores' twice"),
        (lambda text: _twice(text, "left", "7"), "'left' twice"),
        (lambda text: _twice(text, "value", f'"{"0" * 64}"'), "'value' twice"),
        (lambda text: text.replace("{", '{"st\\u006fres": [], ', 1), "'stores' twice"),
        (lambda text: text.replace("{", '{"signature": {}, ', 1), "'signature' twice"),
        (lambda text: text.replace('"value":', '"signed_by": "the court", "value":', 1), "signed_by"),
    ],
    ids=[
        "another list",
        "within a store",
        "the signature's",
        "as an escape",
        "a signature",
        "unsigned words",
    ],
)
def test_a_certificate_that_says_two_things_is_not_genuine(
    engine: Engine, tmp_path: Path, how: Callable[[str], str], why: str
) -> None:
    secret = engine.client("secretsmanager").create_secret(Name=f"c-{uuid.uuid4()}", SecretString=SECRET)
    stack = Stack("", engine.endpoint, "us-east-1", {"ErasureSecretId": secret["ARN"]}, {}, "")
    body = {"finished_at": "2026-03-10T06:00:00Z", "stores": [{"store": "BPEvents", "left": 0}]}
    text = json.dumps(sign_certificate(body, SECRET), indent=2)
    file = tmp_path / "certificate.json"
    file.write_text(text)
    assert persons.certificate(file, "", "", stack)["genuine"]
    file.write_text(how(text))
    assert how(text) != text
    with pytest.raises(RuntimeError, match=f"not genuine: .*{why}"):
        persons.certificate(file, "", "", stack)
