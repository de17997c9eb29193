"""Boards, friends and leagues through a night, an export, and the loss of all their tables (rules 25, 26, 27, 21)."""

import json
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.book_store import Publication, shipped_document
from adapters.engagement.leagues import LeagueStore
from adapters.platform.items import encode_item
from ingest.web.caller import PRODUCERS
from local.api import Api
from local.cloud import laptop_cloud
from local.restore import TABLE_KEYS
from local.stack import Stack
from local.stores import books_of
from rules.book.league_rules import league_rules
from rules.engagement.leagues import Membership, Place, week_of
from tests.e2e.conftest import event
from tests.recipes.scratch import Scratch
from tests.support.template import table_definition

pytestmark = pytest.mark.xdist_group("cloud without parts")

DAY = timedelta(days=1)
SECTIONS: dict[str, Any] = {
    "boards": {"weekly": {"per": "week"}, "classes": {"per": "week", "group": "class"}},
    "friends": {"max": 20},
    "leagues": {"board": "weekly", "divisions": ["bronze", "silver"], "size": 10, "up": 3, "down": 3},
}
# All of engagement's tables are lost, the cohorts of leagues and the boards with them.
LOST = (
    *("UserStreaks", "DailyActivity", "RewardsLedger", "BPEvents", "IdempotencyKeys", "RuleBooks", "Boards"),
    "Friends",
)
FUNCTIONS = ("EventsApi", "UsersApi", "Engagement", "Ranks")
RECOVERED = "friends-0300"


@dataclass
class Club:
    """Four users: Ann and Bob are friends in one class, Cid has left the boards, Dan is in another class."""

    scratch: Scratch
    stack: Stack
    users: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.users = {name: f"{name}-{time.time_ns()}" for name in ("ann", "bob", "cid", "dan")}
        self.admin, self.server = Api(self.stack), Api(self.stack, "server", group=PRODUCERS)
        self.dynamodb = self.stack.client("dynamodb")

    def streakline(self, *words: str) -> str:
        ran = self.scratch.python("-m", "local.cli", *words)
        self.scratch.must(ran)
        return ran.said

    def rows(self, statement: str) -> list[dict[str, Any]]:
        said = self.streakline("sql", statement, "--json")
        found: list[dict[str, Any]] = json.loads(said[said.index("[") : said.rindex("]") + 1])
        return found

    def night(self) -> dict[str, Any]:
        self.drain(lake=True)
        said = self.streakline("night", "run", "--json")
        told: dict[str, Any] = json.loads(said[said.index("{") : said.rindex("}") + 1])
        return told

    def drain(self, lake: bool = False) -> None:
        """Wait until all is applied. lake: until it is in the lake, too."""
        program = f"from local.cloud import patience; patience.drain(load(), lake={lake})"
        self.scratch.must(self.scratch.python("-c", f"from local.stack import load; {program}"))

    def new_processes(self, *names: str) -> None:
        """Let functions read anew what they keep for up to a minute: a changed setting ends their processes."""
        functions = self.stack.client("lambda")
        for each in names:
            name = self.stack.outputs[f"{each}FunctionName"]
            known = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
            changed = {"Variables": {**known, "RENEWED": str(time.time_ns())}}
            functions.update_function_configuration(FunctionName=name, Environment=changed)

    def rank(self) -> None:
        """Close what is due, and count the boards anew, however young the last snapshot is."""
        newest = encode_item({"board": "manifest", "part": "newest"})
        self.dynamodb.delete_item(TableName=self.stack.tables["Boards"], Key=newest)
        self.new_processes("Ranks", "UsersApi")
        laptop_cloud.build_ranks(self.stack)

    def earn(self, key: str, *days_ago: int, users: tuple[str, ...] = ("ann", "bob", "cid", "dan")) -> None:
        now = datetime.now(UTC)
        events = [
            event(self.users[name], f"{key}{days}", (now - days * DAY).isoformat())
            for name in users
            for days in days_ago
        ]
        status, told = self.admin.call("POST", "/v1/events", {"events": events})
        assert (status, told["accepted"]) == (202, len(events)), told
        self.drain()

    def put(self, api: Api, name: str, path: str, body: Any = None) -> None:
        status, told = api.call("PUT", f"/v1/users/{self.users[name]}{path}", body)
        assert status == 200, told

    def shown(self) -> dict[str, Any]:
        """What each user sees of profile, boards, friends and leagues, and an admin of each class."""
        paths = {"/v1/boards/classes?group=4b": self.admin, "/v1/boards/classes?group=4c": self.admin}
        for user in self.users.values():
            mine = Api(self.stack, user, admin=False)
            own = ("", "/friends", "/friends/board?board=weekly", "/league", "/boards")
            paths |= {f"/v1/users/{user}{path}": mine for path in own}
            paths |= {f"/v1/boards/weekly/users/{user}": mine}
        paths |= {"/v1/boards/weekly": self.admin}
        return {path: without_age(api.call("GET", path)) for path, api in paths.items()}


