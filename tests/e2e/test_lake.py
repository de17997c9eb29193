"""From the tables' streams to the warehouse and back: nothing lost, nothing doubled, differences repaired.

Whoever is erased between the nights is forgotten by them, and the certificate is genuine.
"""

import contextlib
import gzip
import io
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from adapters.platform.items import decode_item, encode_item
from adapters.platform.objects import S3Objects
from analytics.curation.raw_lines import unzip
from analytics.lake.listing import raw_objects_of_dates
from local.api import Api
from local.cloud.patience import drain, drain_leads
from local.operate import nightly_run, persons
from local.paths import WAREHOUSE
from local.replay import post_events, put_on_stream, shuffled
from local.stack import Stack
from local.what_if import what_if_command
from rules.lake.pseudonyms import pseudonym
from tests.e2e.conftest import event, printed
from tests.e2e.test_questions import answer, asked, settled
from tests.e2e.test_survival import workers
from tests.support.changed_cloud import warehouse_away
from tests.support.effort import effort
from tests.support.lead_orders import bought, send
from tests.support.raw_lake import ARRIVED

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")

PEOPLE, DAYS, SEED = effort(10, soak=20), effort(4, soak=6), 3
WHAT_IFS, WHAT_IF_SECONDS_MAX = "/v1/rules/what-ifs", 300
Rows = list[tuple[Any, ...]]


def query(sql: str, *values: Any) -> Rows:
    with duckdb.connect(str(WAREHOUSE), read_only=True) as db:
        return db.execute(sql, values).fetchall()


def scan(stack: Stack, table: str) -> list[dict[str, Any]]:
    pages = stack.client("dynamodb").get_paginator("scan").paginate(TableName=stack.tables[table])
    return [decode_item(each) for page in pages for each in page["Items"]]


def busy_days(user: str) -> list[dict[str, Any]]:
    """Twelve workouts on each of some dates: more than the daily cap allows points for."""
    start = datetime(2026, 3, 1, 12, tzinfo=UTC)
    return [
        event(
            user,
            f"d{day}-{number}",
            (start + timedelta(days=day, minutes=number)).isoformat(),
            event_type="WORKOUT_COMPLETED",
            source=("ios", "web")[number % 2],
        )
        for day in range(DAYS)
        for number in range(12 if day == 0 else 2)
    ]


def lake_put(stack: Stack, key: str, body: bytes) -> None:
    stack.client("s3").put_object(Bucket=stack.outputs["LakeBucketName"], Key=key, Body=body)


