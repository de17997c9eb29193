"""The streak rule in SQL (marts.streaks_recomputed) against the one in Python, batches of users at a time."""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from analytics.warehouse.ddl import SCHEMAS, declared_tables
from analytics.warehouse.duckdb_warehouse import sql_for
from analytics.warehouse.models import ancestors, models
from rules.book.book import Book, Books, Version
from rules.book.daily import NO_REST, DailyRules, DailyTerms, Weekday, weekday_names
from rules.days import EPOCH, skipped_dates
from rules.engagement.rest_days import NO_TERMS, Choice, RestDays, choice_text
from rules.engagement.streak import Checkpoint, Cover, Streak, fold
from tests.support.examples import examples

BASES = (date(2026, 3, 1), date(2011, 12, 20), date(1995, 1, 5))
OPENINGS = ((0, 0, 0), (1, 1, 1), (3, 3, 3), (2, 30, 90))
ZONES = ("Pacific/Apia", "Pacific/Kiritimati", "UTC")
# The columns of the lake's tables that decide anything here; the others are NULL.
COLUMNS = {
    "daily_activity": ("user_id", "activity_date", "events_count"),
    "ledger": ("account_id", "created_at", "kind", "points", "freeze", "freeze_date", "setting", "set_to"),
    "streaks": ("user_id", "version", "updated_at", "skipped_dates", "opening"),
    "rules": (
        *(
            "version",
            "item",
            "kind",
            "effective_at",
            "published_at",
            "rest_days",
            "rest_days_chosen",
            "day_starts_at",
        ),
    ),
}
MODEL = "marts.streaks_recomputed"
Select = Callable[[Mapping[str, list[tuple[Any, ...]]]], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class User:
    """What the lake holds of a user. skipped: by a zone, or by an amnesty. opening: of another system."""

    days: tuple[date, ...]
    freezes: tuple[tuple[date, int], ...]
    pauses: tuple[tuple[date, date], ...]
    skipped: frozenset[date]
    points: tuple[int, ...]
    opening: Checkpoint | None = None
    chosen: tuple[Choice, ...] = ()
    terms: DailyTerms = NO_TERMS  # of the books, the same for all users

    @property
    def cover(self) -> Cover:
        rest = RestDays(self.terms, self.chosen)
        return Cover(self.freezes, self.pauses, self.skipped, opening=self.opening, rest=rest)

    def row(self, name: str) -> tuple[Any, ...] | None:
        """What the query must answer; None for a user that is in no table that it reads users from."""
        streak = fold(self.days, self.cover)
        if streak is None and not (self.freezes or self.pauses or self.points or self.chosen):
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


def versions_of(seed: int) -> list[Version]:
    """Make up versions of the book: with rest days, with such that users choose, with none; some of the past; with starts of the day."""
    chance, starts = random.Random(f"books {seed}"), random.Random(f"starts {seed}")
    versions = [version(1, EPOCH, EPOCH, NO_REST)]
    for number in range(2, 2 + chance.choice((0, 0, 1, 2, 4))):
        base = datetime.combine(chance.choice(BASES), datetime.min.time(), UTC)
        effective = base + timedelta(days=chance.randrange(-5, 40), hours=chance.choice((0, 0, 9)))
        published = effective + timedelta(days=chance.choice((0, 0, -3, 6)), minutes=chance.choice((0, 1)))
        weekdays = frozenset(chance.sample(list(Weekday), chance.choice((1, 2, 2, 6))))
        rules = (DailyRules(weekdays), DailyRules(chosen_max=chance.choice((1, 2, 3))), NO_REST)
        start = time(starts.choice((0, 0, 3, 5)), starts.choice((0, 30)))
        versions.append(
            version(number, effective, published, replace(chance.choice(rules), day_starts_at=start))
        )
    return versions


def version(number: int, effective: datetime, published: datetime, rules: DailyRules) -> Version:
    return Version(number, effective, lambda: Book({}, daily=rules), published)


def choices_of(chance: random.Random, base: date) -> tuple[Choice, ...]:
    """Make up a user's choices of rest days."""
    firsts = sorted(
        {base + timedelta(days=chance.randrange(-60, 40)) for _ in range(chance.choice((0, 1, 1, 3)))}
    )
    return tuple(
        (first, tuple(sorted(chance.sample(list(Weekday), chance.randrange(4))))) for first in firsts
    )


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
        skipped_dates(chance.choice(ZONES)) | {near() for _ in range(chance.choice((0, 0, 0, 2)))},
        tuple(chance.randrange(50) for _ in range(chance.randrange(4))),
        Checkpoint(near(), *chance.choice(OPENINGS), 0) if chance.random() < 0.3 else None,
        choices_of(chance, base),
    )


