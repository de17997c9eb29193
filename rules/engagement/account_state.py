"""One user's account: its profile and days, why a date counts, and the decision that is written.

A day's or a profile's *watermark* is the newest ledger entry that it has counted in.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from rules.book.daily import day_starts
from rules.days import (
    DAY,
    GREATEST_OFFSET,
    LATEST_START,
    LEAST_OFFSET,
    MICROSECOND,
    DayStarts,
    local_date,
    start_of,
)
from rules.engagement.board_settings import BoardSettings
from rules.engagement.ledger import Entry, Head
from rules.engagement.lots import Expiry, Hold
from rules.engagement.period_points import PeriodPoints
from rules.engagement.repairs import Repair
from rules.engagement.streak import Cover, Streak, shown_streak, spend_freezes


@dataclass(frozen=True, slots=True)
class Day:
    """What a user did on one date.

    Counts and points leave out events that were reversed. The ids of the first and the last event do not: so
    the date of a later event is the same whether it arrives before or after the reversal.
    """

    user_id: str
    activity_date: date
    first_event_id: str  # the first event that keeps the streak; if none does, the first of all
    events_count: int  # with the passive ones
    points_earned: int
    points_by_cap: Mapping[str, int]  # by event type and its cap: `CHECK_IN 5/day` (docs/rules.md, rule 5)
    watermark: str  # created_at of the newest entry that is counted in
    created_at: str
    last_event_id: str = ""  # the last event, in the same way
    passive_events: int = 0  # how many of events_count keep no streak
    lots: Mapping[str, int] = field(default_factory=dict)  # points by the date on which they expire
    reversed_events: int = 0  # how many events that kept the streak were reversed
    # How much the events add to streaks, by rules.engagement.events.day_key
    measures: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_active(self) -> bool:
        """Whether the date counts for the streak."""
        return self.events_count > self.passive_events

    @property
    def was_active(self) -> bool:
        """Whether the date counts for the streak, or did before its events were reversed."""
        return self.is_active or self.reversed_events > 0


def is_active(day: Day | None) -> bool:
    """Whether a date counts for the streak. day: None if nothing happened on it."""
    return day is not None and day.is_active


@dataclass(frozen=True, slots=True)
class Profile:
    """A user's state as it is stored."""

    user_id: str
    version: int = 0  # counts the writes; 0: nothing is stored
    head: Head | None = None  # the profile's watermark: the newest entry counted in
    total_points: int = 0  # all points ever earned
    streak: Streak | None = None
    cover: Cover = field(default_factory=Cover)
    chosen_zone: str | None = None  # the zone that the user set, if any
    # The zone that the user's latest event named (the last to occur, not to arrive), and that event's id. It
    # decides which date is today, never which date an event belongs to.
    observed_zone: str | None = None
    observed_at: str = ""
    tz_changes: tuple[tuple[str, str], ...] = ()  # (since when, zone that the user set), oldest first
    zones_seen: tuple[tuple[str, str], ...] = ()  # (since when, zone that events named), oldest first
    skews_seen: tuple[tuple[str, str], ...] = ()  # (since when, minutes by which a device's clock was wrong)
    tz_review: bool = False  # redemptions wait until an admin releases the account (review.py)
    review_since: str = ""
    review_evidence: tuple[str, ...] = ()  # why, in words
    reviewed_since: str = ""  # when the last review that has ended began
    released_at: str = ""  # when it ended
    alias: str | None = None  # the name that the user chose for the boards
    board_settings: BoardSettings = ()  # the user's groups, and whether the user has left the boards
    updated_at: str = ""
    # Every event up to this stream position is applied (rules.engagement.events); "": unknown.
    applied_through: str = ""
    repairs: tuple[Repair, ...] = ()  # those of a year before the profile begins, and later ones
    holds: tuple[Hold, ...] = ()  # reserved points (rule 11); some holds may be past their deadline
    expiry: Expiry = field(default_factory=Expiry)  # which points expire next
    past_entry: str = ""  # place of the newest entry that changed a date of long ago (account.PAST_AFTER)
    amnesties: tuple[tuple[int, tuple[date, ...]], ...] = ()  # numbers; their dates are in cover.skipped, too
    backfilled: int = 0  # the newest version that imported events or an opening position made (rule 20)
    bonus_points: int = 0  # those of total_points that achievements have earned
    period_points: tuple[PeriodPoints, ...] = ()  # what boards count (rule 25), the earliest period first
    # Whether a book pays for achievements. No profile stores it: readers add it.
    pays_bonuses: bool = field(default=False, compare=False)

    @property
    def zone(self) -> str:
        """The zone that decides which date is today for this user."""
        return self.chosen_zone or self.observed_zone or "UTC"

    @property
    def day_starts(self) -> DayStarts:
        """When the user's dates begin, as the books say: a profile without their terms has midnight."""
        return day_starts(self.cover.rest.terms)

    def local_date(self, at: datetime) -> date:
        """Return the user's date at an instant."""
        return local_date(at, self.zone, self.day_starts)

    def start_of(self, day: date) -> datetime:
        """Return the instant (UTC) at which a date begins for the user."""
        return start_of(day, self.zone, self.day_starts)

    @property
    def board_points(self) -> int:
        """The score on boards of points: what events have earned."""
        return self.total_points - self.bonus_points

    @property
    def balance(self) -> int:
        """Points that can be redeemed; below 0: a debt."""
        return self.head.balance if self.head else 0


