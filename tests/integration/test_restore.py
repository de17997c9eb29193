"""The drill: tables are lost, and filled again from the lake alone. Every answer is the same (rule 21)."""

import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.item_tables import ItemTable
from adapters.platform.items import encode_item
from adapters.platform.objects import FolderObjects, S3Objects
from adapters.platform.redis import Redis
from analytics.lake.layout import curated_files
from analytics.restore.restorer import RESTORED, copy_table
from local.stack import Stack
from processors import expiry
from rules.days import stamp
from rules.engagement.proof import chain_of, link_of, own_faults
from rules.lake.table_items import KEYS
from rules.privacy.tombstones import Act, ErasureLogEntry, user_subject
from tests.support import redis_servers
from tests.support.dying import Dying, Killed
from tests.support.dynamodb_engine import SECRET, TABLES
from tests.support.effort import SOAK, effort
from tests.support.engine import running
from tests.support.gateway import CONTEXT
from tests.support.restore_drill import KINDS, Drill, keys_of, tombstones
from tests.support.rewards import publish, with_rewards
from tests.support.site import PRODUCERS, Site, site
from tests.support.template import table_definition
from tests.support.typed_command import typed

SEEDS = range(1, effort(1, soak=30) + 1)
DAY = timedelta(days=1)
PAYS = {"withdrawn": "when_untrue"}
PAYING = {
    "first": {"all": [{"points_earned": 1}], "points": 50, **PAYS},
    "some": {"any": [{"count": each, "at_least": 3} for each in KINDS], "points": 7, "secret": True, **PAYS},
}
LOST = (
    *(("RewardsLedger", "BPEvents"), ("UserStreaks", "DailyActivity"), ("IdempotencyKeys", "Rewards")),
    *(("RuleBooks", "Erasures"), ("Subscriptions", "Limits")),
)


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis that nobody else has: it is lost, too."""
    with redis_servers.running(tmp_path_factory.mktemp("redis"), is_cluster=False) as url:
        yield url


@pytest.fixture(scope="module")
def api(redis_url: str) -> Iterator[Site]:
    """A site whose tables nobody else has: they are lost again and again."""
    settings = {"LEADERBOARD_SHARDS": "2"}
    with (
        pytest.MonkeyPatch.context() as patch,
        running() as engine,
        site(engine, redis_url, **settings) as prepared,
    ):
        # The drill's users have done all that they do before its book is published, and are to have bonuses.
        patch.setattr("rules.engagement.goals.first_date_to_come", lambda now: (now - 60 * DAY).date())
        yield prepared


def lived_in(api: Site, folder: Path, seed: int, published: Sequence[str] = ()) -> Drill:
    api.settle()  # what an earlier restore has put into streams
    drill = Drill(api, folder, seed, os.environ["REDIS_URL"])
    drill.lose()
    publish(api, with_rewards(mug={"stock": 50, "limit_per_user": 3}) | {"achievements": PAYING})
    drill.live()
    drill.publish(*published)
    return drill


@pytest.fixture(scope="module")
def town(api: Site, tmp_path_factory: pytest.TempPathFactory) -> tuple[Drill, dict[str, Any]]:
    """A drill whose users have lived, and what they were shown."""
    drill = lived_in(api, tmp_path_factory.mktemp("town"), 0)
    return drill, drill.shown()


@pytest.fixture
def lived(town: tuple[Drill, dict[str, Any]], tmp_path: Path) -> Drill:
    """The same town as it has lived, all of it lost, with a lake that the test may damage."""
    drill, _ = town
    shutil.copytree(drill.folder / "lake", tmp_path / "lake")
    drill.objects = FolderObjects(tmp_path / "lake")
    drill.lose()
    return drill


@pytest.fixture
def before(town: tuple[Drill, dict[str, Any]]) -> dict[str, Any]:
    return town[1]


def same(drill: Drill, before: dict[str, Any]) -> None:
    """Assert that everything is answered as before, also when the streams have told what was restored."""
    for _ in range(2):
        after = drill.shown()
        for user, told in before.items():
            for path, answer in told.items():
                assert after[user][path] == answer, (
                    user,
                    path,
                    {
                        k: (v, answer[1].get(k))
                        for k, v in after[user][path][1].items()
                        if answer[1].get(k) != v
                    },
                )
        drill.api.settle()


def bonuses(told: Any) -> list[Any]:
    """The entries of bonuses that a user was shown."""
    return [each for each in told["/ledger?limit=100"][1]["entries"] if each["kind"] == "BONUS"]


@pytest.mark.parametrize("seed", SEEDS)
def test_all_tables_are_lost_and_every_answer_is_the_same(api: Site, tmp_path: Path, seed: int) -> None:
    drill = lived_in(api, tmp_path, seed)
    before = drill.shown()
    assert any(told["/redemptions"][1]["redemptions"] for told in before.values())
    assert all(bonuses(told) for told in before.values())
    drill.lose()
    told = drill.restore()
    assert (told.users, told.lacks, told.repaired) == (len(drill.users), [], 0)
    same(drill, before)
    assert expiry.handler({}, CONTEXT)["settled"] == 0, (
        "whoever was shown the balance is settled: nobody is paid twice"
    )
    same(drill, before)


def test_the_command_curates_restores_and_names_what_it_cannot_have(
    lived: Drill, before: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = lived.api.engine
    lake = S3Objects(engine.client("s3"), "lake")
    for each in lived.objects.list("raw/"):
        lake.put(each.key, lived.objects.get(each.key))
    outputs = {"LakeBucketName": "lake", "ErasureSecretId": SECRET, "LeaderboardShards": "2"}
    stack = Stack("", engine.endpoint, "us-east-1", outputs, {name: name for name in TABLES}, "")
    report = tmp_path / "report.json"
    typed(stack, "restore", "--report", str(report))
    told = json.loads(report.read_text())
    assert (told["users"], told["lacks"]) == (len(lived.users), [])
    assert {"Questions", "PostgreSQL", "Notifications"} <= told["not_in_the_lake"].keys()
    assert f"{len(lived.users)} users as of {told['to']}" in capsys.readouterr().out
    same(lived, before)
    # Another of the tables comes back by point-in-time recovery: without whom was erased.
    lived.dynamodb.create_table(**table_definition("Questions", "questions-0300"))
    for name in ("q1", "q2"):
        lived.dynamodb.put_item(TableName="questions-0300", Item=encode_item({"question_id": name}))
    typed(stack, "restore", "--report", str(report), "--from-table", "Questions=questions-0300")
    assert {"q1", "q2"} < {each["question_id"]["S"] for each in lived.items("Questions")}
    assert "Questions" not in json.loads(report.read_text())["not_in_the_lake"]
    assert not any(json.loads(report.read_text())["written"].values())
    assert "\nall was there\n" in capsys.readouterr().out


def test_redis_alone_is_lost(lived: Drill, before: dict[str, Any]) -> None:
    assert lived.restore().repaired == 0
    redis = Redis(lived.redis_url)
    assert lived.shown() == before
    assert redis.call("DBSIZE")
    redis.call("FLUSHALL")
    same(lived, before)


def test_what_comes_back_of_a_table_is_nobody_s_past_who_came_anew(lived: Drill) -> None:
    """Rule 10: what happened before an erasure never comes back."""
    gone, *_ = lived.users
    digest = tombstones(lived.dynamodb).digest(user_subject(gone))
    for minutes, act in ((-9, Act.ERASED), (-5, Act.LIFTED)):
        entry = ErasureLogEntry(stamp(datetime.now(UTC) + timedelta(minutes=minutes)), digest, act, "e1")
        new = encode_item({"part": "journal", "place": entry.place, "erasure_id": "e1"})
        lived.dynamodb.put_item(TableName="Erasures", Item=new)
    lived.dynamodb.create_table(**table_definition("Responses", "responses-0300"))
    for number, minutes in enumerate((-60, -1)):
        at = stamp(datetime.now(UTC) + timedelta(minutes=minutes))
        one = {"question_id": f"q{number}", "response_id": "r", "fingerprint_hash": "r", "created_at": at}
        lived.dynamodb.put_item(TableName="responses-0300", Item=encode_item({**one, "user_id": gone}))
        lived.dynamodb.put_item(TableName="responses-0300", Item=encode_item({**one, "response_id": "other"}))
    source, to = (
        ItemTable(lived.dynamodb, name, keys_of("Responses")) for name in ("responses-0300", "Responses")
    )
    assert copy_table(source, to, tombstones(lived.dynamodb)) == (3, 1)
    assert [each["question_id"]["S"] for each in lived.items("Responses") if "user_id" in each] == ["q1"]


def test_pairs_come_back_by_point_in_time_recovery(lived: Drill) -> None:
    """The lake knows pairs, but not by whose name (rule 26). Nobody's list gets back who was erased meanwhile."""
    ann, bob, gone = (f"{name}-{datetime.now(UTC).timestamp()}" for name in ("ann", "bob", "gone"))
    for one, other in ((ann, bob), (ann, gone)):
        for user, friend in ((one, other), (other, one)):
            assert lived.api.call(user, "PUT", f"/v1/users/{user}/friends/{friend}")[0] == 200
    assert lived.api.call(bob, "PUT", f"/v1/users/{bob}/blocked/{gone}")[0] == 200
    shown = lived.api.call(ann, "GET", f"/v1/users/{ann}/friends")[1]
    recovered = lived.items("Friends")
    lived.dynamodb.create_table(**table_definition("Friends", "friends-0300"))
    for item in recovered:
        lived.dynamodb.put_item(TableName="friends-0300", Item=item)
    lived.lose("Friends")
    digest = tombstones(lived.dynamodb).digest(user_subject(gone))
    entry = ErasureLogEntry(stamp(datetime.now(UTC)), digest, Act.ERASED, "e2")
    new = encode_item({"part": "journal", "place": entry.place, "erasure_id": "e2"})
    lived.dynamodb.put_item(TableName="Erasures", Item=new)
    source, to = (ItemTable(lived.dynamodb, name, keys_of("Friends")) for name in ("friends-0300", "Friends"))
    # Refused are both ties to and from who is gone, that list's head, the block, and its mark.
    assert copy_table(source, to, tombstones(lived.dynamodb)) == (len(recovered) - 5, 5)
    assert gone not in str(lived.items("Friends"))
    after = lived.api.call(ann, "GET", f"/v1/users/{ann}/friends")[1]
    assert after["friends"] == [each for each in shown["friends"] if each["user_id"] == bob] != []


