"""Persons who were erased leave the warehouse, and what is told of past days stays as it was."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters import clock
from analytics.recompute.recompute import recompute
from analytics.recompute.user_shares import UserShare
from analytics.recompute.warehouse_disagreements import disagreements
from analytics.steps import warehouse_function
from analytics.steps.forget_function import ForgetSteps
from analytics.steps.warehouse_function import WarehouseSteps
from analytics.warehouse.build import build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.load import Loader
from analytics.warehouse.models import models
from analytics.warehouse.night import State, WarehouseNight
from analytics.warehouse.warehouse import Warehouse
from rules.privacy.erasures import PersonKind
from tests.sql.conftest import ROLE, Lake
from tests.support.effort import only_soak
from tests.support.forgetting import MemoryJobs, having, write_raw
from tests.support.lake_story import Story
from tests.support.questions import answer_story

NOW = datetime(2026, 3, 9, 2, 30, tzinfo=UTC)
USERS, LEAD, PEOPLE = ("o'brien@example.org", "same-a"), "lead-03", tuple(answer_story.PEOPLE[:3])
NAMES = (*USERS, LEAD, *PEOPLE)
# What is told of many users. Instants of a residue say the hour alone, and names are others.
SUMS = (
    *("marts.daily_actives", "marts.monthly_actives", "marts.stickiness", "marts.retention_cohorts"),
    *("marts.points_liability", "marts.points_expiring", "marts.revenue_by_month", "marts.streak_survival"),
    *("marts.rfm_segments", "marts.brand_statement", "marts.option_answers"),
    *("marts.question_agreement", "facts.retention", "facts.ledger_totals", "facts.activity_totals"),
    *("marts.funnel_by_source", "facts.monthly_changes"),
)
# What is told of each user: the same, under other names.
OF_USERS = (
    "marts.streaks_recomputed",
    "marts.points_recomputed",
    "marts.user_levels",
    "marts.ledger_quality",
    "marts.leaderboard_history",
)
OTHERS_COLUMNS = {"load_number", "first_load"}


def night(lake: Lake, warehouse: Warehouse, jobs: Any, run_id: str, places: list[Any], at: datetime) -> None:
    tasks = [{"entity": each.entity, "dt": each.dt, "hour": each.hour} for each in places]
    lake.objects.put(f"runs/{run_id}/tasks.json", json.dumps(tasks).encode())
    event = {"run_id": run_id, "tasks_key": f"runs/{run_id}/tasks.json"}
    forgetting = ForgetSteps(lake.objects, jobs, None, timedelta(days=2))
    assert not forgetting.forget(event, at)["is_left"]
    steps = WarehouseSteps(warehouse, lake.objects, str(lake.root), ROLE, jobs.opened)
    while steps.work(event, at)["left"]:
        pass
    found = WarehouseNight.read(lake.objects, run_id)
    assert found
    assert [(each.name, each.reason) for each in found.items if each.state is not State.DONE] == []
    assert [(each.name, each.found) for each in found.items if each.found] == []
    forgetting.finish(event)


def told(warehouse: Warehouse, names: Iterator[str] | tuple[str, ...]) -> dict[str, Counter[str]]:
    with warehouse.kept_open():
        return {
            name: Counter(
                repr([value for key, value in row.items() if key not in OTHERS_COLUMNS])
                for row in warehouse.rows(f"SELECT * FROM {name}")
            )
            for name in names
        }


def nameless(rows: Counter[str]) -> Counter[str]:
    """Rows without the names of users who were erased."""
    ids = "|".join(["erased/[0-9a-f]{32}", *map(re.escape, USERS)])
    return Counter(re.sub(rf"'({ids})'|\"({ids})\"", "-", each) for each in rows.elements())


def test_nobody_is_left_and_sums_are_as_they_were(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    _forgets(lake, lake.duck, monkeypatch)


@only_soak("tests/sql/test_forgetting.py::test_nobody_is_left_and_sums_are_as_they_were")
def test_redshifts_sql_does_the_same(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    _forgets(lake, lake.redshift, monkeypatch)


def _forgets(lake: Lake, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)
    monkeypatch.setattr(warehouse_function, "grant_analysts", lambda _: None)  # PostgreSQL has no svv_roles
    # In fewer days somebody's first source is in no other row of its file: it becomes "erased", as it should.
    story, jobs = Story(days=8), MemoryJobs()
    parts = (("one", story.first_part), ("two", story.late_part))
    places = [place for name, part in parts for place in write_raw(part(), lake.objects, name)]
    with warehouse.kept_open():
        prepare(warehouse)
        Loader(warehouse, lake.objects, str(lake.root), ROLE).load("loads", places)
        build(warehouse)
    before = told(warehouse, (*SUMS, *OF_USERS))
    assert all(any(each in str(before[name]) for each in USERS) for name in OF_USERS)
    for number, user in enumerate(USERS):
        theirs = (
            () if number else PEOPLE
        )  # somebody who moved from key to key; phones have the same names here
        jobs.add(f"e{number}", NOW, user=user, person=theirs, phone=theirs)
    jobs.add("lead", NOW, PersonKind.LEAD, lead=LEAD)

    night(lake, warehouse, jobs, "forgetting", [], NOW)
    after = told(warehouse, tuple(models()))
    assert [name for name, rows in after.items() if any(each in str(rows) for each in NAMES)] == []
    assert having(lake.root, NAMES) == set()
    assert having(lake.root.parent, (*USERS, LEAD)) == set(), "of the warehouse's file, its bytes"
    assert {name: after[name] for name in SUMS} == {name: before[name] for name in SUMS}
    for name in OF_USERS:
        assert nameless(after[name]) == nameless(before[name]), name
    table = recompute(lake.objects, NOW.date()).table
    differ = [each["user_id"] for each in disagreements(warehouse, [(UserShare(), table)])]
    assert differ == ["user-1"], "the story earns on two dates of which it has no day"

    night(lake, warehouse, jobs, "again", [], NOW + timedelta(days=3))
    assert {each.is_done for each in jobs.all.values()} == {True}
    assert all(each.found["Warehouse"] > 0 for each in jobs.all.values())
    assert told(warehouse, tuple(models())) == after