def otherwise_skipped(profile: Profile) -> frozenset[date]:
    """Return the neutral dates of a profile that are not an amnesty's: the user never had them."""
    return profile.cover.skipped.difference(*(dates for _, dates in profile.amnesties))


def date_at(profile: Profile, at: datetime) -> date:
    """Return the user's date at an instant, or the newest active date if that is later.

    It is later if the newest event came from a zone further east, where it was tomorrow already.
    """
    local = profile.local_date(at)
    return max(local, profile.streak.last) if profile.streak else local


class DateReason(StrEnum):
    """Why a date counts or does not."""

    COUNTED = "counted"
    FREEZE = "covered_by_freeze"
    REPAIR = "repaired"
    PAUSE = "paused"
    REST = "rest_day"
    SHORT = "short_date"
    SKIPPED = "skipped_by_zone"
    AMNESTY = "amnesty"
    MISSED = "missed"
    OPEN = "not_over_yet"
    BEFORE = "before_first_activity"


def explain_date(streak: Streak | None, profile: Profile, day: date, today: date) -> tuple[DateReason, int]:
    """Return why a date counts or does not, and the length of the streak after it.

    streak: with the active dates up to that date, and no later ones. profile: whole, or begun before it.
    """
    if streak is None:
        return DateReason.BEFORE, 0
    length = shown_streak(streak, profile.cover, day).current
    if day == streak.last:
        return DateReason.COUNTED, length
    if reason := _neutral_reason(profile, day):
        return reason, length
    if day >= today:
        return DateReason.OPEN, length
    # Later activity does not change which freezes were spent before it. So only dates up to this one matter.
    _, spent = spend_freezes(streak.spent, streak.last, day + DAY, profile.cover)
    return (_freeze_reason(profile, day), length) if day in spent else (DateReason.MISSED, 0)


def covered_dates(profile: Profile, span: tuple[date, date], today: date) -> list[tuple[date, DateReason]]:
    """Return the protected dates of a span up to today, oldest first, each with its reason.

    profile: whole, or begun before the span. span: the first and the last date, both included. A covered
    date may be active, too: activity on a paused date counts. Dates before the user's first active date may
    be among them; callers leave them out.
    """
    streak = profile.streak
    if streak is None:
        return []
    spent = set(shown_streak(streak, profile.cover, max(today, streak.last)).spent)
    covered: list[tuple[date, DateReason]] = []
    day, last = span
    while day <= min(last, today):
        if reason := _neutral_reason(profile, day) or (
            _freeze_reason(profile, day) if day in spent else None
        ):
            covered.append((day, reason))
        day += DAY
    return covered


