"""The achievements that nights have built, one after the other, are those of the rule, whatever came late or went."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

import pytest

from adapters.platform.items import Item
from analytics.warehouse.build import build
from analytics.warehouse.models import check_model
from rules.days import DAY, stamp
from rules.engagement.account_state import Profile
from rules.engagement.ledger import Draft, EntryKind
from rules.lake.entities import EVENTS, Entity
from tests.sql.conftest import Lake
from tests.sql.test_achievements_twin import FAMILY, KNOWN, in_sql, live
from tests.sql.test_streak_nights import removed, some_of, told
from tests.support.account_world import grant, revoke
from tests.support.achievement_story import AchievementStory
from tests.support.effort import effort
from tests.support.goal_story import DAYS
from tests.support.point_story import Json, WholeWorld

MONTHS = "facts.user_history_months"
NAMES = ("u0", "u1", "u2", "u3")
POINTS = range(50, 1500, 150)
TABLES = {name for name in FAMILY if KNOWN[name].materialized != "view"}


@dataclass
class Nights(AchievementStory):
    """What happens from night to night: events of any date come, and are reversed or judged anew."""

    told: set[str] = field(default_factory=set)
    number: int = 0

    def some_book(self) -> Json:
        """Some achievements are in few versions, so they are declared late. Sums of points may rise and fall past others."""
        made = super().some_book()
        some = {name: each for name, each in made["achievements"].items() if self.chance.random() < 0.4}
        made["achievements"] = some | {
            f"points_{sum_}": {"any": [{"points_earned": sum_}], "history": True} for sum_ in POINTS
        }
        return made

    def some_date(self) -> date:
        return self.base.date() + timedelta(days=self.chance.randrange(DAYS))

    def day(self) -> None:
        self.now += timedelta(days=self.chance.randrange(1, 15))
        for world in self.worlds.values():
            world.now = self.now
        for user in self.chance.sample(NAMES, self.chance.randrange(len(NAMES))):
            world = self.worlds.setdefault(user, WholeWorld(Profile(user), now=self.now))
            self.events_of(world, self.chance.choice((1, 5, 40)))
            self.corrections_of(world)
            self.cover_of(world)
        if self.chance.random() < 0.3:
            self.rewrite(reversals=self.chance.randrange(4), versions=self.chance.randrange(3))

    def events_of(self, world: WholeWorld, count: int) -> None:
        self.number += count
        numbers = range(self.number - count, self.number)
        world.apply(list(filter(None, (self.some_event(world.profile.user_id, each) for each in numbers))))

    def corrections_of(self, world: WholeWorld) -> None:
        """Corrections of any date: more than its events have earned, or of a date without events."""
        for _ in range(self.chance.randrange(4)):
            points, day = self.chance.randrange(-300, 300), self.some_date().isoformat()
            world.apply(commands=[Draft(EntryKind.RERATE, points, event_type="A", activity_date=day)])

    def cover_of(self, world: WholeWorld) -> None:
        days = sorted((self.some_date(), self.some_date()))
        world.apply(commands=[grant(days[0])])
        if self.chance.random() < 0.2:
            world.apply(commands=[revoke(days[1])])
        if self.chance.random() < 0.3:
            profile, pause = world.profile, (days[0], days[0] + timedelta(days=9))
            cover = replace(profile.cover, pauses=(*profile.cover.pauses, pause))
            put = replace(profile, cover=cover, version=profile.version + 1, updated_at=stamp(world.now))
            world.put(put)

    def rows(self) -> Mapping[tuple[str, Entity], list[Item]]:
        """What no night has told yet. Achievements do not read the events."""
        found = super().rows()
        new = {
            key: [each for each in items if repr(each) not in self.told]
            for key, items in found.items()
            if key[1] is not EVENTS
        }
        self.told |= {repr(each) for items in new.values() for each in items}
        return {key: items for key, items in new.items() if items}


def nights(lake: Lake, place: int, seed: int, count: int) -> None:
    """Each night is held against the rule; the last one also against what is built at once."""
    story, warehouse = Nights(seed), lake.warehouses[place]
    for number in range(count):
        story.day()
        gone = story.chance.choice(NAMES) if story.chance.random() < 0.2 else None
        lake.load(f"n{number}", story.into(lake.objects))
        with warehouse.kept_open():
            if gone:
                story.worlds.pop(gone, None)
                removed(warehouse, gone)
            if story.chance.random() < 0.3:
                build(warehouse, only=some_of(FAMILY, story.chance))
                continue
            build(warehouse, only=FAMILY)
            assert in_sql(warehouse) == live(story), number
    with warehouse.kept_open():
        build(warehouse, only=FAMILY)
        assert check_model(warehouse, KNOWN[MONTHS]) == []
        by_night = {name: sorted(map(repr, told(warehouse, name))) for name in TABLES}
        build(warehouse, only=TABLES, full=True)
        assert by_night == {name: sorted(map(repr, told(warehouse, name))) for name in TABLES}
        assert len(live(story)) > len(NAMES)


@pytest.mark.parametrize("seed", range(effort(1, soak=60)))
def test_on_duckdb(lake: Lake, seed: int) -> None:
    nights(lake, 0, seed, 12)


@pytest.mark.parametrize("seed", range(effort(1, soak=10)))
def test_on_postgresql(lake: Lake, seed: int) -> None:
    nights(lake, 1, 100 + seed, 4)


def earned(points: int, at: datetime) -> Draft:
    day, event_id = f"{at:%Y-%m-%d}", f"{stamp(at)}#{points}"
    return Draft(
        EntryKind.EARN, points, event_id=event_id, event_type="A", activity_date=day, rules_version=1
    )


def test_a_sum_that_has_fallen_by_the_end_of_its_month(lake: Lake) -> None:
    story = Nights(0)
    world = story.worlds["u0"] = WholeWorld(Profile("u0"), now=story.now)
    first = datetime(2027, 1, 4, 12, tzinfo=UTC)
    for at, points, change in ((first, 60, 0), (first + 2 * DAY, 10, -40), (first + 40 * DAY, 270, 0)):
        corrected = Draft(EntryKind.RERATE, change, event_type="A", activity_date=f"{at:%Y-%m-%d}")
        world.apply(commands=[earned(points, at), corrected])
    alone = f"{first + DAY:%Y-%m-%d}"  # no event counts for it, so its correction counts nowhere
    world.apply(commands=[Draft(EntryKind.RERATE, 900, event_type="A", activity_date=alone)])
    lake.load("one", story.into(lake.objects))
    assert ("u0", "points_50", f"{stamp(first)}#60") in live(story)
    for warehouse in lake.warehouses:
        build(warehouse, FAMILY)
        assert in_sql(warehouse) == live(story)
