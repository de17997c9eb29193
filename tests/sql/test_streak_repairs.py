"""Repairs by month are what a plain loop over the ledgers says (rule 2)."""

from collections import defaultdict
from datetime import date, timedelta

from analytics.warehouse.build import build
from analytics.warehouse.models import check_model, models
from rules.days import unstamp
from rules.engagement.repairs import RepairOffer, repair_drafts, return_of
from tests.sql.conftest import Lake, family
from tests.support.point_story import PointStory

MART = "marts.streak_repairs"


def test_repairs_by_month_are_the_sums_of_their_entries(lake: Lake) -> None:
    story = PointStory(4)
    story.live(6, 30)
    for number, world in enumerate(story.worlds.values()):
        dates = (date(2026, 6, 1), date(2026, 6, 2))
        if world.profile.balance < 10:
            continue
        world.apply(commands=repair_drafts(RepairOffer(dates, 10, dates[1]), 1))
        world.now += timedelta(days=40 * (number % 2))
        world.apply(commands=[return_of(world.profile.repairs[0])])
    wanted: dict[date, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    users: dict[date, set[str]] = defaultdict(set)
    for user, world in story.worlds.items():
        for entry in world.entries:
            if entry.draft.reward_id == "streak_repair":
                month = unstamp(entry.created_at).date().replace(day=1)
                is_back = entry.draft.points > 0
                wanted[month][2 * is_back] += 1
                wanted[month][2 * is_back + 1] += abs(entry.draft.points)
                users[month] |= set() if is_back else {user}
    assert len(wanted) > 1
    lake.load("one", story.into(lake.objects))
    for warehouse in lake.warehouses:
        build(warehouse, family(MART))
        names = ("repaired_dates", "points", "given_back_dates", "points_given_back")
        found = {row["month_start"]: row for row in warehouse.rows(f"SELECT * FROM {MART}")}
        assert {month: [row[name] for name in names] for month, row in found.items()} == wanted
        assert {month: row["users"] for month, row in found.items()} == {
            month: len(users[month]) for month in wanted
        }
        assert check_model(warehouse, models()[MART]) == []
