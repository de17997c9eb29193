"""Boards of a period: standings, ranks with the rows around, groups, who has left, and final results."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.engagement.period_boards import CONTEST, StandingStore, part_of
from adapters.outgoing.endpoint_store import EndpointStore
from adapters.outgoing.lane_store import LaneStore
from adapters.outgoing.outbox_store import OutboxStore
from adapters.platform.items import decode_item
from adapters.platform.tables import get_one, scan_all
from adapters.privacy.stores import BoardEraser
from ingest.engagement.leaderboards import RANK
from ingest.engagement.period_boards import BOARD_VIEW, BOARDS_VIEW, PLACE_VIEW, BoardQuery
from ingest.web.caller import ApiError, Caller
from ingest.web.validate import first_problem
from processors.outgoing.notifications import NoticeSteps, NotificationWriter
from rules.book.board_rules import BoardPeriod, BoardRule
from rules.book.daily import DailyRules, DailyTerms
from rules.days import stamp
from rules.engagement import period_standings
from rules.engagement.account_state import Profile
from rules.engagement.board_settings import HIDDEN, YES, with_settings
from rules.engagement.boards import unpack_rows
from rules.engagement.period_points import PeriodPoints
from rules.engagement.period_standings import CLOSING_DELAY
from rules.engagement.periods import counted_until, final_at, period_named
from rules.engagement.streak import Streak
from rules.outgoing.notices import Endpoint, NoticeType, board_holder
from rules.privacy.erasures import Person
from tests.support.board_tables import BoardTables
from tests.support.capacity import ReadCount
from tests.support.engine import Engine

WEEK = period_named("2026-W48")
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
WEEKLY = BoardRule("weekly", BoardPeriod.WEEK)
CLASSES = BoardRule("classes", BoardPeriod.WEEK, group="class")
TERMS: DailyTerms = (
    (date.min, DailyRules()),
    (date(2026, 11, 20), DailyRules(boards=(CLASSES, WEEKLY))),
)
FINAL = final_at(WEEK, TERMS)
CLOSING = FINAL + CLOSING_DELAY
SERVER = Caller("shop", is_admin=False, is_producer=True)
CROWD = {"ann": 50, "bob": 30, "cid": 30, "dan": 10, "eve": 5, "fay": 5, "gus": 3, "hal": 1}


def user(name: str, points: int, settings: Mapping[str, str] | None = None, **more: Any) -> Profile:
    counted = (PeriodPoints(WEEK, points),) if points else ()
    made = Streak(NOW.date(), 3, 3, 3)
    settings_of = with_settings((), settings or {}, NOW - timedelta(days=1))
    return replace(
        Profile(name, 1, total_points=points + 7, streak=made, updated_at="x", chosen_zone="Europe/Berlin"),
        period_points=counted,
        board_settings=settings_of,
        **more,
    )


@pytest.fixture
def tables(engine: Engine) -> BoardTables:
    made = BoardTables(engine.client("dynamodb"), terms=TERMS)
    made.put([user(name, points) for name, points in CROWD.items()])
    return made


def rows(entries: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(each["rank"], each["score"]) for each in entries]


def top(tables: BoardTables, caller: str = "", at: datetime = NOW, **asked: Any) -> dict[str, Any]:
    """A board as a user sees it; as a server does if no user is given."""
    who = Caller(caller, is_admin=False) if caller else SERVER
    query = BoardQuery(**{"board": "weekly", "period": None, "group": None, **asked})
    view = tables.period_boards().top(query, who, 10, at)
    assert first_problem(view, BOARD_VIEW) is None
    return view


def place(tables: BoardTables, name: str, at: datetime = NOW, **asked: Any) -> dict[str, Any]:
    view = tables.period_boards().place(BoardQuery(**{"board": "weekly", **asked}), name, at)
    assert first_problem(view, PLACE_VIEW) is None
    return view


def refused(*args: Any, **asked: Any) -> tuple[int, str]:
    with pytest.raises(ApiError) as refusal:
        args[0](*args[1:], **asked)
    return refusal.value.status, refusal.value.code


# ---- a period that goes on


def test_a_list_has_ranks_and_a_user_s_own_place(tables: BoardTables) -> None:
    tables.builder().build(NOW)
    board = top(tables, "dan")
    assert rows(board["entries"]) == [(1, 50), (2, 30), (2, 30), (4, 10), (5, 5), (5, 5), (7, 3), (8, 1)]
    assert (board["period"], board["first"], board["last"]) == ("2026-W48", "2026-11-23", "2026-11-29")
    assert (board["state"], board["users"], board["as_of"]) == ("open", 8, stamp(NOW))
    assert (board["ends_at"], board["final_at"]) == (
        "2026-11-30T12:00:00.000000Z",
        "2026-12-03T12:00:00.000000Z",
    )
    assert board["me"] == {"score": 10, "rank": 4}
    assert rows(board["around"]) == [(1, 50), (2, 30), (2, 30), (4, 10), (5, 5), (5, 5), (7, 3)]
    assert [each["is_me"] for each in board["around"]] == [False] * 3 + [True] + [False] * 3
    assert "me" not in top(tables)
    assert place(tables, "hal")["rank"] == 8


def test_the_score_is_that_of_now_among_the_scores_of_the_snapshot(tables: BoardTables) -> None:
    tables.builder().build(NOW)
    tables.put([user("dan", 40)])
    mine = place(tables, "dan")
    assert (mine["score"], mine["rank"]) == (40, 2)
    assert rows(mine["around"]) == [(1, 50), (2, 40), (2, 30), (2, 30), (5, 5)]
    nobody = place(tables, "new")
    assert (nobody["score"], nobody["rank"], nobody["around"]) == (0, None, [])


def test_groups_only_divide_what_is_counted(tables: BoardTables) -> None:
    tables.put(
        [user("ann", 50, {"class": "4b"}), user("dan", 10, {"class": "4b"}), user("eve", 5, {"class": "4c"})]
    )
    tables.builder().build(NOW)
    assert rows(top(tables, board="classes", group="4b")["entries"]) == [(1, 50), (2, 10)]
    own = top(tables, "eve", board="classes")
    assert (own["group"], rows(own["entries"]), own["me"]["rank"]) == (
        {"name": "class", "value": "4c"},
        [(1, 5)],
        1,
    )
    assert top(tables, board="classes", group="5a")["entries"] == []
    boards = tables.period_boards()
    eve = Caller("eve", is_admin=False)
    assert refused(boards.top, BoardQuery("classes", group="4b"), eve, 10, NOW) == (403, "forbidden")
    assert refused(boards.top, BoardQuery("classes"), Caller("bob", is_admin=False), 10, NOW) == (
        404,
        "not_found",
    )
    assert refused(boards.top, BoardQuery("classes"), SERVER, 10, NOW) == (400, "invalid_parameter")
    assert refused(boards.top, BoardQuery("weekly", group="4b"), SERVER, 10, NOW) == (
        400,
        "invalid_parameter",
    )


def test_who_has_left_is_on_no_board_and_in_no_count(tables: BoardTables) -> None:
    tables.put([user("ann", 50, {HIDDEN: YES, "class": "4b"}), user("dan", 10, {"class": "4b"})])
    tables.builder().build(NOW)
    assert rows(top(tables)["entries"])[:2] == [(1, 30), (1, 30)]
    assert rows(top(tables, board="classes", group="4b")["entries"]) == [(1, 10)]
    assert refused(tables.period_boards().place, BoardQuery("weekly"), "ann", NOW) == (409, "boards_left")
    assert "me" not in top(tables, "ann")
    leaderboards = tables.leaderboards()
    for board in ("points", "streaks"):
        entries = leaderboards.top(board, "global", 10, NOW)["entries"]
        assert "ann" not in {each["user_id"] for each in entries}
        assert leaderboards.rank(board, "global", "dan", NOW)["rank"] == (3 if board == "points" else 1)
        assert refused(leaderboards.rank, board, "global", "ann", NOW) == (409, "boards_left")
    assert first_problem(leaderboards.rank("points", "global", "dan", NOW), {**RANK, "required": []}) is None


def test_accounts_under_review_are_on_no_board_of_a_period(tables: BoardTables) -> None:
    tables.put([user("ann", 50, tz_review=True, review_since=stamp(NOW - timedelta(hours=1)))])
    tables.builder().build(NOW)
    assert rows(top(tables)["entries"])[0] == (1, 30)
    assert place(tables, "ann")["rank"] is None
    assert tables.leaderboards().rank("points", "global", "ann", NOW)["rank"] == 1


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"board": "monthly"}, (404, "not_found")),
        ({"period": "2026-11"}, (404, "not_found")),
        ({"period": "2026-W49"}, (404, "not_found")),
        ({"period": "this week"}, (400, "invalid_parameter")),
        ({"period": "2026-W30"}, (404, "not_found")),
    ],
)
def test_what_is_not_there_is_refused(
    tables: BoardTables, asked: dict[str, Any], expected: tuple[int, str]
) -> None:
    tables.builder().build(NOW)
    assert (
        refused(tables.period_boards().top, BoardQuery(**{"board": "weekly", **asked}), SERVER, 10, NOW)
        == expected
    )


def test_before_the_first_snapshot_nobody_knows(tables: BoardTables) -> None:
    assert refused(tables.period_boards().top, BoardQuery("weekly"), SERVER, 10, NOW) == (503, "unavailable")


def test_many_users_are_many_pages_and_a_place_needs_few(
    tables: BoardTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(period_standings, "ROWS_IN_PAGE", 7)
    scores = {f"u{number:03}": 1 + number * 7919 % 60 for number in range(300)}
    tables.put([user(name, score) for name, score in scores.items()])
    tables.builder().build(NOW)
    everybody = sorted((CROWD | scores).items(), key=lambda pair: (-pair[1], pair[0]))
    boards, reads = tables.period_boards(), ReadCount()
    for number in (0, 3, 6, 7, 8, 150, len(everybody) - 1):
        name, score = everybody[number]
        mine = place(tables, name)
        assert mine["rank"] == 1 + sum(other > score for _, other in everybody)
        near = everybody[max(0, number - 3) : number + 4]
        assert [each["score"] for each in mine["around"]] == [other for _, other in near]
    reads.watch(tables.dynamodb)
    boards.place(BoardQuery("weekly"), everybody[150][0], NOW)
    assert reads.take()[0] <= 7, "profile, results, manifest, the first page, and up to three more"


def test_without_boards_nothing_is_written_for_them(tables: BoardTables) -> None:
    tables.terms = ()
    assert tables.builder().build(NOW) == {"counted": 8}
    stored = scan_all(tables.dynamodb, TableName=tables.boards)
    assert [each["board"]["S"] for each in stored if each["board"]["S"].startswith("contest")] == []


# ---- the end


def test_after_the_end_a_standing_is_provisional_and_then_final(tables: BoardTables) -> None:
    ended = datetime(2026, 11, 30, 12, tzinfo=UTC)
    tables.builder().build(ended)
    assert top(tables, at=ended, period="2026-W48")["state"] == "provisional"
    assert tables.builder().build(FINAL)["closed"] == []
    assert top(tables, at=FINAL, period="2026-W48")["state"] == "provisional"
    assert tables.builder().build(CLOSING) == {"counted": 8, "closed": ["2026-W48"], "missed": []}
    board = top(tables, "dan", CLOSING, period="2026-W48")
    assert (board["state"], board["as_of"], board["me"]) == ("final", stamp(FINAL), {"score": 10, "rank": 4})
    assert rows(board["entries"])[:3] == [(1, 50), (2, 30), (2, 30)]
    tables.put([user("dan", 90)])
    assert tables.builder().build(CLOSING + timedelta(minutes=5))["closed"] == []
    assert rows(top(tables, at=CLOSING, period="2026-W48")["entries"]) == rows(board["entries"])
    listed = tables.period_boards().boards(CLOSING)
    assert first_problem(listed, BOARDS_VIEW) is None
    weekly = next(each for each in listed["boards"] if each["board"] == "weekly")
    assert [(each["period"], each["state"]) for each in weekly["periods"]] == [
        ("2026-W49", "open"),
        ("2026-W48", "final"),
    ]
    assert weekly["next"]["period"] == "2026-W50"


def results(tables: BoardTables, at: datetime) -> dict[str, list[tuple[int, str]]]:
    """What is stored as the final result of the week, by contest."""
    final = StandingStore(tables.dynamodb, tables.boards).look()[WEEK]
    found = {}
    for contest in ("2026-W48", "2026-W48 class=4b", "2026-W48 class=4c"):
        key = {"board": CONTEST + contest, "part": part_of(final.generation, 0)}
        item = get_one(tables.dynamodb, tables.boards, key)
        found[contest] = [(row.score, row.user_id) for row in unpack_rows(item["data"]["B"])] if item else []
    return found


def later_life(tables: BoardTables) -> None:
    """What happens to users after the week was final: it changes nothing."""
    after = FINAL + timedelta(hours=2)
    left = user("ann", 50, {"class": "4b"})
    tables.put(
        [
            replace(
                left, board_settings=with_settings(left.board_settings, {HIDDEN: YES, "class": "4c"}, after)
            ),
            user("bob", 30, tz_review=True, review_since=stamp(after)),
            user("cid", 30, reviewed_since=stamp(FINAL - timedelta(days=1)), released_at=stamp(after)),
            user("dan", 10, reviewed_since=stamp(after), released_at=stamp(after + timedelta(hours=1))),
        ]
    )


@pytest.mark.parametrize("late", [timedelta(), timedelta(days=7), timedelta(days=14)])
def test_a_late_closing_has_the_same_result(tables: BoardTables, late: timedelta) -> None:
    tables.put(
        [
            user("ann", 50, {"class": "4b"}),
            user("cid", 30, tz_review=True, review_since=stamp(FINAL - timedelta(days=1))),
        ]
    )
    if late:
        later_life(tables)
    assert tables.builder().build(CLOSING + late)["closed"][0] == "2026-W48"
    expected = [(50, "ann"), (30, "bob"), (10, "dan"), (5, "eve"), (5, "fay"), (3, "gus"), (1, "hal")]
    assert results(tables, CLOSING + late) == {
        "2026-W48": expected,
        "2026-W48 class=4b": [(50, "ann")],
        "2026-W48 class=4c": [],
    }


def test_a_closing_that_comes_too_late_says_so_and_makes_up_nothing(tables: BoardTables) -> None:
    built = tables.builder().build(counted_until(WEEK, TERMS))
    assert ("2026-W48" in built["closed"], built["missed"]) == (False, ["2026-W48"])


def test_a_missed_period_is_an_error_once(tables: BoardTables, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody can do anything about it; each later run still returns it."""
    late = counted_until(WEEK, TERMS)
    for minutes in (0, 10, 20):
        assert tables.builder().build(late + timedelta(minutes=minutes))["missed"] == ["2026-W48"]
    assert [record.levelname for record in caplog.records].count("ERROR") == 1


