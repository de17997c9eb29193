"""What readers keep of freezes and pauses makes a profile whole that was brought forward (rules 3 and 14)."""

import random
from dataclasses import replace
from datetime import UTC, date, datetime, time

import pytest

from adapters.book_store import shipped_version
from rules.book.book import Books
from rules.days import DAY
from rules.engagement.account_state import Profile
from rules.engagement.goals import KnownPeriods, SettledGoals, is_usable, settled_until, unsettled_goals
from rules.engagement.ledger import FreezeNote
from rules.engagement.streak import Cover, revocation_date
from tests.support.account_world import grant, revoke
from tests.support.effort import effort
from tests.support.engagement_strategies import event
from tests.support.short_profiles import ShortWorld, keep_profiles_short, with_pause

FIRST = date(2026, 1, 5)
DATES = 400


def in_order(cover: Cover) -> Cover:
    return replace(cover, freezes=tuple(sorted(cover.freezes)), pauses=tuple(sorted(cover.pauses)))


def live(world: ShortWorld, day: date, chance: random.Random) -> None:
    """Let a day pass: activity, freezes of today and of long ago, reversals, pauses, late events."""
    if chance.random() < 0.75:
        world.apply([event(f"{day}", day)])
    if chance.random() < 0.15:
        world.apply(commands=[grant(day)])
    if chance.random() < 0.02:
        world.apply(commands=[grant(day - DAY * chance.randrange(90))])
    if chance.random() < 0.02:
        late = day - DAY * chance.randrange(60)
        world.apply([event(f"late {day}", late)])
    granted = [each.draft.freeze_date for each in world.entries if each.draft.freeze == FreezeNote.GRANTED]
    if granted and chance.random() < 0.02:
        since = date.fromisoformat(str(chance.choice(granted)))
        profile = world.reaching(since)
        world.apply(commands=[revoke(revocation_date(profile.streak, profile.cover, since, day))])
    if chance.random() < 0.04:
        world.set(with_pause(world.profile, day + DAY, day + DAY * chance.randrange(1, 5)))


@pytest.mark.parametrize("seed", range(effort(6, soak=60)))
def test_what_is_kept_is_what_the_ledger_says(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_profiles_short(monkeypatch)
    chance, books = random.Random(seed), Books([shipped_version()])
    world, kept, by_kept, by_ledger = ShortWorld(Profile("u")), SettledGoals(date.max), 0, 0
    for number in range(DATES):
        day = FIRST + DAY * number
        world.now = datetime.combine(day, time(12), UTC)
        live(world, day, chance)
        profile = world.profile
        if profile.head is None or chance.random() < 0.5:
            continue
        goals = kept if kept.head and is_usable(kept, profile, books) else unsettled_goals(books)
        whole, found = world.whole().cover, goals.whole_cover(profile.cover)
        if profile.cover.brought_forward:
            by_kept += found is not None
            by_ledger += found is None
        assert found is None or in_order(found) == in_order(whole), day
        until = settled_until(world.now)
        if found is None or (until - goals.until).days > 28:
            kept = KnownPeriods(goals, books, {}).settled(until, profile.head.created_at, whole)
            assert SettledGoals.of(kept.text) == kept
    assert by_kept > by_ledger > 10