@pytest.fixture(scope="module")
def people(stack: Stack) -> list[str]:
    """Users whose events came shuffled, twice, through both doors, while the publisher was being killed."""
    users = [f"lake{time.time_ns()}-{number}" for number in range(PEOPLE)]
    events = shuffled([each for user in users for each in busy_days(user)], SEED)
    put_on_stream(stack, events[::3])
    post_events(stack, events)
    for pid in workers(stack, "Publisher"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    post_events(stack, events[::2])
    api = Api(stack)
    drain(stack)
    for number, user in enumerate(users[:5]):
        body = {"points": 5 + number, "reward_id": "mug", "idempotency_key": "r"}
        assert api.call("POST", f"/v1/users/{user}/redemptions", body)[0] == 201
    drain(stack, lake=True)
    return users


@pytest.fixture(scope="module")
def question(stack: Stack) -> dict[str, Any]:
    """A question that three people have answered, and that closed with the last of them."""
    name = f"lake{time.time_ns()}"
    made = asked(Api(stack, f"agent-{name}", group="streakline/agents"), "k", required_responses=3)
    for number in range(3):
        status, told = answer(Api(stack, f"{name}-answers-{number}"), made, selected_option=number % 2)
        assert status == 201, told

    def is_counted() -> bool:
        mine = [each for each in scan(stack, "Responses") if each["question_id"] == made["question_id"]]
        return len(mine) == 3 and all("counted_at" in each for each in mine)

    settled(stack, is_counted)
    drain(stack, lake=True)
    return made


@pytest.fixture(scope="module")
def leaver(stack: Stack) -> str:
    """A user and, in an organization of the same number, a customer. Both are erased after the first night."""
    user = f"erased-{time.time_ns()}"
    post_events(stack, [event(user, str(number), event_type="LESSON_COMPLETED") for number in range(3)])
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    send(stack, organization_of(user), bought(yesterday, "5", customer="erased"))
    drain_leads(stack)
    drain(stack, lake=True)  # what comes later never gets there, and nothing is removed
    return user


def organization_of(user: str) -> str:
    return user.replace("erased-", "org")


@pytest.fixture(scope="module")
def night_without_warehouse(
    stack: Stack, people: list[str], leaver: str, question: dict[str, Any]
) -> dict[str, Any]:
    """A night that the schedule starts while the warehouse is away: over all of it, and over items corrupted by hand.

    Lines are planted that are none, and an object twice.
    """
    place = f"raw/events/arrived={ARRIVED}/dt=2026-03-02/hour=12/{people[0]}-"
    lake_put(stack, place + "planted-1", b'{"user_id": "x"\nnot json\n\n[1]\n\xff\xfe\n')
    lake_put(stack, place + "planted-2.gz", gzip.compress(b'{"user_id": 5, "dt": "2026-03-02"}\n'))
    objects = S3Objects(stack.client("s3"), stack.outputs["LakeBucketName"])
    first = next(raw_objects_of_dates(objects, "events", "2026-03-03", "2026-03-03"))
    assert "/arrived=" in first.key
    lake_put(
        stack, f"raw/events/arrived={ARRIVED}/dt=2026-03-03/hour=12/{people[0]}-again", objects.get(first.key)
    )
    profiles = {user: lowered(plain_profile(stack, user)) for user in people}
    victims = random.Random(SEED).sample(people, PEOPLE // 2)
    for number, user in enumerate(victims):
        corrupt(stack, user, number)
    stats = stats_of(stack, question)
    change_points(stack, stats["fingerprint_hash"], 9999)
    with warehouse_away(stack):
        execution = scheduled(stack)
        assert nightly_run.wait(stack, execution) == "FAILED"
    assert datetime.fromisoformat(watermark(stack)) >= first.modified
    return {"profiles": profiles, "victims": victims, "stats": stats, "execution": execution}


@pytest.fixture(scope="module")
def loading_night(
    stack: Stack,
    night_without_warehouse: dict[str, Any],
    erasures: dict[Path, tuple[persons.Person, Any]],
) -> dict[str, Any]:
    """The night after it, which loads what the warehouse lacked, and begins to forget."""
    drain(stack, lake=True)  # what the first one has repaired
    return nightly_run.run(stack)


def scheduled(stack: Stack) -> str:
    """Let the schedule's target be started soon; returns the execution."""
    scheduler, states = stack.client("scheduler"), stack.client("stepfunctions")
    arn = stack.outputs["NightlyArn"]
    (deployed,) = [
        each
        for page in scheduler.get_paginator("list_schedules").paginate()
        for each in page["Schedules"]
        if each["Target"]["Arn"] == arn and not each["Name"].startswith("soon-")
    ]
    target = scheduler.get_schedule(Name=deployed["Name"])["Target"]
    known = {each["executionArn"] for each in states.list_executions(stateMachineArn=arn)["executions"]}
    soon = datetime.now(UTC) + timedelta(seconds=2)
    scheduler.create_schedule(
        Name=f"soon-{time.time_ns()}",
        ScheduleExpression=f"at({soon:%Y-%m-%dT%H:%M:%S})",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target=target,
    )
    return _appears(lambda: states.list_executions(stateMachineArn=arn)["executions"], known)


def _appears(listed: Callable[[], list[dict[str, Any]]], known: set[str]) -> str:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        for each in listed():
            if each["executionArn"] not in known:
                return str(each["executionArn"])
        time.sleep(0.2)
    raise AssertionError("the schedule started nothing")


def test_every_event_is_in_the_warehouse_once(
    stack: Stack, people: list[str], loading_night: dict[str, Any]
) -> None:
    stored = [each for each in scan(stack, "BPEvents") if each["user_id"] in people]
    assert len(stored) == PEOPLE * (12 + 2 * (DAYS - 1))
    loaded = query("SELECT user_id, event_id, points_awarded FROM lake.events WHERE user_id LIKE 'lake%'")
    mine = sorted(row for row in loaded if row[0] in people)
    assert mine == sorted((each["user_id"], each["event_id"], each["points_awarded"]) for each in stored)


def test_every_answer_is_in_the_warehouse_once_and_names_nobody(
    stack: Stack, question: dict[str, Any], loading_night: dict[str, Any]
) -> None:
    own = question["question_id"]
    stored = [each for each in scan(stack, "Responses") if each["question_id"] == own]
    loaded = query("SELECT person, number, selected_option FROM lake.responses WHERE question_id = ?", own)
    assert sorted(loaded) == sorted(
        (pseudonym(each["response_id"]), each["number"], each["selected_option"]) for each in stored
    )
    assert len(loaded) == 3
    assert query("SELECT status, responses FROM lake.questions WHERE question_id = ?", own) == [("CLOSED", 3)]
    stats = [
        (total, points)
        for person, *_ in loaded
        for total, points in query(
            "SELECT total_answers, total_points FROM staging.answer_stats WHERE person = ?", person
        )
    ]
    live = {each["fingerprint_hash"]: each for each in scan(stack, "UserStats")}
    assert stats == [
        (mine["total_answers"], mine["total_points"])
        for person, *_ in loaded
        for hashed, mine in live.items()
        if pseudonym(hashed) == person
    ]
    assert query("SELECT answers, top_answers FROM marts.question_agreement WHERE question_id = ?", own) == [
        (3, 2)
    ]


def test_ledger_balances_lake_and_warehouse_agree(
    stack: Stack, people: list[str], loading_night: dict[str, Any]
) -> None:
    live = {each["user_id"]: each for each in scan(stack, "UserStreaks")}
    sums: Counter[str] = Counter()
    for entry in scan(stack, "RewardsLedger"):
        sums[entry["account_id"]] += entry["points"]
    loaded: dict[str, int] = dict(query("SELECT account_id, sum(points)::BIGINT FROM lake.ledger GROUP BY 1"))
    for user in people:
        assert live[user]["balance"] == sums[user] == loaded[user], user
    days = query("SELECT user_id, sum(points_earned)::BIGINT FROM lake.daily_activity GROUP BY 1")
    earned = {user: points for user, points in days if user in people}
    assert earned == {user: live[user]["total_bestie_points"] for user in people}


def test_what_went_in_is_curated_a_duplicate_or_quarantined(
    stack: Stack, people: list[str], loading_night: dict[str, Any]
) -> None:
    rows = query("SELECT rows_in, curated, duplicates, quarantined FROM lake.curation")
    assert rows
    assert all(read == kept + twice + bad for read, kept, twice, bad in rows)
    refused = query(
        "SELECT sum(quarantined)::BIGINT FROM lake.curation WHERE entity = 'events'"
        " AND dt >= DATE '2026-03-01' AND dt < DATE '2026-04-01'"  # a month of the past may be one file
    )
    s3, bucket = stack.client("s3"), stack.outputs["LakeBucketName"]
    kept = s3.list_objects_v2(Bucket=bucket, Prefix="quarantine/events/dt=2026-03")["Contents"]
    lines = [
        json.loads(line)
        for each in kept
        for line in s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read().splitlines()
    ]
    assert refused == [(len(lines),)]
    mine = [line for line in lines if people[0] in line["source"] and "/dt=2026-03-02/" in line["source"]]
    assert len(mine) == 5
    assert all(line["reason"] for line in mine)


def test_the_recompute_finds_nothing_to_say_of_what_is_right(loading_night: dict[str, Any]) -> None:
    assert loading_night["different"] == []
    assert loading_night["failed_tests"] == []
    assert loading_night["ledger_and_lake"] == loading_night["warehouse_and_lake"] == []


def test_sql_recompute_equals_the_live_streaks(
    stack: Stack, people: list[str], loading_night: dict[str, Any]
) -> None:
    recomputed = query(
        "SELECT user_id, last_activity_date::VARCHAR, current_streak, longest_streak, active_days,"
        " total_bestie_points, balance FROM marts.streaks_recomputed"
    )
    live = {each["user_id"]: each for each in scan(stack, "UserStreaks")}
    names = ("last_activity_date", "current_streak", "longest_streak", "active_days")
    assert {row[0] for row in recomputed} >= set(people)
    for user, *found in recomputed:
        if user.startswith(("smoke-", "erased-", "erased/")):
            continue  # of a smoke test, and of an erased user, only rows in the lake are left
        profile = live[user]
        profile = {**profile, "current_streak": profile.get("run_length", profile.get("current_streak", 0))}
        streak = [profile.get(names[0]), *(profile.get(name, 0) for name in names[1:])]
        assert found == [*streak, profile["total_bestie_points"], profile["balance"]], user


def finished(admin: Api, what_if_id: str) -> dict[str, Any]:
    until = time.monotonic() + WHAT_IF_SECONDS_MAX
    while (state := admin.get(f"{WHAT_IFS}/{what_if_id}"))["status"] == "running":
        assert time.monotonic() < until, "the what-if takes too long"
        time.sleep(1)
    assert state["status"] == "finished", state
    return dict(state)


def test_an_admin_asks_the_api_what_if_and_gets_what_the_command_prints(
    stack: Stack,
    people: list[str],
    loading_night: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admin, person = Api(stack), Api(stack, people[0], admin=False)
    book = admin.get("/v1/rules")["book"]
    book["event_types"]["WORKOUT_COMPLETED"] = {"points": 1}
    question = {"book": book, "from": "2026-03-01"}
    status, begun = admin.call("POST", WHAT_IFS, question)
    assert (status, begun["status"]) == (202, "running")
    assert person.call("POST", WHAT_IFS, question)[0] == 403
    assert person.call("GET", f"{WHAT_IFS}/{begun['what_if_id']}")[0] == 403
    report = finished(admin, begun["what_if_id"])["report"]
    earned = {(each["earned_before"], each["earned_after"]) for each in report["largest_changes"]}
    assert (60 + (DAYS - 1) * 30, 12 + (DAYS - 1) * 2) in earned

    class AsOf(datetime):
        """The clock of the command, which asks as of the same instant."""

        @classmethod
        def now(cls, tz: Any = None) -> "AsOf":
            return cls.fromisoformat(report["as_of"])

    monkeypatch.setattr(what_if_command, "datetime", AsOf)
    file = tmp_path / "book.json"
    file.write_text(json.dumps(book))
    text = printed("rules", "what-if", str(file), "--from", question["from"], "--json")
    assert json.loads(text) == {**report, "book": file.name}


@pytest.fixture(scope="module")
def erasures(
    stack: Stack,
    leaver: str,
    night_without_warehouse: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[Path, tuple[persons.Person, Any]]:
    """Erasures of the user and of the lead, which a night has put into the lake; by their certificates' paths."""
    rooms = ("raw/events", "raw/ledger", "raw/daily_activity", "raw/streaks", "curated", "runs")
    named = [*objects_with(stack, leaver)]
    for place in rooms:
        assert any(key.startswith(place) for key in named), place
    organization, folder = organization_of(leaver), tmp_path_factory.mktemp("erasures")
    asked_for = f"?organization_id={organization}&integration=ecommerce&external_event_id=order:erased-1"
    lead_id = str(Api(stack).get(f"/v1/leads{asked_for}")["lead_id"])
    whom = {"user": persons.Person(leaver), "lead": persons.Person("", lead_id, organization)}
    persons.export(whom["user"], stack, folder / "export.zip")
    paths = {folder / f"{name}.json": person for name, person in whom.items()}
    return {path: (person, persons.erase(person, stack, path)) for path, person in paths.items()}


def objects_with(stack: Stack, user: str) -> Iterator[str]:
    """Yield the objects of the lake that have a user's id."""
    s3, bucket = stack.client("s3"), stack.output("LakeBucketName", "the lake")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    for each in (one for page in pages for one in page.get("Contents", ())):
        data = s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read()
        is_table = data.startswith(b"PAR1")
        text = str(pq.read_table(io.BytesIO(data)).to_pydict()).encode() if is_table else unzip(data)
        if user.encode() in text:
            yield each["Key"]


def corrupt(stack: Stack, user: str, number: int) -> None:
    """Change a user's item by hand, in one of several ways."""
    dynamodb, table = stack.client("dynamodb"), stack.tables["UserStreaks"]
    key = {"user_id": {"S": user}}
    if number % 5 == 4:
        dynamodb.delete_item(TableName=table, Key=key)
        return
    name, value = [
        ("current_streak", {"N": "99"}),
        ("total_bestie_points", {"N": "1"}),
        ("last_activity_date", {"S": "2026-03-02"}),
        ("longest_streak", {"S": "many"}),
    ][number % 5]
    dynamodb.update_item(
        TableName=table,
        Key=key,
        UpdateExpression="SET #name = :value",
        ExpressionAttributeNames={"#name": name},
        ExpressionAttributeValues={":value": value},
    )


def stats_of(stack: Stack, question: dict[str, Any]) -> dict[str, Any]:
    """Return the stats of one of those who have answered a question."""
    answered = [each for each in scan(stack, "Responses") if each["question_id"] == question["question_id"]]
    first = min(each["response_id"] for each in answered)
    return next(each for each in scan(stack, "UserStats") if each["fingerprint_hash"] == first)


def change_points(stack: Stack, person: str, points: int) -> None:
    stack.client("dynamodb").update_item(
        TableName=stack.tables["UserStats"],
        Key=encode_item({"fingerprint_hash": person}),
        UpdateExpression="SET total_points = :points",
        ExpressionAttributeValues=encode_item({":points": points}),
    )


def plain_profile(stack: Stack, user: str) -> dict[str, Any]:
    answer = stack.client("dynamodb").get_item(
        TableName=stack.tables["UserStreaks"], Key=encode_item({"user_id": user})
    )
    changing = ("version", "streak_updated_at", "backfilled")
    return {k: v for k, v in decode_item(answer["Item"]).items() if k not in changing}


def lowered(profile: dict[str, Any]) -> dict[str, Any]:
    """A profile as the first night leaves it after its streak has lapsed: it shows 0, and is in no index."""
    if "run_length" in profile:
        return profile
    rest = {name: value for name, value in profile.items() if name != "leaderboard_partition"}
    return {**rest, "current_streak": 0, "run_length": profile["current_streak"]}


def test_athena_answers_over_the_catalog(
    stack: Stack, people: list[str], loading_night: dict[str, Any]
) -> None:
    athena, database = stack.client("athena"), stack.outputs["GlueDatabaseName"]
    started = athena.start_query_execution(
        QueryString=f"SELECT count(DISTINCT event_id), count(*) FROM events WHERE user_id = '{people[0]}'",
        QueryExecutionContext={"Database": database},
        ResultConfiguration={"OutputLocation": f"s3://{stack.outputs['LakeBucketName']}/runs/athena/"},
    )["QueryExecutionId"]
    for _ in range(100):
        state = athena.get_query_execution(QueryExecutionId=started)["QueryExecution"]["Status"]
        if state["State"] not in ("QUEUED", "RUNNING"):
            break
        time.sleep(0.1)
    assert state["State"] == "SUCCEEDED", state
    rows = athena.get_query_results(QueryExecutionId=started)["ResultSet"]["Rows"]
    assert [each["VarCharValue"] for each in rows[1]["Data"]] == [str(12 + 2 * (DAYS - 1))] * 2


def test_items_corrupted_by_hand_are_restored_while_the_warehouse_is_away(
    stack: Stack, people: list[str], question: dict[str, Any], night_without_warehouse: dict[str, Any]
) -> None:
    """Accounts are repaired and the watermark moves."""
    victims, stats, execution = (night_without_warehouse[name] for name in ("victims", "stats", "execution"))
    report = nightly_run.report_of(stack, execution)
    assert report["error"] is None
    # Of what it was told an operator sees the kind alone: a statement may quote somebody.
    assert "FileNotFoundError" in json.dumps(report["warehouse"]["error"])
    assert report["warehouse"]["lacks"]["events"] > 0
    history = stack.client("stepfunctions").get_execution_history(executionArn=execution, maxResults=1000)
    kinds = Counter(each["type"] for each in history["events"])
    assert kinds["TaskFailed"] + kinds["LambdaFunctionFailed"] >= 2, kinds

    assert sorted(report["different"]) == sorted(victims)
    assert (report["counts"]["repaired"], report["unrepaired"]) == (len(victims), [])
    assert {user: plain_profile(stack, user) for user in people} == night_without_warehouse["profiles"]
    assert Api(stack).get(f"/v1/users/{victims[0]}")["longest_streak"] == DAYS
    differences = report["answer_stats"]["differences"]
    named = [each for each in differences if each["user_id"] == stats["fingerprint_hash"]]
    assert [(each["attribute"], each["stored"]) for each in named] == [("total_points", 9999)]
    assert stats_of(stack, question)["total_points"] == stats["total_points"]


def test_an_erasure_awaits_nights(
    stack: Stack, leaver: str, erasures: dict[Path, tuple[persons.Person, Any]]
) -> None:
    for path, (_, begun) in erasures.items():
        assert begun["status"] == "open"
        assert not path.exists()
    assert "events" in next(iter(erasures.values()))[1]["awaits"]
    assert Api(stack).call("GET", f"/v1/users/{leaver}/export")[0] == 410


def test_the_first_of_them_leaves_nothing_of_an_erased_user(
    stack: Stack, leaver: str, loading_night: dict[str, Any]
) -> None:
    assert [*objects_with(stack, leaver)] == [], "no object of the bucket names them, however young"
    assert query("SELECT count(*) FROM lake.events WHERE user_id = ?", leaver) == [(0,)]


def test_the_next_night_loads_what_the_warehouse_lacked(loading_night: dict[str, Any]) -> None:
    assert loading_night["warehouse"]["lacks"] == {}


def watermark(stack: Stack) -> str:
    body = stack.client("s3").get_object(Bucket=stack.outputs["LakeBucketName"], Key="state/watermark.json")
    return str(json.loads(body["Body"].read())["watermark"])
