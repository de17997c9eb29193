"""Corrupt the tables by hand: the run names exactly what was done, and puts it right."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.engagement.account_items import entry_item
from adapters.platform.tables import BEFORE_ALL
from analytics.warehouse.night import LastWarehouseRun, WarehouseNight
from analytics.warehouse.warehouse import warehouse_at
from tests.support.corruptions import HAND, edit_day, lost_day, number
from tests.support.engine import Engine
from tests.support.lake_corruptions import DAY_GONE
from tests.support.town import START, Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")


@pytest.fixture
def town(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Town]:
    with lived_in(engine, tmp_path, request.node.name[5:24], getattr(request, "param", 12)) as made:
        yield made


@pytest.mark.parametrize("town", [56], indirect=True)
def test_each_corruption_is_named_and_put_right(town: Town) -> None:
    clean = town.reconcile("before")["counts"]
    assert (clean["users"], clean["looked_at"], clean["different"]) == (56, 56, 0)
    before = town.tables()
    victims = dict(zip(HAND, town.chance.sample(town.users, len(HAND)), strict=True))
    for what, user in victims.items():
        HAND[what](town, user)
    damaged = town.tables()

    dry = town.reconcile("dry", repair=False)
    assert set(dry["different"]) == set(victims.values()), _missed(victims, dry["different"])
    assert dry["counts"]["repaired"] == 0
    assert town.tables() == damaged

    wet = town.reconcile("wet")
    assert sorted(wet["different"]) == sorted(victims.values())
    assert (wet["unrepaired"], wet["contended"]) == ([], [])
    after = town.tables()
    wrong = {
        what: _parts(before[user], after[user])
        for what, user in victims.items()
        if before[user] != after[user]
    }
    assert not wrong
    assert after == before

    again = town.reconcile("again")
    assert (again["different"], again["counts"]["settled"]) == ([], 0)
    assert again["disagreements"] == []


def test_a_smoke_test_s_user_may_be_in_the_lake_and_nowhere_else(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its items are removed, its rows stay. Of anybody else that is told, and the profile is put again."""
    user = town.users[0]
    for when in town.projections.days(user):
        town.delete("DailyActivity", user_id=user, activity_date=when)
    for each in town.accounts.ledger.after(user, BEFORE_ALL)[0]:
        town.delete("RewardsLedger", account_id=user, created_at=each.created_at)
    town.delete("UserStreaks", user_id=user)
    told = town.reconcile("told", repair=False)
    assert (told["different"], {name for name, _ in told["disagreements"]}) == ([user], {user})
    monkeypatch.setattr("analytics.reconcile.shares.reconcile_share.is_smoke", lambda name: name == user)
    left_out = town.reconcile("left-out", repair=False)
    assert (left_out["different"], left_out["disagreements"]) == ([], [])


def _missed(victims: dict[str, str], found: list[str]) -> Any:
    named = {what for what, user in victims.items() if user not in found}
    return named, set(found) - set(victims.values())


def _parts(was: Any, now: Any) -> Any:
    return [
        (name, was[0].get(name), now[0].get(name))
        for name in was[0].keys() | now[0].keys()
        if was[0].get(name) != now[0].get(name)
    ] or (was[1], now[1])


def test_a_dry_run_writes_nothing(town: Town) -> None:
    town.now = START + timedelta(days=30)
    HAND["total"](town, town.users[0])
    HAND["day lost"](town, town.users[1])
    town.dynamodb.writes = 0
    found = town.reconcile("dry", repair=False)
    assert sorted(found["different"]) == town.users[:2]
    assert found["counts"]["lowered"] > 0
    assert town.dynamodb.writes == 0


def test_a_day_looked_for_by_its_key_is_found_too(town: Town) -> None:
    town.now += timedelta(days=9)
    assert town.reconcile("first")["different"] == []
    lost_day(town, town.users[2])
    edit_day(number("events_count", 2))(town, town.users[3])
    HAND["day made up"](town, town.users[4])  # it has no key in the lake
    span: dict[str, Any] = {"from": "2026-03-01", "to": "2026-03-31"}
    assert sorted(town.reconcile("span", **span)["different"]) == town.users[2:4]
    assert town.reconcile("whole", everybody=True)["different"] == [town.users[4]]