def test_old_duplicates_stay_duplicates(lived: Drill, before: dict[str, Any]) -> None:
    lived.restore()
    for user, sent in lived.sent.items():
        again = [{**each, "user_id": user} for each in sent]
        told = lived.api.send("server", *again, groups=(PRODUCERS,))
        assert (told["duplicates"], told["accepted"]) == (len(sent), 0)
        other = {**again[0], "properties": {"minutes": 99}}
        (result,) = lived.api.send("server", other, groups=(PRODUCERS,))["results"]
        assert result["status"] == "conflict"
    assert lived.redeemed
    for user, (body, entry) in lived.redeemed.items():
        groups = () if "reward" in body else ("streakline/fulfilment",)
        who = user if "reward" in body else "desk"
        status, told = lived.api.call(who, "POST", f"/v1/users/{user}/redemptions", body, *groups)
        assert (status, told["created_at"], told["duplicate"]) == (201, entry["created_at"], True)
    same(lived, before)


def test_killed_anywhere_it_goes_on_and_twice_it_writes_nothing(lived: Drill) -> None:
    lived.restore()
    whole = lived.tables()
    assert not lived.restore().changes.total()
    for at in sorted(lived.chance.sample(range(1, 150), effort(1, soak=60))):
        lived.lose()
        with suppress(Killed):
            lived.restore(
                client=Dying(lived.dynamodb, at, lived.chance.choice(("dies before", "dies after")))
            )
        lived.restore()
        assert lived.tables() == whole, at
    lived.api.settle()
    assert lived.tables() == whole


