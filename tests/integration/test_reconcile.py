"""A night's comparison of users: it names exactly what was corrupted, puts it right, and leaves the others alone."""

import itertools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.book_store import shipped_document
from adapters.engagement.account_items import entry_item
from adapters.engagement.boards import BoardSnapshots, LeaderboardIndex
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.expiry import Settler
from adapters.engagement.projections import Projections
from adapters.platform.items import Item, decode_item
from adapters.platform.redis import Redis
from adapters.platform.tables import BEFORE_ALL
from analytics.recompute.user_shares import UserShare
from analytics.reconcile.findings import RESULT
from analytics.reconcile.reconcile_share import ShareReconciliation
from analytics.reconcile.reconcile_user import Reconciler
from analytics.reconcile.user_goals import GoalRows
from analytics.warehouse.night import LastWarehouseRun, WarehouseNight
from analytics.warehouse.warehouse import warehouse_at
from ingest.engagement.leaderboards import Leaderboards
from ingest.engagement.profiles import Profiles
from processors.ranks import RankBuilder
from rules.days import key_of_stamp
from rules.engagement.ledger import Draft, EntryKind, append_drafts
from rules.lake.entities import ENTITIES, rows_of
from rules.turns import NIGHTS, share_of
from tests.support.books import KnownBooks
from tests.support.corruptions import HAND, edit_day, lost_day, number
from tests.support.effort import effort, only_soak
from tests.support.engine import Engine
from tests.support.lake_corruptions import DAY_GONE
from tests.support.ledger_corruptions import LEDGER
from tests.support.published_books import Table, documents, publish
from tests.support.town import SHARDS, START, Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")
DONE = ("total", "day lost", "day made up", "longest")


@pytest.fixture
def town(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Town]:
    with lived_in(
        engine, tmp_path, request.node.name[5:24], getattr(request, "param", effort(9, soak=12))
    ) as made:
        yield made


@pytest.mark.parametrize("town", [56], indirect=True)
def test_each_corruption_is_named_and_put_right(town: Town) -> None:
    clean = town.reconcile("before")["counts"]
    assert (clean["users"], clean["looked_at"], clean["different"]) == (56, 56, 0)
    before = town.tables()
    victims = dict(zip(HAND, town.chance.sample(town.users, len(HAND)), strict=True))
    for what, user in victims.items():
        HAND[what](town, user)

    wet = town.reconcile("wet")
    assert sorted(wet["different"]) == sorted(victims.values()), _missed(victims, wet["different"])
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


def test_a_book_that_moves_the_start_of_dates_makes_no_differences(town: Town) -> None:
    """The instants at which streaks lapse move with it. The night writes them, and nobody was wrong."""
    assert town.reconcile("before")["different"] == []
    table = Table()
    publish(table, {**shipped_document(), "daily": {"day_starts_at": "03:00"}}, town.now, town.now)
    for item in documents(table.items):
        for row in rows_of(ENTITIES["rules"], item, town.now):
            town.dynamodb.rows["rules", row["dt"], row["hour"]].append(json.dumps(row))
    town.curate()
    told = town.reconcile("after", everybody=True)
    assert (told["different"], told["unrepaired"], told["contended"]) == ([], [], [])
    assert told["counts"]["settled"] == told["counts"]["behind"] > 0
    again = town.reconcile("again", everybody=True)
    assert (again["different"], again["counts"]["behind"]) == ([], 0)


