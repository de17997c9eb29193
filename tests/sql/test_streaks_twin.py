"""The streak rule in SQL (marts.streaks_recomputed) against the one in Python, batches of users at a time."""

# Long: one comparison, with what it needs on two engines.

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import duckdb
import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from analytics.warehouse.models import models
from analytics.warehouse.translate import DUCKDB, POSTGRES, translate
from rules.days import is_skipped, skipped_dates
from rules.engagement.allowances import YEAR
from rules.engagement.streak.checkpoints import Checkpoint
from rules.engagement.streaks import Cover, Streak, fold
from tests.sql.conftest import Databases
from tests.support.examples import examples

BASES = (date(2026, 3, 1), date(2011, 12, 20), date(1995, 1, 5))
OPENINGS = ((0, 0, 0), (1, 1, 1), (3, 3, 3), (2, 30, 90))
ZONES = ("Pacific/Apia", "Pacific/Kiritimati", "UTC")
TABLES = """
CREATE TABLE lake.daily_activity (user_id VARCHAR(64), activity_date DATE, events_count BIGINT);
CREATE TABLE lake.ledger (account_id VARCHAR(64), kind VARCHAR(16), points BIGINT, "freeze" VARCHAR(32), freeze_date DATE);
CREATE TABLE lake.streaks (user_id VARCHAR(64), version BIGINT, pauses VARCHAR(4000), archived_until DATE, opening VARCHAR(64));
CREATE TABLE lake.events (user_id VARCHAR(64), zone VARCHAR(64), activity_date DATE)
"""
Select = Callable[[Mapping[str, list[tuple[Any, ...]]]], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class User:
    """What the lake holds of a user. zone: of the events of all dates. opening: of another system."""

    days: tuple[date, ...]
    freezes: tuple[tuple[date, int], ...]
    pauses: tuple[tuple[date, date], ...]
    zone: str
    points: tuple[int, ...]
    opening: Checkpoint | None = None

    @property
    def cover(self) -> Cover:
        skipped = skipped_dates(self.zone) if self.days else frozenset()
        return Cover(self.freezes, self.pauses, skipped, opening=self.opening)

    def row(self, name: str) -> tuple[Any, ...] | None:
        """What the query must answer; None for a user that is in no table that it reads users from."""
        streak = fold(self.days, self.cover)
        if streak is None and not self.freezes and not self.points:
            return None
        told = streak or Streak(date.min, 0, 0, 0)
        spent = ",".join(day.isoformat() for day in told.spent) or None
        total = sum(self.points)
        return (
            *(name, streak.last if streak else None, told.length, told.longest, told.active_days),
            *(spent, total, total),
        )


def crowd_of(seed: int, size: int) -> list[User]:
    """Make up users; drawing each date by hypothesis takes longer than everything else together."""
    chance = random.Random(seed)
    return [user_of(chance) for _ in range(size)]


def user_of(chance: random.Random) -> User:
    base = chance.choice(BASES)

    def near(days_max: int = 40) -> date:
        return base + timedelta(days=chance.randrange(days_max))

    days = {near() for _ in range(chance.randrange(16))}
    grants = [near() for _ in range(chance.choice((0, 0, 1, 2, 5)))]
    revoked = [day + timedelta(days=chance.randrange(16)) for day in grants if chance.random() < 0.3]
    firsts = [near() for _ in range(chance.choice((0, 0, 1, 3)))]
    return User(
        tuple(sorted(days)),
        tuple(sorted([(day, 1) for day in grants] + [(day, -1) for day in revoked])),
        tuple((first, first + timedelta(days=chance.randrange(10))) for first in firsts),
        chance.choice(ZONES),
        tuple(chance.randrange(50) for _ in range(chance.randrange(4))),
        Checkpoint(near(), *chance.choice(OPENINGS), 0) if chance.random() < 0.3 else None,
    )


def rows(crowd: Mapping[str, User]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the lake's rows of some users, by table."""
    found: dict[str, list[tuple[Any, ...]]] = {
        "daily_activity": [],
        "ledger": [],
        "streaks": [],
        "events": [],
    }
    for name, user in crowd.items():
        found["daily_activity"] += [(name, day, 1) for day in user.days]
        if user.days:  # was active until its events were reversed
            found["daily_activity"].append((name, min(user.days) - timedelta(days=1), 0))
        found["events"] += [(name, user.zone, day) for day in user.days]
        found["ledger"] += [(name, "EARN", points, None, None) for points in user.points]
        for day, change in user.freezes:
            note = "freeze_granted" if change > 0 else "freeze_revoked"
            found["ledger"].append((name, "REDEEM" if change > 0 else "REVERSE", 0, note, day))
        found["streaks"] += profiles_of(name, user.pauses, user.opening.text if user.opening else None)
    return found


def profiles_of(
    name: str, pauses: tuple[tuple[date, date], ...], opening: str | None = None
) -> list[tuple[Any, ...]]:
    """Return two versions of a profile: every other user's has put its oldest pauses away.

    The older version has a pause that nobody has taken.
    """

    def listed(some: Iterable[tuple[date, date]]) -> str:
        return ",".join(f"{first}/{last}" for first, last in some)

    oldest = min((last for _, last in pauses), default=None)
    if oldest is None or int(name[1:]) % 2:
        newest = (name, 10, listed(pauses) or None, None, opening)
        return [(name, 9, "2000-01-01/2030-01-01", None, None), newest]
    old = [each for each in pauses if each[1] <= oldest]
    later = [each for each in pauses if each[1] > oldest]
    return [
        (name, 9, f"{listed(old)},2000-01-01/2030-01-01", None, "1999-12-31 9 9 9 0"),
        (name, 10, listed(later) or None, oldest + YEAR, opening),
    ]


def query(dialect: str) -> str:
    """Return the model's query over the tables of the lake."""
    known = models()
    skipped, model = known["staging.skipped_dates"], known["marts.streaks_recomputed"]
    text = model.sql.replace("staging.skipped_dates", f"({skipped.sql.partition(chr(10))[2]})")
    translated = translate(text, dialect)
    assert translated
    return translated


@pytest.fixture(scope="module")
def on_duckdb() -> Select:
    db = duckdb.connect()
    db.execute("CREATE SCHEMA lake")
    db.execute(TABLES)
    text = query(DUCKDB)

    def select(tables: Mapping[str, list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
        for name, values in tables.items():
            db.execute(f"DELETE FROM lake.{name}")
            if values:
                texts = json.dumps([[each if each is None else str(each) for each in row] for row in values])
                listed = ", ".join(f"row[{place}]" for place in range(1, len(values[0]) + 1))
                unnested = "SELECT unnest(from_json(?, '[[\"VARCHAR\"]]')) AS row"
                db.execute(f"INSERT INTO lake.{name} SELECT {listed} FROM ({unnested})", [texts])
        return db.execute(text).fetchall()

    return select


@pytest.fixture(scope="module")
def on_postgres(databases: Databases) -> Iterator[Select]:
    text = query(POSTGRES)
    with psycopg.connect(databases.new(), autocommit=True) as connection:
        for statement in ("CREATE SCHEMA lake", *TABLES.split(";")):
            connection.execute(statement.encode())

        def select(tables: Mapping[str, list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
            for name, values in tables.items():
                connection.execute(f"TRUNCATE lake.{name}".encode())
                columns = ", ".join(["%s"] * len(values[0]))
                with connection.cursor() as cursor:
                    cursor.executemany(f"INSERT INTO lake.{name} VALUES ({columns})".encode(), values)
            return connection.execute(text.encode()).fetchall()

        yield select


def check(select: Select, crowd: list[User]) -> None:
    named = {f"u{place}": user for place, user in enumerate(crowd)}
    wanted = {name: row for name, user in named.items() if (row := user.row(name))}
    found = {row[0]: row for row in select(rows(named))}
    assert found.keys() == wanted.keys()
    for name, row in wanted.items():
        assert found[name] == row, named[name]


QUIET = settings(
    database=None,
    derandomize=True,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


@settings(QUIET, max_examples=examples(30))
@given(seed=st.integers(0, 2**32))
def test_the_twin_agrees_on_duckdb(on_duckdb: Select, seed: int) -> None:
    check(on_duckdb, crowd_of(seed, 150))


@settings(QUIET, max_examples=examples(4))
@given(seed=st.integers(0, 2**32))
def test_the_twin_agrees_on_postgresql(on_postgres: Select, seed: int) -> None:
    check(on_postgres, crowd_of(seed, 60))


def test_the_skipped_dates_are_those_of_the_tz_database(on_duckdb: Select) -> None:
    sql = models()["staging.skipped_dates"].sql
    translated = translate(sql, DUCKDB)
    assert translated
    assert set(duckdb.connect().execute(translated).fetchall()) == set(skipped_since_1970())


def skipped_since_1970() -> Iterator[tuple[str, date]]:
    """A zone that skips a date moves its clocks by about a day: look closer where a month has done so."""
    firsts = [datetime(1970 + month // 12, month % 12 + 1, 1, tzinfo=UTC) for month in range(-1, 12 * 80)]
    for name in available_timezones():
        zone = ZoneInfo(name)
        offsets = [zone.utcoffset(first) for first in firsts]
        for place, (before, after) in enumerate(pairwise(offsets)):
            if abs((after or timedelta()) - (before or timedelta())) > timedelta(hours=18):
                days = (firsts[place].date() + timedelta(days=day) for day in range(33))
                yield from {(name, day) for day in days if is_skipped(day, name)}
