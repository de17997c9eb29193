"""The streak of two friends (docs/rules.md, rule 26): a fold over the dates on which both were active.

Nothing of it is stored. A date counts if both were active on it. It is no miss if each was active, or is
covered by what protects the own streak. So the streak is the number of dates that the two runs of the daily
streak have in common since the pair began: both end at their own misses, and each freeze covers its owner's.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from rules.days import DAY, EPOCH
from rules.engagement.account_state import Profile, date_at
from rules.engagement.streak import Checkpoint, Streak, fold, resumed_streak, shown_streak

FIRST = EPOCH.date()  # no event is older (rule 3)
EDITION = 1  # of the text of settled dates
LONG = timedelta(days=28)  # settled dates are stored for later readers if they save so many


@dataclass(frozen=True, slots=True)
class ActiveDates:
    """A set of dates, as the bits of a number: bit 0 is 1 January 1970. Ten years are 2.6 KB at most."""

    bits: int = 0

    @classmethod
    def of(cls, days: Iterable[date]) -> "ActiveDates":
        """Return the set of some dates; earlier ones than FIRST are left out."""
        bits = 0
        for day in days:
            if day >= FIRST:
                bits |= 1 << _place(day)
        return cls(bits)

    @classmethod
    def span(cls, first: date, last: date) -> "ActiveDates":
        """Return all dates between two, both included; none if the first is the later one."""
        first = max(first, FIRST)
        return cls(((1 << (last - first).days + 1) - 1) << _place(first)) if first <= last else cls()

    def __contains__(self, day: date) -> bool:
        return day >= FIRST and bool(self.bits >> _place(day) & 1)

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __iter__(self) -> Iterator[date]:
        place, rest = 0, self.bits
        while rest:
            gap = (rest & -rest).bit_length() - 1
            place, rest = place + gap + 1, rest >> gap + 1
            yield FIRST + timedelta(days=place - 1)

    def __or__(self, other: "ActiveDates") -> "ActiveDates":
        return ActiveDates(self.bits | other.bits)

    def __and__(self, other: "ActiveDates") -> "ActiveDates":
        return ActiveDates(self.bits & other.bits)

    def between(self, first: date, last: date) -> "ActiveDates":
        """Return those between two dates, both included."""
        return self & ActiveDates.span(first, last)

    def newest(self, number: int) -> "ActiveDates":
        """Return the newest ones, so many of them, or all."""
        if number >= len(self):
            return self
        least, most = 0, self.bits.bit_length()  # as many or more are left without the first `least` places
        while most - least > 1:
            place = (least + most) // 2
            is_enough = (self.bits >> place).bit_count() >= number
            least, most = (place, most) if is_enough else (least, place)
        return ActiveDates(self.bits >> least << least) if number > 0 else ActiveDates()


def _place(day: date) -> int:
    return (day - FIRST).days


@dataclass(frozen=True, slots=True)
class SettledDates:
    """A user's active dates of a span that no late event changes any more, as they are stored.

    It follows from the days, so it may be deleted at any time. It is no longer right once an entry has
    changed a date of long ago, which the profile then says (Profile.past_entry).
    """

    since: date  # the first date of the span
    until: date  # the span ends before it
    head: str  # place of the profile's newest entry when the days were read
    dates: ActiveDates

    @property
    def text(self) -> str:
        """As a text: edition, span, head, and the bits from `since` on."""
        bits = self.dates.bits >> _place(self.since)
        return f"{EDITION} {self.since.isoformat()} {self.until.isoformat()} {self.head} {bits:x}"

    @classmethod
    def of(cls, text: str) -> "SettledDates":
        """Read a text; raises ValueError for any other text, and for one of another edition."""
        edition, since, until, head, bits = text.split(" ")
        if int(edition) != EDITION:
            raise ValueError(f"edition {edition} was kept by other rules")
        first = date.fromisoformat(since)
        return cls(first, date.fromisoformat(until), head, ActiveDates(int(bits, 16) << _place(first)))

    def is_usable(self, profile: Profile, since: date) -> bool:
        """Whether it has the dates from one on, and they are still right."""
        return self.since <= since and profile.past_entry <= self.head


def first_date(since: str) -> date:
    """Return the first date that may count for a pair: the date in UTC on which it began.

    It depends on nobody's zone, so no later event and no journey moves it. since: a stamp.
    """
    return datetime.fromisoformat(since).astimezone(UTC).date()


def pair_today(one: Profile, other: Profile, now: datetime) -> date:
    """Return the date that is today for a pair: it lasts until the later midnight of both."""
    return min(date_at(one, now), date_at(other, now))


def _checkpoints(profile: Profile) -> list[Checkpoint]:
    """Return all checkpoints that a profile has, the newest first."""
    begins = profile.cover.brought_forward
    checkpoints = profile.streak.checkpoints if profile.streak else ()
    return [*reversed(checkpoints), *([begins.start] if begins else [])]


def dense_dates(profile: Profile) -> ActiveDates:
    """Return the newest active dates, as far as the profile shows that none between them was missed.

    So nobody reads the days of a user who is active every day.
    """
    streak = profile.streak
    if streak is None or is_imported(profile, streak.last):
        return ActiveDates()
    first = streak.last
    for checkpoint in _checkpoints(profile):
        if (streak.last - checkpoint.last).days != streak.active_days - checkpoint.active_days:
            break
        first = checkpoint.last
    return ActiveDates.span(first, streak.last)


def is_imported(profile: Profile, day: date) -> bool:
    """Whether a date belongs to a streak that another system has counted: nobody knows its dates."""
    opening = profile.cover.opening
    return opening is not None and opening.length > 0 and day <= opening.last


def _streak_by(profile: Profile, day: date) -> Streak | None:
    """Return the newest streak that a profile knows as of a date: the user may live ahead of it already."""
    streak = profile.streak
    is_ahead = streak is not None and streak.last > day
    return resumed_streak(streak, profile.cover, day + DAY) if is_ahead else streak


def run_reaches(profile: Profile, today: date) -> date:
    """Return a date before which the run that shows on a date has not begun; or FIRST.

    Since a checkpoint within the run, the run has grown by as many dates as were active. The run is the one
    of that date: who lives ahead may have begun another one since.
    """
    run = _streak_by(profile, today)
    for checkpoint in _checkpoints(profile):
        if run is None or checkpoint.last > run.last:
            continue
        if run.length - checkpoint.length != run.active_days - checkpoint.active_days:
            return checkpoint.last + DAY
    return FIRST


@dataclass(frozen=True, slots=True)
class Need:
    """The dates that must be known of a user to show a pair's streak."""

    first: date
    last: date