def test_some_tables_are_lost(lived: Drill, before: dict[str, Any]) -> None:
    lived.restore()
    for tables in LOST if SOAK else ([*LOST[0], *LOST[1]], [*LOST[2], *LOST[3]]):
        lived.lose(*tables)
        told = lived.restore()
        assert (set(+told.changes) <= {*tables}, told.lacks) == (True, []), tables
        assert lived.shown() == before, tables
    same(lived, before)


def test_each_table_is_lost_in_some_test() -> None:
    assert {each for some in LOST for each in some} == {*RESTORED, "Subscriptions", "Limits"}


def test_damaged_tables_are_replaced(lived: Drill, before: dict[str, Any]) -> None:
    lived.restore()
    whole = lived.tables()
    profile, entry, day = (lived.items(name)[1] for name in ("UserStreaks", "RewardsLedger", "DailyActivity"))
    for table, damaged in (
        ("UserStreaks", profile | {"balance": {"N": "999"}, "alias": {"S": "Eve"}}),
        ("RewardsLedger", entry | {"points": {"N": "999"}}),
        ("DailyActivity", day | {"events_count": {"N": "77"}}),
        ("UserStreaks", profile | {"user_id": {"S": "nobody-ever"}}),
        ("RewardsLedger", entry | {"created_at": {"S": "2031-01-01T00:00:00.000000Z"}}),
    ):
        lived.dynamodb.put_item(TableName=table, Item=damaged)
    told = lived.restore()
    assert [each.store for each in told.lacks if "another one in the lake" in each.reason] == [
        "RewardsLedger"
    ]
    told = lived.restore(replaced=("UserStreaks", "RewardsLedger", "DailyActivity"))
    assert (told.lacks, lived.tables()) == ([], whole)
    same(lived, before)


