"""Points for achievements (rule 15): a bonus once a user and achievement, whenever accounts are settled."""

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from adapters.book_store import shipped_document
from ingest.book_document import book_of_document
from rules.book.book import Books, Version
from rules.book.document import BookRefused
from rules.book.succession import check_succession
from rules.engagement.account import profile_with_entries
from rules.engagement.account_state import Profile
from rules.engagement.achievements import (
    AchievementSnapshot,
    dated_positions,
    due_bonuses,
    next_snapshot,
)
from rules.engagement.bonuses import (
    DueBonus,
    PaidBonuses,
    bonus_drafts,
    may_change_bonuses,
    paid_points,
    with_bonuses,
)
from rules.engagement.goals import DeclaredAchievement, declared_achievements
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote, Setting
from rules.engagement.opening_positions import OpeningPosition
from tests.support.achievement_story import AchievementStory
from tests.support.effort import effort

SEEDS = range(1, 1 + effort(2, soak=100))
DAY = timedelta(days=1)
MONDAY = date(2026, 3, 2)


def bonus(name: str, points: int, day: date = MONDAY, seq: int = 0) -> Entry:
    draft = Draft(EntryKind.BONUS, points, activity_date=day.isoformat(), reward_id=name)
    return Entry("u", f"2026-03-{seq + 1:02}", seq, 0, draft)


