"""Operators' commands write accounts as the stack's functions do."""

from datetime import date

import pytest

from local.stack import Stack
from local.stores import accounts_of
from rules.engagement.account_state import Profile
from rules.engagement.streak import Streak


@pytest.mark.parametrize(("shards", "partition"), [("1", "europe"), ("32", "europe#15")])
def test_a_profile_goes_into_the_partition_that_the_stack_reads(shards: str, partition: str) -> None:
    tables = {name: name for name in ("RewardsLedger", "UserStreaks", "DailyActivity", "RuleBooks")}
    stack = Stack("", "http://127.0.0.1:1", "us-east-1", {"LeaderboardShards": shards}, tables, "")
    profile = Profile("u5", 1, streak=Streak(date(2026, 3, 1), 3, 3, 3), chosen_zone="Europe/Berlin")
    put = accounts_of(stack).profile_put(Profile("u5"), profile)
    assert put["Item"]["leaderboard_partition"] == {"S": partition}