def test_a_table_that_is_kept_is_not_even_repaired(lived: Drill) -> None:
    lived.restore()
    whole = lived.tables()
    changed = (("UserStreaks", "balance"), ("DailyActivity", "events_count"))
    for table, attribute in changed[: effort(1, soak=2)]:
        item = next(each for each in lived.items(table) if attribute in each)
        lived.dynamodb.put_item(TableName=table, Item=item | {attribute: {"N": "999"}})
        kept = lived.items(table)
        assert kept != whole[table]
        for replaced in ((), (table,)):
            lived.restore(keep=(table,), replaced=replaced)
            assert lived.items(table) == kept
        assert lived.restore().repaired == 1
    lived.restore(replaced=("UserStreaks", "DailyActivity"))
    assert lived.tables() == whole


def test_what_the_tables_have_does_not_lack_though_the_lake_has_not_got_it(api: Site, tmp_path: Path) -> None:
    """Firehose gathers for minutes, and a table's stream may have been off: nothing is lost by that."""
    drill = lived_in(
        api, tmp_path, 51, published=[name for name in KEYS if name not in ("IdempotencyKeys", "Rewards")]
    )
    drill.publish("BPEvents", "RewardsLedger")
    result = drill.restore()
    assert (result.lacks, result.changes.total()) == ([], 0)
    result = drill.restore(keep=("IdempotencyKeys", "Rewards"))
    assert (result.lacks, result.changes.total()) == ([], 0)
    claims = [item for item in drill.items("IdempotencyKeys") if "#" in item["target"]["S"]]
    redemptions = [item for item in drill.items("Rewards") if "fulfilment" in item]
    assert claims
    assert redemptions
    lost = [("IdempotencyKeys", claims[0]), ("Rewards", redemptions[0])]
    for table, item in lost:
        drill.dynamodb.delete_item(TableName=table, Key={name: item[name] for name in keys_of(table)})
    for _ in range(2):  # a restore that runs again names them again
        lacks = {(lack.store, lack.key) for lack in drill.restore().lacks}
        assert lacks == {
            (table, " ".join(item[name]["S"] for name in keys_of(table))) for table, item in lost
        }
    replaced = drill.restore(replaced=("IdempotencyKeys",)).lacks
    assert len([lack for lack in replaced if lack.store == "IdempotencyKeys"]) == len(claims)


