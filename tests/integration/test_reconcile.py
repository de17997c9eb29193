"""Corrupt the tables by hand: the run names exactly what was done, and puts it right."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.engagement.account_items import entry_item
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.leaderboard_index import LeaderboardIndex
from adapters.engagement.projections import Projections
from adapters.platform.items import Item, plain
from adapters.platform.redis import Redis
from ingest.engagement.leaderboards import Leaderboards
from ingest.engagement.profiles import Profiles
from rules.engagement.ledger import Draft, EntryKind, append
from tests.support.engine import Engine
from tests.support.town import SHARDS, START, Town

pytestmark = pytest.mark.xdist_group("reconcile")


@pytest.fixture
def town(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Town]:
    made = Town(engine.client("dynamodb"), tmp_path, request.node.name[5:24], getattr(request, "param", 12))
    made.live()
    made.curate()
    yield made
    made.clear()


def edit(change: Callable[[Item], Any]) -> Callable[[Town, str], None]:
    def apply(town: Town, user: str) -> None:
        profile = town.profile(user)
        before = dict(profile)
        change(profile)
        assert profile != before
        town.put("UserStreaks", profile)

    return apply


def edit_day(change: Callable[[Item], Any]) -> Callable[[Town, str], None]:
    def apply(town: Town, user: str) -> None:
        when, day = town.chance.choice(sorted(town.projections.days(user).items()))
        before = dict(day)
        change(day)
        assert day != before, when
        town.put("DailyActivity", day)

    return apply


def lost_profile(town: Town, user: str) -> None:
    town.delete("UserStreaks", user_id=user)


def lost_day(town: Town, user: str) -> None:
    town.delete("DailyActivity", user_id=user, activity_date=max(town.projections.days(user)))


def made_up_day(town: Town, user: str) -> None:
    day = next(iter(town.projections.days(user).values()))
    town.put("DailyActivity", {**day, "activity_date": {"S": "2026-02-02"}})


def number(name: str, by: int) -> Callable[[Item], Any]:
    return lambda each: each.update({name: {"N": str(int(each[name]["N"]) + by)}})


def value(name: str, wire: dict[str, Any]) -> Callable[[Item], Any]:
    return lambda each: each.update({name: wire})


def without(*names: str) -> Callable[[Item], Any]:
    return lambda each: [each.pop(name, None) for name in names]


HAND = {
    "total": edit(number("total_bestie_points", 10)),
    "balance": edit(number("balance", -1)),
    "streak": edit(number("current_streak", 3)),
    "longest": edit(number("longest_streak", 100)),
    "active days": edit(number("active_days", -1)),
    "seq": edit(number("ledger_seq", 1)),
    "lapses": edit(number("lapses_at", -86400 * 40)),
    "version up": edit(number("version", 7)),
    "version down": edit(number("version", -1)),
    "date": edit(value("last_activity_date", {"S": "2026-03-01"})),
    "head in the past": edit(value("ledger_head", {"S": "2026-01-01T00:00:00.000000Z"})),
    "head in the future": edit(value("ledger_head", {"S": "2031-01-01T00:00:00.000000Z"})),
    "freezes": edit(value("freezes", {"L": [{"S": "2025-03-01+1"}]})),
    "freezes spent": edit(value("freezes_spent", {"L": [{"S": "2025-03-01"}]})),
    "pauses": edit(value("pauses", {"L": [{"S": "2025-03-01/2025-03-02"}]})),
    "skipped": edit(value("skipped_dates", {"L": [{"S": "2026-03-14"}]})),
    "partition": edit(value("leaderboard_partition", {"S": "arctic#0"})),
    "zone": edit(value("timezone", {"S": "Arctic/Longyearbyen"})),
    "chosen zone": edit(
        lambda each: each.update(
            {"timezone_chosen": {"S": "Africa/Cairo"}, "timezone": {"S": "Africa/Cairo"}}
        )
    ),
    "no zone that is": edit(value("timezone_chosen", {"S": "Mars/Base"})),
    "review": edit(value("tz_review", {"S": "yes"})),
    "total as text": edit(value("total_bestie_points", {"S": "many"})),
    "balance as text": edit(lambda each: each.update({"balance": {"S": each["balance"]["N"]}})),
    "longest as flag": edit(value("longest_streak", {"BOOL": True})),
    "version as text": edit(value("version", {"S": "4"})),
    "total as fraction": edit(value("total_bestie_points", {"N": "1.5"})),
    "updated as number": edit(value("streak_updated_at", {"N": "4"})),
    "no version": edit(without("version")),
    "no head": edit(without("ledger_head")),
    "no head and seq": edit(without("ledger_head", "ledger_seq")),
    "no streak": edit(without("last_activity_date")),
    "no date of update": edit(without("streak_updated_at")),
    "no partition": edit(without("leaderboard_partition", "lapses_at")),
    "no total": edit(without("total_bestie_points")),
    "no zone": edit(without("timezone")),
    "no active days": edit(without("observed_at", "active_days")),
    "one too many": edit(value("nickname", {"S": "Bob"})),
    "almost empty": edit(lambda each: [each.pop(name) for name in list(each) if name != "user_id"]),
    "lost": lost_profile,
    "day lost": lost_day,
    "day made up": made_up_day,
    "day count": edit_day(number("events_count", 1)),
    "day points": edit_day(number("points_earned", -5)),
    "day points as text": edit_day(value("points_earned", {"S": "5"})),
    "day head": edit_day(value("ledger_head", {"S": "2031-01-01T00:00:00.000000Z"})),
    "day without head": edit_day(without("ledger_head")),
    "day first": edit_day(value("first_event_id", {"S": "2026-01-01T00:00:00.000000Z#x"})),
    "day types": edit_day(value("points_by_type", {"M": {"CHECK_IN": {"N": "0"}, "X": {"N": "1"}}})),
    "day created": edit_day(value("created_at", {"S": "2026-01-01T00:00:00.000000Z"})),
    "day almost empty": edit_day(
        lambda each: [each.pop(name) for name in list(each) if name not in ("user_id", "activity_date")]
    ),
}


@pytest.mark.parametrize("town", [56], indirect=True)
def test_fifty_corruptions_are_named_and_put_right(town: Town) -> None:
    town.load()
    clean = town.reconcile("before")["counts"]
    assert (clean["users"], clean["looked_at"], clean["different"]) == (56, 0, 0)
    before = town.tables()
    assert len(HAND) == 50
    victims = dict(zip(HAND, town.chance.sample(town.users, 50), strict=True))
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


def _missed(victims: dict[str, str], found: list[str]) -> Any:
    named = {what for what, user in victims.items() if user not in found}
    return named, set(found) - set(victims.values())


def _parts(was: Any, now: Any) -> Any:
    return [
        (name, was[0].get(name), now[0].get(name))
        for name in was[0].keys() | now[0].keys()
        if was[0].get(name) != now[0].get(name)
    ] or (was[1], now[1])


def test_nobody_in_flight_is_named(town: Town) -> None:
    town.apply(town.event(user, 90, 0) for user in town.users[:8])
    found = town.reconcile("flight")
    assert (found["different"], found["disagreements"]) == ([], [])
    assert found["in_flight"] == 8


def test_nobody_is_named_while_writers_are_at_work(town: Town) -> None:
    def write() -> None:
        for number in range(100, 115):
            town.apply(town.event(user, number, 1) for user in town.chance.sample(town.users, 5))

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while not writing.done():
            found = town.reconcile("busy")
            assert (found["different"], found["disagreements"]) == ([], [])
        writing.result()


def test_an_account_that_a_dead_writer_left_is_finished_not_named(town: Town) -> None:
    user = town.users[0]
    account, _ = town.accounts.load(user)
    draft = Draft(EntryKind.ADJUST, 3)
    town.accounts.ledger.append(
        account.profile.head, append(user, account.profile.head, [draft], town.tick())
    )
    town.curate()  # the entry reaches the lake by the ledger's own stream
    before = town.tables()
    dry = town.reconcile("dry", repair=False)
    assert (dry["different"], dry["counts"]["behind"], town.tables()) == ([], 1, before)
    wet = town.reconcile("wet")
    assert (wet["different"], wet["counts"]["settled"]) == ([], 1)
    assert plain(town.profile(user))["balance"] == account.profile.balance + 3


def test_a_dry_run_writes_nothing(town: Town) -> None:
    town.now = START + timedelta(days=30)
    HAND["total"](town, town.users[0])
    HAND["day lost"](town, town.users[1])
    town.dynamodb.writes = 0
    found = town.reconcile("dry", repair=False)
    assert sorted(found["different"]) == town.users[:2]
    assert found["counts"]["lowered"] > 0
    assert town.dynamodb.writes == 0


def test_what_a_writer_writes_meanwhile_is_kept(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    user = town.users[0]
    HAND["total"](town, user)
    HAND["day count"](town, user)
    late, real = town.event(user, 95, 1), town.projections.put_profile

    def put(self: Any, new: Item, read: Item | None) -> None:
        monkeypatch.undo()
        town.apply([late])
        real(new, read)

    monkeypatch.setattr(Projections, "put_profile", put)
    found = town.reconcile("raced")
    assert (found["different"], found["unrepaired"]) == ([user], [])
    entries, _ = town.accounts.ledger.after(user, "0")
    earned = sum(each.draft.points for each in entries if each.draft.kind is EntryKind.EARN)
    assert late.event_id in {each.draft.event_id for each in entries}
    assert plain(town.profile(user))["total_bestie_points"] == earned
    assert town.reconcile("again")["different"] == []


def test_a_day_looked_for_by_its_key_is_found_too(town: Town) -> None:
    lost_day(town, town.users[2])
    edit_day(number("events_count", 2))(town, town.users[3])
    HAND["day made up"](town, town.users[4])  # it has no key in the lake: only a whole scan sees it
    span: dict[str, Any] = {"from": "2026-03-01", "to": "2026-03-31"}
    assert sorted(town.reconcile("span", **span)["different"]) == town.users[2:4]
    assert town.reconcile("whole")["different"] == [town.users[4]]


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
    assert found["unrepaired"] == [user]
    assert town.profile(user) == before


def test_an_entry_that_never_came_into_the_lake_is_told(town: Town) -> None:
    town.dynamodb.paused = True
    town.apply([town.event(town.users[0], 97, 1)])
    assert town.reconcile("early")["disagreements"] == []
    town.now += timedelta(hours=3)
    found = town.reconcile("late")
    assert found["disagreements"] == [[town.users[0], "the lake lacks 1 entries"]]
    assert found["different"] == []


def test_lowering_changes_no_answer_and_empties_the_index(town: Town, redis_url: str) -> None:
    Redis(redis_url).call("FLUSHALL")
    town.now = START + timedelta(days=2)

    def answers() -> Any:
        told = []
        for cache in (EngagementCache("", SHARDS), EngagementCache(redis_url, SHARDS)):
            profiles = Profiles(town.accounts, town.events, cache)
            boards = LeaderboardIndex(town.real, "UserStreaks", SHARDS)
            cache.rebuild_ranks(each for each in boards.everybody() if each.user_id in town.users)
            board = Leaderboards(profiles, boards, cache)
            told.append([profiles.view(user, None, town.now) for user in town.users])
            told.append([board.rank("streaks", "global", user, town.now) for user in town.users])
            told.append(board.top("streaks", "global", 100, town.now)["entries"])
        return told

    def indexed() -> set[str]:
        rows = town.real.scan(TableName="UserStreaks", IndexName="StreakLeaderboard")["Items"]
        return {row["user_id"]["S"] for row in rows} & set(town.users)

    before = answers()
    alive = {row["user_id"] for row in before[2]} & set(town.users)
    assert indexed() > alive
    versions = {user: town.profile(user)["version"] for user in town.users}
    assert town.reconcile("low")["counts"]["lowered"] == len(town.users) - len(alive)
    assert indexed() == alive
    assert answers() == before
    assert {user: town.profile(user)["version"] for user in town.users} == versions
    assert town.reconcile("again")["counts"]["lowered"] == 0
    back = next(user for user in town.users if user not in alive)
    town.now = START
    town.apply([town.event(back, 98, 0)])
    assert back in indexed()
    assert "run_length" not in town.profile(back)


def test_the_report_tells_all_of_it(town: Town) -> None:
    town.models()
    HAND["total"](town, town.users[0])
    town.reconcile("told", repair=False)
    answer = town.steps.report({"run_id": "told"}, town.now)
    assert answer["reports"] == ["reports/told.json", "reports/told.md"]
    report = json.loads(town.objects.get("reports/told.json"))
    assert report["different"] == [town.users[0]]
    assert report["sql_and_numpy"] == [], "the rule in SQL agrees with the one that is live"
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
    assert [each["user_id"] for each in report["sql_and_numpy"]] == [town.users[3]]
    assert report["leads"] == [{"lead": "a", "features": ["tenure_days", "recency_days"]}]
    assert "| a | tenure_days, recency_days |" in town.objects.get("reports/told.md").decode()