def test_a_result_that_nobody_has_made_is_not_shown_as_an_empty_board(tables: BoardTables) -> None:
    """Profiles do not count the week any more, so a snapshot has nobody on it."""
    late = counted_until(WEEK, TERMS)
    tables.builder().build(late)
    asked = tables.period_boards().top, BoardQuery("weekly", "2026-W48"), SERVER, 10
    assert refused(*asked, late) == (404, "not_found")


def test_two_closings_at_once_store_one_result(tables: BoardTables) -> None:
    first, second = (
        StandingStore(tables.dynamodb, tables.boards),
        StandingStore(tables.dynamodb, tables.boards),
    )
    assert tables.builder().build(CLOSING)["closed"] == ["2026-W48"]
    before = results(tables, CLOSING)
    standings = period_standings.PeriodStandings({WEEK: FINAL}, TERMS)
    assert not second.close(standings, WEEK, FINAL, CLOSING)
    assert results(tables, CLOSING) == before
    assert list(first.look()) == [WEEK]


@pytest.mark.parametrize(
    ("deadly", "call"),
    # The manifest and the item that names the result are put; all else is written in batches.
    [
        ("batch_write_item", 1),
        ("batch_write_item", 2),
        ("batch_write_item", 3),
        ("put_item", 1),
        ("put_item", 2),
    ],
)
def test_a_closing_that_dies_at_any_write_is_repeated(tables: BoardTables, deadly: str, call: int) -> None:
    dying = Dying(tables.dynamodb, deadly, call)
    with pytest.raises(Died):
        replace(tables.builder(), dynamodb=dying).build(CLOSING)
    tables.builder().build(CLOSING + timedelta(minutes=5))
    assert results(tables, CLOSING)["2026-W48"][:2] == [(50, "ann"), (30, "bob")]
    assert len(StandingStore(tables.dynamodb, tables.boards).look()) == 1


