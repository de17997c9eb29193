"""What another book would have led to, against histories told anew by the rules, and against planted faults."""

import copy
import random
import re
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from multiprocessing import Pipe
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from adapters.book_store import shipped_document
from adapters.platform.objects import FolderObjects
from analytics.lake.curated_files import parquet_bytes
from analytics.lake.layout import Partition, curated_key
from analytics.what_if import user_history, user_replay
from analytics.what_if.figures import WhatIfAnswer, WhatIfQuestion
from analytics.what_if.summary import summary
from analytics.what_if.timeline import TermsMemo, Timeline
from analytics.what_if.user_history import MeasuresMemo
from analytics.what_if.what_if import ProcessDied, _received_answer, doubtful_users, what_if
from local.demo_input import synthetic_crowd
from local.event_sources import from_csv
from local.paths import ROOT
from rules.book.document import read_book
from rules.days import parse_moment
from rules.engagement.events import event_id
from rules.engagement.streak import fold
from tests.support import what_if_story
from tests.support.effort import SOAK, effort, only_soak
from tests.support.real_input import COMMITS
from tests.support.what_if_goals import FIVE, GoalWhatIfStory, plain_figures
from tests.support.what_if_story import Act, WhatIfStory, books_of

# 1143 takes back the event after a flight before the event that would have shown the flight arrives.
CORRECTED, CORRECTED_STORIES = 1000, (1013, 1050, 1143)
GOAL_STORIES = (2, 105)
# In the first two, events have amounts that no version had stored; in the last, a version of the past judges amounts.
BY_AMOUNT, AMOUNT_STORIES = 5000, (5003, 5009, 5019)
RESTING = 9000
PAUSING = 2
TOLD = ("earned", "balance", "shown", "length", "longest", "active_days")


def by_user(found: WhatIfAnswer, when: str) -> dict[str, dict[str, int]]:
    rows = found.users.to_pylist()
    return {row["user_id"]: {name: row[f"{name}_{when}"] for name in TOLD} for row in rows}


def ask(
    story: WhatIfStory,
    objects: Any,
    document: Any,
    since: datetime | None = None,
    until: datetime | None = None,
) -> WhatIfAnswer:
    book = read_book(document) if document else None
    return what_if(objects, WhatIfQuestion(book, story.now, since, until))


def story_with_rest_days_and_repairs(seed: int) -> WhatIfStory:
    """In every second one a date may be repaired, under books that ask for the same dates to be active."""
    is_repairing = seed % 2 == 0
    return WhatIfStory(seed, *(3, 60), calm=is_repairing, rests=not is_repairing, repairs=is_repairing)


def story_of(seed: int) -> WhatIfStory:
    """From seed 1000 on events are reversed and rewards sold; in every third one versions come late.

    From seed 5000 on some types earn by minutes.
    """
    if seed >= RESTING:
        return story_with_rest_days_and_repairs(seed)
    if seed < CORRECTED:
        return WhatIfStory(seed, travels=seed % 4 == 3, calm=seed % 4 in (0, 1))
    return WhatIfStory(
        seed,
        *(3, 50),
        travels=seed % 4 == 3,
        calm=seed % 4 in (0, 1),
        taken_back=0.12,
        sold=0.12,
        retroactive=2 * (seed % 3 == 0),
        by_amount=seed >= BY_AMOUNT,
    )


def some_span(story: WhatIfStory, chance: random.Random) -> tuple[datetime | None, datetime | None]:
    if story.rerated:
        return chance.choice((None, story.settled_at)), None
    since, until = sorted(story.some_instant() for _ in "12")
    spans = ((None, None), (None, None), (since, None), (None, until), (since, until))
    span = chance.choice(spans)
    return span if span[0] is None or span[0] != span[1] else (None, None)