def without_age(told: Any) -> Any:
    """An answer without the instants at which a standing was counted."""
    if isinstance(told, dict):
        return {name: without_age(each) for name, each in told.items() if name != "as_of"}
    return [without_age(each) for each in told] if isinstance(told, list | tuple) else told


@pytest.fixture(scope="module")
def club(cloud_without_parts: Scratch) -> Iterator[Club]:
    """The club after some days, with a league that has closed, and one that is open."""
    local = cloud_without_parts.root / ".local"
    described = json.loads((local / "stack.json").read_text())
    described.pop("folder", None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("local.cloud.tokens.KEY_FILE", local / "issuer.pem")
        made = Club(cloud_without_parts, Stack(**described))
        live(made)
        yield made


def live(club: Club) -> None:
    now, book = datetime.now(UTC), shipped_document() | SECTIONS
    # Whoever publishes today has boards of the next week: this book has been known for long.
    books_of(club.stack).publish(Publication(book, now - 60 * DAY, now - 50 * DAY, "test", "boards"))
    club.new_processes(*FUNCTIONS)
    club.earn("old", 24, 23)
    close_a_league(club, now)
    club.put(club.server, "ann", "/groups", {"class": "4b"})
    club.put(club.server, "bob", "/groups", {"class": "4b"})
    club.put(club.server, "dan", "/groups", {"class": "4c"})
    club.put(club.server, "ann", f"/friends/{club.users['bob']}", {"since": (now - 2 * DAY).isoformat()})
    club.put(club.admin, "cid", "/boards", {"hidden": True})
    club.earn("new", 2, 1, 0)
    club.earn("more", 0, users=("bob",))
    club.rank()


def close_a_league(club: Club, now: datetime) -> None:
    """Ann, Bob and Dan were in silver two weeks ago: nobody can wait for a Monday. The schedule closes it."""
    rules = league_rules(SECTIONS["leagues"])
    assert rules
    week, tables = week_of((now - 14 * DAY).date()), club.stack.tables
    place = Place(week.name, 1, 1)
    store = LeagueStore(club.dynamodb, tables["Boards"], tables["DailyActivity"])
    for name in ("ann", "bob", "dan"):
        user = club.users[name]
        assert store.enter(place, user, rules.size, now + 30 * DAY)
        joined = Membership(division=1, name="silver").joining(week, rules, place.cohort)
        assert store.put_membership(user, Membership(), joined)
    done = encode_item({"board": f"league#{week.name}", "part": "done"})
    club.dynamodb.delete_item(TableName=tables["Boards"], Key=done)
    club.rank()


@pytest.fixture(scope="module")
def before(club: Club) -> dict[str, Any]:
    """What everybody saw before all was lost."""
    return club.shown()


@pytest.fixture(scope="module")
def night(club: Club, before: dict[str, Any]) -> dict[str, Any]:
    return club.night()


def test_everybody_sees_boards_friends_and_leagues(club: Club, before: dict[str, Any]) -> None:
    ann, bob, cid, dan = club.users.values()
    status, board = before["/v1/boards/weekly"]
    assert (status, board["users"], board["entries"][0]["rank"]) == (200, 3, 1)
    assert [before[f"/v1/boards/classes?group={each}"][1]["users"] for each in ("4b", "4c")] == [2, 1]
    assert before[f"/v1/boards/weekly/users/{cid}"][0] == 409
    (pair,) = before[f"/v1/users/{ann}/friends"][1]["friends"]
    assert (pair["user_id"], pair["streak"]) == (bob, 3)
    assert [row["user_id"] for row in before[f"/v1/users/{bob}/friends/board?board=weekly"][1]["entries"]] == [
        bob, ann,
    ]  # fmt: skip
    for user in (ann, bob, dan):
        league = before[f"/v1/users/{user}/league"][1]
        assert (league["division"]["name"], league["last"]["rank"]) == ("silver", 1)
        assert league["last"]["members"] == 3
    assert before[f"/v1/users/{cid}/league"][1]["last"] is None


def test_a_night_brings_pairs_and_results_of_leagues_into_lake_and_warehouse(
    club: Club, before: dict[str, Any], night: dict[str, Any]
) -> None:
    assert [night[name] for name in ("different", "failed_tests", "ledger_and_lake")] == [[], [], []]
    ann, bob, _, dan = club.users.values()
    ties = club.rows("SELECT user_id, pair_id FROM lake.friendships ORDER BY user_id")
    assert [each["user_id"] for each in ties] == [ann, bob]
    assert len({each["pair_id"] for each in ties}) == 1
    (pair,) = club.rows("SELECT user_id, friend_id, is_by_server, began_on, ended_on FROM marts.friendships")
    since = before[f"/v1/users/{ann}/friends"][1]["friends"][0]["since"]
    assert pair == {
        "user_id": ann, "friend_id": bob, "is_by_server": True, "began_on": since[:10], "ended_on": None,
    }  # fmt: skip
    statement = "SELECT user_id, members, league_rank AS rank, points, zone FROM marts.league_results"
    found = {row.pop("user_id"): row for row in club.rows(statement)}
    told = {user: before[f"/v1/users/{user}/league"][1]["last"] for user in (ann, bob, dan)}
    assert found == {
        user: {name: last[name] for name in ("members", "rank", "points", "zone")}
        for user, last in told.items()
    }


def test_an_export_has_the_pair_the_class_and_the_league(club: Club, night: dict[str, Any]) -> None:
    ann, bob, cid, _ = club.users.values()
    club.streakline("person", "export", "--user", ann, "--out", "ann.zip")
    with zipfile.ZipFile(club.scratch.root / "ann.zip") as export:
        files = {name: export.read(name).decode() for name in export.namelist()}
    (ties,), (days,), (profile,) = (
        [text for name, text in files.items() if name.endswith(f"{table}.json")]
        for table in ("Friends", "DailyActivity", "UserStreaks")
    )
    assert bob in ties
    assert "silver" in days
    assert "4b" in profile
    assert cid not in str(files)


def test_all_tables_are_lost_and_everybody_sees_the_same(
    club: Club, before: dict[str, Any], night: dict[str, Any]
) -> None:
    """But for the league of the open week: its cohort is in no lake (rule 27)."""
    recover_friends(club)
    for table in LOST:
        empty(club, table)
    club.new_processes(*FUNCTIONS)
    club.streakline("restore", "--from-table", f"Friends={RECOVERED}", "--report", "restore.json")
    told = json.loads((club.scratch.root / "restore.json").read_text())
    assert (told["lacks"], told["repaired"]) == ([], 0), "the nightly comparison has nothing to say"
    club.drain()
    club.rank()
    expected = {path: json.loads(json.dumps(answer)) for path, answer in before.items()}
    for user in club.users.values():
        expected[f"/v1/users/{user}/league"][1]["league"] = None
    after = club.shown()
    assert {path: answer for path, answer in after.items() if answer != expected[path]} == {}


def recover_friends(club: Club) -> None:
    """Point-in-time recovery brings a table back under another name: a copy stands for it."""
    club.dynamodb.create_table(**table_definition("Friends", RECOVERED))
    for page in club.dynamodb.get_paginator("scan").paginate(TableName=club.stack.tables["Friends"]):
        for item in page["Items"]:
            club.dynamodb.put_item(TableName=RECOVERED, Item=item)


def empty(club: Club, table: str) -> None:
    name = club.stack.tables[table]
    key = {"Boards": ("board", "part")} | TABLE_KEYS
    for page in club.dynamodb.get_paginator("scan").paginate(TableName=name):
        for item in page["Items"]:
            club.dynamodb.delete_item(TableName=name, Key={each: item[each] for each in key[table]})