def paying(story: AchievementStory) -> dict[str, DeclaredAchievement]:
    """The achievements of a story, each with points of its own."""
    declared = declared_achievements(story.books, story.now)
    return {
        name: replace(each, rule=replace(each.rule, points=10 + number))
        for number, (name, each) in enumerate(sorted(declared.items()))
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_whenever_an_account_is_settled_it_ends_with_the_same_bonuses(seed: int) -> None:
    """Settlements come at random places of the ledger. Each goes on from the snapshot of the one before."""
    story, chance, moved = AchievementStory(seed), random.Random(seed), 0
    story.live(2, 90)
    known = paying(story)
    for user, world in story.worlds.items():
        streaks, snapshot, entries = story.history(user), AchievementSnapshot(), list[Entry]()
        wanted = {
            name: (date_of_event(world.entries, event_id), known[name].rule.points)
            for name, event_id in story.dated(user).items()
        }
        stops = {
            *chance.sample(range(len(world.entries)), min(6, len(world.entries))),
            len(world.entries) - 1,
        }
        for place, entry in enumerate(world.entries):
            entries.append(entry)
            if place not in stops:
                continue
            if chance.random() < 0.2:
                snapshot = AchievementSnapshot()  # it was lost
            now = datetime.fromisoformat(entry.created_at)
            read = [each for each in entries if each.created_at > snapshot.place_before_later()]
            history = snapshot.history_with(read)
            if not snapshot.is_usable(known, streaks, history):
                snapshot = AchievementSnapshot()
                history = snapshot.history_with(entries)
            dated = dated_positions(snapshot, known, history, streaks)
            drafts = bonus_drafts(history.bonuses, due_bonuses(known, dated), known)
            moved += sum(draft.points < 0 for draft in drafts)
            snapshot = next_snapshot(snapshot, known, history, streaks, now)
            for number, draft in enumerate(drafts, 1):
                entries.append(Entry(user, f"{entry.created_at}+{number:03}", 0, 0, draft))
        assert net(entries) == wanted
    assert moved or seed != SEEDS[0], "late events move some"


def date_of_event(entries: list[Entry], event_id: str) -> date:
    return next(
        e.draft.day for e in entries if e.draft.event_id == event_id and e.draft.kind is EntryKind.EARN
    )


def net(entries: list[Entry]) -> dict[str, tuple[date, int]]:
    """A plain reading: what is left of each bonus."""
    sums = Counter[tuple[str, date]]()
    for draft in (entry.draft for entry in entries if entry.draft.kind is EntryKind.BONUS):
        sums[draft.reward_id or "", draft.day] += draft.points
    left = {key: points for key, points in sums.items() if points}
    assert len({name for name, _ in left}) == len(left), "once a user and achievement"
    return {name: (day, points) for (name, day), points in left.items()}


def test_a_bonus_is_written_moved_taken_back_and_written_again() -> None:
    paid: PaidBonuses = {}
    steps: list[tuple[dict[str, DueBonus], list[tuple[int, str | None]]]] = [
        ({"a": DueBonus(MONDAY, 50)}, [(50, "2026-03-02")]),
        ({"a": DueBonus(MONDAY, 50)}, []),
        ({"a": DueBonus(MONDAY - DAY, 50)}, [(50, "2026-03-01"), (-50, "2026-03-02")]),
        ({}, [(-50, "2026-03-01")]),
        ({"a": DueBonus(MONDAY, 50)}, [(50, "2026-03-02")]),
    ]
    for due, expected in steps:
        drafts = bonus_drafts(paid, due, {"a"})
        assert [(draft.points, draft.activity_date) for draft in drafts] == expected
        paid = with_bonuses(paid, [Entry("u", "", 0, 0, draft) for draft in drafts])
    assert paid_points(paid, "a") == 50
    assert bonus_drafts(paid, {}, set()) == [], "a book that no longer pays it takes nothing back"


def test_what_another_system_has_paid_is_never_paid_or_taken_back() -> None:
    position = OpeningPosition("u", MONDAY, achievements={"a": "2025-01-01T00:00:00.000000Z", "b": ""})
    drafts = [draft for draft in position.drafts({"a", "c"}) if draft.kind is EntryKind.BONUS]
    assert [(draft.reward_id, draft.points) for draft in drafts] == [("a", 0)]
    paid = with_bonuses({}, [Entry("u", "", 0, 0, draft) for draft in drafts])
    assert bonus_drafts(paid, {"a": DueBonus(MONDAY, 50)}, {"a"}) == []
    assert bonus_drafts(paid, {}, {"a"}) == []
    assert paid_points(paid, "a") == 0


def test_a_bonus_is_ever_earned_and_on_no_board_and_leads_to_no_other() -> None:
    payer = Profile("u", pays_bonuses=True)
    profile = profile_with_entries(payer, [bonus("a", 50)])
    assert (profile.total_points, profile.bonus_points, profile.board_points) == (50, 50, 0)
    assert not profile.expiry.bonuses_due, "no loops"


@pytest.mark.parametrize(
    ("draft", "is_due"),
    [
        (Draft(EntryKind.EARN, 0, "e", "READ", "2026-03-02"), True),
        (Draft(EntryKind.CLAWBACK, -5, "e", "READ", "2026-03-02"), True),
        (Draft(EntryKind.RERATE, 5, None, "READ", "2026-03-02"), True),
        (Draft(EntryKind.REDEEM, -5, reward_id="mug"), False),
        (Draft(EntryKind.EXPIRE, -5, expires_on="2026-03-02"), False),
        (Draft(EntryKind.REDEEM, 0, freeze=FreezeNote.GRANTED, freeze_date="2026-03-02"), True),
        (Draft(EntryKind.ADJUST, 0, freeze=FreezeNote.SPENT, freeze_date="2026-03-02"), False),
        (Draft(EntryKind.SETTING, 0, setting=Setting.PAUSE, set_to="2026-03-02..2026-03-03"), True),
        (Draft(EntryKind.SETTING, 0, setting=Setting.ZONE, set_to="UTC"), False),
    ],
)
def test_entries_that_may_change_an_achievement_make_bonuses_due(draft: Draft, is_due: bool) -> None:
    assert may_change_bonuses(draft) is is_due


def document(**more: Any) -> dict[str, Any]:
    pays = {"all": [{"count": "CHECK_IN", "at_least": 3}], "withdrawn": "when_untrue", "points": 50}
    return shipped_document() | {"achievements": {"three": pays | more}}


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"withdrawn": "never"}, "achievements.three.withdrawn must be when_untrue"),
        ({"history": True}, "achievements.three.history cannot be with points"),
        ({"points": 0}, "achievements.three.points"),
        ({"points": 1_000_001}, "achievements.three.points"),
    ],
)
def test_sections_that_are_refused(more: dict[str, Any], fault: str) -> None:
    with pytest.raises(BookRefused) as refused:
        book_of_document(document(**more))
    assert str(refused.value.faults[0]).startswith(fault)
    assert book_of_document(document()).paying == {"three"}


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"points": 60}, "achievements.three.points are 50 in version 1: take a new name"),
        (
            {"all": [{"count": "CHECK_IN", "at_least": 2}]},
            "achievements.three has other conditions in version 1",
        ),
        ({"title": "Three"}, ""),
    ],
)
def test_a_version_changes_no_bonus(more: dict[str, Any], fault: str) -> None:
    now = datetime(2026, 3, 2, tzinfo=UTC)
    books = Books([Version(1, now, lambda: book_of_document(document()))])
    try:
        check_succession(book_of_document(document(**more)), books, now + DAY, now + DAY)
    except BookRefused as refused:
        assert fault
        assert str(refused.faults[0]).startswith(fault)
    else:
        assert not fault


def test_events_of_dates_that_had_begun_before_the_version_earn_no_bonus() -> None:
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    books = Books([Version(1, noon - 90 * DAY, lambda: book_of_document(document()), published_at=noon)])
    assert declared_achievements(books, noon)["three"].since == date(2026, 3, 4), (
        "it is the 3rd in Kiritimati"
    )
