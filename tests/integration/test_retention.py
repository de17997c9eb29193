"""What is old leaves the tables at night: on a real engine, with a lake that curation has made."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters import clock
from adapters.platform.item_tables import AgedItems
from adapters.platform.items import decode_item, encode_item
from adapters.platform.objects import FolderObjects
from analytics.curation.curate import curate
from analytics.lake.layout import Partition, curated_key
from analytics.leads.raw_payloads import RawPayloads
from analytics.retention import (
    Events,
    ItemRow,
    RemovalCounts,
    RetentionPass,
    RetentionRule,
)
from analytics.steps.retain_function import CALLS_MAX, RetainSteps
from rules.days import key_of_stamp, stamp, unstamp
from rules.lake.entities import ENTITIES, row_of
from rules.leads.lead_events import SORT_KEY
from tests.support.dying import Dying, Killed
from tests.support.engine import Engine, lean_client
from tests.support.examples import examples
from tests.support.raw_lake import put_raw
from tests.support.site import PRODUCERS, Site

CAME = datetime(2026, 3, 1, 5, tzinfo=UTC)
DAYS = 90
OLD = CAME + timedelta(days=DAYS + 1)  # the first night in which what came then is old enough
KEYS = {
    "events": ("user_id", "event_id"),
    "lead_events": ("lead_organization_id", SORT_KEY),
}
TABLES = {"events": "BPEvents", "lead_events": "Event"}


def stored_event(user: str, number: int, arrived: datetime = CAME, **more: Any) -> dict[str, Any]:
    at = stamp(CAME + timedelta(seconds=number))
    return {
        "user_id": user,
        "event_id": f"{key_of_stamp(at)}#e{number}",
        "idempotency_key": f"k{number}",
        "event_type": "CHECK_IN",
        "occurred_at": at,
        "activity_date": at[:10],
        "zone": "UTC",
        "points_awarded": 5,
        "rules_version": 1,
        "source": "app",
        "properties": '{"amount":3}',
        "created_at": stamp(arrived),
        "ttl": int((arrived + timedelta(days=90)).timestamp()),
        **more,
    }


class Night:
    """Tables and a lake, and nights of them."""

    def __init__(self, engine: Engine, root: Path, entity: str, kind: Callable[..., RetentionRule]) -> None:
        self.engine, self.root, self.entity, self.kind = engine, root, entity, kind
        self.objects, self.nights, self.files = FolderObjects(root), 0, 0
        self.dynamodb = lean_client(engine, "dynamodb")

    def put(self, items: Iterable[dict[str, Any]]) -> None:
        for each in items:
            self.dynamodb.put_item(TableName=TABLES[self.entity], Item=encode_item(each))

    def publish(self, items: Sequence[dict[str, Any]], **changes: Any) -> set[Partition]:
        """Curate items, each with changes to its row."""
        places: dict[Partition, list[Any]] = {}
        for each in items:
            row = row_of(ENTITIES[self.entity], each, CAME) | changes
            places.setdefault(Partition(self.entity, row["dt"], row["hour"]), []).append(row)
        for place, rows in places.items():
            self.files += 1
            put_raw(self.objects, f"n{self.files}", rows, place)
            curate(self.objects, place)
        return set(places)

    def run(
        self,
        now: datetime = OLD,
        fresh: Iterable[Partition] = (),
        client: Any = None,
        has_time: Callable[[], bool] = lambda: True,
        night: str = "",
    ) -> tuple[int, int, bool]:
        """What left, what stayed, and whether more is to be done."""
        self.nights += 1
        run_id = night or f"night-{self.nights}"
        self.objects.put(f"runs/{run_id}/tasks.json", json.dumps([asdict(each) for each in fresh]).encode())
        aged = AgedItems(client or self.dynamodb, TABLES[self.entity], KEYS[self.entity])
        steps = RetainSteps(self.objects, [self.kind(aged, DAYS)])
        found = steps.retain({"run_id": run_id, "tasks_key": f"runs/{run_id}/tasks.json"}, now, has_time)
        return found["left"], found["stayed"], found["is_left"]

    def there(self, partition: str) -> list[dict[str, Any]]:
        found = self.dynamodb.query(
            TableName=TABLES[self.entity],
            KeyConditionExpression="#k = :it",
            ExpressionAttributeNames={"#k": KEYS[self.entity][0]},
            ExpressionAttributeValues=encode_item({":it": partition}),
        )
        return [decode_item(each) for each in found["Items"]]


@pytest.fixture
def events(engine: Engine, tmp_path: Path) -> Night:
    return Night(engine, tmp_path, "events", Events)


def test_what_the_lake_lacks_or_holds_differently_never_leaves(events: Night, user: str) -> None:
    held = [stored_event(user, number) for number in range(4)]
    lacking, young = stored_event(user, 4), stored_event(user, 5, arrived=CAME + timedelta(days=2))
    differing = [stored_event(user, 6), stored_event(user, 7, shoe="left")]
    unknown = stored_event(user, 8, measures="n,minutes=30500")
    events.put([*held, lacking, young, *differing, unknown])
    events.publish([*held, young, stored_event(user, 8)])
    events.publish([stored_event(user, 6)], points_awarded=6)
    events.publish([stored_event(user, 7)])
    assert events.run(CAME + timedelta(days=DAYS)) == (0, 0, False), "too early"
    assert len(events.there(user)) == 9
    assert events.run() == (4, 3, False)
    stayed = {each["event_id"] for each in (lacking, young, *differing, unknown)}
    assert {each["event_id"] for each in events.there(user)} == stayed


def test_an_item_that_changes_between_proof_and_deletion_stays(events: Night, user: str) -> None:
    one, other = stored_event(user, 1), stored_event(user, 2)
    events.put([one, other])
    events.publish([one, other])

    class Meddling:
        exceptions = events.dynamodb.exceptions

        def __getattr__(self, name: str) -> Any:
            if name == "batch_execute_statement":
                events.put([one | {"points_awarded": 50}])
            return getattr(events.dynamodb, name)

    assert events.run(client=Meddling()) == (1, 1, False)
    assert [each["points_awarded"] for each in events.there(user)] == [50]


def test_late_rows_leave_when_they_are_old_enough_and_grown_partitions_are_looked_at_again(
    events: Night, user: str
) -> None:
    late = stored_event(user, 1, arrived=CAME + timedelta(days=9))
    events.put([stored_event(user, 0), late])
    events.publish([stored_event(user, 0), late])
    assert events.run() == (1, 0, False)
    for days in (1, 8):
        assert events.run(OLD + timedelta(days=days)) == (0, 0, False)
    assert events.run(OLD + timedelta(days=9)) == (1, 0, False)
    lost = stored_event(user, 2)  # its row came to the lake months late
    events.put([lost])
    assert events.run(OLD + timedelta(days=10)) == (0, 0, False)
    assert events.run(OLD + timedelta(days=11), events.publish([lost])) == (1, 0, False)
    assert events.there(user) == []


def test_a_call_that_runs_out_of_time_goes_on_with_the_next_rows(events: Night, user: str) -> None:
    stored = [stored_event(user, number) for number in range(5000)]
    events.put(stored[::200])
    events.publish(stored)
    calls = 0
    left = iter([True, False, True, False] + [True] * 9)
    while events.run(has_time=lambda: next(left), night="one")[2]:
        calls += 1
        assert calls < 9
    assert calls == 2
    assert events.there(user) == []
    assert events.run(night="one") == (25, 0, False), "what all calls came to"


def test_a_night_ends_some_time_and_the_next_one_goes_on(events: Night, user: str) -> None:
    stored = [stored_event(user, number) for number in range(3)]
    events.put(stored)
    events.publish(stored)
    told = [events.run(has_time=lambda: False, night="one")[2] for _ in range(CALLS_MAX)]
    assert told == [True] * (CALLS_MAX - 1) + [False]
    assert events.run() == (3, 0, False)


def test_a_night_that_goes_on_passes_over_no_earlier_date(events: Night, user: str) -> None:
    early = stored_event(user, -2 * 86_400, arrived=CAME + timedelta(days=1))
    stored = [early, stored_event(user, 0)]
    events.put(stored)
    events.publish(stored)
    assert events.run(has_time=lambda: False) == (0, 0, True)
    assert events.run(OLD + timedelta(days=1)) == (2, 0, False)


def test_a_partition_that_is_compacted_between_two_nights_is_read_as_a_whole(
    events: Night, user: str
) -> None:
    stored = [stored_event(user, number) for number in (0, 3600)]
    events.put(stored)
    events.publish(stored)
    left = iter([True, False])
    assert events.run(has_time=lambda: next(left)) == (1, 0, True)
    curate(events.objects, Partition("events", f"{CAME:%Y-%m-%d}", None))
    assert events.run() == (1, 0, False)


def test_a_month_in_one_file_is_read_once_it_is_old_and_again_when_rows_come(
    events: Night, user: str
) -> None:
    stored = [stored_event(user, number * 86_400, arrived=CAME) for number in (0, 3, 20)]
    month = Partition("events", f"{CAME:%Y-%m}", None)
    events.put(stored)
    events.publish(stored[:2])
    curate(events.objects, month)
    assert events.run(OLD, {month}) == (0, 0, False)  # its last date is too young
    month_later = OLD + timedelta(days=31)
    assert events.run(month_later) == (2, 0, False)
    events.publish(stored[2:])  # of another day of the month
    assert [each.key for each in events.objects.list("curated/")] == [curated_key(month)]
    assert events.run(month_later, {month}) == (1, 0, False)
    assert events.run(month_later) == (0, 0, False)


def test_an_earlier_partition_that_is_done_again_does_not_undo_what_a_later_one_has_done(
    events: Night, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analytics.retention.BATCH_ROWS", 1)
    early = [stored_event(user, number - 86_400) for number in range(2)]
    stored = [stored_event(user, number) for number in range(4)]
    events.put([*early, *stored])
    events.publish([early[0], *stored])
    left = iter([True, True, True, False])
    assert events.run(has_time=lambda: next(left)) == (3, 0, True)
    left = iter([True, True, True, False])
    assert events.run(OLD, events.publish([early[1]]), has_time=lambda: next(left)) == (2, 0, True)


def test_a_later_partition_goes_on_though_an_earlier_one_runs_out_of_time(
    events: Night, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analytics.retention.BATCH_ROWS", 1)
    early = [stored_event(user, number - 86_400) for number in range(3)]
    stored = [stored_event(user, number) for number in range(3)]
    events.put([*early, *stored])
    events.publish([early[0], *stored])
    left = iter([True, True, True, False])
    assert events.run(has_time=lambda: next(left)) == (3, 0, True)
    fresh = events.publish(early[1:])
    for times, removed in ((1, 0), (3, 3)):  # the second call removes a row of the later partition
        left = iter([True] * times + [False] * 9)
        assert events.run(OLD, fresh, has_time=partial(next, left), night="two")[0] == removed
    assert events.run(night="two") == (3, 0, False)
    assert events.there(user) == []


def test_rows_that_become_old_behind_a_night_that_goes_on_leave_in_the_next(events: Night, user: str) -> None:
    late = stored_event(user, 1, arrived=CAME + timedelta(days=1))
    stored = [stored_event(user, 0), late, stored_event(user, 3600)]
    events.put(stored)
    events.publish(stored)
    left = iter([True, False])
    assert events.run(has_time=lambda: next(left)) == (1, 0, True)
    assert events.run(OLD + timedelta(days=1)) == (1, 0, False)
    assert events.run(OLD + timedelta(days=2)) == (1, 0, False)


class Recording(Events):
    """Notes what it removes in place of `items`."""

    def remove(self, rows: Sequence[ItemRow]) -> RemovalCounts:
        """Note the rows' instants."""
        noted: Any = self.items
        noted.update({row["event_id"]: row["created_at"] for row in rows})
        return RemovalCounts(len(rows))


