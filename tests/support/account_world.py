"""The three tables of one user as the rules see them, and the commands and dates of the tests on accounts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from rules.engagement.account import decide, decide_settings, profile_with_entries
from rules.engagement.account_state import Account, Day, Decision, History, NeedsHistory, Profile
from rules.engagement.earnings import dates_beside
from rules.engagement.events import Event
from rules.engagement.ledger import (
    EARNING,
    INTO_DEBT,
    OPENED_AT,
    Draft,
    Entry,
    EntryKind,
    FreezeNote,
    active_events,
)
from rules.engagement.rest_days import RestDays
from rules.engagement.streak import Cover, fold, resumed_streak
from tests.support.engagement_strategies import NOW

SECOND = timedelta(seconds=1)


def grant(day: date) -> Draft:
    return Draft(
        EntryKind.REDEEM, 0, reward_id="freeze", freeze=FreezeNote.GRANTED, freeze_date=day.isoformat()
    )


def revoke(day: date) -> Draft:
    return Draft(
        EntryKind.REVERSE, 0, reward_id="freeze", freeze=FreezeNote.REVOKED, freeze_date=day.isoformat()
    )


@dataclass
class World:
    """The three tables of one user, written in the order of the stores: ledger, days, profile."""

    profile: Profile = field(default_factory=lambda: Profile("u"))
    days: dict[date, Day] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    now: datetime = NOW

    def account(self, dates: Iterable[date]) -> Account:
        watermark = self.profile.head.created_at if self.profile.head else ""
        pending = [entry for entry in self.entries if entry.created_at > watermark]
        concerned = {date.fromisoformat(e.draft.activity_date) for e in pending if e.draft.activity_date}
        return Account(
            self.profile, {day: self.days.get(day) for day in dates_beside([*dates, *concerned])}, pending
        )

    def decide(self, delivered: Sequence[Event], commands: Sequence[Draft] = ()) -> Decision:
        """Decide on the events that are in no entry yet."""
        self.now += SECOND
        done = {entry.draft.event_id for entry in self.entries}
        fresh = [each for each in delivered if each.event_id not in done]
        account = self.account(each.activity_date for each in delivered)
        try:
            return decide(account, fresh, self.now, commands)
        except NeedsHistory as needs:
            profile = self.reaching(needs.since)
            start = resumed_streak(profile.streak, profile.cover, needs.since)
            active = [day for day, each in self.days.items() if each.is_active]
            later = [day for day in active if start is None or day > start.last]
            account = replace(account, profile=profile, history=History(later, start))
            return decide(account, fresh, self.now, commands)

    def apply(
        self, delivered: Sequence[Event] = (), commands: Sequence[Draft] = (), writes: int = 10**6
    ) -> Decision:
        """Decide, and write as much of it as the process lives to: 1 is the ledger alone."""
        decision = self.decide(delivered, commands)
        if writes and decision.entries:
            self.entries += decision.entries
        for day in list(decision.days)[: max(0, writes - 1)]:
            self.days[day] = decision.days[day]
        if writes > len(decision.days) + 1:
            self.put(decision.profile)
        return decision

    def set(self, changed: Profile, now: datetime | None = None) -> None:
        """Give the account other settings, as entries. Nothing may be pending."""
        self.now += SECOND
        decision = decide_settings(Account(self.profile, {}), changed, now or self.now)
        self.entries += decision.entries
        self.put(decision.profile)

    def put(self, profile: Profile) -> None:
        """Store a profile."""
        self.profile = profile

    def reaching(self, since: date) -> Profile:
        """Return a profile that can be folded from a date on."""
        return self.profile

    def answer(self) -> object:
        """What may not depend on order, splits or crashes."""
        shown = {
            day: (each.points_earned, each.events_count, each.first_event_id, dict(each.points_by_cap))
            for day, each in self.days.items()
        }
        profile = self.profile
        return (
            profile.total_points,
            profile.balance,
            profile.streak,
            profile.cover,
            profile.observed_zone,
            shown,
        )

    def check(self) -> None:
        """The invariants of rules 6 and 7."""
        rest = RestDays(self.profile.cover.rest.terms)
        made_again = profile_with_entries(Profile(self.profile.user_id, cover=Cover(rest=rest)), self.entries)
        other = ("version", "updated_at", "streak", "alias", "backfilled", "cover", "expiry")
        assert made_again == replace(self.profile, **{name: getattr(made_again, name) for name in other})
        assert (made_again.cover.skipped, made_again.cover.opening) == (
            self.profile.cover.skipped,
            self.profile.cover.opening,
        )
        balance = 0
        for seq, entry in enumerate(self.entries):
            balance += entry.draft.points
            assert (entry.seq, entry.balance) == (seq, balance)
            assert entry.balance >= 0 or {each.draft.kind for each in self.entries} & INTO_DEBT
        places = [entry.created_at for entry in self.entries]
        assert places == sorted(set(places))
        assert not self.entries or places[0] == OPENED_AT
        earned = [entry.draft for entry in self.entries if entry.draft.kind is EntryKind.EARN]
        assert len({draft.event_id for draft in earned}) == len(earned)
        assert self.profile.balance == balance
        kept = [entry.draft for entry in self.entries if entry.draft.kind in EARNING]
        assert self.profile.total_points == sum(draft.points for draft in kept)
        assert self.profile.total_points == sum(day.points_earned for day in self.days.values())
        undone = sum(entry.draft.kind is EntryKind.CLAWBACK for entry in self.entries)
        assert len(earned) - undone == sum(day.events_count for day in self.days.values())
        active = {day for day, each in self.days.items() if each.is_active}
        assert active == {day for day, events in active_events(self.entries).items() if events}
        folded = fold(active, self.profile.cover)
        assert self.profile.streak == folded
        assert (
            self.profile.streak is None
            or folded is None
            or self.profile.streak.checkpoints == folded.checkpoints
        )
        spent = Counter[str]()
        for entry in self.entries:
            if entry.draft.freeze in (FreezeNote.SPENT, FreezeNote.REFUNDED) and entry.draft.freeze_date:
                spent[entry.draft.freeze_date] += 1 if entry.draft.freeze is FreezeNote.SPENT else -1
        journalled = sorted(day for day, times in spent.items() if times)
        assert set(spent.values()) <= {0, 1}
        streak = self.profile.streak
        assert journalled == [day.isoformat() for day in (streak.spent if streak else ())]


def june(day: int) -> date:
    return date(2026, 6, day)