def test_a_lake_of_before_gives_what_the_tables_had_before(api: Site, tmp_path: Path) -> None:
    drill = lived_in(api, tmp_path, 50)
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    while datetime.now(UTC) < until:
        time.sleep(0.05)
    before = drill.shown()
    for user in drill.users:
        drill.sent[user].append(drill.event(77))
        drill.api.send("server", {**drill.sent[user].pop(), "user_id": user}, groups=(PRODUCERS,))
        drill.command(user, "spend")
        drill.command(user, "alias")
    drill.publish()
    assert drill.shown() != before
    drill.lose()
    assert drill.restore(until).lacks == []
    same(drill, before)


def test_who_was_erased_does_not_come_back(
    lived: Drill, before: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, *others = lived.users
    lived.restore()
    known = tombstones(lived.dynamodb)
    digest = known.digest(user_subject(gone))
    now = datetime.now(UTC) + timedelta(seconds=60)  # later than the instant of the restore
    erased = ErasureLogEntry(stamp(now), digest, Act.ERASED, "e1")
    lived.dynamodb.put_item(
        TableName="Erasures",
        Item=encode_item({"part": "journal", "place": erased.place, "erasure_id": "e1"}),
    )
    lived.publish("Erasures")
    lived.lose()
    told = lived.restore()
    assert told.erased == 1
    assert gone not in repr(lived.tables())
    monkeypatch.setattr(lived, "users", others)
    same(lived, {user: before[user] for user in others})


def test_a_gap_in_the_lake_is_named_and_nothing_is_made_up(lived: Drill) -> None:
    user = lived.users[0]
    for stored in curated_files(lived.objects, "ledger"):
        path = lived.folder_of(stored.key)
        rows = pq.read_table(path)
        is_it = pc.and_(pc.equal(rows["account_id"], user), pc.equal(rows["seq"], pa.scalar(5)))
        pq.write_table(rows.filter(pc.invert(is_it)), path)
    told = lived.restore()
    assert [(each.store, each.key) for each in told.lacks if "lacks seq 5" in each.reason] == [
        ("RewardsLedger", user)
    ]
    entries, _ = LedgerStore(lived.dynamodb, "RewardsLedger").after(user, "0")
    assert [each.seq for each in entries] == list(range(5))


def test_a_lake_without_kept_items_gives_the_same_ledger_and_names_the_rest(
    lived: Drill, before: dict[str, Any]
) -> None:
    for each in list(lived.objects.list("curated/table_items/")):
        lived.objects.delete([each.key])
    told = lived.restore()
    assert {each.store for each in told.lacks} == {"UserStreaks", "IdempotencyKeys", "Rewards"}
    shown = lived.shown()
    for user in lived.users:
        for path in ("/ledger?limit=100", "/events?limit=100"):
            assert shown[user][path] == before[user][path]
        names = {each.key for each in told.lacks if each.store == "UserStreaks"}
        assert user in names


def test_hashes_are_those_of_before(lived: Drill) -> None:
    ledger = LedgerStore(lived.dynamodb, "RewardsLedger")
    lived.restore()
    for user in lived.users:
        entries, missing = ledger.after(user, "0")
        assert missing == []
        assert own_faults([link_of(each) for each in entries]) == []
        chain = chain_of(user, [link_of(each) for each in entries])
        assert chain
        assert chain.leaf.hex() == lived.leaves[user]