def need_of(profile: Profile, pair_first: date, run_first: date, today: date) -> Need | None:
    """Return the dates that a pair's streak needs of one of both; None for none.

    pair_first: the first date that may count. run_first: up to which the shorter run may reach back. today:
    the pair's.
    """
    streak = profile.streak
    if streak is None:
        return None
    first = max(pair_first, run_first)
    if streak.last > today:
        # The run as of today is folded from a checkpoint, with the dates after it.
        start = _streak_by(profile, today)
        first = min(first, start.last + DAY if start else FIRST)
    # A pair may begin on a date that is not today yet: whether each is active today is shown anyway.
    return Need(min(first, today), today)


@dataclass(frozen=True, slots=True)
class Friend:
    """One of a pair."""

    profile: Profile
    dates: ActiveDates  # at least those of need_of

    def run(self, today: date) -> ActiveDates:
        """Return the active dates of the run of the daily streak that shows on a date; none if it has ended.

        Those of an imported streak (rule 20) are not known. Others from before the pair may be missing, too.
        """
        streak, cover = self.profile.streak, self.profile.cover
        if streak and streak.last > today:
            start = _streak_by(self.profile, today)
            after = start.last + DAY if start else FIRST
            streak = fold(self.dates.between(after, today), cover, start)
        if streak is None or streak.last > today:
            return ActiveDates()
        length = shown_streak(streak, cover, today).current
        opening = cover.opening
        first = opening.last + DAY if opening and opening.length else FIRST
        return self.dates.between(first, today).newest(length)

    def has_done(self, today: date) -> bool:
        """Whether a date asks nothing more of the user: it is active, or needs no activity."""
        return today in self.dates or self.profile.cover.is_neutral(today)


@dataclass(frozen=True, slots=True)
class PairStreak:
    """The streak of a pair as it shows on its today."""

    today: date
    length: int
    is_at_risk: bool  # one of both must still be active today, so that the run goes on
    active_today: tuple[bool, bool]  # of the one, and of the other


def pair_streak(one: Friend, other: Friend, first: date, today: date) -> PairStreak:
    """Return the streak of a pair. first: the first date that may count. today: the pair's."""
    shared = (one.run(today) & other.run(today)).between(first, today)
    is_done = one.has_done(today) and other.has_done(today)
    active = (today in one.dates, today in other.dates)
    return PairStreak(today, len(shared), bool(shared) and not is_done, active)