def compare(folder: Path, seed: int) -> WhatIfAnswer:
    """Hold a prediction for a random candidate and span against the history told anew under it."""
    story, objects, chance = story_of(seed), FolderObjects(folder), random.Random(seed)
    story.into(objects)
    document, span = story.some_book(), some_span(story, chance)
    document["levels"] = [{"name": f"from{start}", "from": start} for start in (20, 100, 400)]
    found = ask(story, objects, document, *span)
    told = story.retold(story.books_with(read_book(document), *span))
    known = [user for user, each in story.told.items() if each.world.entries]
    assert by_user(found, "before") == {user: story.told[user].shown(story.now) for user in known}
    assert by_user(found, "after") == {user: told[user].shown(story.now) for user in known}
    assert_levels(story, found, *span)
    months = defaultdict[str, int](int)
    for each in told.values():
        for day, points in each.days().items():
            months[str(day)[:7]] += points
    after = {month: points.after for month, points in found.figures.months.items() if points.after}
    assert after == {month: points for month, points in months.items() if points}
    impossible = sorted(each.user_id for each in found.figures.impossible)
    assert impossible == sorted(user for user, each in told.items() for _ in each.refused)
    told_sums = summary(found, "book")
    assert sum(each["after"] for each in told_sums["by_type"].values()) == told_sums["points"]["after"]
    assert sum(each["after"] for each in told_sums["by_month"].values()) == told_sums["points"]["after"]
    return found


def assert_levels(
    story: WhatIfStory, found: WhatIfAnswer, since: datetime | None, until: datetime | None
) -> None:
    """Each user is on the level that the predicted points have reached, if the candidate is in force now."""
    is_in_force = (since is None or since <= story.now) and (until is None or story.now < until)
    expected = Counter[str | None]()
    for user in by_user(found, "after").values():
        reached = [start for start in (20, 100, 400) if start <= user["earned"]]
        expected[f"from{reached[-1]}" if reached else None] += 1
    counted = {each.name: each.after for each in found.figures.levels if each.after}
    assert counted == (dict(expected) if is_in_force else {})


@pytest.mark.parametrize("seed", range(2, 2 + effort(1, soak=3000)))
def test_a_prediction_is_what_a_fresh_account_shows(tmp_path: Path, seed: int) -> None:
    compare(tmp_path, seed)


@pytest.mark.parametrize("seed", (*range(RESTING, RESTING + effort(2, soak=2000)), RESTING + 11))
def test_rest_days_and_repairs_are_predicted(tmp_path: Path, seed: int) -> None:
    compare(tmp_path, seed)


@pytest.mark.parametrize(
    "seed",
    range(CORRECTED + 2, CORRECTED + 2 + effort(1, soak=3000)),
)
def test_what_is_reversed_rated_anew_and_sold_is_predicted(tmp_path: Path, seed: int) -> None:
    compare(tmp_path, seed)


@pytest.mark.parametrize("seed", range(BY_AMOUNT, BY_AMOUNT + 1000) if SOAK else AMOUNT_STORIES)
def test_points_by_an_amount_are_predicted(tmp_path: Path, seed: int) -> None:
    """A book may begin to pay by minutes, that the ledger does not have: the lake has what events were sent with."""
    compare(tmp_path, seed)


def test_the_corrected_stories_ask_for_all_of_it(tmp_path: Path) -> None:
    """Somebody is in debt, in one world or the other; something is impossible, of each kind and for each reason."""
    kinds, reasons, debts = set(), set(), set()
    for seed in CORRECTED_STORIES:
        found = compare(tmp_path / str(seed), seed)
        kinds |= {each.what for each in found.figures.impossible}
        reasons |= {each.why for each in found.figures.impossible}
        rows = found.users.to_pylist()
        debts |= {when for when in ("before", "after") for row in rows if row[f"balance_{when}"] < 0}
        sums = summary(found, "book")["liability"]
        told = story_of(seed).told.values()
        assert sums["before"] == sum(each.shown(found.question.now)["balance"] for each in told)
    assert kinds >= {"redemption", "hold", "freeze"}
    assert debts == {"before", "after"}
    for why in ("is not in this book", "not have been offered", "have covered it"):
        assert any(why in each for each in reasons), why


def small_book(a: int, w: int) -> Any:
    return {"event_types": {"A": {"points": a}, "W": {"points": w}}, "boosts": []}


