"""One user's account: its profile and days, and the decision about them that is written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from rules.days import today
from rules.engagement.amnesty import NO_AMNESTIES, Amnesties
from rules.engagement.ledger import Entry, Head
from rules.engagement.lots import Expiry, Hold
from rules.engagement.streak import Cover, Streak


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
    ledger_head: str  # the day's watermark: place of the newest entry counted in
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
    timezone: str | None = None  # the zone that the user set
    # The zone that the user's latest event named, and that event's id. "Latest" goes by when it occurred, not
    # by when it arrived. The zone decides which date is today, never which date an event belongs to.
    observed_zone: str | None = None
    observed_at: str = ""
    tz_changes: tuple[tuple[str, str], ...] = ()  # zones that the user set, each with when
    zones_seen: tuple[tuple[str, str], ...] = ()  # zones that events named, each with when it began
    skews_seen: tuple[tuple[str, str], ...] = ()  # since when a device's clock was wrong, by how many minutes
    tz_review: bool = False  # redemptions wait until an admin releases the account (review.py)
    review_since: str = ""
    review_evidence: tuple[str, ...] = ()  # why, in words
    released_at: str = ""  # when the last review ended
    alias: str | None = None  # the name that the user chose for the boards
    updated_at: str = ""
    # Every event up to this stream position is applied (rules.engagement.events); "": unknown.
    applied_through: str = ""
    holds: tuple[Hold, ...] = ()  # reserved points (rule 11); some holds may be past their deadline
    expiry: Expiry = field(default_factory=Expiry)  # which points expire next
    past_entry: str = ""  # place of the newest entry that changed a date of long ago (account.PAST_AFTER)
    amnesties: tuple[tuple[int, tuple[date, ...]], ...] = ()  # numbers; their dates are in cover.skipped, too
    backfilled: int = 0  # the newest version that imported events or an opening position made (rule 20)

    @property
    def zone(self) -> str:
        """The zone that decides which date is today for this user."""
        return self.timezone or self.observed_zone or "UTC"

    @property
    def balance(self) -> int:
        """Points that can be redeemed; below 0: a debt."""
        return self.head.balance if self.head else 0


def date_at(profile: Profile, at: datetime) -> date:
    """Return the user's date at an instant, or the newest active date if that is later.

    It is later if the newest event came from a zone further east, where it was tomorrow already.
    """
    local = today(at, profile.zone)
    return max(local, profile.streak.last) if profile.streak else local


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