def _freeze_reason(profile: Profile, day: date) -> DateReason:
    """Return what has covered a missed date: a freeze, or one that the user has bought for this date."""
    is_repaired = any(repair.day == day for repair in profile.repairs)
    return DateReason.REPAIR if is_repaired else DateReason.FREEZE


def _neutral_reason(profile: Profile, day: date) -> DateReason | None:
    """Return why a date without activity is no miss, although no freeze covers it; None if it is one."""
    if day in profile.cover.skipped:
        return DateReason.AMNESTY if amnesty_of(profile, day) else DateReason.SKIPPED
    if profile.cover.is_paused(day):
        return DateReason.PAUSE
    if profile.cover.rest.includes(day):
        return DateReason.REST
    return DateReason.SHORT if profile.cover.rest.is_short(day) else None


def amnesty_of(profile: Profile, day: date) -> int | None:
    """Return the number of the first amnesty that makes a date neutral for the user, or None."""
    return next((number for number, dates in profile.amnesties if day in dates), None)


@dataclass(frozen=True, slots=True)
class Amnesty:
    """One amnesty (rule 17), as it was declared after an outage."""

    number: int
    since: datetime  # when the outage began
    until: datetime  # when it was over
    zones: frozenset[str] = frozenset()  # names of the zones whose users it concerns; none: all
    is_listed: bool = False  # it concerns only users for whom it is applied by name
    reason: str = ""
    author: str = ""  # who declared it
    declared_at: str = ""
    revoked_at: str = ""  # "": it is in force

    def dates_in(self, zone_name: str, starts: DayStarts) -> frozenset[date]:
        """Return the local dates of a zone that the outage touched; none if it does not concern the zone.

        starts: when dates begin (Books.day_starts).
        """
        if self.zones and zone_name not in self.zones:
            return frozenset()
        ends = (self.since, self.until - MICROSECOND)
        # If clocks are set back over the start of a date, an instant may have the date before once more.
        first, last = sorted(local_date(each, zone_name, starts) for each in ends)
        return frozenset(first + timedelta(days=number) for number in range((last - first).days + 1))


def outage_dates(amnesty: Amnesty) -> tuple[date, date]:
    """Return the first and the last date that the outage touched in any zone there is."""
    first = amnesty.since.astimezone(UTC) + LEAST_OFFSET - timedelta(hours=LATEST_START.hour)
    last = amnesty.until.astimezone(UTC) - MICROSECOND + GREATEST_OFFSET
    return first.date(), last.date()


@dataclass(frozen=True, slots=True)
class Amnesties:
    """The amnesties that a decision about an account applies."""

    known: tuple[Amnesty, ...] = ()  # all that were ever declared, also the revoked ones
    named: frozenset[int] = frozenset()  # numbers of those that an admin applies to this account by name


NO_AMNESTIES = Amnesties()


@dataclass(frozen=True, slots=True)
class History:
    """A user's active dates, as far as a fold needs them."""

    dates: Iterable[date]  # all after `start`
    start: Streak | None = None  # the streak after some of the dates; None: before all of them


@dataclass(frozen=True, slots=True)
class Account:
    """The state of a user that a decision is based on."""

    profile: Profile
    days: Mapping[date, Day | None]  # the days that the decision needs; None for a date without activity
    pending: Sequence[Entry] = ()  # entries newer than the profile's watermark, oldest first
    history: History | None = None  # None: it was not read
    amnesties: Amnesties = NO_AMNESTIES


@dataclass(frozen=True, slots=True)
class Decision:
    """What to write, in this order: new entries, changed days, the profile."""

    before: Account
    head: Head | None  # the entry that the new entries follow; None: they begin the ledger
    entries: Sequence[Entry]
    days: Mapping[date, Day]
    profile: Profile

    @property
    def is_change(self) -> bool:
        """Whether anything needs to be written."""
        return bool(self.entries or self.days) or self.profile != self.before.profile


class NeedsHistory(Exception):
    """The streak does not follow from the profile alone: the caller must read active dates and decide again.

    since: the earliest date that may count differently now. A history may start at any checkpoint before it.
    """

    def __init__(self, since: date) -> None:
        super().__init__(f"{since} and later dates count anew")
        self.since = since
