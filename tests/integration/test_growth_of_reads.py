"""What a read costs does not grow with what somebody has done: every GET of the OpenAPI document, measured.

A user does each thing once. Then what is stored of that is copied to other moments by direct writes, so that
two users differ in nothing but the length of their history. Read units and items count, and no clock.
`pytest -s` prints them, and the CPU of our own code, which depends on the machine: `SOAK=1` for 100,000 entries.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.platform.aws import client
from adapters.platform.items import Item, encode_item
from adapters.platform.tables import put_all, query_all
from ingest.engagement.points import balance
from ingest.openapi import document
from processors import ranks
from rules.days import stamp
from tests.support.capacity import ReadCount
from tests.support.effort import effort
from tests.support.engine import Engine, cpu_seconds
from tests.support.rewards import a_name, earn, publish, with_rewards
from tests.support.site import Site, site

# Entries of two histories: `make test` ends at 400, `make soak` at 100,000. (The engine looks through the
# whole partition for each query, which DynamoDB does not.)
MORE, MANY = effort(100, soak=1_000), effort(400, soak=100_000)
EXPONENT_MAX = 0.1
PAGE_UNITS = 5  # of a page's rows, which a short history does not fill
NOW = datetime.now(UTC)
DAYS = 400
OF_USER = "{user_id}"
# What bounds a route that reads no single user's history.
BOUND_OTHERWISE = {
    "/": "a file of the deployment",
    "/app/{file}": "a file of the deployment",
    "/v1/docs": "made of the routes",
    "/v1/openapi.json": "made of the routes",
    "/v1/health": "asks no store",
    "/v1/operations": "a number of each queue and consumer",
    "/v1/hooks/{organization}/{source}": "one hook, which the process remembers",
    "/v1/review": "a page",
    "/v1/rewards": "the rewards of the book",
    "/v1/rules": "a version of the book",
    "/v1/rules/versions": "what admins have published",
    "/v1/amnesties": "what admins have declared",
    "/v1/users": "a hundred profiles",
    "/v1/webhook-endpoints": "rules.outgoing.notices.ENDPOINTS_MAX",
    "/v1/leaderboards/{board}": "the first of a board",
    "/v1/boards": "the results of a year",
    "/v1/boards/{board_name}": "the first of a board, and two of its pages",
    "/v1/leads": "one event",
    "/v1/leads/{lead_id}/events": "a page",
    "/v1/leads/{lead_id}/memory": "ingest.leads.lead_views.MEMORY_MAX",
    "/v1/leads/{lead_id}/features": "an item",
    "/v1/leads/{lead_id}/changes": "a page",
    "/v1/leads/{lead_id}/export": "an item; the export is a job",
    "/v1/erasures/{erasure_id}": "an item",
    "/v1/rules/what-ifs/{what_if_id}": "a report of the lake, of fixed size but for its thousand examples",
    "/v1/questions": "a page",
    "/v1/questions/{question_id}": "an item, and the answer of who asks",
    "/v1/questions/{question_id}/responses": "a page",
    "/v1/agents/{agent_id}/questions": "a page",
    "/v1/stats": "the first of a list",
    "/v1/stats/{fingerprint}": "an item",
}
# What grows up to a bound, and is refused beyond it with 422: entries that one request reads.
REFUSED_BEYOND = {"/v1/users/{user_id}/balance?as_of": balance.ENTRIES_MAX}
FAR = ("1970-01-01", "2999-12-31")


def routes() -> dict[str, dict[str, Any]]:
    return {path: each["get"] for path, each in document()["paths"].items() if "get" in each}


def test_each_route_is_measured_or_says_what_bounds_it() -> None:
    measured = {path for path in routes() if OF_USER in path}
    assert set(routes()) - measured == set(BOUND_OTHERWISE)


@dataclass
class Histories:
    """users: by the number of their entries. entry: a redemption that each of them has."""

    api: Site
    users: dict[int, str]
    entries: dict[int, str]

    def paths(self, path: str, number: int) -> Iterator[str]:
        """What is asked of a route: without parameters, and with each one, near and far."""
        named = {
            "user_id": self.users[number],
            "name": "weekly",
            "board": "points",
            "board_name": "weekly",
            "entry_id": self.entries[number],
        }
        told = routes()[path]["parameters"]
        required = [each["name"] for each in told if each["in"] == "query" and each["required"]]
        base = path.format(**named) + "".join(f"?{name}={NOW.date()}" for name in required)
        yield base
        for each in told:
            if each["in"] == "query" and each["name"] in ("as_of", "date", "from", "to"):
                near = [NOW + timedelta(days=days) for days in (0, -30, -365, 300)]
                is_instant = each["schema"].get("format") == "date-time"
                times = [stamp(at) if is_instant else str(at.date()) for at in near]
                times += [f"{day}T00:00:00Z" if is_instant else day for day in FAR]
                for value in times:
                    yield f"{path.format(**named)}?{each['name']}={value}"


@pytest.fixture(scope="module", params=["over a year", "of one day"][: effort(1, soak=2)])
def lived(engine: Engine, request: pytest.FixtureRequest) -> Iterator[Histories]:
    with site(engine) as api:
        reward, users, entries = a_name(), {}, {}
        publish(api, with_rewards(**{reward: {}}))
        for number in (MORE, MANY):
            user = users[number] = f"grown{number}-{request.param[-3:]}-{NOW.timestamp():.0f}"
            earn(api, [user], lessons=2)
            body = {"reward": reward, "idempotency_key": "r"}
            status, told = api.call(user, "POST", f"/v1/users/{user}/redemptions", body)
            assert status == 201, told
            entries[number] = told["entry_id"]
            ranks._parts().build(NOW)
            lengthen(user, number, timedelta(days=DAYS if request.param == "over a year" else 1))
        yield Histories(api, users, entries)
        for each in engine.client("dynamodb").scan(TableName="RuleBooks")["Items"]:
            key = {name: each[name] for name in ("book", "version")}
            engine.client("dynamodb").delete_item(TableName="RuleBooks", Key=key)


def lengthen(user: str, number: int, over: timedelta) -> None:
    """Copy what is stored of a user to so many earlier moments."""
    tables = {"BPEvents": "event_id", "RewardsLedger": "created_at", "DailyActivity": "activity_date"}
    for table, sort in tables.items():
        holder = "account_id" if table == "RewardsLedger" else "user_id"
        found = list(
            query_all(
                client("dynamodb"),
                TableName=table,
                KeyConditionExpression="#holder = :user",
                ExpressionAttributeNames={"#holder": holder},
                ExpressionAttributeValues=encode_item({":user": user}),
            )
        )
        first = next(each for each in found if each[sort]["S"][:4].isdigit() and each[sort]["S"] > "2000")
        copies = {}
        for each in range(1, number):
            moved = moved_item(first, NOW - timedelta(hours=1) - over * each / number)
            copies[moved[sort]["S"]] = moved
        entries = list(copies.values())
        if table == "RewardsLedger":
            entries = numbered(user, [*entries, *found])
        put_all(client("dynamodb"), table, entries)


def numbered(user: str, entries: list[Item]) -> list[Item]:
    """Number the entries of a ledger by their places. The profile's head has the last one's number."""
    ordered = sorted(entries, key=lambda each: each["created_at"]["S"])
    client("dynamodb").update_item(
        TableName="UserStreaks",
        Key=encode_item({"user_id": user}),
        UpdateExpression="SET ledger_seq = :seq",
        ExpressionAttributeValues=encode_item({":seq": len(ordered)}),
    )
    return [each | {"seq": {"N": str(seq)}} for seq, each in enumerate(ordered, start=1)]


def moved_item(stored: Item, at: datetime) -> Item:
    """An item as if it were of another moment: every date and instant in it."""
    today, moment = str(NOW.date()), stamp(at)

    def moved(value: dict[str, Any]) -> dict[str, Any]:
        text = value.get("S", "")
        if not text.startswith(today):
            return value
        if len(text) == len(today):
            return {"S": moment[: len(today)]}
        return {"S": moment + text[len(moment) :]}

    kept = {name: moved(value) for name, value in stored.items()}
    return {name: value for name, value in kept.items() if name not in ("active", "carried")}


@pytest.mark.parametrize("path", [path for path in routes() if OF_USER in path])
def test_a_read_costs_as_much_for_a_long_history_as_for_a_short_one(
    lived: Histories, engine: Engine, path: str
) -> None:
    counted = ReadCount()
    counted.watch(client("dynamodb"))
    asked = zip(*(lived.paths(path, number) for number in lived.users), strict=True)
    for each in asked:
        costs = []
        for one in each:
            user = next(user for user in lived.users.values() if user in one)
            for _ in range(2):  # the first may keep something for those that follow
                counted.take()
                began = time.process_time() - cpu_seconds(engine)
                status, told = lived.api.call(user, "GET", one)
                cpu = time.process_time() - cpu_seconds(engine) - began
                items, units = counted.take()
            assert status in (200, 404, 422), (one, told)
            costs.append((status, items, units, cpu * 1_000))
        query = each[0].partition("?")[2]
        print(
            f"\n{path}?{query:40}",
            *(f"{code} {units:7.1f} RU {ms:6.1f} ms" for code, _, units, ms in costs),
            end="",
        )
        (_, _, more, _), (status, most, many, _) = costs
        grown_by = math.log(max(many, PAGE_UNITS) / max(more, PAGE_UNITS)) / math.log(MANY / MORE)
        bound = REFUSED_BEYOND.get(path + "?" + query.partition("=")[0])
        if bound is not None:
            assert most <= bound * 1.5, (each, costs)  # a query reads pages of a megabyte
        else:
            assert status == 422 or grown_by <= EXPONENT_MAX, (each, costs)
