"""One user's account: how events and ledger entries change the profile and its days (rules 2 to 8).

The ledger is the journal. A profile and its days are projections of it: `absorb` folds entries
into them, each entry once, by the watermark that each projection carries. Deciding what an event
is worth (`decide`) and repairing after a crash (`absorb` of what is pending) are the same code.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from rules.days import EPOCH, UnknownZone, skipped_beside, unstamp
from rules.engagement import points
from rules.engagement.events import Event
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote, Head, append
from rules.engagement.streaks import Cover, Streak, advance, fold

TZ_CHANGES_KEPT_MAX = 10
TZ_CHANGES_PER_DAY_MAX = 2


@dataclass(frozen=True, slots=True)
class Day:
    """One active date. `ledger_head`: the newest entry counted in; `points_by_type`: points, for caps."""

    user_id: str
    activity_date: date
    first_event_id: str
    events_count: int
    points_earned: int
    points_by_type: Mapping[str, int]
    ledger_head: str
    created_at: str


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a user. `version` counts the writes; `head`: the newest entry counted in.

    timezone: set by the user. observed_zone: named by the event that occurred last, whatever the
    order of arrival; it decides when "today" is, never which date an event belongs to.
    """

    user_id: str
    version: int = 0
    head: Head | None = None
    total_points: int = 0
    streak: Streak | None = None
    cover: Cover = field(default_factory=Cover)
    timezone: str | None = None
    observed_zone: str | None = None
    observed_at: str = ""
    tz_changes: tuple[tuple[str, str], ...] = ()
    tz_review: bool = False
    updated_at: str = ""

    @property
    def zone(self) -> str:
        """The zone in which this user's today is asked for."""
        return self.timezone or self.observed_zone or "UTC"

    @property
    def balance(self) -> int:
        """Points that can be redeemed."""
        return self.head.balance if self.head else 0