class Died(BaseException):
    """The process is gone."""


class Dying:
    """A client whose process dies instead of making its nth call of one kind."""

    def __init__(self, dynamodb: Any, deadly: str, call: int) -> None:
        self.dynamodb, self.deadly, self.call, self.calls = dynamodb, deadly, call, 0

    def __getattr__(self, name: str) -> Any:
        if name == self.deadly:
            self.calls += 1
            if self.calls == self.call:
                raise Died
        return getattr(self.dynamodb, name)


def test_an_erased_user_keeps_a_row_without_a_name(tables: BoardTables) -> None:
    tables.builder().build(CLOSING)
    eraser = BoardEraser(tables.dynamodb, tables.boards)
    person = Person("digest", user_id="bob")
    eraser.remove(eraser.find(person))
    assert eraser.find(person) == []
    stored = [
        decode_item({k: v for k, v in each.items() if k != "data"})
        for each in scan_all(tables.dynamodb, TableName=tables.boards)
    ]
    assert "bob" not in str(stored)
    tables.dynamodb.delete_item(TableName=tables.users, Key={"user_id": {"S": "bob"}})
    board = top(tables, at=CLOSING, period="2026-W48")
    assert rows(board["entries"])[:3] == [(1, 50), (2, 30), (2, 30)]
    assert [each["alias"] is None for each in board["entries"]][:3] == [False, True, False]
    assert place(tables, "cid", CLOSING, period="2026-W48")["rank"] == 2


