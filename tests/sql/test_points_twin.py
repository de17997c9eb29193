"""Points under a book of twelve versions and more: live and in SQL they are the same."""

from dataclasses import replace
from datetime import date, datetime
from itertools import permutations
from typing import Any

import pytest

from adapters.platform.objects import Objects
from analytics.recompute.lake_books import lake_books
from analytics.recompute.point_weeks import differing_weeks
from analytics.warehouse.build import build
from analytics.warehouse.models import check_model, models
from analytics.warehouse.warehouse import Warehouse
from local.rules_command import recompute
from rules.book.book import Terms, Version, terms_of
from rules.days import stamp
from rules.engagement.events import RETENTION
from rules.engagement.points import weeks_by_book
from tests.sql.conftest import Lake, Laptop, family
from tests.support.effort import effort
from tests.support.point_story import ALL_KINDS, VERSIONS_MIN, Json, PointStory, as_they_were_and_rewritten

MART, WEEKS = "marts.points_recomputed", "facts.user_point_weeks"
ASKED = (MART, "dimensions.event_types")
SUMS = ("points_by_book", "points_by_events", "points_in_ledger")


def built(lake: Lake, story: PointStory) -> None:
    lake.load("one", story.into(lake.objects))
    for warehouse in lake.warehouses:
        build(warehouse, family(*ASKED))


def in_sql(warehouse: Warehouse) -> list[dict[str, Any]]:
    return warehouse.rows(f"SELECT * FROM {WEEKS} ORDER BY user_id, week_start")


def live(story: PointStory) -> dict[tuple[str, date], int]:
    """What the ledgers of all users have earned, by the Monday of the date."""
    return {
        (name, monday): week.earned
        for name, world in story.worlds.items()
        for monday, week in weeks_by_book((each.draft for each in world.entries), story.books).items()
    }


def test_live_and_sql_agree_of_a_history_that_was_rewritten(laptop: Laptop) -> None:
    """Those that were not are told night by night below. Both engines: test_the_lake_has_the_books_that_judge."""
    story = PointStory(1)
    story.live(2, 40)
    story.rewrite()
    laptop.load("one", story.into(laptop.objects))
    build(laptop.warehouse, family(*ASKED))
    agree(story, laptop.objects, laptop.warehouse)


@pytest.mark.parametrize(("seed", "is_rewritten"), as_they_were_and_rewritten(effort(1, soak=60)))
def test_live_and_sql_agree(lake: Lake, seed: int, is_rewritten: bool) -> None:
    story = PointStory(seed)
    story.live(2, 40)
    if is_rewritten:
        story.rewrite()
    built(lake, story)
    agree(story, lake.objects, *lake.warehouses)


def agree(story: PointStory, objects: Objects, *warehouses: Warehouse) -> None:
    for warehouse in warehouses:
        weeks = in_sql(warehouse)
        for name in SUMS:
            assert {(each["user_id"], each["week_start"]): each[name] for each in weeks} == live(story)
        assert not any(each["unmatched_entries"] for each in weeks)
        assert check_model(warehouse, models()[MART]) == []
        assert check_model(warehouse, models()[WEEKS]) == []
    assert differing_weeks(objects) == (len(live(story)), [])
    for world in story.worlds.values():
        judged = weeks_by_book((each.draft for each in world.entries), lake_books(objects))
        assert [each for each in judged.values() if each.earned != each.by_book] == []
    judges = {each.rules_version for some in story.users.values() for each in some}
    assert len(story.books.versions) > VERSIONS_MIN
    assert len(judges) >= VERSIONS_MIN // 2, "many versions have judged"


def test_an_event_that_came_again_under_an_expired_key_has_earned_nothing(lake: Lake) -> None:
    """Its entry is of the one that came first (rule 4), whatever is stored since."""
    story = PointStory(1)
    story.live(2, 40)
    after = stamp(story.now + RETENTION)
    for some in story.users.values():
        again = [
            replace(each, event_type="A", points_awarded=each.points_awarded + 7, cap=None, created_at=after)
            for each in some
        ]
        some[:5] = again[:5]
    built(lake, story)
    for warehouse in lake.warehouses:
        weeks = in_sql(warehouse)
        for name in SUMS:
            assert {(each["user_id"], each["week_start"]): each[name] for each in weeks} == live(story), name
        assert sum(each["unmatched_entries"] for each in weeks) == 5 * len(story.users)
        assert check_model(warehouse, models()[MART]) == []


def wrong_version(story: PointStory) -> None:
    """Judge by the version in force, and take the price of the one before it."""

    def judge(version: Version, kind: str, at: datetime, properties: Json) -> Terms:
        terms, other = (
            terms_of(version, kind, at, properties),
            story.books.numbered(max(2, version.number - 1)),
        )
        if kind not in other.book.event_types:
            return terms
        return replace(terms, points=terms_of(other, kind, at, properties).points)

    story.judge = judge


def no_boost(story: PointStory) -> None:
    """Leave boosts out."""

    def judge(version: Version, kind: str, at: datetime, properties: Json) -> Terms:
        plain = Version(version.number, version.effective_at, lambda: replace(version.book, boosts=()))
        return terms_of(plain, kind, at, properties)

    story.judge = judge


