"""What is built night by night is what is built at once, whatever came late, twice, or corrected."""

import json
import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects
from analytics.lake.layout import Partition
from analytics.warehouse.build import Builder, build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.load import Loader
from analytics.warehouse.models import check, check_model, models
from rules.lake.entities import ENTITIES, RULES, rows_of
from rules.lake.valid_row import read_row
from tests.sql.conftest import Laptop, family
from tests.support.examples import examples
from tests.support.lake_sample import Row, Sample, event, write
from tests.support.lead_histories import History
from tests.support.lead_histories import row as lead_event
from tests.support.published_books import documents, published

FIRST = datetime(2026, 1, 29, tzinfo=UTC)  # near the end of a month
USERS = ("u1", "u2", "o'brien")
PARENTS = ("dimensions.users", "dimensions.dates")  # which tests of facts look at
# (user, days after FIRST, points): an event and its day; the same user and day again is a correction. The dates
# are of 4 months, and some are more than 30 dates from all others.
Active = tuple[int, int, int]
DAYS = st.integers(0, 40) | st.integers(0, 100)
NIGHTS = st.lists(
    st.lists(st.tuples(st.integers(0, 2), DAYS, st.integers(0, 30)), max_size=5),
    min_size=1,
    max_size=4,
)


class Nights:
    """Writes nights of activity into a lake, and keeps what the ledger needs to be one."""

    def __init__(self, objects: FolderObjects) -> None:
        self.objects, self.sample, self.version, self.books = objects, Sample(), 0, 0
        self.seq: dict[str, int] = {}
        self.balance: dict[str, int] = {}
        self.history = History(5, leads=3, events=6, times=2)

    def write(self, night: list[Active]) -> list[Any]:
        for user, day, points in night:
            self.version += 1
            moment = FIRST + timedelta(days=day, hours=23)
            self._active(USERS[user], moment, points)
            self._profile(USERS[user], points, moment)
        self.history._event(self.history.random.choice(self.history.leads))
        for each in self.history.events:
            self.sample.put("lead_events", lead_event(each))
        return self.sample.write(self.objects)

    def _active(self, user: str, moment: datetime, points: int) -> None:
        number = (moment - FIRST).days
        kind = ("PURCHASE_COMPLETED", "CHECK_IN")[number % 2]
        # A correction may say another time (the row moves), source and date.
        more = {
            "event_id": f"{moment:%Y-%m-%d}",
            "version": f"{self.version:09}",
            "properties": f'{{"amount":"{points}.50"}}',
            "source": ("web", "mobile")[points % 2],
            "activity_date": (moment + timedelta(days=points % 3 - 1)).date(),
            "rules_version": 1 + points % 3,
        }
        moved = moment + timedelta(days=40 if points == 1 else 0)
        self.sample.put("events", event(user, moved, kind, number, points_awarded=points, **more))
        head = self._entry(user, points, event_id=f"{moment:%Y-%m-%d}", event_type=kind, moment=moment)
        self.sample.put(
            "daily_activity",
            {
                **dict.fromkeys(("points_by_type", "extra")),
                "user_id": user,
                "activity_date": moment.date(),
                "first_event_id": f"{moment:%Y-%m-%d}",
                "events_count": 1,
                "points_earned": points,
                "ledger_head": head,
                "created_at": head,
            },
        )

    def _profile(self, user: str, version: int, moment: datetime) -> None:
        """Versions come in any order, and one that comes again says another time."""
        names = [*(each.name for each in ENTITIES["streaks"].fields), "extra"]
        told = {"user_id": user, "version": version, "timezone": "UTC", "updated_at": moment}
        totals = {"total_bestie_points": self.version, "balance": self.version}
        streaks = {"current_streak": version, "longest_streak": version, "active_days": 1}
        self.sample.put("streaks", dict.fromkeys(names) | told | totals | streaks)

    def _entry(self, user: str, points: int, moment: datetime, **more: Any) -> datetime:
        """An entry, of a date near to its event's; the versions come later than entries that they judge."""
        if points % 7 == 0:
            self.publish_books()
        more |= {
            "activity_date": (moment + timedelta(days=points % 5 - 2)).date(),
            "rules_version": 1 + points % 3,
            "cap": f"{points}/{('day', 'week')[points % 2]}",
        }
        names = [each.name for each in ENTITIES["ledger"].fields]
        if user not in self.seq:
            self.seq[user] = self.balance[user] = 0
            self.sample.arrived[user] = FIRST
            opened = {"account_id": user, "created_at": datetime(1970, 1, 1, tzinfo=UTC), "kind": "OPEN"}
            self.sample.put("ledger", dict.fromkeys([*names, "extra"]) | opened | ZERO)
        self.seq[user] += 1
        self.balance[user] += points
        at = FIRST + timedelta(days=self.version % 9, minutes=self.version)
        while (user, at) in self.sample.rows["ledger"]:
            at += timedelta(minutes=1)
        kind = "EARN"
        if points % 4 == 1:
            kind, more = "REVERSE", {"reward_id": "mug", "brand": f"brand{points % 8}"}
        entry: Row = {"account_id": user, "created_at": at, "kind": kind, "points": points, **more}
        numbers = {"seq": self.seq[user], "balance": self.balance[user]}
        self.sample.put("ledger", dict.fromkeys([*names, "extra"]) | entry | numbers)
        return at

    def publish_books(self) -> None:
        """All versions so far, and one more."""
        self.books += 1
        for each in documents(published(*[BOOK] * min(2, self.books))):
            for row in rows_of(RULES, each, FIRST):
                read = read_row(json.dumps(row).encode(), RULES, row["dt"], row["hour"])
                self.sample.put("rules", read)