def test_final_results_do_not_name_who_has_left_since(tables: BoardTables) -> None:
    tables.builder().build(CLOSING)
    later_life(tables)
    board = top(tables, at=CLOSING + timedelta(hours=3), period="2026-W48")
    assert [each["alias"] is None for each in board["entries"]][:2] == [True, False]


# ---- who is notified


def test_a_final_result_is_notified_once_also_if_two_processes_find_it(tables: BoardTables) -> None:
    tables.builder().build(CLOSING)
    endpoints = EndpointStore(tables.dynamodb, "WebhookEndpoints")
    wanted = frozenset({NoticeType.BOARD_FINISHED})
    endpoints.put(Endpoint("finished", "acme", "https://a.example.com/", types=wanted))
    store, lanes = OutboxStore(tables.dynamodb, "Notifications"), LaneStore(tables.dynamodb, "Notifications")
    for _ in range(2):
        books: Any = SimpleNamespace(daily_terms=lambda: tables.terms)  # all that is asked of it
        steps = NoticeSteps(books=books)
        results = StandingStore(tables.dynamodb, tables.boards)
        known = EndpointStore(tables.dynamodb, "WebhookEndpoints")
        writer = NotificationWriter(tables.dynamodb, tables.users, store, known, steps, results=results)
        writer.sweep(CLOSING, lambda: False)
    for board, users in (("classes", 0), ("weekly", 8)):
        holder = board_holder(board, WEEK.name)
        (notification,) = lanes.log(holder, 0)
        assert notification.notice.type == NoticeType.BOARD_FINISHED
        assert (notification.notice.data["board"], notification.notice.data["users"]) == (board, users)
        assert lanes.get(holder, "finished")
    endpoints.remove("finished")
