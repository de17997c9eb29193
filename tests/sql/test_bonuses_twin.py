"""Points of achievements: the mart tells what the ledger has paid, and what is due by the night's own fold."""

from typing import Any

import pytest

from analytics.warehouse.build import build
from analytics.warehouse.models import check_model, models
from rules.engagement.achievements import UserHistory, achievement_positions, due_bonuses, ordered_history
from rules.engagement.bonuses import bonus_drafts, with_bonuses
from rules.engagement.goals import declared_achievements
from tests.sql.conftest import Lake, family
from tests.sql.test_goals import night
from tests.support.achievement_story import AchievementStory
from tests.support.effort import effort
from tests.support.point_story import Json

MART = "marts.bonuses"


class BonusStory(AchievementStory):
    """Books whose achievements have points where they may."""

    def some_achievement(self, book: Json) -> Json:
        made = super().some_achievement(book)
        if self.chance.random() < 0.6:
            made |= {"withdrawn": "when_untrue", "history": False, "points": self.chance.choice((5, 50, 500))}
        return made

    def settle(self, share: float) -> None:
        """Write the bonuses of some users, as a settlement does. share: of the users."""
        known = declared_achievements(self.books, self.now)
        paying = {name for name, each in known.items() if each.rule.points}
        for user, world in self.worlds.items():
            if not world.entries or self.chance.random() > share:
                continue
            history = UserHistory(ordered_history(world.entries))
            found = achievement_positions(known, history, self.history(user))
            paid = with_bonuses({}, world.entries)
            world.apply(commands=bonus_drafts(paid, due_bonuses(known, found), paying))


@pytest.mark.parametrize("seed", range(1, 1 + effort(2, soak=20)))
def test_paid_and_due(lake: Lake, seed: int) -> None:
    story = BonusStory(seed)
    story.live()
    story.settle(1)
    story.rewrite()  # events are reversed, and some bonuses are taken back
    story.settle(0.5)
    lake.load("one", [*story.into(lake.objects), *night(story, lake, "one")])
    known = declared_achievements(story.books, story.now)
    due, paid = dict[tuple[str, str], tuple[Any, int]](), dict[tuple[str, str], dict[str, int]]()
    for user, world in story.worlds.items():
        found = achievement_positions(known, UserHistory(ordered_history(world.entries)), story.history(user))
        due |= {(user, name): (each.day, each.points) for name, each in due_bonuses(known, found).items()}
        for draft in (entry.draft for entry in world.entries if entry.draft.kind == "BONUS"):
            sums = paid.setdefault((user, draft.reward_id or ""), {})
            sums[draft.activity_date or ""] = sums.get(draft.activity_date or "", 0) + draft.points
    assert any(paid.values())
    for warehouse in lake.warehouses:
        build(warehouse, family(MART))
        rows = {(row["user_id"], row["name"]): row for row in warehouse.rows(f"SELECT * FROM {MART}")}
        assert rows.keys() == {*due, *paid}
        for key, row in rows.items():
            assert row["points"] == sum(paid.get(key, {}).values())
            assert (row["due_date"], row["points_due"]) == due.get(key, (None, 0))
            left = [day for day, points in paid.get(key, {}).items() if points]
            assert str(row["activity_date"]) == (max(left) if left else "None")
        assert check_model(warehouse, models()[MART]) == []
