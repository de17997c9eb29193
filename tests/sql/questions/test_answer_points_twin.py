"""What answers earn, in SQL and by the rule: each date under the caps that its answers name."""

import random
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import duckdb

from analytics.warehouse.ddl import SQL
from analytics.warehouse.duckdb_warehouse import sql_for
from rules.questions.answer_stats import fold_responses
from tests.support.questions.answers import answer

Rows = list[dict[str, Any]]
MART = SQL / "models/questions/marts/answers_per_person.sql"


def points_of(responses: Rows, newest: dict[str, str]) -> dict[str, int]:
    """Rule 5, by the fold that stats have: each date under the caps that its answers name."""
    people: dict[str, list[Any]] = {}
    for number, each in enumerate(responses):
        kept = {name: each[name] for name in ("points", "activity_date", "day_points_max")}
        people.setdefault(newest[each["person"]], []).append(replace(answer(number), **kept))
    folded = {person: fold_responses(history).total_points for person, history in people.items()}
    free = {person: sum(each.points for each in history) for person, history in people.items()}
    assert any(folded[person] < free[person] for person in folded), "some cap binds"
    return folded


def test_points_are_under_the_caps_that_answers_name() -> None:
    """Hundreds of dates: most with one cap, some with several."""
    chance = random.Random(3)
    days = {
        person: [chance.sample((20, 35, 150), 1 + number % 3) for number in range(90)] for person in "abc"
    }
    responses = [
        {
            "person": person,
            "activity_date": date(2026, 1, 1) + timedelta(days=number),
            "points": chance.randrange(16),
            "day_points_max": chance.choice(caps),
        }
        for person, dates in days.items()
        for number, caps in enumerate(dates)
        for _ in range(chance.randrange(1, 12))
    ]
    db = duckdb.connect()
    db.execute("CREATE SCHEMA facts; CREATE SCHEMA dimensions; CREATE SCHEMA staging; CREATE SCHEMA lake")
    db.execute(
        """CREATE TABLE lake.responses (
          person VARCHAR, activity_date DATE, points BIGINT, day_points_max BIGINT
        );
        CREATE VIEW dimensions.answerers AS SELECT DISTINCT person, person AS root_person FROM lake.responses;
        CREATE TABLE staging.answer_stats (
          person VARCHAR, total_answers BIGINT, total_points BIGINT, longest_streak_days BIGINT
        )"""
    )
    values = "$person, $activity_date, $points, $day_points_max"
    db.executemany(f"INSERT INTO lake.responses VALUES ({values})", responses)
    db.execute(
        """CREATE VIEW facts.responses AS SELECT person, activity_date, points, day_points_max,
          'c' AS category, 'a' AS agent_id, TRUE AS is_signed_in, TIMESTAMP '2026-01-01' AS created_at
        FROM lake.responses"""
    )
    mart = sql_for(db, MART.read_text(encoding="utf-8"))
    found = dict(db.execute(f"SELECT person, points FROM ({mart})").fetchall())
    assert found == points_of(responses, {person: person for person in days})
