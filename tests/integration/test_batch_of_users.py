"""A batch of many users: one user's trouble is no other's. On a real engine."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import encode_item
from processors.engagement import EngagementProcessor
from rules.engagement.events import Event, to_item
from rules.engagement.ledger import Draft, EntryKind, append_drafts
from tests.support.accounts import put_profile
from tests.support.counting_client import Counting
from tests.support.dying import Killed
from tests.support.effort import effort
from tests.support.engagement_strategies import event
from tests.support.engine import Engine

NOW = datetime(2026, 6, 2, 13, tzinfo=UTC)
NUMBERS = count()
ONE, TWO = date(2026, 6, 1), date(2026, 6, 2)
ARRIVED = {ONE: NOW, TWO: NOW + timedelta(hours=1)}


class Crowd:
    """Users, and the processor over a client that counts calls and dies when it is told to."""

    def __init__(self, engine: Engine, size: int, writers: int = 1) -> None:
        self.dynamodb = Counting(engine.client("dynamodb"))
        self.accounts = AccountStore(
            self.dynamodb, "UserStreaks", "DailyActivity", LedgerStore(self.dynamodb, "RewardsLedger"), 2
        )
        self.processor = EngagementProcessor(self.accounts, EngagementCache(""), writers)
        name = f"crowd{time.time_ns()}-{next(NUMBERS)}"
        self.users = [f"{name}-{number:03}" for number in range(size)]

    def records(self, day: date, each: int = 1) -> list[Any]:
        found = []
        for user in self.users:
            for number in range(each):
                one = event(f"{day}-{number}", day, "LESSON_COMPLETED", created_at=ARRIVED[day])
                found.append(_record(replace(one, user_id=user)))
        return found

    def apply(self, records: Sequence[Any], at: datetime = ARRIVED[TWO]) -> tuple[int, int]:
        outcome = self.processor.apply(records, at)
        assert outcome.again == []
        return outcome.counts["applied"], len(outcome.poison)

    def check(self, events: int) -> None:
        """Each event has one entry, and days and profile say the same."""
        for user in self.users:
            entries, missing = self.accounts.ledger.after(user, "0")
            earned = [each.draft for each in entries if each.draft.kind is EntryKind.EARN]
            assert len({draft.event_id for draft in earned}) == len(earned) == events
            profile = self.accounts.profile(user)
            days = self.accounts.newest_days(user, date.min, date.max, 10)
            assert (missing, profile.head) == ([], entries[-1].head)
            assert sum(day.events_count for day in days) == events
            assert profile.total_points == sum(draft.points for draft in earned) == 10 * events


def _record(stored: Event) -> Any:
    change = {"SequenceNumber": f"{next(NUMBERS)}", "NewImage": encode_item(to_item(stored))}
    return {"eventName": "INSERT", "dynamodb": change}


@pytest.mark.parametrize("writers", [1, 4])
def test_a_batch_is_read_at_once_and_each_user_takes_four_writes(engine: Engine, writers: int) -> None:
    crowd = Crowd(engine, 20, writers)
    assert crowd.apply(crowd.records(ONE), NOW) == (20, 0)
    crowd.check(1)
    crowd.dynamodb.calls.clear()
    assert crowd.apply(crowd.records(TWO, each=4)) == (80, 0)
    calls = crowd.dynamodb.calls
    # The ledger's transaction, the carried entries, the day and the profile of each.
    assert calls == {"batch_get_item": 3, "transact_write_items": 20, "batch_write_item": 20, "put_item": 40}
    crowd.check(5)


def test_one_user_whose_head_has_moved_holds_nobody_up(engine: Engine) -> None:
    crowd = Crowd(engine, 8)
    crowd.apply(crowd.records(ONE), NOW)
    moved = crowd.users[3]
    head = crowd.accounts.profile(moved).head
    spent = append_drafts(moved, head, [Draft(EntryKind.REDEEM, -5, reward_id="mug")], NOW)
    crowd.accounts.ledger.append(head, spent)  # and this writer dies
    assert crowd.apply(crowd.records(TWO)) == (8, 0)
    crowd.check(2)
    balances = {user: crowd.accounts.profile(user).balance for user in crowd.users}
    assert balances == dict.fromkeys(crowd.users, 20) | {moved: 15}


def test_one_user_s_poison_is_told_and_all_others_are_applied(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = Crowd(engine, 5)
    crowd.apply(crowd.records(ONE), NOW)
    bad, real = crowd.users[2], crowd.accounts.decision_of

    def decide(account: Any, rule: Any) -> Any:
        if account.profile.user_id == bad:
            raise ZeroDivisionError
        return real(account, rule)

    with monkeypatch.context() as patch:
        patch.setattr(crowd.accounts, "decision_of", decide)
        assert crowd.apply(crowd.records(TWO)) == (4, 1)
    assert crowd.apply(crowd.records(TWO)) == (1, 0)
    crowd.check(2)


@pytest.mark.parametrize("table", ["UserStreaks", "DailyActivity"])
def test_what_somebody_has_damaged_of_one_user_is_told_and_all_others_are_applied(
    engine: Engine, table: str
) -> None:
    crowd = Crowd(engine, 5)
    crowd.apply(crowd.records(ONE), NOW)
    key = {"user_id": {"S": crowd.users[2]}}
    key |= {"activity_date": {"S": ONE.isoformat()}} if table == "DailyActivity" else {}
    whole = engine.client("dynamodb").get_item(TableName=table, Key=key)["Item"]
    name = "events_count" if table == "DailyActivity" else "version"
    rest = {each: value for each, value in whole.items() if each != name}
    engine.client("dynamodb").put_item(TableName=table, Item=rest)
    assert crowd.apply(crowd.records(TWO)) == (4, 1)
    engine.client("dynamodb").put_item(TableName=table, Item=whole)
    assert crowd.apply(crowd.records(TWO)) == (1, 0)
    crowd.check(2)


WRITES = [
    *((name, lives) for name in ("transact_write_items", "batch_write_item") for lives in (1, 2, 5)),
    *(("put_item", lives) for lives in (1, 2, 5, 11)),
]


@pytest.mark.parametrize(("name", "lives"), WRITES[:: effort(6, soak=1)])
def test_a_death_between_any_two_writes_leaves_what_the_next_delivery_finishes(
    engine: Engine, name: str, lives: int
) -> None:
    crowd = Crowd(engine, 15)
    crowd.apply(crowd.records(ONE), NOW)
    records = crowd.records(TWO, each=3)
    crowd.dynamodb.left = {name: lives}
    with pytest.raises(Killed):
        crowd.processor.apply(records, ARRIVED[TWO])
    crowd.dynamodb.left = {}
    crowd.apply(records)
    crowd.check(4)
    assert crowd.apply(records)[0] == 0
    crowd.check(4)


def test_a_profile_and_a_day_that_have_changed_since_are_read_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger's transaction holds; the two users' own writes meet another writer's."""
    crowd = Crowd(engine, 4)
    crowd.apply(crowd.records(ONE), NOW)
    renamed, counted = crowd.users[1:3]
    real, seen = crowd.accounts.ledger.append, set()

    def append_first(head: Any, entries: Any) -> None:
        real(head, entries)
        user = entries[0].account_id
        if user in seen:
            return
        seen.add(user)
        if user == renamed:
            profile = crowd.accounts.profile(user)
            changed = replace(profile, version=profile.version + 1, alias="renamed")
            put_profile(crowd.accounts, profile, changed)
        if user == counted:  # another one has already finished what these entries say
            crowd.accounts.finish_pending(user, ARRIVED[TWO])

    monkeypatch.setattr(crowd.accounts.ledger, "append", append_first)
    assert crowd.apply(crowd.records(TWO)) == (2, 0)
    assert crowd.accounts.profile(renamed).alias == "renamed"
    crowd.check(2)


@pytest.mark.parametrize("name", ["transact_write_items", "batch_write_item", "put_item"])
def test_a_write_whose_answer_is_lost_comes_again(engine: Engine, name: str) -> None:
    crowd = Crowd(engine, 5)
    crowd.apply(crowd.records(ONE), NOW)
    records, real = crowd.records(TWO, each=3), crowd.dynamodb._dynamodb

    class Losing:
        def __init__(self) -> None:
            self.lost = 0

        def __getattr__(self, called: str) -> Any:
            def call(**request: Any) -> Any:
                answer = getattr(real, called)(**request)
                if called == name and not self.lost:
                    self.lost = 1
                    raise EndpointConnectionError(endpoint_url="the answer was lost")
                return answer

            return call if called != "exceptions" else real.exceptions

    crowd.dynamodb._dynamodb = Losing()
    outcome = crowd.processor.apply(records, ARRIVED[TWO])
    assert (outcome.counts["applied"], len(outcome.again), outcome.poison) == (12, 3, [])
    assert crowd.apply(records)[0] == 0
    crowd.check(4)