def other_caps(story: PointStory) -> None:
    """Take the cap of the newest version."""

    def judge(version: Version, kind: str, at: datetime, properties: Json) -> Terms:
        newest = story.books.newest
        cap = newest.book.cap(kind, at) if kind in newest.book.event_types else None
        return replace(terms_of(version, kind, at, properties), cap=cap)

    story.judge = judge


@pytest.mark.parametrize(
    "plant",
    [
        wrong_version,
        other_caps,
    ],
)
def test_a_planted_fault_is_found_by_each_of_them(laptop: Laptop, plant: Any) -> None:
    story = PointStory(4)
    plant(story)
    story.live(2, 40)
    objects, warehouse = laptop.objects, laptop.warehouse
    laptop.load("one", story.into(objects))
    build(warehouse, family(MART))
    number, found = differing_weeks(objects)
    assert found
    weeks = in_sql(warehouse)
    assert number == len(weeks)
    assert found == [
        {name: each[name] for name in ("user_id", "week_start", *SUMS)}
        for each in weeks
        if len({each[name] for name in SUMS}) > 1
    ]
    failed = [each.test for each in check_model(warehouse, models()[MART])]
    assert failed == ["expression differing_weeks = 0"]
    with pytest.raises(RuntimeError, match=r"^u\d, week of .*: by the book") as told:
        recompute(objects)
    assert len(str(told.value).splitlines()) == len(found)
    by_journal = {
        (name, monday)
        for name, world in story.worlds.items()
        for monday, week in weeks_by_book((e.draft for e in world.entries), lake_books(objects)).items()
        if week.earned != week.by_book
    }
    assert by_journal == {(each["user_id"], each["week_start"]) for each in found}


def test_the_lake_has_the_books_that_judge(lake: Lake) -> None:
    story = PointStory(2)
    story.live(1, 40)
    built(lake, story)
    agree(story, lake.objects, *lake.warehouses)
    told, known = lake_books(lake.objects), story.books
    assert [(each.number, each.effective_at) for each in told.versions] == [
        (each.number, each.effective_at) for each in known.versions
    ]
    instants = sorted({each.effective_at for each in known.versions})
    for warehouse in lake.warehouses:
        rows = warehouse.rows("SELECT * FROM dimensions.event_type_versions")
        for at in instants:
            version = known.at(at)
            moment = at.replace(tzinfo=None)
            in_force = {
                each["event_type"]: (each["version"], each["points"], each["keeps_streak"])
                for each in rows
                if each["effective_from"] <= moment
                and (each["effective_to"] is None or moment < each["effective_to"])
            }
            assert in_force == {
                kind: (version.number, rule.points, rule.keeps_streak)
                for kind, rule in version.book.event_types.items()
            }
        newest = max(
            datetime.fromisoformat(each.occurred_at) for some in story.users.values() for each in some
        )
        now = {
            each["event_type"]: each["points"]
            for each in warehouse.rows("SELECT * FROM dimensions.event_types WHERE is_current")
        }
        assert now == {kind: rule.points for kind, rule in known.at(newest).book.event_types.items()}
        left = warehouse.rows("SELECT event_type FROM dimensions.event_types WHERE NOT is_current")
        assert {each["event_type"] for each in left}.isdisjoint(now)
        assert {*now, *(each["event_type"] for each in left)} >= {*ALL_KINDS, "CHECK_IN"}


@pytest.mark.parametrize("order", list(permutations(("events", "ledger", "rules")))[:: effort(6, soak=1)])
def test_night_by_night_is_at_once(laptop: Laptop, order: tuple[str, ...]) -> None:
    """Entries come before their events, and before the versions that judge them, or after; some events last."""
    story, objects = PointStory(len(order[0])), laptop.objects
    story.live(4, 40)
    warehouse = laptop.warehouse
    places, names = story.into(objects), ", ".join(models()[WEEKS].columns)
    last = story.chance.sample([each for each in places if each.entity == "events"], 5)
    nights = [[each for each in places if each.entity == name and each not in last] for name in order]
    anew = f"SELECT {names} FROM ({models()[WEEKS].sql}) AS anew ORDER BY user_id, week_start"
    for number, some in enumerate([*nights, last]):
        laptop.load(f"n{number}", some)
        build(warehouse, family(MART))
        assert in_sql(warehouse) == warehouse.rows(anew)
        assert check_model(warehouse, models()[MART]) == [], "what has not come yet makes no difference"
    weeks = in_sql(warehouse)
    for name in SUMS:
        assert {(each["user_id"], each["week_start"]): each[name] for each in weeks} == live(story)
    assert not any(each["unmatched_entries"] for each in weeks)
    assert recompute(objects).endswith("none of which differs")


def test_versions_that_come_later_than_entries_judge_them(laptop: Laptop) -> None:
    """Planted: no boosts. Without the versions nothing can tell."""
    story, objects = PointStory(4), laptop.objects
    no_boost(story)
    story.live(2, 40)
    warehouse = laptop.warehouse
    places = story.into(objects)
    rules = [each for each in places if each.entity == "rules"]
    for night, some in enumerate(([each for each in places if each not in rules], rules)):
        laptop.load(f"n{night}", some)
        build(warehouse, family(MART))
        assert bool(check_model(warehouse, models()[MART])) == (some is rules)