def test_a_hold_is_not_captured_where_a_clawback_leaves_too_little(tmp_path: Path) -> None:
    """Under the candidate the event that is reversed is worth more than the rest: a capture is refused."""
    story, objects = WhatIfStory(0, users=0), FolderObjects(tmp_path)
    story.documents = [small_book(10, 1)]
    story.books = books_of(story.documents, [story.base - timedelta(days=9)])
    at = [story.base + timedelta(hours=each) for each in range(5)]
    story.acts["u0"] = [
        Act(at[1], "events_", "k", [("a", "A", at[0], "UTC"), ("w", "W", at[0], "UTC")]),
        Act(at[2], "hold", "h", 8),
    ]
    story.acts["u0"] += [Act(at[3], "claw_back", "c", named("w", at[0])), Act(at[4], "capture", "x", "h")]
    story.told = story.retold(story.books)
    story.into(objects)
    found = ask(story, objects, small_book(1, 30))
    (told,) = story.retold(story.books_with(read_book(small_book(1, 30)), None, None)).values()
    assert list(told.refused) == ["x"]
    assert by_user(found, "after") == {"u0": told.shown(story.now)}
    (refused,) = found.figures.impossible
    assert (refused.what, refused.points, refused.missing) == ("hold", 8, 7)
    assert "taken back" in refused.why


def test_levels_are_counted_before_and_after_by_the_books_of_then_and_now(tmp_path: Path) -> None:
    """Points rise from 10 to 30, silver is renamed, and gold is gone."""
    story, objects = WhatIfStory(0, users=0), FolderObjects(tmp_path)
    levels = [{"name": "silver", "from": 10, "title": "Silver"}, {"name": "gold", "from": 30}]
    story.documents = [small_book(10, 1) | {"levels": levels}]
    story.books = books_of(story.documents, [story.base - timedelta(days=9)])
    at = story.base + timedelta(hours=1)
    for user, kind in (("u0", "A"), ("u1", "W")):
        story.acts[user] = [Act(at, "events_", f"k{user}", [(f"a{user}", kind, at, "UTC")])]
    story.told = story.retold(story.books)
    story.into(objects)
    renamed = [{"name": "steel", "from": 10}, {"name": "silver", "from": 31}]
    found = ask(story, objects, small_book(30, 1) | {"levels": renamed})
    assert summary(found, "book")["levels"] == [
        {"name": None, "title": "", "before": 1, "after": 1},
        {"name": "steel", "title": "", "before": 0, "after": 1},
        {"name": "silver", "title": "", "before": 1, "after": 0},
        {"name": "gold", "title": "", "before": 0, "after": 0},
    ]
    assert summary(ask(story, objects, small_book(30, 1)), "book")["levels"][1] == {
        "name": "silver",
        "title": "Silver",
        "before": 1,
        "after": 0,
    }


def named(key: str, at: datetime) -> str:
    return event_id("u0", key, parse_moment(at.isoformat()))


def test_dates_of_an_amnesty_stay_neutral_where_dates_are_placed_anew(tmp_path: Path) -> None:
    """The candidate refuses events, so dates are placed anew, and those of flights and zones told anew."""
    story, objects = WhatIfStory(0, users=0), FolderObjects(tmp_path)
    story.documents = [small_book(10, 1)]
    story.books = books_of(story.documents, [story.base - timedelta(days=9)])
    at = [story.base + timedelta(days=each, minutes=1) for each in (0, 2)]
    story.acts["u0"] = [
        Act(each, "events_", f"k{each}", [(f"{kind}{each}", kind, each, "UTC") for kind in "AW"])
        for each in at
    ]
    story.told = story.retold(story.books)
    world = story.told["u0"].world
    cover = replace(world.profile.cover, skipped=frozenset({at[0].date() + timedelta(days=1)}))
    world.put(replace(world.profile, cover=cover, streak=fold([each.date() for each in at], cover)))
    story.into(objects)
    found = ask(story, objects, {"event_types": {"A": {"points": 10}}, "boosts": []})
    assert found.figures.types["W"].refused == 2
    for when in ("before", "after"):
        assert by_user(found, when)["u0"]["longest"] == 2, when


