"""The entries of many users go in one transaction; one user's trouble is no other's. On a real engine."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.joint import joint_projections
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import item
from processors.engagement import EngagementProcessor
from rules.engagement.events import Event, to_item
from rules.engagement.ledger import Draft, EntryKind, append
from tests.support.engagement_strategies import event
from tests.support.engine import Engine
from tests.support.subscribers import Counting, Killed

NOW = datetime(2026, 6, 2, 13, tzinfo=UTC)
NUMBERS = count()
ONE, TWO = date(2026, 6, 1), date(2026, 6, 2)
ARRIVED = {ONE: NOW, TWO: NOW + timedelta(hours=1)}


class Crowd:
    """Users, and the processor over a client that counts calls and dies when it is told to."""

    def __init__(self, engine: Engine, size: int, way: str = "statements") -> None:
        self.dynamodb = Counting(engine.client("dynamodb"))
        self.accounts = AccountStore(
            self.dynamodb, "UserStreaks", "DailyActivity", LedgerStore(self.dynamodb, "RewardsLedger"), 2
        )
        joint = joint_projections.of(way, self.dynamodb, self.accounts)
        self.processor = EngagementProcessor(self.accounts, EngagementCache(""), joint=joint)
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
        return outcome.applied, len(outcome.poison)

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
    change = {"SequenceNumber": f"{next(NUMBERS)}", "NewImage": item(to_item(stored))}
    return {"eventName": "INSERT", "dynamodb": change}


@pytest.mark.parametrize("way", joint_projections.WAYS)
def test_a_batch_of_sixty_users_takes_few_calls(engine: Engine, way: str) -> None:
    crowd = Crowd(engine, 60, way)
    assert crowd.apply(crowd.records(ONE), NOW) == (60, 0)
    crowd.check(1)
    crowd.dynamodb.calls.clear()
    assert crowd.apply(crowd.records(TWO, each=4)) == (240, 0)
    calls = crowd.dynamodb.calls
    # 60 carriers and 60 heads, 50 in a transaction. Carried entries of 25, 25 and 10 users, 25 in a call.
    assert calls["batch_write_item"] == 3 + 3 + 2
    # 60 days and 60 profiles, each 25 in a call, 50 in a transaction, or each alone.
    names = "transact_write_items", "batch_execute_statement", "put_item"
    expected = {"statements": (3, 3 + 3, 0), "transactions": (3 + 2 + 2, 0, 0), "none": (3, 0, 120)}
    assert tuple(calls.get(name, 0) for name in names) == expected[way]
    assert "query" not in calls
    crowd.check(5)


def test_one_user_whose_head_has_moved_holds_nobody_up(engine: Engine) -> None:
    crowd = Crowd(engine, 8)
    crowd.apply(crowd.records(ONE), NOW)
    moved = crowd.users[3]
    head = crowd.accounts.profile(moved).head
    spent = append(moved, head, [Draft(EntryKind.REDEEM, -5, reward_id="mug")], NOW)
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
    bad, real = crowd.users[2], crowd.accounts.decide

    def decide(account: Any, rule: Any) -> Any:
        if account.profile.user_id == bad:
            raise ZeroDivisionError
        return real(account, rule)

    with monkeypatch.context() as patch:
        patch.setattr(crowd.accounts, "decide", decide)
        assert crowd.apply(crowd.records(TWO)) == (4, 1)
    assert crowd.apply(crowd.records(TWO)) == (1, 0)
    crowd.check(2)


WRITES = [
    *((name, lives, "none") for name in ("transact_write_items", "batch_write_item") for lives in (1, 2, 5)),
    *(("put_item", lives, "none") for lives in (1, 2, 5, 11)),
    *(("batch_execute_statement", lives, "statements") for lives in (0, 1, 2, 3)),
    *(("transact_write_items", lives, "transactions") for lives in (2, 3, 4)),  # 30 heads, days, profiles
]


@pytest.mark.parametrize(("name", "lives", "way"), WRITES)
def test_a_death_between_any_two_writes_leaves_what_the_next_delivery_finishes(
    engine: Engine, name: str, lives: int, way: str
) -> None:
    crowd = Crowd(engine, 30, way)
    crowd.apply(crowd.records(ONE), NOW)
    records = crowd.records(TWO, each=3)
    crowd.dynamodb.left = {name: lives}
    try:
        crowd.processor.apply(records, ARRIVED[TWO])
    except Killed:
        crowd.dynamodb.left = {}
        crowd.apply(records)
    crowd.check(4)
    assert crowd.apply(records)[0] == 0
    crowd.check(4)
