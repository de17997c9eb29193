"""Sixteen years of a real project's commits: points, six kinds of streaks and twenty achievements, live and in SQL."""

import csv
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from analytics.warehouse.build import build
from rules.engagement.account_state import Profile
from rules.engagement.events import Event
from tests.sql import test_goals, test_points_twin
from tests.sql.conftest import Lake, family
from tests.support.account_world import grant
from tests.support.achievement_story import AchievementStory
from tests.support.effort import effort, only_soak
from tests.support.goal_story import SIX
from tests.support.point_story import VERSIONS_MIN, WholeWorld
from tests.support.real_input import COMMITS

BATCH = 400


@dataclass
class CommitStory(AchievementStory):
    """Each commit is an event of some type, at its instant and in its zone."""

    def __post_init__(self) -> None:
        self.commits: dict[str, list[tuple[str, datetime]]] = defaultdict(list)
        with COMMITS.open(encoding="utf-8") as lines:
            for each in csv.DictReader(lines):
                at = datetime.fromisoformat(each["occurred_at"])
                self.commits[each["user_id"]].append((each["idempotency_key"], at))
        instants = [at for some in self.commits.values() for _, at in some]
        self.first, self.last = min(instants).astimezone(UTC), max(instants).astimezone(UTC)
        super().__post_init__()
        self.now = self.last + timedelta(days=20)

    def some_base(self) -> datetime:
        return self.first.replace(hour=0, minute=0, second=0)

    def some_instant(self) -> datetime:
        """Half of them in the first year, in which most commits are."""
        days = (self.last - self.base).days
        return self.base + timedelta(hours=24 * self.chance.randrange(self.chance.choice((365, days))))

    def live(self, users: int = 0, events: int = 0) -> None:
        """Users whose commits come in any order; some have freezes."""
        for user, commits in self.commits.items():
            found = [self.commit(user, *each) for each in commits]
            self.users[user] = sent = [each for each in found if each is not None]
            self.worlds[user] = world = WholeWorld(Profile(user), now=self.now)
            for _ in range(self.chance.randrange(4)):
                at = self.chance.choice(commits)[1]
                world.apply(commands=[grant(at.date())])
            self.chance.shuffle(mixed := list(sent))
            for start in range(0, len(mixed), BATCH):
                world.apply(mixed[start : start + BATCH])

    def commit(self, user: str, key: str, at: datetime) -> Event | None:
        return self.accepted(user, key, at, f"{at:%z}"[:3] + ":" + f"{at:%z}"[3:])


@only_soak(
    "the same on random histories: tests/sql/test_points_twin.py,"
    " tests/sql/test_goals.py::test_the_marts_tell_what_is_shown_live"
)
@pytest.mark.parametrize("seed", range(effort(1, soak=4)))
def test_live_and_sql_agree(lake: Lake, seed: int) -> None:
    story = CommitStory(seed)
    story.live()
    if seed % 2:
        story.rewrite()
    lake.load("one", [*story.into(lake.objects), *test_goals.night(story, lake, "one")])
    streaks, achieved = test_goals.live_streaks(story), test_goals.live_achievements(story)
    assert len(story.books.versions) > VERSIONS_MIN
    assert {each[1] for each in streaks} == set(SIX)
    assert len({name for _, name, _ in achieved}) > 10
    for warehouse in lake.warehouses:
        build(warehouse, test_goals.FAMILY)
        build(warehouse, family(*test_points_twin.ASKED))
        assert test_goals.streaks_in(warehouse) == streaks
        assert test_goals.achievements_in(warehouse) == achieved
        weeks = test_points_twin.in_sql(warehouse)
        for name in test_points_twin.SUMS:
            found = {(each["user_id"], each["week_start"]): each[name] for each in weeks}
            assert found == test_points_twin.live(story)