def test_a_freeze_that_came_with_an_opening_position_covers_in_both_worlds() -> None:
    absent = dict.fromkeys(user_history.LedgerRow._fields)
    none: dict[str, Any] = absent | {"user_id": "u", "version": 0, "segment": 0, "points": 0}
    first, later = date(2026, 5, 1), date(2026, 5, 3)
    granted = {"kind": "ADJUST", "freeze": "freeze_granted", "freeze_date": first}
    earned = [
        {"kind": "EARN", "event_type": "A", "event_id": f"{day}T12:00:00Z#{day}", "day": day}
        for day in (first, later)
    ]
    rows = [
        user_history.LedgerRow(
            **none | {"created_at": place, "seq": place, "is_passive": False, "breaks_contract": False} | each
        )
        for place, each in enumerate([granted, *earned], 1)
    ]
    story, known = WhatIfStory(0, users=0), user_history.UserSettings()
    timeline = Timeline(story.books, read_book(small_book(10, 1)))
    was = user_history.actual_world(rows, known, story.now)
    fold_of = user_replay.UserReplay(
        rows, timeline, TermsMemo(timeline), MeasuresMemo(timeline), known
    ).replay()
    then = fold_of.world(story.now)
    assert (was.cover.freezes, then.cover.freezes) == (((first, 1),), ((first, 1),))
    assert (was.earned, then.earned, then.active) == (0, 20, {first, later})


def test_pauses_that_a_candidate_refuses_cover_nothing(tmp_path: Path) -> None:
    """The candidate allows fewer dates than the books that were: a first pause stays, later ones go."""
    story, objects = WhatIfStory(PAUSING, calm=True), FolderObjects(tmp_path)
    story.into(objects)
    story.paused_dates = 5
    document = story.some_book()
    found = ask(story, objects, document)
    told = story.retold(story.books_with(read_book(document), None, None))
    refused = {user: list(each.refused.values()).count("pause") for user, each in told.items()}
    listed = [each.user_id for each in found.figures.impossible if each.what == "pause"]
    assert {user: listed.count(user) for user in told} == refused
    assert sum(refused.values()) < sum(len(each.world.profile.cover.pauses) for each in story.told.values())
    assert any(refused.values())
    assert by_user(found, "after") == {user: each.shown(story.now) for user, each in told.items()}


# ---- streaks and achievements


def compare_goals(folder: Path, seed: int) -> WhatIfAnswer:
    """Hold what users have, and would have, of what differs against the plain readings of rules 14 and 15."""
    story = GoalWhatIfStory(
        seed,
        users=3,
        acts=50,
        travels=seed % 4 == 3,
        calm=seed % 4 in (0, 1),
        taken_back=0.1 * (seed % 3 == 0),
    )
    objects, chance = FolderObjects(folder), random.Random(seed)
    story.into(objects)
    document, span = story.some_book(), some_span(story, chance)
    found = ask(story, objects, document, *span)
    names = {each.name: each.per for each in (*found.figures.streaks, *found.figures.achievements)}
    told = story.retold(story.books_with(read_book(document), *span))
    wanted = {
        "before": plain_figures(story.told, story.numbered(), story.now, names),
        "after": plain_figures(told, story.numbered_with(document, *span), story.now, names),
    }
    for world, of_users in wanted.items():
        for each in (*found.figures.streaks, *found.figures.achievements):
            figures = [some for (name, _), some in of_users.items() if name == each.name]
            sums = getattr(each, world)
            assert sums.reached == len(figures), (world, seed)
            if each.per:
                assert sums.current == sum(current > 0 for current, _, _ in figures)
                assert sums.longest == max((longest for _, longest, _ in figures), default=0)
    return found


@pytest.mark.parametrize("seed", range(effort(1, soak=2000)))
def test_streaks_and_achievements_that_differ_are_those_of_the_plain_reading(
    tmp_path: Path, seed: int
) -> None:
    compare_goals(tmp_path, seed)