@dataclass(frozen=True, slots=True)
class Account:
    """What was read of a user before deciding.

    days: of the dates concerned, None for a date without activity so far. pending: entries newer
    than the profile. history: all active dates, None where it was not read.
    """

    profile: Profile
    days: Mapping[date, Day | None]
    pending: Sequence[Entry] = ()
    history: Iterable[date] | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What to write: new entries, then changed days, then the profile; and points that a cap cut."""

    before: Account
    head: Head | None
    entries: Sequence[Entry]
    days: Mapping[date, Day]
    profile: Profile
    cut: Sequence[tuple[Event, int]] = ()

    @property
    def is_change(self) -> bool:
        """Whether anything needs to be written."""
        return bool(self.entries or self.days) or self.profile != self.before.profile


class NeedsHistory(Exception):
    """The streak cannot be told from the profile alone: read all active dates and decide again."""


def absorb_days(days: Mapping[date, Day | None], entries: Iterable[Entry]) -> dict[date, Day]:
    """Count EARN entries into their days; returns the days that changed.

    An entry not newer than its day's watermark is in it already.
    """
    changed: dict[date, Day] = {}
    for entry in entries:
        draft = entry.draft
        if draft.kind is not EntryKind.EARN or draft.activity_date is None or draft.event_id is None:
            continue
        when = date.fromisoformat(draft.activity_date)
        day = changed.get(when) or days.get(when)
        if day is None:
            day = Day(entry.account_id, when, draft.event_id, 0, 0, {}, "", entry.created_at)
        if entry.created_at <= day.ledger_head:
            continue
        kind = draft.event_type or ""
        changed[when] = Day(
            user_id=day.user_id,
            activity_date=when,
            first_event_id=min(day.first_event_id, draft.event_id),
            events_count=day.events_count + 1,
            points_earned=day.points_earned + draft.points,
            points_by_type={**day.points_by_type, kind: day.points_by_type.get(kind, 0) + draft.points},
            ledger_head=entry.created_at,
            created_at=day.created_at,
        )
    return changed


def absorb(profile: Profile, entries: Sequence[Entry]) -> Profile:
    """Count entries into the profile: balance, lifetime points, freezes. The streak is not touched."""
    if not entries:
        return profile
    freezes = list(profile.cover.freezes)
    for entry in entries:
        draft = entry.draft
        if draft.freeze in (FreezeNote.GRANTED, FreezeNote.REVOKED) and draft.freeze_date:
            change = 1 if draft.freeze is FreezeNote.GRANTED else -1
            freezes.append((date.fromisoformat(draft.freeze_date), change))
    earned = sum(entry.draft.points for entry in entries if entry.draft.kind is EntryKind.EARN)
    return replace(
        profile,
        head=entries[-1].head,
        total_points=profile.total_points + earned,
        cover=replace(profile.cover, freezes=tuple(sorted(freezes))),
    )


def journalled_freezes(profile: Profile, pending: Iterable[Entry]) -> set[date]:
    """Return the dates that the ledger, as far as it is known, says were covered by a freeze."""
    spent = set(profile.streak.spent if profile.streak else ())
    for entry in pending:
        if entry.draft.freeze_date and entry.draft.freeze is FreezeNote.SPENT:
            spent.add(date.fromisoformat(entry.draft.freeze_date))
        elif entry.draft.freeze_date and entry.draft.freeze is FreezeNote.REFUNDED:
            spent.discard(date.fromisoformat(entry.draft.freeze_date))
    return spent


def observe(profile: Profile, events: Iterable[Event]) -> Profile:
    """Take in what does not depend on order: the newest event's zone, and dates that zones skipped.

    Doing it again changes nothing, so events already applied may be observed too.
    """
    zone, at = profile.observed_zone, profile.observed_at
    skipped = profile.cover.skipped
    for event in events:
        if event.timezone and event.event_id > at:
            zone, at = event.timezone, event.event_id
        skipped |= _skipped(event)
    if at == profile.observed_at and skipped == profile.cover.skipped:
        return profile
    return replace(profile, observed_zone=zone, observed_at=at, cover=replace(profile.cover, skipped=skipped))


def _skipped(event: Event) -> frozenset[date]:
    try:
        return skipped_beside(event.activity_date, event.zone)
    except UnknownZone:
        return frozenset()


def streak_after(
    old: Streak | None, cover: Cover, new_dates: Iterable[date], history: Iterable[date] | None, refold: bool
) -> Streak | None:
    """Return the streak with new dates in it; raises NeedsHistory where the past must be refolded."""
    dates = sorted(new_dates)
    if history is not None:
        return fold([*history, *dates], cover)
    if refold or (old and dates and dates[0] < old.last):
        raise NeedsHistory
    for day in dates:
        old = advance(old, day, cover)
    return old


def freeze_drafts(journalled: set[date], streak: Streak | None) -> list[Draft]:
    """Return the entries that bring the journal in line with the freezes the streak now uses.

    Refunds first: a freeze that is given back may be the one that is spent on another date.
    """
    spent = set(streak.spent if streak else ())
    refunds = [
        Draft(EntryKind.REVERSE, 0, freeze=FreezeNote.REFUNDED, freeze_date=day.isoformat())
        for day in sorted(journalled - spent)
    ]
    return refunds + [
        Draft(EntryKind.ADJUST, 0, freeze=FreezeNote.SPENT, freeze_date=day.isoformat())
        for day in sorted(spent - journalled)
    ]


def decide(
    account: Account,
    events: Sequence[Event],
    now: datetime,
    commands: Sequence[Draft] = (),
    observed: Iterable[Event] = (),
) -> Decision:
    """Apply events that are in no entry yet, and commands, to an account.

    observed: events that may have been applied already; only what is idempotent is taken from them.
    Raises NeedsHistory, or InsufficientBalance for a command.
    """
    before = account.profile
    repaired = absorb(before, account.pending)
    days = absorb_days(account.days, account.pending)
    profile = observe(repaired, [*events, *observed])
    earned, cut = _award(events, {**account.days, **days})
    commanded = absorb(profile, _unplaced(before.user_id, commands))
    streak = streak_after(
        before.streak,
        commanded.cover,
        _dates_new_to(account, events),
        account.history,
        refold=bool(account.pending) or _reaches_back(before, commanded.cover),
    )
    freezes = freeze_drafts(journalled_freezes(before, account.pending), streak)
    drafts = [*commands, *freezes, *earned]
    if not drafts and not account.pending:
        changed = replace(profile, streak=streak)
        return Decision(account, before.head, (), days, _touch(before, changed, now))
    head = repaired.head
    arrival = max((unstamp(event.created_at) for event in events), default=EPOCH)
    entries = append(before.user_id, head, drafts, now, arrival) if drafts else []
    days |= absorb_days({**account.days, **days}, entries)
    changed = replace(absorb(profile, entries), streak=streak)
    return Decision(account, head, entries, days, _touch(before, changed, now), cut)


def _award(
    events: Sequence[Event], days: Mapping[date, Day | None]
) -> tuple[list[Draft], list[tuple[Event, int]]]:
    """Return each event's EARN draft under its daily cap, and the events whose points were cut."""
    earned: dict[tuple[date, str], int] = {}
    drafts, cut = [], []
    for event in events:
        key = (event.activity_date, event.event_type)
        if key not in earned:
            day = days.get(event.activity_date)
            earned[key] = day.points_by_type.get(event.event_type, 0) if day else 0
        award = points.capped_points(event.event_type, event.points_awarded, earned[key])
        earned[key] += award
        if award != event.points_awarded:
            cut.append((event, award))
        drafts.append(
            Draft(EntryKind.EARN, award, event.event_id, event.event_type, event.activity_date.isoformat())
        )
    return drafts, cut