BOOK: Row = {
    "event_types": {
        "CHECK_IN": {"points": 3, "cap": {"events": 2, "per": "week"}},
        "PURCHASE_COMPLETED": {"points": 4, "cap": {"points": 5, "per": "day"}},
    }
}
ZERO = {"seq": 0, "points": 0, "balance": 0}


def tables(warehouse: DuckWarehouse) -> dict[str, list[str]]:
    made = (name for name, model in models().items() if model.materialized != "view")
    return {name: sorted(map(repr, warehouse.rows(f"SELECT * FROM {name}"))) for name in made}


@settings(max_examples=examples(6), deadline=None)
@given(NIGHTS, st.randoms())
def test_night_by_night_is_at_once(nights: list[list[Active]], chance: random.Random) -> None:
    """Some nights are loaded and not built, as when a model fails; some files are loaded again."""
    with TemporaryDirectory() as folder:
        objects = FolderObjects(Path(folder) / "lake")
        warehouse = DuckWarehouse(Path(folder) / "w.duckdb", str(Path(folder) / "lake"), objects)
        told = Nights(objects)
        places: list[Any] = []
        with warehouse.kept_open():
            prepare(warehouse)
            for night in nights:
                again = chance.sample(places, min(len(places), 3))
                new = told.write(night)
                places += new
                Loader(warehouse, objects, str(Path(folder) / "lake")).load("n", [*new, *again])
                wanted = [name for name in models() if chance.random() < 0.8]
                build(warehouse, only=closed(wanted))
            build(warehouse)
            by_night = tables(warehouse)
            assert [each for each in check(warehouse) if "unique" in each.test] == []
            build(warehouse, full=True)
            assert by_night == tables(warehouse)


def closed(wanted: list[str]) -> set[str]:
    """Leave out models of which an ancestor is left out: these would be skipped too."""
    done: set[str] = set()
    for name, model in models().items():
        if name in wanted and all(read in done for read in model.reads if read in models()):
            done.add(name)
    return done