def test_the_stories_of_goals_ask_for_all_of_it(tmp_path: Path) -> None:
    """Streaks and achievements are new, changed and removed; somebody has some in either world."""
    changes, has_figures = set(), set()
    for seed in GOAL_STORIES:
        found = compare_goals(tmp_path / str(seed), seed)
        changes |= {(each.change, each.per is None) for each in found.figures.streaks}
        changes |= {(each.change, each.per is None) for each in found.figures.achievements}
        for each in (*found.figures.streaks, *found.figures.achievements):
            has_figures |= {
                (at, each.name in FIVE) for at in ("before", "after") if getattr(each, at).reached
            }
    assert len(changes) == 6
    assert len(has_figures) == 4


def test_a_book_without_other_streaks_and_achievements_asks_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story, objects = GoalWhatIfStory(1), FolderObjects(tmp_path)
    story.into(objects)
    document = copy.deepcopy(story.documents[story.books.at(story.now).number - 1])
    for each in document["event_types"].values():
        each["points"], each["cap"] = 9, {"points": 99, "per": "day"}
    monkeypatch.setattr("analytics.what_if.goals.ordered_history", None)
    found = ask(story, objects, document)
    assert (found.figures.streaks, found.figures.achievements) == ([], [])
    assert summary(found, "book")["goals"] == {"streaks": [], "achievements": []}


# ---- the book in force


def unchanged(found: WhatIfAnswer) -> bool:
    figures = found.figures
    return (
        by_user(found, "before") == by_user(found, "after")
        and not found.largest_changes
        and not figures.impossible
        and all(each.before == each.after and not each.refused for each in figures.types.values())
        and all(points.before == points.after for points in figures.months.values())
        and figures.runs_before == figures.runs_after
    )


@pytest.mark.parametrize(
    "seed",
    # 1130 has a capture in debt.
    [*range(1, 1 + effort(0, soak=500)), *range(CORRECTED, CORRECTED + effort(0, soak=500)), 1130],
)
def test_the_book_in_force_changes_nothing(tmp_path: Path, seed: int) -> None:
    """All versions at once, each judging what it has judged; and each version's document for its own time."""
    story, objects = story_of(seed), FolderObjects(tmp_path)
    story.into(objects)
    assert unchanged(ask(story, objects, None))
    versions = sorted(story.books.versions, key=lambda each: (each.effective_at, each.number))
    for version in versions[: 3 if len(versions) > 3 else None]:
        after = story.books.after(version.effective_at)
        if version.is_retroactive:  # before it was published, others judged in its time
            continue
        if story.books.at(version.effective_at) is version:
            since = None if version is versions[0] else version.effective_at
            document = story.documents[version.number - 1]
            assert unchanged(ask(story, objects, document, since, after.effective_at if after else None))


# ---- parts of it


def no_semaphores(*_: Any) -> None:
    """As on Lambda, which has no shared memory."""
    raise OSError(38, "Function not implemented")


