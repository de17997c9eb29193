"""Pages of events that reach behind what the table has: read from the lake, the same as from the table."""

import io
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.engagement.account_store import AccountStore
from adapters.engagement.event_store import EventStore, PastEvents
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import encode_item
from adapters.platform.objects import FolderObjects
from adapters.platform.tables import Unprocessed
from analytics.curation.curate import curate
from analytics.lake.layout import Partition
from analytics.steps.past_function import PastQuery, newest_events
from ingest.engagement.history import Histories
from ingest.web.caller import ApiError
from ingest.web.paging import cursor_at
from rules.days import key_of_stamp, stamp
from rules.lake.entities import EVENTS, row_of
from tests.support.engine import Engine, lean_client
from tests.support.raw_lake import put_raw

FIRST = datetime(2026, 3, 1, 5, 30, tzinfo=UTC)
NOW = FIRST + timedelta(days=130)
ALL = "?from=2026-01-01&to=2026-12-31"


def stored(user: str, number: int) -> dict[str, Any]:
    """One event each seven hours; each third has what few events have."""
    at = FIRST + timedelta(hours=7 * number)
    more = {"cap": "100/day", "is_passive": True, "measures": "n", "expiry": "90d", "device_time": stamp(at)}
    return {
        "user_id": user,
        "event_id": f"{key_of_stamp(stamp(at))}#{uuid.uuid5(uuid.NAMESPACE_OID, f'{user}{number}')}",
        "idempotency_key": f"k{number}",
        "event_type": "CHECK_IN",
        "occurred_at": at.strftime("%Y-%m-%dT%H:%M:%S+01:00"),
        "activity_date": at.date().isoformat(),
        "zone": "Europe/Madrid",
        "points_awarded": number,
        "rules_version": 1,
        "source": "app",
        "properties": json.dumps({"number": number}),
        "created_at": stamp(at + timedelta(minutes=3)),
        **(more if number % 3 == 0 else {}),
    }


@dataclass
class Functions:
    """Lambda, as far as it is asked: the real reader, on files. It has time for so many files."""

    lake: FolderObjects
    files_at_once: int = 1000
    asked: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""

    def invoke(self, FunctionName: str, Payload: str) -> dict[str, Any]:  # noqa: N803 (Lambda's names)
        assert FunctionName == "past"
        self.asked.append(json.loads(Payload))
        if self.error:
            return {"FunctionError": "Unhandled", "Payload": io.BytesIO(self.error.encode())}
        left = iter([True] * self.files_at_once)
        rows, reached = newest_events(self.lake, PastQuery(**json.loads(Payload)), lambda: next(left, False))
        return {"Payload": io.BytesIO(json.dumps({"rows": rows, "reached": reached}).encode())}


@dataclass
class Past:
    """A user with 42 events, all of them in the lake, beside others."""

    engine: Engine
    user: str
    functions: Functions
    events: list[dict[str, Any]]

    def put(self, events: list[dict[str, Any]]) -> None:
        for each in events:
            made = each | {"ttl": int((NOW + timedelta(days=1)).timestamp())}
            lean_client(self.engine, "dynamodb").put_item(TableName="BPEvents", Item=encode_item(made))

    def leave(self, events: list[dict[str, Any]]) -> None:
        for each in events:
            key = {name: each[name] for name in ("user_id", "event_id")}
            lean_client(self.engine, "dynamodb").delete_item(TableName="BPEvents", Key=encode_item(key))

    def page(self, hot_days: int, **query: str) -> dict[str, Any]:
        dynamodb = lean_client(self.engine, "dynamodb")
        ledger = LedgerStore(dynamodb, "RewardsLedger")
        accounts = AccountStore(dynamodb, "UserStreaks", "DailyActivity", ledger, 1)
        past = PastEvents(lambda: self.functions, "past")
        histories = Histories(accounts, EventStore(dynamodb, "BPEvents", expire=False), past, hot_days)
        return histories.events(self.user, {"from": "2026-01-01", **query}, NOW)

    def pages(self, hot_days: int, **query: str) -> Iterator[dict[str, Any]]:
        cursor = ""
        for _ in range(200):
            told = self.page(hot_days, **query, **({"cursor": cursor} if cursor else {}))
            yield told
            cursor = told["cursor"]
            if cursor is None:
                return
        pytest.fail("the pages never end")