def rules_rows(versions: Sequence[Version]) -> Iterator[tuple[Any, ...]]:
    """Yield the lake's rows of versions, as far as they matter here."""
    for each in versions:
        at = (each.effective_at, each.published_at)
        yield (each.number, "event_type/READ", "event_type", *at, None, None, None)
        if each.daily != NO_REST:
            weekdays = ",".join(weekday_names(each.daily.rest_days)) or None
            start = each.daily.day_starts_at.isoformat("minutes")
            yield (each.number, "daily", "daily", *at, weekdays, each.daily.chosen_max or None, start)


def rows(crowd: Mapping[str, User]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the lake's rows of some users, by table."""
    found: dict[str, list[tuple[Any, ...]]] = {
        "daily_activity": [],
        "ledger": [],
        "streaks": [],
    }
    for name, user in crowd.items():
        found["daily_activity"] += [(name, day, 1) for day in user.days]
        if user.days:  # was active until its events were reversed
            found["daily_activity"].append((name, min(user.days) - timedelta(days=1), 0))
        found["ledger"] += [
            (name, BASES[0], "EARN", points, None, None, None, None) for points in user.points
        ]
        for day, change in user.freezes:
            note = "freeze_granted" if change > 0 else "freeze_revoked"
            found["ledger"].append(
                (name, day, "REDEEM" if change > 0 else "REVERSE", 0, note, day, None, None)
            )
        for first, last in user.pauses:
            set_to = ("pause", f"{first}/{last}")
            found["ledger"].append((name, BASES[0], "SETTING", 0, None, None, *set_to))
        for choice in user.chosen:
            set_to = ("rest_days", choice_text(*choice))
            found["ledger"].append((name, BASES[0], "SETTING", 0, None, None, *set_to))
        found["streaks"] += profiles_of(name, user)
    return found


def profiles_of(name: str, user: User) -> list[tuple[Any, ...]]:
    """Return two versions of a profile. The older one has a neutral date that was revoked."""
    skipped = ",".join(map(str, sorted(user.skipped))) or None
    opening = user.opening.text if user.opening else None
    older_opening = None if int(name[1:]) % 2 else "1999-12-31 9 9 9 0"
    return [
        (name, 9, BASES[1], "2026-03-09", older_opening),
        (name, 10, BASES[0], skipped, opening),
    ]


def views() -> Iterator[str]:
    """Yield the statements that make the tables of the lake, and the model and all that it reads as views."""
    known = models()
    wanted = {MODEL, *(each.name for each in ancestors(known[MODEL], known))}
    for schema in SCHEMAS:
        yield f"CREATE SCHEMA {schema}"
    for name in COLUMNS:
        listed = ", ".join(f'"{each.name}" {each.type}' for each in declared_tables()[name].columns)
        yield f"CREATE TABLE lake.{name} ({listed})"
    for name in known:
        if name in wanted:
            yield f"CREATE VIEW {name} AS {known[name].sql}"


def named(table: str) -> str:
    return ", ".join(f'"{each}"' for each in COLUMNS[table])


@pytest.fixture(scope="module")
def on_duckdb() -> Select:
    db = duckdb.connect()
    for statement in views():
        db.execute(sql_for(db, statement) or "")

    def select(tables: Mapping[str, list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
        for name, values in tables.items():
            db.execute(f"DELETE FROM lake.{name}")
            if values:
                texts = json.dumps([[each if each is None else str(each) for each in row] for row in values])
                listed = ", ".join(f"row[{place}]" for place in range(1, len(values[0]) + 1))
                unnested = "SELECT unnest(from_json(?, '[[\"VARCHAR\"]]')) AS row"
                into = f"lake.{name} ({named(name)})"
                db.execute(f"INSERT INTO {into} SELECT {listed} FROM ({unnested})", [texts])
        return db.execute(f"SELECT * FROM {MODEL}").fetchall()

    return select


def check(select: Select, crowd: list[User], versions: Sequence[Version] = ()) -> None:
    terms = Books(versions).daily_terms if versions else NO_TERMS
    named = {f"u{place}": replace(user, terms=terms) for place, user in enumerate(crowd)}
    wanted = {name: row for name, user in named.items() if (row := user.row(name))}
    found = {row[0]: row for row in select(rows(named) | {"rules": list(rules_rows(versions))})}
    assert found.keys() == wanted.keys()
    for name, row in wanted.items():
        assert found[name] == row, named[name]


QUIET = settings(
    database=None,
    derandomize=True,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


@settings(QUIET, max_examples=examples(12))
@given(seed=st.integers(0, 2**32))
def test_the_twin_agrees_on_duckdb(on_duckdb: Select, seed: int) -> None:
    check(on_duckdb, crowd_of(seed, 150), versions_of(seed))
