"""Final standings: live and in SQL each user has the same points and rank on each board of each final period."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from adapters.engagement.account_items import profile_attributes
from adapters.platform.items import encode_item
from analytics.warehouse.build import build
from analytics.warehouse.models import check_model, models
from local.operate.html_report import BOARDS
from rules.days import stamp
from rules.engagement.account_state import Profile
from rules.engagement.board_settings import HIDDEN, YES, with_settings
from rules.engagement.boards import with_ranks
from rules.engagement.period_points import with_period_points
from rules.engagement.period_standings import PeriodStandings
from rules.engagement.periods import boards_in, final_at, periods_between
from rules.lake.entities import STREAKS
from tests.sql.conftest import Lake, family
from tests.support.account_world import grant
from tests.support.effort import effort
from tests.support.point_story import Json, PointStory, as_they_were_and_rewritten

MART = "marts.board_results"
CLASSES = ("4b", "4c", "room 7")


@dataclass
class BoardStory(PointStory):
    """Books with boards, which come and go with each version; users who move, leave and are looked at."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.profiles: list[Profile] = []

    def some_book(self) -> Json:
        first = (self.base + timedelta(days=self.chance.randrange(4))).date()
        boards: Json = {
            "weekly": {"per": "week"},
            "monthly": {"per": "month"},
            "classes": {"per": "week", "group": "class"},
            "season": {"from": first.isoformat(), "until": (first + timedelta(days=9)).isoformat()},
        }
        kept = [name for name in boards if self.chance.random() < 0.85]
        starts = self.chance.choice(("00:00", "00:00", "03:00", "05:45"))
        daily = {"daily": {"day_starts_at": starts}} if starts != "00:00" else {}
        return super().some_book() | daily | {"boards": {name: boards[name] for name in kept}}

    def settle(self) -> None:
        """Give each user settings that change about when periods become final, as versions of the profile."""
        for name, world in self.worlds.items():
            at = world.now = world.now + timedelta(days=1)
            profile = Profile(name, version=1, updated_at=stamp(self.base - timedelta(days=3)))
            self.profiles.append(profile)
            moment = self.base - timedelta(days=2)
            while moment < at:
                values = {
                    "class": self.chance.choice((*CLASSES, "")),
                    HIDDEN: self.chance.choice(("", "", YES)),
                }
                profile = Profile(
                    name,
                    version=profile.version + 1,
                    updated_at=stamp(moment),
                    board_settings=with_settings(profile.board_settings, values, moment),
                    tz_review=(review := self.chance.random() < 0.2),
                    review_since=stamp(moment) if review else "",
                )
                self.profiles.append(profile)
                moment += timedelta(hours=self.chance.randrange(20, 150))

    def rows(self) -> Any:
        items = [encode_item(profile_attributes(each, 1)) for each in self.profiles]
        return {**super().rows(), ("UserStreaks", STREAKS): items}

    def live_results(self) -> dict[tuple[str, str, str], tuple[str, int, int]]:
        """Group, points and rank by board, first date and user."""
        terms = self.books.daily_terms
        entries = {user: world.entries for user, world in self.worlds.items()}
        newest = max(datetime.fromisoformat(each.created_at) for some in entries.values() for each in some)
        found = {}
        first = (self.base - timedelta(days=60)).date()
        for period in periods_between(first, newest.date(), terms):
            final = final_at(period, terms)
            if final > newest:
                continue
            standings = PeriodStandings({period: final}, terms)
            for user, some in entries.items():
                known = [
                    each for each in self.profiles if each.user_id == user and each.updated_at < stamp(final)
                ]
                written = [each for each in some if each.created_at < stamp(final)]
                counted = with_period_points((), written, terms)
                base = known[-1] if known else Profile(user)
                standings.add(
                    Profile(
                        user,
                        period_points=counted,
                        board_settings=base.board_settings,
                        tz_review=base.tz_review,
                        review_since=base.review_since,
                    )
                )
            for contest, rows in standings.contests(period):
                ranked = with_ranks([(row.user_id, row.score) for row in rows])
                for rule in boards_in(period, terms):
                    if rule.group == contest.group:
                        for each in ranked:
                            key = rule.name, period.first.isoformat(), each["user_id"]
                            found[key] = contest.value, each["score"], each["rank"]
        return found


@pytest.mark.parametrize(("seed", "is_rewritten"), as_they_were_and_rewritten(effort(3, soak=60)))
def test_final_results_are_the_same_live_and_in_sql(lake: Lake, seed: int, is_rewritten: bool) -> None:
    story = BoardStory(seed)
    story.now = story.base + timedelta(days=8)  # the first week may still change, others are to come
    story.live(8, 60)
    for world in story.worlds.values():
        world.now = story.base + timedelta(days=12)  # the first week is final, the second is not
        story.reverse_one(world)
    if is_rewritten:
        story.rewrite(reversals=3, versions=1)
    for world in story.worlds.values():
        world.now = story.base + timedelta(days=22)
        world.apply(commands=[grant(world.now.date())])
    story.settle()
    lake.load("one", story.into(lake.objects))
    expected = story.live_results()
    assert len(expected) > 5
    for warehouse in lake.warehouses:
        build(warehouse, family(MART))
        rows = warehouse.rows(f"SELECT * FROM {MART}")
        told = {
            (row["board_name"], str(row["first_date"]), row["user_id"]): (
                row["group_value"],
                row["points"],
                row["board_rank"],
            )
            for row in rows
        }
        assert told == expected
        assert check_model(warehouse, models()[MART]) == []
        for row in warehouse.rows(BOARDS):
            periods = {first for name, first, _ in expected if name == row["board_name"]}
            points = [
                each
                for (name, first, _), (_, each, _) in expected.items()
                if (name, first) == (row["board_name"], max(periods))
            ]
            assert (row["people"], row["best"]) == (len(points), max(points))
            assert row["average"] == pytest.approx(sum(points) / len(points))
