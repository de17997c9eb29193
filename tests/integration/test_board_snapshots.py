"""Leaderboards: snapshots, lists of streaks, who sees which, and what a request reads."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.engagement import boards as board_snapshots
from adapters.engagement.account_store import AccountStore
from adapters.engagement.boards import FRESH_SECONDS, SNAPSHOTS_KEPT, write_snapshot
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.projections import Projections
from adapters.platform.aws import client
from adapters.platform.redis import Redis
from ingest.engagement import user_services
from ingest.engagement.leaderboards import RANK, TOP_LIST
from ingest.web.caller import ApiError
from ingest.web.validate import first_problem
from local.cloud.processes import free_port
from processors import ranks
from processors.ranks import count_scores
from rules.days import stamp
from rules.engagement.account_state import Profile
from rules.engagement.boards import ALL_REGIONS
from rules.engagement.streak import Streak
from tests.support.accounts import put_profile
from tests.support.board_tables import SHARDS, BoardTables
from tests.support.capacity import ReadCount
from tests.support.engine import Engine
from tests.support.gateway import CONTEXT, ask, token

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
ROWS_MAX = (
    SHARDS * 200
)  # of each shard of the region that all are in, the first 100 and a page that ends the ties
NOWHERE = f"redis://127.0.0.1:{free_port()}"


def user(name: str, points: int, streak: int = 3) -> Profile:
    made = Streak(NOW.date(), streak, streak, streak)
    return Profile(name, 1, total_points=points, streak=made, updated_at="x", chosen_zone="Europe/Berlin")


@pytest.fixture
def tables(engine: Engine) -> BoardTables:
    made = BoardTables(engine.client("dynamodb"))
    made.put([user("ann", 50), user("bob", 30), user("cid", 30), user("dan", 10)])
    return made


def names(answer: dict[str, Any]) -> list[tuple[int, str]]:
    return [(each["rank"], each["user_id"]) for each in answer["entries"]]


# ---- what a request reads


def test_what_a_request_reads_does_not_depend_on_the_number_of_users(tables: BoardTables) -> None:
    tables.put([user(f"u{number}", 5 * number, 1 + number % 50) for number in range(600)])
    tables.builder().build(NOW)
    reads = ReadCount()
    reads.watch(tables.dynamodb)
    for board, rows_max in (("streaks", ROWS_MAX), ("points", 2)):  # rows of the index; manifest and rows
        assert len(tables.leaderboards().top(board, "global", 100, NOW)["entries"]) >= 60
        assert reads.take()[0] <= rows_max
        tables.leaderboards().rank(board, "global", "u30", NOW)
        assert reads.take()[0] == 3, "profile, manifest and a chunk of scores"


def test_a_burst_costs_no_reads_but_the_profile_s(
    tables: BoardTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.builder().build(NOW)
    boards, moment = tables.leaderboards(), [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: moment[0])
    reads = ReadCount()
    reads.watch(tables.dynamodb)
    first = boards.top("points", "global", 3, NOW), boards.rank("points", "global", "dan", NOW)
    assert reads.take()[0] == 4
    for _ in range(5):
        assert (boards.top("points", "global", 3, NOW), boards.rank("points", "global", "dan", NOW)) == first
    assert reads.take()[0] == 5, "five profiles"
    tables.put([user("eve", 90)])
    tables.builder().build(LATER)
    reads.take()
    assert boards.top("points", "global", 3, LATER) == first[0]
    assert reads.take()[0] == 0
    moment[0] += FRESH_SECONDS
    assert names(boards.top("points", "global", 1, LATER)) == [(1, "eve")]
    assert reads.take()[0] == 2


# ---- who sees what


def test_answers_say_as_of_when_and_a_rank_is_of_the_score_of_now(tables: BoardTables) -> None:
    tables.builder().build(NOW)
    tables.put([user("dan", 40), user("new", 45)])
    boards = tables.leaderboards()
    board = boards.top("points", "europe", 3, LATER)
    assert names(board) == [(1, "ann"), (2, "bob"), (2, "cid")]
    assert board["as_of"] == stamp(NOW)
    assert boards.rank("points", "europe", "dan", LATER) == {
        "board": "points",
        "region": "europe",
        "user_id": "dan",
        "alias": None,
        "score": 40,
        "rank": 2,
        "as_of": stamp(NOW),
        "is_old": False,
    }
    assert boards.rank("points", "global", "new", LATER)["rank"] == 2
    assert boards.rank("points", "asia", "dan", LATER)["rank"] is None
    assert boards.top("points", "asia", 3, LATER)["entries"] == []


def test_a_streak_that_lapsed_since_the_snapshot_is_not_shown(tables: BoardTables) -> None:
    gone = replace(user("ann", 50, 9), streak=Streak(NOW.date() - timedelta(days=1), 9, 9, 9))
    tables.put([gone])
    midnight = datetime(2026, 3, 10, 23, tzinfo=UTC)  # in Berlin
    tables.builder().build(midnight - timedelta(seconds=1))
    boards = tables.leaderboards()
    assert names(boards.top("streaks", "global", 2, midnight - timedelta(minutes=1)))[0] == (1, "ann")
    assert names(boards.top("streaks", "global", 2, midnight)) == [(1, "bob"), (1, "cid")]
    assert boards.rank("streaks", "global", "ann", midnight)["rank"] is None
    assert names(boards.top("points", "global", 1, midnight)) == [(1, "ann")]


def test_a_generation_is_seen_when_all_of_it_is_there(
    tables: BoardTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.builder().build(NOW)
    before = tables.leaderboards().top("points", "global", 9, LATER)
    tables.put([user("eve", 90)])

    class Dying:
        """Dies before it writes the manifest."""

        def __getattr__(self, name: str) -> Any:
            if name == "put_item":
                raise KeyboardInterrupt
            return getattr(tables.dynamodb, name)

    with pytest.raises(KeyboardInterrupt):
        replace(tables.builder(), dynamodb=Dying()).build(LATER)
    assert tables.leaderboards().top("points", "global", 9, LATER) == before
    assert tables.builder().build(LATER)["counted"] == 5
    assert names(tables.leaderboards().top("points", "global", 1, LATER)) == [(1, "eve")]


def test_who_holds_the_former_manifest_reads_the_former_generation_only(tables: BoardTables) -> None:
    tables.builder().build(NOW)
    slow = tables.leaderboards()
    assert names(slow.top("points", "global", 1, LATER)) == [(1, "ann")]
    tables.put([user("eve", 90)])
    tables.builder().build(LATER)
    assert slow.rank("points", "global", "dan", LATER)["rank"] == 4
    assert tables.leaderboards().rank("points", "global", "dan", LATER)["rank"] == 5


def test_of_two_builders_at_once_the_later_one_stays(tables: BoardTables) -> None:
    older = count_scores(tables.dynamodb, tables.users, NOW).standings
    tables.put([user("eve", 90)])
    newer = count_scores(tables.dynamodb, tables.users, LATER).standings
    assert write_snapshot(tables.dynamodb, tables.boards, newer)
    assert not write_snapshot(tables.dynamodb, tables.boards, older)
    assert not write_snapshot(tables.dynamodb, tables.boards, newer), "as new is not newer"
    assert names(tables.leaderboards().top("points", "global", 1, LATER)) == [(1, "eve")]


def test_a_part_that_a_replica_does_not_have_yet_is_read_from_the_leader(tables: BoardTables) -> None:
    tables.builder().build(NOW)

    class Lagging:
        def __getattr__(self, name: str) -> Any:
            return getattr(tables.dynamodb, name)

        def get_item(self, **asked: Any) -> Any:
            if asked["Key"]["board"]["S"] != "manifest" and not asked.get("ConsistentRead"):
                return {}
            return tables.dynamodb.get_item(**asked)

    snapshots = board_snapshots.BoardSnapshots(Lagging(), tables.boards)
    manifest = snapshots.newest(NOW)
    assert manifest is not None
    assert snapshots.count_above(manifest, "points", "global", 30) == 1


def test_a_replica_with_an_older_manifest_turns_no_time_back(
    tables: BoardTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_snapshots, "FRESH_SECONDS", -1)
    tables.builder().build(NOW)
    key = {"board": {"S": "manifest"}, "part": {"S": "newest"}}
    old = tables.dynamodb.get_item(TableName=tables.boards, Key=key)["Item"]
    tables.builder().build(LATER)
    snapshots = tables.snapshots()
    assert snapshots.newest(LATER).as_of == LATER  # type: ignore[union-attr]
    tables.dynamodb.put_item(TableName=tables.boards, Item=old)
    assert snapshots.newest(LATER).as_of == LATER  # type: ignore[union-attr]


def test_a_damaged_profile_is_left_out(tables: BoardTables) -> None:
    wires: dict[str, dict[str, Any]] = {
        "x": {"total_bestie_points": {"S": "many"}},
        "y": {"timezone": {"N": "1"}},
        "z": {"board_settings": {"N": "7"}},
        "w": {"board_settings": {"L": [{"N": "7"}]}},
    }
    for name, wire in wires.items():
        whole = {"timezone": {"S": "UTC"}, "total_bestie_points": {"N": "99"}}
        tables.dynamodb.put_item(TableName=tables.users, Item={"user_id": {"S": name}, **whole, **wire})
    assert tables.builder().build(NOW)["counted"] == 4


# ---- before there is a snapshot


@pytest.mark.parametrize("has_expired", [False, True])
def test_without_a_snapshot_points_must_wait_and_streaks_are_there(
    tables: BoardTables, has_expired: bool
) -> None:
    if has_expired:
        tables.builder().build(NOW - SNAPSHOTS_KEPT)
    tables.put([user("eve", 0, 5), replace(user("zoe", 0, 9), chosen_zone="Asia/Tokyo")])
    boards = tables.leaderboards()
    board = boards.top("streaks", "global", 3, NOW)
    assert (names(board), board["as_of"]) == ([(1, "zoe"), (2, "eve"), (3, "ann")], stamp(NOW))
    assert [boards.rank("streaks", each, "ann", NOW)["rank"] for each in ("global", "europe")] == [3, 2]
    requests: list[Any] = [
        lambda: boards.top("points", "global", 2, NOW),
        lambda: boards.rank("points", "global", "ann", NOW),
    ]
    for request in requests:
        with pytest.raises(ApiError, match="try again in a minute") as refused:
            request()
        assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "60"})
    assert boards.rank("points", "global", "nobody", NOW)["rank"] is None


def test_a_rank_that_would_count_a_large_index_waits_for_the_snapshot(
    tables: BoardTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    boards, real = tables.leaderboards(), tables.dynamodb.query
    monkeypatch.setattr(
        tables.dynamodb, "query", lambda **asked: {**real(**asked), "LastEvaluatedKey": {"user_id": {}}}
    )
    with pytest.raises(ApiError, match="try again in a minute"):
        boards.rank("streaks", "global", "ann", NOW)


# ---- lists of streaks


def test_streaks_that_lapsed_do_not_stand_before_others_and_ties_go_by_user_id(tables: BoardTables) -> None:
    yesterday = Streak(NOW.date() - timedelta(days=1), 900, 900, 900)
    lapsed = [replace(user(f"gone-{number:03}", 1), streak=yesterday) for number in range(250)]
    tied = [user(f"tied-{number:03}", 1, 2) for number in range(250)]
    tables.put([*lapsed, *tied])
    midnight = datetime(2026, 3, 10, 23, tzinfo=UTC)  # in Berlin
    found = [name for name, _ in tables.index().top("europe", midnight)]
    assert found == ["ann", "bob", "cid", "dan", *(each.user_id for each in tied[:96])]
    assert tables.index().count_above("global", 2, midnight) == 4


def test_without_redis_a_process_reads_a_list_once_a_minute(tables: BoardTables) -> None:
    boards, reads = tables.leaderboards(), ReadCount()
    reads.watch(tables.dynamodb)
    first = boards.top("streaks", "europe", 3, NOW)
    tables.put([user("eve", 1, 8)])
    reads.take()
    soon = NOW + timedelta(seconds=59)
    assert boards.top("streaks", "europe", 3, soon) == first
    assert reads.take()[0] == 0
    assert names(boards.top("streaks", "europe", 1, NOW + timedelta(minutes=1))) == [(1, "eve")]


# ---- streaks that have ended


def indexed(tables: BoardTables) -> set[str]:
    return {
        row["user_id"]["S"]
        for row in tables.dynamodb.scan(TableName=tables.users, IndexName="StreakLeaderboard")["Items"]
    }


def accounts_of(tables: BoardTables) -> AccountStore:
    ledger = LedgerStore(tables.dynamodb, "RewardsLedger")
    return AccountStore(tables.dynamodb, tables.users, "DailyActivity", ledger, SHARDS)


def test_a_streak_that_had_ended_when_it_was_written_is_not_in_the_index(tables: BoardTables) -> None:
    accounts, living = accounts_of(tables), indexed(tables)
    long_ago = replace(user("eve", 1), streak=Streak(NOW.date() - timedelta(days=900), 40, 40, 40), version=1)
    put_profile(accounts, Profile("eve"), replace(long_ago, updated_at=stamp(NOW)))
    assert indexed(tables) == living
    assert accounts.profile("eve").streak == long_ago.streak, "the run is kept"
    back = replace(long_ago, version=2, streak=Streak(NOW.date(), 1, 40, 41), updated_at=stamp(NOW))
    put_profile(accounts, long_ago, back)
    assert indexed(tables) == {*living, "eve"}


def test_a_streak_that_ends_later_leaves_the_index_with_the_next_snapshot(
    tables: BoardTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.put([replace(user("eve", 1), streak=Streak(NOW.date() + timedelta(days=9), 2, 2, 2))])
    assert indexed(tables) > {"eve"}
    later = NOW + timedelta(days=3)
    monkeypatch.setattr("processors.ranks.LOWERED_MAX", 1)
    before = indexed(tables)
    tables.builder().build(later)
    assert len(indexed(tables)) == len(before) - 1, "a run has a bound"
    monkeypatch.undo()
    tables.builder().build(later + timedelta(hours=2))
    assert indexed(tables) == {"eve"}


def test_an_event_that_overtakes_the_lowering_keeps_its_state(tables: BoardTables) -> None:
    later = NOW + timedelta(days=3)
    lapsed = count_scores(tables.dynamodb, tables.users, later).lapsed
    accounts = accounts_of(tables)
    before = accounts.profile("ann")
    back = replace(
        before, version=before.version + 1, streak=Streak(later.date(), 1, 9, 9), updated_at=stamp(later)
    )
    put_profile(accounts, before, back)
    lowered = Projections(tables.dynamodb, tables.users, "").lower_all(lapsed)
    assert (lowered.count(False), lowered.count(True)) == (1, len(lapsed) - 1)
    assert (indexed(tables), accounts.profile("ann")) == ({"ann"}, back)


# ---- the schedule


def test_the_users_of_a_large_table_are_read_less_often(
    tables: BoardTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.builder().build(NOW)
    monkeypatch.setattr("processors.ranks.is_due", lambda *_: False)
    assert tables.builder().build(LATER) == {"counted": None}


def test_the_functions_answer_as_the_openapi_document_says(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = BoardTables(engine.client("dynamodb"))
    tables.put([user("ann", 50)])
    mine = {"USER_STREAKS_TABLE": tables.users, "BOARDS_TABLE": tables.boards}
    for name, value in (engine.environment() | mine).items():
        monkeypatch.setenv(name, value)
    kept = (client, ranks._parts, user_services.services)
    for each in kept:
        each.cache_clear()
    headers = {"Authorization": f"Bearer {token('ann')}"}
    refused = ask("GET", "/v1/leaderboards/points", headers)
    assert (refused.status, refused.headers["Retry-After"]) == (503, "60")
    assert "try again in a minute" in json.loads(refused.body)["error"]["message"]
    assert ranks.handler({}, CONTEXT) == {"counted": 1}
    for path, schema in (("points", TOP_LIST), ("points/users/ann", RANK)):
        told = ask("GET", f"/v1/leaderboards/{path}", headers)
        assert told.status == 200
        assert first_problem(schema, json.loads(told.body)) is None
    for each in kept:
        each.cache_clear()


# ---- Redis, and the age of a board


def test_redis_keeps_the_lists_of_streaks_that_the_minute_s_run_makes(
    tables: BoardTables, redis_url: str
) -> None:
    redis, cache = Redis(redis_url), EngagementCache(redis_url)
    redis.call("FLUSHALL")
    lists = {f"leaderboard:{region}" for region in ALL_REGIONS}
    assert tables.builder(cache).refresh(NOW) == {"refreshed": len(lists)}
    assert set(redis.call("KEYS", "leaderboard:*")) == lists
    tables.put([user("eve", 1, 8)])
    board = tables.leaderboards(cache).top("streaks", "global", 1, LATER)
    assert (names(board), board["as_of"], board["is_old"]) == ([(1, "ann")], stamp(NOW), False)
    tables.builder(cache).refresh(LATER)
    assert names(tables.leaderboards(cache).top("streaks", "europe", 1, LATER)) == [(1, "eve")]
    later = LATER + timedelta(days=3)
    tables.builder(cache).refresh(later)
    assert tables.leaderboards(cache).top("streaks", "global", 9, later)["entries"] == [], "all have lapsed"


def test_who_reads_first_keeps_a_list_in_redis_for_the_others(tables: BoardTables, redis_url: str) -> None:
    Redis(redis_url).call("FLUSHALL")
    first = tables.leaderboards(EngagementCache(redis_url)).top("streaks", "global", 9, NOW)
    tables.put([user("eve", 1, 8)])
    assert tables.leaderboards(EngagementCache(redis_url)).top("streaks", "global", 9, NOW) == first


def test_boards_are_the_same_while_redis_is_away(tables: BoardTables) -> None:
    away = EngagementCache(NOWHERE)
    assert tables.builder(away).build(NOW) == {"counted": 4}
    boards, others = tables.leaderboards(away), tables.leaderboards()
    for board in ("streaks", "points"):
        assert boards.top(board, "global", 9, LATER) == others.top(board, "global", 9, LATER)
        assert boards.rank(board, "global", "dan", LATER) == others.rank(board, "global", "dan", LATER)


def test_a_snapshot_is_old_after_ten_minutes_or_two_pauses(
    tables: BoardTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.builder().build(NOW)
    boards = tables.leaderboards()

    def are_old(*minutes: int) -> list[bool]:
        times = [NOW + timedelta(minutes=each) for each in minutes]
        ranks = [boards.rank("points", "global", "dan", each)["is_old"] for each in times]
        assert ranks == [boards.top("points", "global", 1, each)["is_old"] for each in times]
        return ranks

    assert are_old(0, 10, 11, 600) == [False, False, True, True]
    monkeypatch.setattr(board_snapshots, "pause_between", lambda _users: timedelta(minutes=20))
    assert are_old(11, 40, 41) == [False, False, True]