# Between two nights: rows (date, hour, days until they are stored), a date to compact, and how many batches
# the night's only call has time for.
INTERVALS = st.tuples(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 3)), max_size=3),
    st.none() | st.integers(0, 2),
    st.integers(0, 4),
)


@given(intervals=st.lists(INTERVALS, min_size=2, max_size=5))
@settings(max_examples=examples(40))
def test_every_row_leaves_whatever_comes_between_nights(
    intervals: list[tuple[list[tuple[int, int, int]], int | None, int]],
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("analytics.retention.BATCH_ROWS", 1)
        objects, removed, published = FolderObjects(Path(folder)), dict[str, datetime](), set[str]()
        rule = Recording(cast("Any", removed), DAYS)
        for number, (moments, compacted, batches) in enumerate([*intervals, *[([], None, 99)] * 8]):
            fresh, now = set[Partition](), OLD + timedelta(days=number)
            for day, hour, days_late in moments:
                second = day * 86_400 + hour * 3600 + len(published)
                item = stored_event("u", second, arrived=CAME + timedelta(days=day + days_late))
                published.add(item["event_id"])
                row = row_of(ENTITIES["events"], item, CAME)
                place = Partition("events", row["dt"], row["hour"])
                put_raw(objects, f"n{len(published)}", [row], place)
                curate(objects, place)
                fresh.add(place)
            if compacted is not None:
                day_place = Partition("events", f"{CAME + timedelta(days=compacted):%Y-%m-%d}", None)
                curate(objects, day_place)
            has_time = partial(next, iter([True] * batches), False)
            RetentionPass(objects, rule, f"night-{number}", now.date(), fresh, has_time).run()
            assert all(at.date() < now.date() - timedelta(days=DAYS) for at in removed.values())
        assert removed.keys() == published


@pytest.mark.parametrize(
    "how",
    ["dies before", "dies after", "answer lost", "throttled"],
)
def test_killed_anywhere_and_run_again_it_is_the_same(events: Night, user: str, how: str) -> None:
    stored = [stored_event(user, number) for number in range(32)]
    events.publish(stored[:30])
    for dies_at in range(1, 5):  # a read, and two requests that delete
        events.put(stored)
        died = False
        for path in (events.root / "state").rglob("*.json"):
            path.unlink()
        try:
            events.run(client=Dying(events.dynamodb, dies_at, how))
        except (Killed, Exception):
            died = True
            events.run()
        assert [each["event_id"] for each in events.there(user)] == [each["event_id"] for each in stored[30:]]
    assert not died, "the last call is behind all of the pass"


def test_a_late_event_and_one_that_comes_again_are_answered_as_if_nothing_had_left(
    api: Site, events: Night, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same story twice: of one user the events have left meanwhile."""
    now, twin = clock.now(), f"{user}-twin"
    past = [_sent(now, day) for day in (1, 2, 4, 5)]
    for each in (user, twin):
        api.send(each, *past, groups=(PRODUCERS,))
    places = events.publish(events.there(user))
    later = now + timedelta(days=DAYS + 3)
    assert events.run(later, places)[:2] == (4, 0)
    assert (len(events.there(user)), len(events.there(twin))) == (0, 4)
    monkeypatch.setattr("adapters.clock.now", lambda: later)
    told = {}
    for each in (user, twin):
        late, again = _sent(now, 3), past[1]
        sent = api.send(each, late, again, groups=(PRODUCERS,))
        assert sent["rejected"] == 0
        seen = [api.admin("GET", f"/v1/users/{each}{path}") for path in _pages(now)]
        told[each] = str(seen).replace(each, "somebody")
    assert _comparable(told[user]) == _comparable(told[twin])
    assert "'active_days': 5" in told[user]


def _sent(now: datetime, day: int) -> dict[str, Any]:
    at = (now - timedelta(days=day)).replace(hour=12, minute=0, second=0, microsecond=0)
    return {
        "idempotency_key": f"k{day}",
        "event_type": "CHECK_IN",
        "occurred_at": at.isoformat(),
        "timezone": "UTC",
    }


def _pages(now: datetime) -> list[str]:
    since = (now - timedelta(days=6)).date().isoformat()
    return ["", f"/activity?from={since}", f"?as_of={(now - timedelta(days=1)).date().isoformat()}"]


def _comparable(text: str) -> str:
    """Event ids have a part that is made of the user."""
    return re.sub(r"#[0-9a-f-]{36}", "#id", text)


def test_raw_payloads_leave_the_events_of_leads_and_what_was_read_stays(
    engine: Engine, tmp_path: Path, user: str
) -> None:
    leads = Night(engine, tmp_path, "lead_events", RawPayloads)

    def lead_event(number: int, **more: Any) -> dict[str, Any]:
        at = stamp(CAME + timedelta(seconds=number))
        told = ("organization_id", "root_id", "source", "source_type")
        return {
            "lead_organization_id": user,
            SORT_KEY: f"{key_of_stamp(at)}#id{number}",
            "event_type#occurred_at": f"page_viewed#{key_of_stamp(at)}",
            **dict.fromkeys(told, "x"),
            "external_event_id": f"x{number}",
            "event_type": "page_viewed",
            "occurred_at": at,
            "received_at": at,
            "payload": "{}",
            **more,
        }

    stored = [lead_event(1, raw_payload='"words"'), lead_event(2), lead_event(3, raw_payload='"later"')]
    young = lead_event(4, raw_payload='"young"', received_at=stamp(CAME + timedelta(days=5)))
    leads.put([*stored, young])
    leads.publish([stored[0], stored[1], young])
    assert leads.run() == (1, 0, False)
    assert leads.there(user) == [lead_event(1), *stored[1:], young]
    assert leads.run(OLD + timedelta(days=5)) == (1, 0, False)


def test_nothing_is_read_while_nothing_may_leave(tmp_path: Path) -> None:
    steps = RetainSteps(FolderObjects(tmp_path), [Events(AgedItems(None, "BPEvents", ()), 0)])
    assert steps.retain({"run_id": "r", "tasks_key": "none"}, unstamp("2026-03-09T02:30:00.000000Z")) == {
        "is_left": False,
        "left": 0,
        "stayed": 0,
    }
    assert list(tmp_path.iterdir()) == []
