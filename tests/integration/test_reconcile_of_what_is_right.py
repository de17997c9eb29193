"""Who is in flight, half written or lapsed is no difference: the run names nobody, and changes no answer."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.engagement.boards import BoardSnapshots, LeaderboardIndex
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.points import Settler
from adapters.engagement.projections import Projections
from adapters.platform.items import Item, decode_item
from adapters.platform.redis import Redis
from ingest.engagement.leaderboards import Leaderboards
from ingest.engagement.profiles import Profiles
from processors.ranks import RankBuilder
from rules.engagement.ledger import Draft, EntryKind, append_drafts
from tests.support.books import KnownBooks
from tests.support.corruptions import HAND
from tests.support.engine import Engine
from tests.support.town import SHARDS, START, Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")


@pytest.fixture
def town(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Town]:
    with lived_in(engine, tmp_path, request.node.name[5:24], getattr(request, "param", 12)) as made:
        yield made


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


def test_lowering_changes_no_answer_and_empties_the_index(town: Town, lone_redis_url: str) -> None:
    town.now = START + timedelta(days=2)

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