def _unplaced(user_id: str, commands: Sequence[Draft]) -> list[Entry]:
    """Commands as entries without a place, to see what they do to the freezes."""
    return [Entry(user_id, "", 0, 0, draft) for draft in commands if draft.freeze]


def _dates_new_to(account: Account, events: Iterable[Event]) -> set[date]:
    new = {event.activity_date for event in events if account.days.get(event.activity_date) is None}
    pending = (entry.draft.activity_date for entry in account.pending)
    return new | {date.fromisoformat(day) for day in pending if day}


def _reaches_back(profile: Profile, cover: Cover) -> bool:
    """Whether a change of cover concerns dates that the streak has already walked over."""
    if profile.streak is None or cover == profile.cover:
        return False
    last = profile.streak.last
    # As multisets: two freezes may have been granted on one date.
    now, then = Counter(cover.freezes), Counter(profile.cover.freezes)
    freezes = (now - then) + (then - now)
    return (
        any(day < last for day in cover.skipped ^ profile.cover.skipped)
        or any(since < last for since, _ in freezes)
        or any(first < last for first, _ in set(cover.pauses) ^ set(profile.cover.pauses))
    )


def _touch(before: Profile, changed: Profile, now: datetime) -> Profile:
    if changed == before:
        return before
    return replace(changed, version=before.version + 1, updated_at=now.isoformat())


def change_timezone(profile: Profile, zone: str, now: datetime) -> Profile:
    """Set the user's zone (rule 8): changes are kept, and more than two in 24 hours flag a review."""
    if zone == profile.timezone:
        return profile
    changes = (*profile.tz_changes, (now.isoformat(), zone))[-TZ_CHANGES_KEPT_MAX:]
    recent = [at for at, _ in changes if datetime.fromisoformat(at) > now - timedelta(days=1)]
    review = profile.tz_review or len(recent) > TZ_CHANGES_PER_DAY_MAX
    return _touch(profile, replace(profile, timezone=zone, tz_changes=changes, tz_review=review), now)