def test_parts_are_replayed_in_processes_and_added_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With pauses, corrections, streaks and achievements; a part and a process more change nothing."""
    story = GoalWhatIfStory(5, users=5, acts=20, taken_back=0.1)
    objects = FolderObjects(tmp_path)
    story.into(objects)
    document = story.some_book()
    one, start = ask(story, objects, document), SpawnProcess.start
    monkeypatch.setattr("analytics.what_if.history_parts.PART_BYTES", 1_000)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("_multiprocessing.SemLock", no_semaphores)
    started = list[Any]()

    def noted(process: Any) -> None:
        started.append(process)
        start(process)

    monkeypatch.setattr(SpawnProcess, "start", noted)
    both = ask(story, objects, document)
    assert len(started) == 2
    assert not any(process.is_alive() for process in started)
    assert summary(both, "book") == summary(one, "book")
    assert both.users == one.users


def test_a_process_that_dies_ends_the_what_if() -> None:
    receiver, sender = Pipe(duplex=False)
    sender.close()
    with pytest.raises(ProcessDied):
        _received_answer(receiver)


class Watched(FolderObjects):
    """A lake that may be read, and nothing else."""

    def put(self, key: str, data: bytes) -> None:
        raise AssertionError(f"{key} is written")

    put_if = delete = delete_if = put  # type: ignore[assignment]


def test_nothing_is_written(tmp_path: Path) -> None:
    story = WhatIfStory(3, users=1, acts=20)
    story.into(FolderObjects(tmp_path))
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in tmp_path.rglob("*")}
    assert ask(story, Watched(tmp_path), story.some_book()).users.num_rows
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in tmp_path.rglob("*")} == before


def test_properties_that_break_the_contract_are_refused(tmp_path: Path) -> None:
    story, objects = WhatIfStory(0, users=2), FolderObjects(tmp_path)
    for each in story.told.values():
        for key, event in each.events.items():
            pages = '{"pages":1}' if hash(key) % 2 else '{"pages":"one"}'
            each.events[key] = event.__class__(
                **{name: getattr(event, name) for name in event.__slots__} | {"properties": pages}
            )
    story.into(objects)
    document = story.documents[0]
    document["event_types"]["A"]["properties"] = {"properties": {"pages": {"type": "integer"}}}

    found = what_if(objects, WhatIfQuestion(read_book(document), story.now))
    events = [
        event for told in story.told.values() for event in told.events.values() if event.event_type == "A"
    ]
    broken = sum("one" in (event.properties or "") for event in events)
    assert 0 < broken < len(events)
    assert (found.figures.types["A"].refused, found.figures.types["A"].broken) == (broken, broken)


def test_an_empty_lake_has_nobody(tmp_path: Path) -> None:
    story = story_of(0)
    found = ask(story, FolderObjects(tmp_path), story.some_book())
    assert found.users.num_rows == 0
    assert summary(found, "book")["users"]["all"] == 0


def test_dates_that_no_calendar_gives_are_doubtful(tmp_path: Path) -> None:
    story = WhatIfStory(3, travels=True)
    story.into(FolderObjects(tmp_path / "one"))
    assert doubtful_users(FolderObjects(tmp_path / "one"))
    calm = WhatIfStory(4, calm=True)
    calm.into(FolderObjects(tmp_path / "two"))
    assert not doubtful_users(FolderObjects(tmp_path / "two"))
    assert calm.now > calm.base + timedelta(days=1)


def contradicts(events: list[tuple[date, datetime]]) -> bool:
    """Whether the dates of a user's events are of no single calendar: pair by pair, as rule 8 has it."""
    return any(
        first < second and (at_second <= at_first or (between and at_second < at_first + timedelta(days=1)))
        for first, at_first in events
        for second, at_second in events
        for between in [second >= first + timedelta(days=2) or any(first < day < second for day, _ in events)]
    )


def test_doubtful_are_exactly_those_whose_dates_contradict_each_other(tmp_path: Path) -> None:
    chance, first = random.Random(), date(2026, 3, 27)
    hours = [
        timedelta(hours=each, microseconds=odd) for each in (-14, -1, 0, 9, 10, 23, 24, 38) for odd in (-1, 0)
    ]
    events: dict[str, list[tuple[date, datetime]]] = {}
    for user in map(str, range(2000)):
        some = chance.sample(hours, chance.randint(1, 3))
        days = [first + timedelta(days=chance.randrange(5)) for _ in range(chance.randint(1, 4))]
        events[user] = [(day, datetime.combine(day, time(), UTC) + chance.choice(some)) for day in days]
    rows = [
        {"user_id": user, "activity_date": day, "occurred_at": at}
        for user, some in events.items()
        for day, at in some
    ]
    key = curated_key(Partition("events", "2026-03-27", None))
    FolderObjects(tmp_path).put(key, parquet_bytes(pa.Table.from_pylist(rows)))
    expected = {user for user, some in events.items() if contradicts(some)}
    assert 100 < len(expected) < 1900
    assert doubtful_users(FolderObjects(tmp_path)) == expected


# ---- real input

BATCH = 20


