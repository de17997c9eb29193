"""What a backlog, a steady user and a batch that comes twice cost in reads of the ledger, on a real engine."""

import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import HeadMoved, LedgerStore
from adapters.platform.items import encode_item
from processors.engagement import EngagementProcessor
from rules.days import parse_moment, stamp
from rules.engagement.events import Event, event_id, to_item
from tests.support.engine import Engine

NUMBERS = count()
START = datetime(2026, 3, 2, 12, tzinfo=UTC)
STREAM = "arn:aws:dynamodb:us-east-1:1:table/BPEvents/stream/2026-03-01T00:00:00.000"
Record = dict[str, Any]


class Lane:
    """One user's lane of the stream, and the processor behind it. Counts the entries that it reads."""

    def __init__(self, engine: Engine) -> None:
        self.user = f"b{time.time_ns()}-{next(NUMBERS)}"
        dynamodb = engine.own_client("dynamodb")
        self.entries_read = 0
        dynamodb.meta.events.register("after-call.dynamodb.Query", self._count)
        ledger = LedgerStore(dynamodb, "RewardsLedger")
        self.accounts = AccountStore(dynamodb, "UserStreaks", "DailyActivity", ledger, 2)
        self.processor = EngagementProcessor(self.accounts, EngagementCache(""))

    def _count(self, parsed: Any, **_: Any) -> None:
        self.entries_read += parsed.get("Count", 0)

    def records(
        self, number: int, arrivals: Sequence[datetime], first: int = 0, stream: str = STREAM
    ) -> list[Any]:
        """Events a second apart. arrivals: of the events; repeated as needed."""
        found = []
        for place in range(first, first + number):
            moment = parse_moment((START + timedelta(seconds=place)).isoformat())
            event = Event(
                user_id=self.user,
                event_id=event_id(self.user, f"k{place}", moment),
                idempotency_key=f"k{place}",
                event_type="LESSON_COMPLETED",
                occurred_at=moment.utc.isoformat(),
                activity_date=date(2026, 3, 2),
                zone="UTC",
                points_awarded=10,
                source="test",
                created_at=stamp(arrivals[(place - first) % len(arrivals)]),
            )
            change = {"SequenceNumber": f"{10**20 + place}", "NewImage": encode_item(to_item(event))}
            found.append({"eventName": "INSERT", "dynamodb": change, "eventSourceARN": stream})
        return found

    def apply(self, records: Sequence[Record], now: datetime) -> tuple[int, int]:
        """Returns how many were applied, and how many were duplicates."""
        outcome = self.processor.apply(records, now)
        assert (outcome.poison, outcome.again) == ([], [])
        return outcome.counts["applied"], outcome.counts["duplicates"]

    def earned(self) -> list[str]:
        entries, _ = self.accounts.ledger.after(self.user, "0")
        return sorted(each.draft.event_id or "" for each in entries if each.draft.event_id)


@pytest.fixture
def lane(engine: Engine) -> Lane:
    return Lane(engine)


def test_a_backlog_reads_no_more_than_itself(lane: Lane) -> None:
    """All have arrived before the first of them is applied."""
    records = lane.records(400, [START + timedelta(milliseconds=each) for each in range(400)])
    now = START + timedelta(minutes=7)
    for first in range(0, 400, 50):
        assert lane.apply(records[first : first + 50], now + timedelta(seconds=first)) == (50, 0)
    assert lane.entries_read == 0
    assert len(lane.earned()) == 400


def test_a_steady_user_needs_no_look_up(lane: Lane) -> None:
    """One event a second; each arrives before the one ahead of it is applied, on a clock that is ahead."""
    for place in range(20):
        arrived = START + timedelta(seconds=place)
        (record,) = lane.records(1, [arrived], place)
        assert lane.apply([record], arrived + timedelta(seconds=3)) == (1, 0)
    assert lane.entries_read == 0


def test_a_batch_that_comes_twice_reads_about_itself(lane: Lane) -> None:
    records = lane.records(300, [START])
    now = START + timedelta(minutes=7)
    for first in range(0, 300, 50):
        assert lane.apply(records[first : first + 50], now) == (50, 0)
    assert lane.apply(records[250:], now) == (0, 50)
    assert lane.entries_read <= 100
    # In any order, mixed with new ones, and with one that stands before everything that is applied.
    more = lane.records(10, [START], 300)
    assert lane.apply([*more[::-1], *records[290:]], now) == (10, 10)
    assert lane.apply(records[:1], now) == (0, 1)
    assert len(lane.earned()) == 310


def test_another_stream_s_records_are_looked_up(lane: Lane) -> None:
    """A table that was restored has a stream of its own; somebody may have put the events into it again."""
    now = START + timedelta(minutes=7)
    assert lane.apply(lane.records(20, [START]), now) == (20, 0)
    other = STREAM.replace("2026-03-01", "2026-03-09")
    again = lane.records(22, [START], stream=other)
    for record in again:
        record["dynamodb"]["SequenceNumber"] = "9" * 21
    assert lane.apply(again, now) == (2, 20)
    assert lane.apply(again, now) == (0, 22)
    assert len(lane.earned()) == 22


def test_what_a_dead_writer_has_applied_is_known(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    """It wrote its entries and died; a command counts them in; then its batch comes again."""
    now = START + timedelta(minutes=7)
    records = lane.records(9, [START])
    assert lane.apply(records[:1], now) == (1, 0)
    with monkeypatch.context() as patch:
        patch.setattr(AccountStore, "day_put", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            lane.processor.apply(records[1:], now)
    lane.accounts.finish_pending(lane.user, now)
    assert lane.accounts.profile(lane.user).applied_through.endswith(f"/{10**20 + 8}")
    assert lane.apply(records, now) == (0, 9)
    assert len(lane.earned()) == 9


def test_two_dead_writers_in_turn_hide_nothing(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    """The later one applied what stands earlier in the stream: out of order, as a redrive does."""
    now = START + timedelta(minutes=7)
    records = lane.records(6, [START])
    assert lane.apply(records[:1], now) == (1, 0)
    with monkeypatch.context() as patch:
        patch.setattr(AccountStore, "day_put", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        for some in (records[4:], records[1:4]):
            with pytest.raises(KeyboardInterrupt):
                lane.processor.apply(some, now)
    lane.accounts.finish_pending(lane.user, now)
    assert lane.apply(records[::-1], now) == (0, 6)
    assert len(lane.earned()) == 6


def test_a_command_in_between_costs_what_is_new(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    now = START + timedelta(minutes=7)
    records = lane.records(200, [START])
    for first in range(0, 150, 50):
        assert lane.apply(records[first : first + 50], now) == (50, 0)
    append, moved = LedgerStore.append, [True]

    def moves_once(self: LedgerStore, *arguments: Any) -> None:
        if moved:
            moved.pop()
            raise HeadMoved(())
        append(self, *arguments)

    monkeypatch.setattr(LedgerStore, "append", moves_once)
    assert lane.apply(records[150:], now) == (50, 0)
    assert lane.entries_read == 0
