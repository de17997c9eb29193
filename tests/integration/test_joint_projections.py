"""Days and profiles of many users in one request: as single puts would write them, and one refusal is one user's."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from adapters.engagement.account_items import (
    DAY_NAMES,
    PROFILE_NAMES,
    day_attributes,
    profile_attributes,
)
from adapters.engagement.joint.joint_projections import DAYS, PROFILES, JointProjections
from adapters.engagement.joint.statements import statement_of
from adapters.platform.items import item
from rules.engagement.account_state import Account, Day, Decision, Profile
from rules.engagement.ledger import Head
from rules.engagement.streaks import Streak
from tests.integration.test_joint_commit import ARRIVED, NOW, ONE, TWO, Crowd
from tests.support.engine import Engine

# Every name with a value of another type, as an older version may have left it.
OLD = {"S": "of an older version"}
OLD_PROFILE = {**dict.fromkeys(PROFILE_NAMES, OLD), "current_streak": {"N": "7"}}  # an index's key
OLD_DAY = dict.fromkeys(DAY_NAMES, OLD)


def rich_profile(user: str) -> Profile:
    streak = Streak(last=ONE, length=3, longest=4, active_days=9)
    return Profile(
        user, 2, Head("2026", 1, 5), 5, streak, alias="somebody", observed_zone="UTC", updated_at="2026"
    )


def test_the_names_are_all_that_a_profile_and_a_day_may_have() -> None:
    assert {*profile_attributes(rich_profile("u"), shards=2), "run_length"} == {*PROFILE_NAMES, "user_id"}
    day = Day("u", ONE, "e", 1, 5, {}, "2026", "2026")
    assert {*day_attributes(day), "points_by_type"} == {*DAY_NAMES, "user_id", "activity_date"}


@pytest.mark.parametrize("condition", ["", "version > :read", "attribute_exists(user_id)"])
def test_another_condition_is_no_statement(condition: str) -> None:
    put = {"TableName": "T", "Item": item({"user_id": "u"}), "ConditionExpression": condition}
    assert statement_of(put, PROFILES) is None


def test_an_attribute_that_nobody_knows_is_no_update() -> None:
    stored = item({"user_id": "u", "activity_date": "2026-01-01", "surprise": 1})
    values = {":read": {"S": "x"}}
    put = {"TableName": "T", "Item": stored, "ConditionExpression": "ledger_head = :read"}
    assert statement_of({**put, "ExpressionAttributeValues": values}, DAYS) is None


def test_an_update_leaves_nothing_of_the_item_before(engine: Engine) -> None:
    crowd = Crowd(engine, 2)
    user, other = crowd.users
    new, day = rich_profile(user), Day(user, ONE, "e", 2, 9, {"CHECK_IN": 5}, "2026", "2026")
    before = Day(user, ONE, "e", 1, 4, {}, "2025", "2025")
    dated = {"activity_date": ONE.isoformat()}
    for each in crowd.users:
        stored = {**OLD_PROFILE, **item({"user_id": each, "version": 1})}
        crowd.dynamodb.put_item(TableName="UserStreaks", Item=stored)
        stored = {**OLD_DAY, **item({"user_id": each, **dated, "ledger_head": "2025"})}
        crowd.dynamodb.put_item(TableName="DailyActivity", Item=stored)
    read = crowd.processor.accounts
    account = Account(replace(new, version=1), {ONE: before})
    assert joint(crowd).commit({user: Decision(account, None, (), {ONE: day}, new)}) == {user}
    read.put_profile(replace(new, user_id=other))
    crowd.dynamodb.put_item(**read.day_put(before, replace(day, user_id=other)))
    keys: dict[str, dict[str, str]] = {"UserStreaks": {}, "DailyActivity": dated}
    for table, key in keys.items():
        ours, puts = (
            crowd.dynamodb.get_item(TableName=table, Key=item({"user_id": each, **key}))["Item"]
            for each in crowd.users
        )
        differing = {name for name in ours.keys() | puts.keys() if ours.get(name) != puts.get(name)}
        # A user's shard of an index follows from his id.
        assert differing <= {"user_id", "leaderboard_partition", "expiry_shard"}, table


def joint(crowd: Crowd) -> JointProjections:
    assert crowd.processor.joint
    return crowd.processor.joint


@pytest.mark.parametrize("way", ["statements", "transactions"])
def test_a_profile_that_has_changed_since_is_one_user_s_matter(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    crowd = Crowd(engine, 6, way)
    crowd.apply(crowd.records(ONE), NOW)
    moved, real = crowd.users[2], JointProjections.commit
    finished: list[set[str]] = []

    def commit(self: JointProjections, decisions: Any) -> set[str]:
        profile = crowd.accounts.profile(moved)
        crowd.accounts.put_profile(replace(profile, version=profile.version + 1, alias="renamed"))
        finished.append(real(self, decisions))
        return finished[-1]

    monkeypatch.setattr(JointProjections, "commit", commit)
    # Alone, an event counts as one that is applied by now. A transaction fails for all of its users.
    alone = {moved} if way == "statements" else {*crowd.users}
    assert crowd.apply(crowd.records(TWO)) == (6 - len(alone), 0)
    assert finished == [{*crowd.users} - alone]
    assert crowd.accounts.profile(moved).alias == "renamed"
    crowd.check(2)


@pytest.mark.parametrize("way", ["statements", "transactions"])
def test_a_day_that_has_changed_since_leaves_its_profile_unwritten(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    crowd = Crowd(engine, 4, way)
    crowd.apply(crowd.records(ONE), NOW)
    moved, real = crowd.users[1], crowd.accounts.day_put
    before = crowd.accounts.profile(moved)
    seen: list[Profile] = []

    def day_put(read: Any, day: Day) -> Any:
        put = real(read, day)
        if day.user_id != moved or seen:
            return put
        seen.append(before)
        # As if somebody had counted another entry into the day.
        return {
            **put,
            "ConditionExpression": "ledger_head = :read",
            "ExpressionAttributeValues": {":read": {"S": "of another"}},
        }

    monkeypatch.setattr(crowd.accounts, "day_put", day_put)
    real_commit = JointProjections.commit

    def commit(self: JointProjections, decisions: Any) -> set[str]:
        finished = real_commit(self, decisions)
        assert finished == ({*crowd.users} - {moved} if way == "statements" else set())
        assert crowd.accounts.profile(moved) == before
        return finished

    monkeypatch.setattr(JointProjections, "commit", commit)
    assert crowd.apply(crowd.records(TWO)) == (3 if way == "statements" else 0, 0)
    crowd.check(2)


@pytest.mark.parametrize("lost", [1, 2])
def test_a_request_whose_answer_is_lost_is_looked_at_alone(engine: Engine, lost: int) -> None:
    crowd = Crowd(engine, 5)
    crowd.apply(crowd.records(ONE), NOW)
    real, calls = crowd.dynamodb._dynamodb, []

    class Losing:
        def __getattr__(self, name: str) -> Any:
            def call(**request: Any) -> Any:
                answer = getattr(real, name)(**request)
                calls.append(name)
                if name == "batch_execute_statement" and calls.count(name) == lost:
                    raise EndpointConnectionError(endpoint_url="the answer was lost")
                return answer

            return call if name != "exceptions" else real.exceptions

    crowd.dynamodb._dynamodb = Losing()
    assert crowd.apply(crowd.records(TWO)) == (0, 0)
    assert crowd.apply(crowd.records(TWO))[0] == 0
    crowd.check(2)


def test_a_statement_that_is_refused_for_another_reason_goes_alone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = Crowd(engine, 3)
    crowd.apply(crowd.records(ONE), NOW)
    real = crowd.dynamodb._dynamodb

    class Strange:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def batch_execute_statement(self, **request: Any) -> Any:
            return {"Responses": [{"Error": {"Code": "ValidationError"}} for _ in request["Statements"]]}

    crowd.dynamodb._dynamodb = Strange()
    assert crowd.apply(crowd.records(TWO), ARRIVED[TWO] + timedelta(seconds=1)) == (0, 0)
    crowd.check(2)