def flask_books() -> tuple[Any, Any]:
    """The shipped book, and one with half the points, a cap a week, and expiry."""
    candidate = copy.deepcopy(shipped_document())
    candidate["event_types"]["CONTRIBUTION"] |= {"points": 5, "cap": {"points": 20, "per": "week"}}
    candidate["expiry"] = {"after_days": 365}
    return shipped_document(), candidate


@only_soak("tests/lake/test_what_if.py::test_the_corrected_stories_ask_for_all_of_it, of invented histories")
def test_the_commits_of_flask(tmp_path: Path) -> None:
    """Sixteen years of commits by real people in their zones, told anew by the rules under another book.

    Of every eighth person; in `make soak` of all.
    """
    was, candidate = flask_books()
    story, objects = WhatIfStory(0, users=0), FolderObjects(tmp_path)
    start = datetime(1971, 1, 1, tzinfo=UTC)
    story.documents, story.books = [was], books_of([was], [start])
    bodies = defaultdict[str, list[Any]](list)
    for body in from_csv(COMMITS):
        moment = parse_moment(body["occurred_at"])
        bodies[body["user_id"]].append(
            (body["idempotency_key"], body["event_type"], moment.utc, moment.offset)
        )
    people = sorted(bodies)[:: effort(8, soak=1)]
    for user in people:
        (sent := bodies[user]).sort(key=lambda each: each[2])
        batches = [sent[first : first + BATCH] for first in range(0, len(sent), BATCH)]
        story.acts[user] = [
            Act(batch[-1][2] + timedelta(minutes=1), "events_", f"b{number}", batch)
            for number, batch in enumerate(batches)
        ]
    story.told = story.retold(story.books)
    story.now = max(act.at for acts in story.acts.values() for act in acts) + timedelta(days=1)
    story.into(objects)
    told = story.retold(story.books_with(read_book(candidate), None, None))
    found = ask(story, objects, candidate)
    assert len(people) == found.users.num_rows > effort(80, soak=700)
    assert by_user(found, "before") == {user: each.shown(story.now) for user, each in story.told.items()}
    assert by_user(found, "after") == {user: each.shown(story.now) for user, each in told.items()}
    assert unchanged(ask(story, objects, was))
    assert unchanged(ask(story, objects, None))


def test_the_guide_s_loyalty_programme_over_the_demo_s_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/guides/loyalty-levels.md says: the demo's purchases have no euros, and check-ins alone would earn."""
    now = datetime(2026, 6, 1, tzinfo=UTC)
    crowd = {body["idempotency_key"]: body for body in synthetic_crowd(40, 900, 1, now)}
    monkeypatch.setattr(what_if_story, "properties_of", lambda key: crowd[key].get("properties", {}))
    story, objects = WhatIfStory(0, users=0), FolderObjects(tmp_path)
    shipped = shipped_document()
    story.documents, story.books = [shipped], books_of([shipped], [now - timedelta(days=90)])
    for key, body in crowd.items():
        moment = parse_moment(body["occurred_at"])
        sent = [(key, body["event_type"], moment.utc, body["timezone"])]
        acts = story.acts.setdefault(body["user_id"], [])
        at = max([moment.utc + timedelta(minutes=1), *(act.at for act in acts)]) + timedelta(seconds=1)
        acts.append(Act(at, "events_", f"b{key}", sent))
    story.told = story.retold(story.books)
    story.now = now + timedelta(days=9)
    story.into(objects)
    guide = (ROOT / "docs" / "guides" / "loyalty-levels.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    found = ask(story, objects, yaml.safe_load(text))
    told_sums = summary(found, "book")
    types, levels = told_sums["by_type"], {each["name"]: each for each in told_sums["levels"]}
    assert [kind for kind, each in types.items() if each["after"]] == ["CHECK_IN"]
    assert types["CHECK_IN"]["after"] == types["CHECK_IN"]["before"] > 0
    assert types["PURCHASE_COMPLETED"]["broken"] == types["PURCHASE_COMPLETED"]["refused"] > 0
    assert types["LESSON_COMPLETED"]["refused"] == types["LESSON_COMPLETED"]["entries"] > 0
    assert (levels["member"]["after"], levels["bronze"]["before"] > 0) == (len(story.told), True)