def test_a_smoke_test_s_user_may_be_in_the_lake_and_nowhere_else(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its items are removed, its rows stay. Of anybody else that is told."""
    user = town.users[0]
    for when in town.projections.days(user):
        town.delete("DailyActivity", user_id=user, activity_date=when)
    for each in town.accounts.ledger.after(user, BEFORE_ALL)[0]:
        town.delete("RewardsLedger", account_id=user, created_at=key_of_stamp(each.created_at))
    town.delete("UserStreaks", user_id=user)
    told = town.reconcile("told", repair=False)
    assert (told["different"], {name for name, _ in told["disagreements"]}) == ([], {user})
    monkeypatch.setattr("analytics.reconcile.reconcile_share.is_smoke", lambda name: name == user)
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


def test_a_day_looked_for_by_its_key_is_found_and_any_when_an_operator_asks_for_everybody(town: Town) -> None:
    town.now += timedelta(days=9)
    assert town.reconcile("first")["different"] == []
    lost_day(town, town.users[2])
    edit_day(number("events_count", 2))(town, town.users[3])
    HAND["day made up"](town, town.users[4])  # it has no key in the lake
    town.now += timedelta(hours=3)
    assert town.reconcile("night")["different"] == []
    span: dict[str, Any] = {"from": "2026-03-01", "to": "2026-03-31"}
    assert sorted(town.reconcile("span", **span)["different"]) == town.users[2:4]
    assert town.reconcile("whole", everybody=True)["different"] == [town.users[4]]


def test_a_broken_ledger_is_told_and_left_alone(town: Town) -> None:
    user, other = town.users[5], town.users[6]
    entries, _ = town.accounts.ledger.after(user, "0")
    town.delete("RewardsLedger", account_id=user, created_at=key_of_stamp(entries[-1].created_at))
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
    had = len(town.entries(town.users[0]))
    town.apply([town.event(town.users[0], 97, 1)])
    lacking = len(town.entries(town.users[0])) - had
    assert town.reconcile("early")["disagreements"] == []
    town.now += timedelta(hours=3)
    found = town.reconcile("late")
    assert found["disagreements"] == [[town.users[0], f"the lake lacks {lacking} entries"]]
    assert found["different"] == []


def test_the_report_tells_all_of_it(town: Town) -> None:
    """Also a day that the lake has lost: the warehouse's recompute knows it."""
    lost = next(each for each in town.users[4:] if len(town.projections.days(each)) > 1)
    DAY_GONE(town, lost)
    town.models("told")
    HAND["total"](town, town.users[0])
    told = town.reconcile("told", repair=False)
    assert told["disagreements"] == []
    answer = town.steps.report({"run_id": "told"}, town.now)
    assert answer["reports"] == ["reports/told.json", "reports/told.md"]
    report = json.loads(town.objects.get("reports/told.json"))
    assert report["different"] == [town.users[0]]
    assert [each["user_id"] for each in report["warehouse_and_lake"]] == [lost], (
        "else the rule in SQL agrees with the one that is live"
    )
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
    assert {each["user_id"] for each in report["warehouse_and_lake"]} == {town.users[3], lost}
    assert report["leads"] == [
        {"lead": "a", "features": ["tenure_days", "recency_days"], "outcome": "a dry run"}
    ]
    assert "| a | tenure_days, recency_days | a dry run |" in town.objects.get("reports/told.md").decode()


@only_soak(
    "test_a_night_that_brings_nothing_does_not_ask_the_warehouse_and_says_so (tests/sql/test_quiet_nights.py)"
)
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


def corrupted(town: Town) -> dict[str, str]:
    """Corrupt some users; returns them by what was done. The last one's ledger alone was raised."""
    users = dict(zip(DONE, town.users, strict=False))
    for what, user in users.items():
        HAND[what](town, user)
    users["raised"] = town.users[-1]
    LEDGER["1000 points more"](town, users["raised"])
    return users


def test_all_shares_find_what_one_finds(town: Town) -> None:
    town.shares = 4
    users = corrupted(town)
    in_shares = town.reconcile("shares", repair=False)
    town.shares = 1
    at_once = town.reconcile("once", repair=False)
    assert in_shares["counts"] == at_once["counts"]
    for name in ("different", "unrepaired", "differences", "disagreements", "frozen"):
        assert sorted(map(str, in_shares[name])) == sorted(map(str, at_once[name])), name
    town.shares = 4
    wet = town.reconcile("wet")
    assert (wet["frozen"], wet["counts"]["repaired"]) == ([users["raised"]], 4)
    again = town.reconcile("again", everybody=True)
    assert again["different"] == again["frozen"] == [users["raised"]]


@dataclass
class Broken(Exception):
    user: str


def test_a_share_that_fails_is_told_and_taken_up_the_next_night(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    town.shares = 4
    assert town.reconcile("first")["different"] == []
    users = corrupted(town)
    town.now += timedelta(days=1)
    bad = users["total"]
    examine, town.gives_up = Reconciler.examine, (Broken,)

    def failing(self: Reconciler, user_id: str, *others: object) -> object:
        if user_id == bad:
            raise Broken(bad)
        return examine(self, user_id, *others)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Reconciler, "examine", failing)
        found = town.reconcile("second", everybody=True)
    given_up = share_of(bad, town.shares)
    others = {user for user in users.values() if share_of(user, town.shares) != given_up}
    assert others
    told = {*found["different"], *found["frozen"]}
    assert others <= told <= set(users.values()) - {bad}
    report = town.steps.report({"run_id": "second", "warehouse_error": {"Error": "none"}}, town.now)
    assert report["is_whole"] is False
    (failed,) = json.loads(town.objects.get("reports/second.json"))["failed_shares"]
    assert failed["share"] == given_up
    assert "Broken" in failed["reason"]
    compared = json.loads(town.objects.get("state/ledgers_compared.json"))["compared_at"]
    assert [each == min(compared) for each in compared] == [
        number == given_up for number in range(town.shares)
    ]
    town.now += timedelta(days=1)
    after = town.reconcile("third", everybody=True)
    assert told | {*after["different"], *after["frozen"]} == set(users.values())
    assert bad in after["different"]


def repeat_after_error(
    town: Town, monkeypatch: pytest.MonkeyPatch, method: tuple[type, str], **more: Any
) -> dict[str, Any]:
    """Reconcile twice, and the first time the first call of a method raises Broken; returns the findings."""
    real, calls = getattr(*method), itertools.count()

    def fail_once(*arguments: Any) -> Any:
        if next(calls) == 0:
            raise Broken(method[1])
        return real(*arguments)

    with monkeypatch.context() as patched, pytest.raises(Broken):
        patched.setattr(*method, fail_once)
        town.reconcile("night", **more)
    return town.reconcile("night", **more)


def heads(town: Town, run_id: str) -> set[tuple[Any, ...]]:
    result = json.loads(town.objects.get(UserShare().key(run_id, RESULT)))
    return set(map(tuple, result["heads"]))


def test_a_call_that_follows_an_error_counts_nobody_twice(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    corrupted(town)
    whole = town.reconcile("whole", repair=False, everybody=True)
    examine = (Reconciler, "examine")
    found = repeat_after_error(town, monkeypatch, examine, repair=False, everybody=True)
    assert (found["counts"], found["different"]) == (whole["counts"], whole["different"])
    assert heads(town, "night") == heads(town, "whole")


def test_goals_that_were_not_written_are_folded_again_and_nobody_is_counted_twice(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    users, written = corrupted(town), list[set[str]]()
    whole = town.reconcile("whole", repair=False, everybody=True)
    monkeypatch.setattr(GoalRows, "fold", lambda rows, user, *_: rows._rows.update({user: {}}))
    monkeypatch.setattr(GoalRows, "write", lambda rows, _: written.append({*rows._rows}))
    found = repeat_after_error(town, monkeypatch, (GoalRows, "write"), everybody=True)
    assert found["counts"] == whole["counts"] | {"repaired": 4, "unrepaired": 1}
    assert found["different"] == whole["different"]
    assert heads(town, "night") == heads(town, "whole")
    assert written == [{*town.users} - {users["raised"]}]


def test_an_error_of_a_check_leaves_the_report_as_it_is(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    town.reconcile("first")
    town.now += timedelta(days=1)
    corrupted(town)
    whole = town.reconcile("whole", repair=False)
    assert whole["counts"]["compared"] > whole["counts"]["looked_at"], "else nobody is only checked"
    found = repeat_after_error(town, monkeypatch, (ShareReconciliation, "_passes_check"))
    repaired = len(whole["different"]) - 1
    assert repaired > 0
    assert found["counts"] == whole["counts"] | {"repaired": repaired, "unrepaired": 1}
    assert found["different"] == whole["different"]
    assert heads(town, "night") == heads(town, "whole")


def test_a_streak_that_could_not_be_lowered_leaves_the_report_as_it_is(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    town.now = START + timedelta(days=30)
    corrupted(town)
    whole = town.reconcile("whole", repair=False, everybody=True)
    assert whole["counts"]["lowered"] > 1
    found = repeat_after_error(town, monkeypatch, (Projections, "lower"), everybody=True)
    assert found["counts"] == whole["counts"] | {"repaired": 4, "unrepaired": 1}
    assert found["different"] == whole["different"]


@pytest.mark.parametrize("town", [12], indirect=True)
def test_what_a_call_has_no_time_for_is_done_by_the_next(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    town.shares = 4
    users = corrupted(town)
    town.shares = 1
    monkeypatch.setattr("analytics.reconcile.reconcile_share.USERS_AT_ONCE", 5)
    town.has_time = lambda: False
    found = town.reconcile("slowly", everybody=True)
    progress = json.loads(town.objects.get(UserShare().key("slowly", "progress.json")))
    assert progress["after"] == sorted(town.users)[9], "the second call of three ended there"
    assert {*found["different"], *found["frozen"]} == set(users.values())
    assert found["counts"]["looked_at"] == len(town.users)
    assert found["counts"]["repaired"] == 4


def test_a_day_that_nobody_has_changed_is_looked_at_within_four_weeks(town: Town) -> None:
    town.now += timedelta(days=9)  # what was lived so far is settled, and in the lake
    first = town.reconcile("first")
    assert first["counts"]["looked_at"] == len(town.users), "nothing was compared before"
    lost_day(town, town.users[0])
    HAND["day made up"](town, town.users[1])
    stranger = f"{town.name}-stranger"  # whom the lake does not know
    town.put("UserStreaks", {**town.profile(town.users[2]), "user_id": {"S": stranger}})
    found: list[str] = []
    looks = []
    nights = effort(14, soak=1)  # a night makes good those before it that were left out
    for night in range(0, NIGHTS, nights):
        town.now += timedelta(days=nights)
        told = town.reconcile(f"night-{night}")
        looks.append(told["counts"]["looked_at"])
        found += told["different"]
    assert sorted(found) == sorted([*town.users[:2], stranger])
    assert sum(looks) == len(town.users) + 1, "everybody once"


def test_a_day_that_an_entry_has_changed_is_compared_the_same_night(town: Town) -> None:
    town.now += timedelta(days=9)
    town.reconcile("first")
    town.now += timedelta(days=1)
    user = town.users[2]
    town.apply([town.event(user, 9, 1)])
    town.curate()
    lost_day(town, user)
    town.now += timedelta(hours=3)
    assert user in town.reconcile("night")["different"]


def test_a_streak_that_lapses_is_lowered_the_same_night(town: Town) -> None:
    town.reconcile("first")
    for night in range(effort(4, soak=12)):
        town.now += timedelta(days=1)
        town.reconcile(f"night-{night}")
        for user in town.users:
            profile = town.profile(user)
            is_low = "run_length" in profile or "lapses_at" not in profile
            assert is_low or int(profile["lapses_at"]["N"]) > town.now.timestamp() - 60, (night, user)
    assert any("run_length" in town.profile(user) for user in town.users)


def test_nobody_in_flight_is_named(town: Town) -> None:
    town.apply(town.event(user, 90, 0) for user in town.users[:8])
    found = town.reconcile("flight")
    assert (found["different"], found["disagreements"]) == ([], [])
    assert found["in_flight"] == 8


def test_nobody_is_named_while_writers_are_at_work(town: Town) -> None:
    def write() -> None:
        for each in range(100, 100 + effort(5, soak=15)):
            town.apply(town.event(user, each, 1) for user in town.chance.sample(town.users, 5))

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while not writing.done():
            found = town.reconcile("busy")
            assert (found["different"], found["disagreements"]) == ([], [])
        writing.result()


def test_an_account_that_a_dead_writer_left_is_finished_not_named(town: Town) -> None:
    user = town.users[0]
    account = town.accounts.load(user).account
    draft = Draft(EntryKind.ADJUST, 3)
    town.accounts.ledger.append(
        account.profile.head, append_drafts(user, account.profile.head, [draft], town.tick())
    )
    town.curate()  # the entry reaches the lake by the ledger's own stream
    before = town.tables()
    dry = town.reconcile("dry", repair=False)
    assert (dry["different"], dry["counts"]["behind"], town.tables()) == ([], 1, before)
    wet = town.reconcile("wet")
    assert (wet["different"], wet["counts"]["settled"]) == ([], 1)
    assert decode_item(town.profile(user))["balance"] == account.profile.balance + 3


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
    assert decode_item(town.profile(user))["total_bestie_points"] == earned
    assert town.reconcile("again")["different"] == []


def test_who_is_missing_in_the_index_or_in_a_wrong_partition_of_it_is_put_there(town: Town) -> None:
    gone, moved = [user for user in town.users if "leaderboard_partition" in town.profile(user)][:2]
    right = {user: town.profile(user)["leaderboard_partition"] for user in (gone, moved)}
    for user, change in (
        (gone, "REMOVE leaderboard_partition"),
        (moved, "SET leaderboard_partition = :other"),
    ):
        values = {} if user == gone else {"ExpressionAttributeValues": {":other": {"S": "arctic"}}}
        town.real.update_item(
            TableName="UserStreaks", Key={"user_id": {"S": user}}, UpdateExpression=change, **values
        )
    town.curate()
    assert set(town.reconcile("indexed", everybody=True)["different"]) == {gone, moved}
    assert {user: town.profile(user)["leaderboard_partition"] for user in right} == right


def test_lowering_changes_no_answer_and_empties_the_index(
    town: Town, lone_redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    town.now = START + timedelta(days=1)
    monkeypatch.setattr("processors.ranks.LOWERED_MAX", 0)

    def answers() -> Any:
        Redis(lone_redis_url).call("FLUSHALL")
        told: list[Any] = []
        for cache in (EngagementCache(""), EngagementCache(lone_redis_url)):
            profiles = Profiles(town.accounts, town.events, cache, Settler(town.accounts, KnownBooks()))
            town.delete("Boards", board="manifest", part="newest")
            index = LeaderboardIndex(town.real, "UserStreaks", SHARDS)
            assert RankBuilder(town.real, "UserStreaks", "Boards", index, cache).build(town.now)["counted"]
            board = Leaderboards(profiles, BoardSnapshots(town.real, "Boards"), index, cache)
            told.append([profiles.view(user, None, town.now) for user in town.users])
            told.append([board.rank("streaks", "global", user, town.now)["rank"] for user in town.users])
            told.append(board.top("streaks", "global", 100, town.now)["entries"])
            told.append(index.top("global", town.now))
        return told

    def indexed() -> set[str]:
        rows = town.real.scan(TableName="UserStreaks", IndexName="StreakLeaderboard")["Items"]
        return {row["user_id"]["S"] for row in rows} & set(town.users)

    before = answers()
    alive = {row["user_id"] for row in before[2]} & set(town.users)
    ended = indexed() - alive
    assert ended
    versions = {user: town.profile(user)["version"] for user in town.users}
    assert town.reconcile("low")["counts"]["lowered"] == len(ended)
    assert indexed() == alive
    assert answers() == before
    assert town.reconcile("again")["counts"]["lowered"] == 0
    town.now += timedelta(days=1)
    before = answers()
    assert indexed() == alive
    monkeypatch.setattr("processors.ranks.LOWERED_MAX", 999)
    assert answers() == before
    alive_later = {row["user_id"] for row in before[2]} & set(town.users)
    assert indexed() == alive_later < alive
    later = town.reconcile("later")
    assert (later["different"], later["counts"]["lowered"]) == ([], 0)
    assert {user: town.profile(user)["version"] for user in town.users} == versions
    back = next(user for user in town.users if user not in alive)
    town.now = START
    town.apply([town.event(back, 98, 0)])
    assert back in indexed()
    assert "run_length" not in town.profile(back)