def test_only_the_touched_dates_are_read_again(laptop: Laptop) -> None:
    """Planted: a row of an untouched date stays wrong, and one of a touched date, or month, is made anew."""
    warehouse = laptop.warehouse
    told = Nights(laptop.objects)
    laptop.load("one", told.write([(0, day, 5) for day in range(0, 40, 4)]))
    build(warehouse, family("facts.activity_totals", "marts.leaderboard_history"))
    warehouse.run(["UPDATE facts.activity_totals SET points_earned = -1"])
    warehouse.run(["UPDATE marts.leaderboard_history SET points = -1"])
    laptop.load("two", told.write([(1, 4, 7)]))
    builder = Builder.read(warehouse)
    model = models()["marts.leaderboard_history"]
    touched = builder.touched(model, builder.last_builds[model.name].loads)
    assert touched == [(date(2026, 2, 1), date(2026, 2, 2))]
    build(warehouse, family("facts.activity_totals", "marts.leaderboard_history"))
    wrong = warehouse.rows("SELECT activity_date AS d FROM facts.activity_totals WHERE points_earned = -1")
    assert len(wrong) == 9
    assert date(2026, 2, 2) not in {row["d"] for row in wrong}
    right = warehouse.rows("SELECT period_kind, period_start FROM marts.leaderboard_history WHERE points > 0")
    assert {tuple(row.values()) for row in right} >= {
        ("day", date(2026, 2, 2)),
        ("month", date(2026, 2, 1)),
    }
    assert warehouse.rows("SELECT 1 AS n FROM marts.leaderboard_history WHERE points = -1")


def test_a_late_first_day_moves_a_user_s_whole_history(laptop: Laptop) -> None:
    """u1 was active in March and May, and a day of January comes late: what nothing has touched is as it was."""
    warehouse = laptop.warehouse
    told = Nights(laptop.objects)
    cohorts = (
        "SELECT cohort_start AS c, period_start AS p, active_users AS n FROM facts.retention"
        " WHERE cohort_kind = 'month' ORDER BY 1, 2"
    )
    january, march, april, may = (date(2026, month, 1) for month in (1, 3, 4, 5))
    laptop.load("one", told.write([(0, 40, 5), (1, 40, 5), (1, 70, 5), (0, 95, 5)]))
    build(warehouse, family("facts.retention"))
    before = [(march, march, 2), (march, april, 1), (march, may, 1)]
    assert [tuple(row.values()) for row in warehouse.rows(cohorts)] == before
    warehouse.run(["UPDATE facts.retention SET active_users = -1 WHERE period_start = DATE '2026-04-01'"])
    laptop.load("two", told.write([(0, 1, 5)]))
    build(warehouse, family("facts.retention"))
    after = [(january, january, 1), (january, march, 1), (january, may, 1), (march, march, 1)]
    assert [tuple(row.values()) for row in warehouse.rows(cohorts)] == [*after, (march, april, -1)]


def test_a_key_that_is_there_twice_is_looked_for_among_touched_dates(laptop: Laptop) -> None:
    """Planted: a day twice, once among what came and once long before; the latter waits for all rows' turn."""
    warehouse = laptop.warehouse
    told = Nights(laptop.objects)
    model, name = models()["facts.daily_activity"], "unique user_id, activity_date"
    laptop.load("one", told.write([(0, 3, 5), (0, 9, 5)]))
    build(warehouse, family("facts.daily_activity", *PARENTS))
    Builder.read(warehouse).note_tested(model)
    laptop.load("two", told.write([(1, 9, 7)]))
    build(warehouse, family("facts.daily_activity", *PARENTS))
    scope = Builder.read(warehouse).scope(model)
    assert scope
    assert scope.near
    for user, found in (("u1", False), ("u2", True)):
        twice = f"SELECT * FROM {model.name} WHERE user_id = '{user}'"
        warehouse.run([f"INSERT INTO {model.name} {twice}"])
        assert (name in [each.test for each in check_model(warehouse, model, scope)]) == found
        assert name in [each.test for each in check_model(warehouse, model)]


def test_a_row_that_moves_to_another_date_touches_both(laptop: Laptop) -> None:
    """A profile's version tells nothing of its date: written again with another time, it moves."""
    warehouse = laptop.warehouse
    names = [*(each.name for each in ENTITIES["streaks"].fields), "extra"]
    for day in (3, 5):
        at = FIRST + timedelta(days=day)
        row = dict.fromkeys(names) | {"user_id": "u", "version": 1, "timezone": "UTC", "updated_at": at}
        place = Partition("streaks", f"{at:%Y-%m-%d}", "00")
        write(laptop.objects, place, [row | {"total_bestie_points": 0, "balance": 0}])
        laptop.load("run", [place])
        build(warehouse, family("facts.loaded_rows"))
    counts = "SELECT dt, loaded FROM facts.loaded_rows WHERE entity = 'streaks'"
    assert [tuple(row.values()) for row in warehouse.rows(counts)] == [(date(2026, 2, 3), 1)]
