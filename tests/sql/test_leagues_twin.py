"""Results of leagues: live and in SQL each user has the same division, cohort, rank, points and zone of each week."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from adapters.platform.publishing import DeliveryStream
from analytics.curation.curate import curate
from analytics.lake.layout import Partition
from analytics.warehouse.build import build
from analytics.warehouse.models import check_model, models
from local.operate.html_report import DIVISIONS
from processors.publisher import Publisher
from rules.days import stamp
from rules.engagement.periods import Period
from rules.lake.entities import DAILY_ACTIVITY, LEAGUE_RESULTS
from tests.sql.conftest import Lake, family
from tests.support.effort import effort
from tests.support.engine import Engine, running
from tests.support.firehose import Firehose
from tests.support.league_town import CLOSED_W48, FOREVER, IN_W48, W48, W49, W50, LeagueTown, Streamed, player
from tests.support.point_story import partition_of
from tests.support.raw_lake import ARRIVED

MART = "marts.league_results"
WEEK = timedelta(days=7)
Results = dict[tuple[str, str], tuple[Any, ...]]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running() as started:
        yield started


@dataclass
class LeagueStory:
    """Three weeks of leagues: some are absent, leave or are under review; closings come early, late and twice."""

    town: LeagueTown
    chance: random.Random
    stream: Streamed = field(init=False)
    results: Results = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stream = self.town.streamed()
        self.users = [f"u{number:02}" for number in range(35)]

    def play(self, week: Period, now: datetime) -> None:
        """The users who play on close what nobody has closed."""
        active = [user for user in self.users if self.chance.random() < 0.8]
        scores = {user: self.chance.randrange(1, 60) for user in active}
        self.town.play(week, scores, now, self.town.process(self.stream))
        for user in self.chance.sample(active, 3):
            looked_at = {"tz_review": True, "review_since": stamp(now)} if self.chance.random() < 0.5 else {}
            self.town.put([player(user, self.town.scores[user], **looked_at)])
            if not looked_at:
                self.town.process(self.stream).take_part(user, now, takes_part=False)

    def close(self, week: Period, at: datetime) -> None:
        if self.chance.random() < 0.7:
            for late in range(self.chance.randrange(1, 3)):
                self.town.process(self.stream).close_due(at + timedelta(hours=late), FOREVER)
        elif week != W50:
            return  # who plays on closes the own cohort; the next week's run closes the others
        else:
            self.town.process(self.stream).close_due(at + WEEK, FOREVER)

    def look(self, at: datetime) -> None:
        """Keep what the users see of their newest league."""
        for user in self.users:
            outcome = self.town.process().state(user, at).membership.outcome
            if outcome:
                known = outcome.division, outcome.cohort, outcome.members
                self.results[outcome.week, user] = *known, outcome.rank, outcome.points, outcome.zone.value

    def into(self, lake: Lake) -> list[Partition]:
        """Publish what the stream has, and curate it."""
        rows, days = Firehose(), Firehose()
        table = self.town.table("DailyActivity")
        streams = [(LEAGUE_RESULTS, DeliveryStream(rows, "r")), (DAILY_ACTIVITY, DeliveryStream(days, "d"))]
        arn = f"arn:aws:dynamodb:eu-west-1:1:table/{table}/stream/s"
        records: list[Any] = [{**each, "eventSourceARN": arn} for each in self.stream.records]
        for each in records:
            each["dynamodb"]["ApproximateCreationDateTime"] = CLOSED_W48.timestamp()
        outcome = Publisher({table: streams}).publish(records)
        assert (outcome.poison, outcome.again, days.taken) == ([], [], [])
        tasks = set()
        for number, data in enumerate(rows.taken):
            dt, hour = (part.decode() for part in partition_of(data))
            key = f"raw/{LEAGUE_RESULTS.name}/arrived={ARRIVED}/dt={dt}/hour={hour}/{number}"
            lake.objects.put(key, data)
            tasks.add(Partition(LEAGUE_RESULTS.name, dt, hour))
        for task in tasks:
            curate(lake.objects, task)
        return sorted(tasks, key=str)


@pytest.mark.parametrize("seed", range(effort(2, soak=30)))
def test_results_of_leagues_are_the_same_live_and_in_sql(lake: Lake, engine: Engine, seed: int) -> None:
    story = LeagueStory(LeagueTown(engine.client("dynamodb")), random.Random(seed))
    for number, week in enumerate((W48, W49, W50)):
        at = CLOSED_W48 + number * WEEK
        story.play(week, IN_W48 + number * WEEK)
        story.look(at - timedelta(hours=1))
        story.close(week, at)
        story.look(at + timedelta(minutes=1))
    story.look(CLOSED_W48 + 4 * WEEK)
    lake.load("one", story.into(lake))
    assert len(story.results) > 40
    assert {each[5] for each in story.results.values()} == {"up", "stay", "down"}
    for warehouse in lake.warehouses:
        build(warehouse, family(MART))
        told: Results = {}
        before: dict[str, str] = {}
        for row in warehouse.rows(f"SELECT * FROM {MART} ORDER BY first_date"):
            user = row["user_id"]
            year, number, _ = row["first_date"].isocalendar()
            names = ("division", "cohort", "members", "league_rank", "points", "zone")
            told[f"{year}-W{number}", user] = tuple(row[name] for name in names)
            assert row["division_before"] == before.get(user)
            before[user] = row["division"]
        assert told == story.results
        assert check_model(warehouse, models()[MART]) == []
        newest = Counter(each[0] for (week, _), each in story.results.items() if week == "2026-W50")
        assert {row["division"]: row["people"] for row in warehouse.rows(DIVISIONS)} == newest
