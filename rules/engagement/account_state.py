"""One user's account as it is read and written: profile, days, and what is decided about them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from rules.days import today
from rules.engagement.amnesty.declared import NO_AMNESTIES, Amnesties
from rules.engagement.ledger import Entry, Head
from rules.engagement.points.holds import Hold
from rules.engagement.points.lots import Expiry
from rules.engagement.streaks import Cover, Streak


@dataclass(frozen=True, slots=True)
class Day:
    """What a user did on one date.

    first_event_id, last_event_id: of the events that make the date an active one; of all while none does.
    passive_events: how many do not. points_by_cap: points by event type and cap, `CHECK_IN 5/day` (rule 5).
    ledger_head: place of the newest entry counted in. lots: its points by the date on which they expire.
    events_count and passive_events are without the events that were reversed; reversed_events: how many of
    those kept the streak. first_event_id, last_event_id: with them, because an event that comes later must
    not find another day, whether it comes before or after the reversal.
    measures: what its events contribute to streaks (rules.engagement.goals.measures).
    """

    user_id: str
    activity_date: date
    first_event_id: str
    events_count: int
    points_earned: int
    points_by_cap: Mapping[str, int]
    ledger_head: str
    created_at: str
    last_event_id: str = ""
    passive_events: int = 0
    lots: Mapping[str, int] = field(default_factory=dict)
    reversed_events: int = 0
    measures: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_active(self) -> bool:
        """Whether the date counts for the streak."""
        return self.events_count > self.passive_events

    @property
    def was_active(self) -> bool:
        """Whether it does, or did until its events were reversed."""
        return self.is_active or self.reversed_events > 0


def is_active(day: Day | None) -> bool:
    """Whether a date counts for the streak. day: None if nothing happened on it."""
    return day is not None and day.is_active


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a user.

    version: counts the writes. head: the newest entry counted in. timezone: the zone that the user set.
    observed_zone: the zone that the user's latest event named; "latest" goes by when it occurred, not by when
    it arrived. It decides which date is today, never which date an event belongs to. tz_changes: zones that
    the user set, zones_seen: those that events named, each with when it began. skews_seen: by how many
    minutes the clock of the device was wrong, each with when that was first seen. tz_review: whether
    redemptions wait for an admin, review_since and review_evidence: since when and why; released_at: when the
    last review ended. alias: the name that the user chose for the boards. applied_through: every event that
    is applied stands up to this place in the stream of events, or in another stream (rules.stream_places);
    "": unknown.
    holds: points that are reserved (rule 11), some of them maybe past their deadline.
    expiry: which of them are due to expire next. past_entry: place of the newest entry that has changed what
    a date of long ago contributes to streaks; "": none. amnesties: numbers of amnesties, each with the dates
    that it makes neutral; they are among the cover's skipped dates, too (rule 17). backfilled: the newest
    version that the past alone has made: imported events, or an opening position (rule 20).
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
    zones_seen: tuple[tuple[str, str], ...] = ()
    skews_seen: tuple[tuple[str, str], ...] = ()
    tz_review: bool = False
    review_since: str = ""
    review_evidence: tuple[str, ...] = ()
    released_at: str = ""
    alias: str | None = None
    updated_at: str = ""
    applied_through: str = ""
    holds: tuple[Hold, ...] = ()
    expiry: Expiry = field(default_factory=Expiry)
    past_entry: str = ""
    amnesties: tuple[tuple[int, tuple[date, ...]], ...] = ()
    backfilled: int = 0

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
    """A user's active dates: what the streak was after some of them (None: before all), and all later."""

    dates: Iterable[date]
    start: Streak | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """What was read of a user before deciding.

    days: by date, for the dates that the decision needs; None for a date without activity so far. pending:
    entries newer than the profile's watermark. history: active dates; None if they were not read. amnesties:
    those that are known.
    """

    profile: Profile
    days: Mapping[date, Day | None]
    pending: Sequence[Entry] = ()
    history: History | None = None
    amnesties: Amnesties = NO_AMNESTIES


@dataclass(frozen=True, slots=True)
class Decision:
    """What to write, in this order: new entries, changed days, the profile.

    head: what the new entries build on.
    """

    before: Account
    head: Head | None
    entries: Sequence[Entry]
    days: Mapping[date, Day]
    profile: Profile

    @property
    def is_change(self) -> bool:
        """Whether anything needs to be written."""
        return bool(self.entries or self.days) or self.profile != self.before.profile


class NeedsHistory(Exception):
    """The profile alone does not tell the streak: the caller must read active dates and decide again.

    since: the earliest date that may count differently now. A history may start at any checkpoint before it.
    """

    def __init__(self, since: date) -> None:
        super().__init__(f"{since} and later dates count anew")
        self.since = since