def test_a_broken_ledger_is_told_and_left_alone(town: Town) -> None:
    user, other = town.users[5], town.users[6]
    entries, _ = town.accounts.ledger.after(user, "0")
    town.delete("RewardsLedger", account_id=user, created_at=entries[-1].created_at)
    HAND["total"](town, user)
    newest = town.accounts.ledger.newest(other)
    assert newest
    town.put("RewardsLedger", entry_item(replace(entries[0], account_id=other, active=True)))
    before = town.profile(user)
    found = town.reconcile("broken", everybody=True)
    assert {name for name, _ in found["disagreements"]} == {user, other}
    assert (found["unrepaired"], found["frozen"]) == ([user], sorted((user, other)))
    assert town.profile(user)["total_bestie_points"] == before["total_bestie_points"]


def test_an_entry_that_never_came_into_the_lake_is_told(town: Town) -> None:
    town.dynamodb.paused = True
    town.apply([town.event(town.users[0], 97, 1)])
    assert town.reconcile("early")["disagreements"] == []
    town.now += timedelta(hours=3)
    found = town.reconcile("late")
    assert found["disagreements"] == [[town.users[0], "the lake lacks 1 entries"]]
    assert found["different"] == []


def test_the_report_tells_all_of_it(town: Town) -> None:
    town.models("told")
    HAND["total"](town, town.users[0])
    town.reconcile("told", repair=False)
    answer = town.steps.report({"run_id": "told"}, town.now)
    assert answer["reports"] == ["reports/told.json", "reports/told.md"]
    report = json.loads(town.objects.get("reports/told.json"))
    assert report["different"] == [town.users[0]]
    assert report["warehouse_and_lake"] == [], "the rule in SQL agrees with the one that is live"
    for row in report["curation"]:
        assert row["rows_in"] == row["curated"] + row["duplicates"] + row["quarantined"]
    text = town.objects.get("reports/told.md").decode()
    assert f"| {town.users[0]} | UserStreaks |  | total_bestie_points |" in text
    assert report["leads"] == []
    found = "SELECT '{}', 1, {}, 2, 'tenure_days recency_days'"
    town.warehouse.run(
        [
            f"DELETE FROM marts.streaks_recomputed WHERE user_id = '{town.users[3]}'",
            f"INSERT INTO marts.lead_quality {found.format('a', True)} UNION ALL {found.format('b', False)}",
        ]
    )
    assert town.steps.report({"run_id": "told"}, town.now)
    report = json.loads(town.objects.get("reports/told.json"))
    assert [each["user_id"] for each in report["warehouse_and_lake"]] == [town.users[3]]
    assert report["leads"] == [
        {"lead": "a", "features": ["tenure_days", "recency_days"], "outcome": "a dry run"}
    ]
    assert "| a | tenure_days, recency_days | a dry run |" in town.objects.get("reports/told.md").decode()


def test_a_day_that_the_lake_has_lost_is_told_by_the_warehouse_s_recompute(town: Town) -> None:
    user = next(each for each in town.users if len(town.projections.days(each)) > 1)
    DAY_GONE(town, user)
    town.models("told")
    told = town.reconcile("told")
    assert (told["different"], told["disagreements"]) == ([], [])
    assert town.steps.report({"run_id": "told"}, town.now)
    report = json.loads(town.objects.get("reports/told.json"))
    assert [each["user_id"] for each in report["warehouse_and_lake"]] == [user]


def test_the_report_of_a_night_that_brought_nothing_does_not_ask_the_warehouse(town: Town) -> None:
    LastWarehouseRun("told", town.now.isoformat(), "").save(town.objects)
    town.models("told")
    town.reconcile("told")
    assert town.steps.report({"run_id": "told"}, town.now)["is_whole"]
    told = json.loads(town.objects.get("reports/told.json"))
    last = LastWarehouseRun.read(town.objects)
    assert last
    assert (last.is_settled, last.curation) == (True, told["curation"])
    WarehouseNight("quiet", town.now.isoformat(), False, False, [], "told").save(town.objects)
    town.reconcile("quiet")
    nobody = replace(town.steps, warehouse=warehouse_at("redshift://nowhere/db", data_api=object()))
    assert nobody.report({"run_id": "quiet"}, town.now)["is_whole"]
    quiet = json.loads(town.objects.get("reports/quiet.json"))
    assert quiet["warehouse"]["quiet_since"] == "told"
    assert quiet["curation"] == told["curation"]
    assert len(quiet["curation"]) > 0
    assert LastWarehouseRun.read(town.objects) == last
