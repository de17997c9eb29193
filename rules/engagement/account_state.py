"""One user's account as it is read and written: profile, days, and what is decided about them. Which dates
are active ones, and which amnesties make neutral (rule 17).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

from rules.days import DAY, GREATEST_OFFSET, LEAST_OFFSET, stamp, today, zone
from rules.engagement.ledger import Draft, Entry, EntryKind, Head
from rules.engagement.lots import Expiry, Hold
from rules.engagement.streak import Cover, Streak

# What was declared of amnesties (rule 17).


TICK = timedelta(microseconds=1)
# A longer outage is declared in parts: nobody makes a year neutral by a slip of a digit.
LENGTH_MAX = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Amnesty:
    """One amnesty, as it was declared."""

    number: int
    since: datetime  # since, until: when the outage began and was over
    until: datetime
    zones: frozenset[str] = frozenset()  # names of the zones whose users it concerns; none: all
    is_listed: bool = False  # it concerns those alone for whom it is applied by name
    reason: str = ""
    author: str = ""
    declared_at: str = ""  # declared_at, author, reason: when, by whom, why
    revoked_at: str = ""  # since when it is none any more; "": it is one

    def dates_in(self, name: str) -> frozenset[date]:
        """Return the local dates of a zone that the outage touched; none if it does not concern the zone."""
        if self.zones and name not in self.zones:
            return frozenset()
        there = zone(name)
        day, last = (each.astimezone(there).date() for each in (self.since, self.until - TICK))
        return frozenset(day + timedelta(days=number) for number in range((last - day).days + 1))


@dataclass(frozen=True, slots=True)
class Amnesties:
    """All that are known."""

    known: tuple[Amnesty, ...] = ()
    named: frozenset[int] = frozenset()  # numbers of those that are applied by name to the account at hand


NO_AMNESTIES = Amnesties()


def outage_dates(amnesty: Amnesty) -> tuple[date, date]:
    """Return the first and the last date that the outage touched in any zone there is."""
    first = amnesty.since.astimezone(UTC) + LEAST_OFFSET
    last = amnesty.until.astimezone(UTC) - TICK + GREATEST_OFFSET
    return first.date(), last.date()


@dataclass(frozen=True, slots=True)
class Day:
    """What a user did on one date.

    Counts and points leave out events that were reversed. The ids of the first and the last event do not: an
    event that comes later must not find another day, whether it comes before or after the reversal.
    """

    user_id: str
    activity_date: date
    first_event_id: str  # of the events that keep the streak; of all while none does
    events_count: int  # with the passive ones
    points_earned: int
    points_by_cap: Mapping[str, int]  # by event type and its cap: `CHECK_IN 5/day` (rule 5)
    ledger_head: str  # the day's watermark: place of the newest entry counted in
    created_at: str
    last_event_id: str = ""  # as first_event_id
    passive_events: int = 0  # those of events_count that keep no streak
    lots: Mapping[str, int] = field(default_factory=dict)  # points by the date on which they expire
    reversed_events: int = 0  # reversed ones that kept the streak
    measures: Mapping[str, int] = field(
        default_factory=dict
    )  # what events add to streaks (rules/engagement/events.py)

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
    """What is known of a user."""

    user_id: str
    version: int = 0  # counts the writes; 0: nothing is stored
    head: Head | None = None  # the profile's watermark: the newest entry counted in
    total_points: int = 0  # ever earned
    streak: Streak | None = None
    cover: Cover = field(default_factory=Cover)
    timezone: str | None = None  # the zone that the user set
    # The zone that the user's latest event named, and that event's id. "Latest" goes by when it occurred, not
    # by when it arrived. The zone decides which date is today, never which date an event belongs to.
    observed_zone: str | None = None
    observed_at: str = ""
    tz_changes: tuple[tuple[str, str], ...] = ()  # zones that the user set, each with when
    zones_seen: tuple[tuple[str, str], ...] = ()  # zones that events named, each with when it began
    skews_seen: tuple[tuple[str, str], ...] = ()  # by how many minutes a device's clock was wrong, since when
    tz_review: bool = False  # redemptions wait until an admin releases the account (review.py)
    review_since: str = ""
    review_evidence: tuple[str, ...] = ()  # why, in words
    released_at: str = ""  # when the last review ended
    alias: str | None = None  # the name that the user chose for the boards
    updated_at: str = ""
    # Every event up to this place in the stream of events is applied (rules.engagement.account); "": unknown.
    applied_through: str = ""
    holds: tuple[Hold, ...] = ()  # reserved points (rule 11); some holds may be past their deadline
    expiry: Expiry = field(default_factory=Expiry)  # which points expire next
    past_entry: str = ""  # place of the newest entry that changed a date of long ago (account.SETTLED_AFTER)
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
    """What was read of a user before deciding."""

    profile: Profile
    days: Mapping[date, Day | None]  # those that the decision needs; None for a date without activity so far
    pending: Sequence[Entry] = ()  # entries newer than the profile's watermark, oldest first
    history: History | None = None  # None: it was not read
    amnesties: Amnesties = NO_AMNESTIES  # those that are known


@dataclass(frozen=True, slots=True)
class Decision:
    """What to write, in this order: new entries, changed days, the profile."""

    before: Account
    head: Head | None  # what the new entries build on
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


# Which dates amnesties make neutral for a user (rule 17).


def zone_at(profile: Profile, at: datetime) -> str:
    """Return the zone that decided at an instant which date it was for the user (rule 8), as far as is known.

    That is the zone that the user had set by then, else the one that events named by then, else today's.
    """
    chosen = [name for since, name in profile.tz_changes if datetime.fromisoformat(since) <= at]
    if chosen:
        return chosen[-1]
    seen = [name for since, name in profile.zones_seen if since <= stamp(at)]
    if seen and not profile.timezone:
        return seen[-1]
    return profile.zone


def with_amnesties(profile: Profile, amnesties: Amnesties, since: date) -> Profile:
    """Return a profile for which the dates of amnesties are neutral, and those of revoked ones are not.

    since: the first date that is folded anyway. What lies before it and before the last active date is left
    as it is, unless the amnesty is applied by name: then no event costs the reading of the past.
    """
    if not amnesties.known:
        return profile
    marks = {number: frozenset(dates) for number, dates in profile.amnesties}
    own = profile.cover.skipped.difference(*marks.values())
    last = profile.streak.last if profile.streak else date.max
    for each in amnesties.known:
        if each.revoked_at:
            marks.pop(each.number, None)
            continue
        is_named = each.number in amnesties.named
        is_new = not is_named and each.number not in marks
        if is_new and (each.is_listed or each.until.date() + DAY < min(since, last)):
            continue
        touched = (
            day
            for day in each.dates_in(zone_at(profile, each.since))
            if is_named or day >= since or day > last
        )
        if dates := marks.get(each.number, frozenset()).union(touched) - own:
            marks[each.number] = dates
    return _with_neutral_dates(profile, own, sorted(marks.items()))


def _with_neutral_dates(
    profile: Profile, own: frozenset[date], marks: list[tuple[int, frozenset[date]]]
) -> Profile:
    noted = tuple((number, tuple(sorted(dates))) for number, dates in marks)
    if noted == profile.amnesties:
        return profile
    skipped = own.union(*(dates for _, dates in marks))
    return replace(profile, cover=replace(profile.cover, skipped=skipped), amnesties=noted)


def amnesty_of(profile: Profile, day: date) -> int | None:
    """Return the number of the first amnesty that makes a date neutral for the user; None for none."""
    return next((number for number, dates in profile.amnesties if day in dates), None)


# Which dates are active ones, by the events of a ledger that nobody has reversed (rules 2 and 12).


def active_dates(entries: Iterable[Entry]) -> set[date]:
    """Return the dates that entries make active ones: those of events that none of them reverses."""
    drafts = [entry.draft for entry in entries if entry.draft.activity_date and not entry.draft.is_passive]
    gone = {each.event_id for each in drafts if each.kind is EntryKind.CLAWBACK}
    return {
        date.fromisoformat(each.activity_date or "")
        for each in drafts
        if each.kind is EntryKind.EARN and each.event_id not in gone
    }


def active_events(entries: Iterable[Entry]) -> Counter[date]:
    """Return how many events more, or fewer, make each date an active one by some entries."""
    counts: Counter[date] = Counter()
    for each in entries:
        draft = each.draft
        change = {EntryKind.EARN: 1, EntryKind.CLAWBACK: -1}.get(draft.kind, 0)
        if change and draft.activity_date and not draft.is_passive:
            counts[date.fromisoformat(draft.activity_date)] += change
    return counts


def lost_dates(
    days: Mapping[date, Day | None], pending: Iterable[Entry], commands: Iterable[Draft]
) -> set[date]:
    """Return the dates that are active no more, because the last of their events is reversed.

    days: with what is pending counted in, and without the commands.
    """
    undone = Counter(
        date.fromisoformat(each.activity_date)
        for each in commands
        if each.kind is EntryKind.CLAWBACK and each.activity_date and not each.is_passive
    )
    touched = {
        date.fromisoformat(each.draft.activity_date)
        for each in pending
        if each.draft.kind is EntryKind.CLAWBACK and each.draft.activity_date
    }
    return {
        when
        for when in touched | undone.keys()
        if (day := days.get(when)) and day.events_count - day.passive_events <= undone[when]
    }