@pytest.fixture
def past(engine: Engine, tmp_path: Path, user: str) -> Past:
    events = [stored(user, number) for number in range(42)]
    lake = FolderObjects(tmp_path)
    places: dict[Partition, list[Any]] = {}
    for each in [*events, *(stored(f"{user}-{other}", number) for other in "ab" for number in range(42))]:
        row = row_of(EVENTS, each, FIRST)
        places.setdefault(Partition("events", row["dt"], row["hour"]), []).append(row)
    for number, (place, rows) in enumerate(places.items()):
        put_raw(lake, "n", rows, place)
        curate(lake, place)
        if number % 10 == 9:
            curate(lake, Partition("events", place.dt, None))  # the day as one file
    made = Past(engine, user, Functions(lake), events)
    made.put(events)
    return made


@pytest.mark.parametrize("limit", [5, 100])
def test_a_month_in_one_file_gives_each_event_once(past: Past, limit: int) -> None:
    lake = past.functions.lake
    curate(lake, Partition("events", "2026-03", None))
    since, until = (key_of_stamp(stamp(FIRST + timedelta(days=days))) for days in (-90, 90))
    query = PastQuery(past.user, since, until, limit)
    found, reached = newest_events(lake, query, lambda: True)
    wanted = sorted((event["event_id"] for event in past.events), reverse=True)
    assert [event["event_id"] for event in found] == wanted[:limit]
    assert reached == since
    assert [each.key for each in lake.list("curated/")] == ["curated/events/dt=2026-03/month.parquet"]


def test_pages_are_the_same_whether_events_have_left_or_not(past: Past) -> None:
    limit = "7"
    wanted = [each for told in past.pages(0, limit=limit) for each in told["events"]]
    assert len(wanted) == 42
    past.leave(past.events[:30:2])  # some of them came late, and are there yet
    found = list(past.pages(90, limit=limit))
    assert [each for told in found for each in told["events"]] == wanted
    assert {told.get("source") for told in found} == {"lake"}, "all of them are older than 90 days"


def test_whoever_asks_about_what_cannot_have_left_does_not_ask_the_lake(past: Past) -> None:
    told = past.page(125, limit="5")
    assert ("source" in told, past.functions.asked) == (False, []), "the page is full of what is younger"
    assert "source" not in past.page(125, **{"from": "2026-03-07"})
    assert "source" not in past.page(0)
    assert past.functions.asked == []
    assert past.page(125)["source"] == "lake"
    (asked,) = past.functions.asked
    assert asked["until"] == key_of_stamp(stamp(NOW - timedelta(days=125)))


def test_the_lake_is_read_near_the_user_s_own_dates_alone(past: Past) -> None:
    past.leave(past.events)
    wanted = past.page(90, limit="500")["events"]
    past.functions.asked.clear()
    for number in (0, 30, 41):
        day = {name: past.events[number][name] for name in ("user_id", "activity_date")}
        lean_client(past.engine, "dynamodb").put_item(TableName="DailyActivity", Item=encode_item(day))
    told = past.page(90, limit="500")
    assert (told["events"], told["cursor"], told["source"]) == (wanted, None, "lake")
    (asked,) = past.functions.asked
    assert asked["since"] == stamp((FIRST - timedelta(days=2)).replace(hour=0, minute=0))
    assert asked["until"] <= stamp(FIRST + timedelta(days=15))
    for nowhere in ({"from": "2020-01-01", "to": "2026-02-20"}, {"from": "2026-03-16", "to": "2026-04-01"}):
        told = past.page(90, **nowhere)
        assert (told["events"], told["cursor"]) == ([], None)
    assert len(past.functions.asked) == 1, "nothing is there, which the user's dates say"


def test_a_search_that_takes_too_long_goes_on_at_the_next_page(past: Past) -> None:
    wanted = past.page(0, limit="500")["events"]
    past.leave(past.events)
    past.functions.files_at_once = 3
    found = list(past.pages(90, limit="500"))
    assert len(found) > 5
    assert [each for told in found for each in told["events"]] == wanted


def test_a_lake_that_does_not_answer_is_no_empty_page(past: Past) -> None:
    past.functions.error = "Task timed out"
    with pytest.raises(Unprocessed, match="timed out"):
        past.page(90)


def test_a_cursor_of_the_past_is_one_that_a_page_returned_or_a_400(past: Past) -> None:
    for place in ("0", "2026-05", "2026-05-01T00:00:00.000000Z#aa"):
        try:
            assert past.page(90, cursor=cursor_at(place))["source"] == "lake"
        except ApiError as refused:
            assert (refused.status, refused.code) == (400, "invalid_parameter")
            assert len(place) < 10


def test_somebody_without_events_in_a_lake_that_has_none(tmp_path: Path) -> None:
    never: Callable[[], bool] = lambda: False  # noqa: E731
    asked = PastQuery("ann", stamp(FIRST), stamp(NOW), 5)
    assert newest_events(FolderObjects(tmp_path), asked, never) == ([], stamp(FIRST))
