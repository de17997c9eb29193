"""Says which book would judge an event, if a candidate had been in force in the place of some versions.

The *candidate* is the book that a what-if asks about. A *ruling* is one book's judgement of an event. *Terms*
are a ruling as it applies to entries with equal values. A *segment* is the time between two neighbouring
*boundaries*: the instants at which the worth of events may change.

The candidate takes the place of all versions in force in [since, until). It judges the events that occurred
in that time. It also judges an earlier event that a version of that time has judged: the event had waited for
its type. If the candidate does not accept an event, a version after `until` judges it: the first one that
accepts it and was known when the event arrived. Without such a version the event would have been refused.

Example: versions 1, 2 and 3 take effect on 1, 3 and 8 March, and the candidate holds in [2 March, 9 March).
Then version 1 judges what occurs before 2 March, the candidate what occurs before 9 March, and version 3 what
occurs later.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property, partial
from typing import Any, NamedTuple

from rules.book.book import Book, Books, Version
from rules.book.daily import DailyTerms, with_starts_of
from rules.book.measures import sums_of
from rules.book.point_rules import AmountRule, Cap, lot_date
from rules.days import EPOCH, MICROSECOND, key_of_stamp, stamp

FIRST_INSTANT = datetime.min.replace(tzinfo=UTC)
CANDIDATE = 0  # its number in PredictedBooks: lower than that of any version


@dataclass(frozen=True, slots=True)
class Ruling:
    """A book's judgement of an event."""

    points: int | None  # before the cap, whatever the event's amount; None: is_as_entry_says
    cap: Cap | None = None
    keeps_streak: bool | None = None  # None: the entry says it
    expiry: str | None = None  # the rule by which its points expire
    is_new: bool = False  # another book than before judges the event
    is_refused: bool = False  # no book accepts the event, unless it arrives late (`later`)
    later: tuple["LaterRuling", ...] = ()  # oldest first
    factor: int = 1  # of the boost in `points`
    by_amount: AmountRule | None = None  # what the event's amount earns besides, before the boost
    version: int | None = None  # of a real book; None: the candidate's, refused, or as the entry says

    @property
    def is_as_entry_says(self) -> bool:
        """Whether no known version judges the event, so that the values of its entry stay."""
        return self.points is None

    def points_of(self, measures: str | None) -> int | None:
        """Return an event's points before the cap; None: is_as_entry_says. measures: of the event."""
        if self.points is None or self.by_amount is None or measures is None:
            return self.points
        return self.points + self.factor * self.by_amount.points(sums_of(measures).get(self.by_amount.of, 0))


class LaterRuling(NamedTuple):
    """The ruling that takes the place of a refusal, if an event arrives late enough."""

    known_from: datetime  # for events that arrive then or later
    ruling: Ruling


class NotOffered(ValueError):
    """A reward could not have been redeemed. The message is the reason."""


@dataclass(frozen=True)
class Timeline:
    """The versions of the book, with a candidate in the place of some."""

    real: Books
    candidate: Book | None = None  # None: each event is judged by the version that has judged it
    since: datetime | None = None  # since, until: when the candidate is in force; None: open on that side
    until: datetime | None = None
    # The rule by which the points of a version's events expire, by version; only where it is known
    expiries: dict[int, str] = field(default_factory=dict)

    @cached_property
    def boundaries(self) -> list[datetime]:
        """The instants at which the worth of events may change, ascending."""
        books = [self.candidate] if self.candidate else []
        if self.is_partial:
            books += [version.book for version in self.real.versions]
        ends = {end for book in books for boost in book.boosts for end in (boost.since, boost.until)}
        return sorted(ends | {instant for instant in (self.since, self.until) if instant})

    @property
    def is_partial(self) -> bool:
        """Whether versions of the real book judge some events."""
        return self.candidate is None or self.since is not None or self.until is not None

    @property
    def id_bounds(self) -> list[str]:
        """The boundaries as texts that event ids can be compared with."""
        return [key_of_stamp(stamp(boundary)) for boundary in self.boundaries]

    def segment_begin(self, segment: int) -> datetime:
        """Return the first instant of a segment. Its number says how many boundaries are not after it."""
        return self.boundaries[segment - 1] if segment else FIRST_INSTANT

    def has_candidate_at(self, instant: datetime) -> bool:
        """Whether the candidate is in force at an instant."""
        has_begun = self.since is None or self.since <= instant
        has_ended = self.until is not None and self.until <= instant
        return self.candidate is not None and has_begun and not has_ended

    def ruling(
        self, event_type: str, version: int | None, occurred: datetime, *, breaks_contract: bool
    ) -> Ruling:
        """Return the judgement of an event.

        version: the one that its entry names. breaks_contract: whether the candidate's contract refuses the
        event's properties.
        """
        judged_by, candidate = self._version_by_number.get(version or 0), self.candidate
        # The candidate has no say in it.
        if candidate is None or not self._falls_to_candidate(occurred, judged_by):
            return self._ruling_as_before(judged_by, event_type, occurred)
        # It accepts the event.
        if event_type in candidate.event_types and not breaks_contract:
            return _ruling_of(candidate, event_type, occurred, candidate.expiry)
        # It refuses the event, but a version after it has judged the event already.
        if judged_by and self.until and judged_by.effective_at >= self.until:
            return self._ruling_as_before(judged_by, event_type, occurred)
        # It refuses the event, unless that arrives when a later version accepts its type.
        return Ruling(0, is_refused=True, is_new=True, later=tuple(self._later_rulings(event_type, occurred)))

    def _falls_to_candidate(self, occurred: datetime, judged_by: Version | None) -> bool:
        """Whether an event occurred in the candidate's time, or had waited for its type until then."""
        if self.has_candidate_at(occurred):
            return True
        is_before = self.since is not None and occurred < self.since
        return is_before and judged_by is not None and self.has_candidate_at(judged_by.effective_at)

    def _later_rulings(self, event_type: str, occurred: datetime) -> Iterator[LaterRuling]:
        """Yield the rulings of later versions that accept the type, the first version first."""
        if self.until is None:
            return
        in_order = sorted(self.real.versions, key=lambda version: (version.effective_at, version.number))
        first = self.real.at(self.until)
        others = [version for version in in_order if version.effective_at > self.until]
        for version in (first, *others):
            if event_type in version.book.event_types:
                rule = self.expiries.get(version.number)
                known_from = max(version.effective_at, version.published_at, self.until)
                ruling = _ruling_of(version.book, event_type, occurred, rule, version.number)
                yield LaterRuling(known_from, ruling)

    def _ruling_as_before(self, version: Version | None, event_type: str, occurred: datetime) -> Ruling:
        """Return the judgement of the version that has judged an event; None: no known version has."""
        if version is None or event_type not in version.book.event_types:
            return Ruling(None)
        book, number = version.book, version.number
        return Ruling(
            book.points(event_type, occurred, None),
            book.cap(event_type, occurred),
            expiry=self.expiries.get(number),
            factor=book.factor(event_type, occurred),
            by_amount=book.event_types[event_type].by_amount,
            version=number,
        )

    @cached_property
    def _version_by_number(self) -> dict[int, Version]:
        return {version.number: version for version in self.real.versions}

    @cached_property
    def predicted(self) -> Books:
        """The versions that there would have been: the candidate takes the place of those of its time.

        They are all versions, whenever they were published. Goals are computed by them.
        """
        if self.candidate is None:
            return self.real
        since, until = self.since, self.until
        versions = [version for version in self.real.versions if since and version.effective_at < since]
        versions.append(_as_version(self.candidate, self.real.newest.number + 1, since))
        if until:
            versions.append(replace(self.real.at(until), effective_at=until))
            versions += [version for version in self.real.versions if version.effective_at > until]
        return Books(versions)

    @cached_property
    def predicted_terms(self) -> DailyTerms:
        """What these versions say of rest days. Dates begin as they did: no event is dated anew."""
        return with_starts_of(self.predicted.daily_terms, self.real.daily_terms)

    @property
    def moves_dates(self) -> bool:
        """Whether dates would have begun at other times."""
        return self.predicted.day_starts != self.real.day_starts

    def book_at(self, now: datetime) -> Book:
        """Return the book in force at an instant."""
        return self.candidate if self.candidate and self.has_candidate_at(now) else self.real_at(now)

    def real_at(self, now: datetime) -> Book:
        """Return the book that was in force at an instant, of the versions that were published then."""
        known = [version for version in self.real.versions if version.published_at <= now]
        return (Books(known) if known else self.real).at(now).book

    def price(self, reward_id: str, paid: int, now: datetime) -> int:
        """Return the price of a reward that was redeemed at an instant. paid: the price that was paid.

        Raises NotOffered if it could not have been redeemed then.
        """
        if self.candidate is None or not self.has_candidate_at(now):
            return paid
        reward = self.candidate.rewards.get(reward_id)
        if reward is None:
            raise NotOffered(f"the reward {reward_id} is not in this book")
        if not reward.is_valid(now):
            raise NotOffered(f"the reward {reward_id} would not have been offered then")
        return reward.price_points


def _ruling_of(
    book: Book, event_type: str, occurred: datetime, expiry: str | None, version: int | None = None
) -> Ruling:
    """Return a book's new judgement of an event. expiry: the rule by which its points expire."""
    rule = book.event_types[event_type]
    return Ruling(
        book.points(event_type, occurred, None),
        book.cap(event_type, occurred),
        rule.keeps_streak,
        expiry,
        is_new=True,
        factor=book.factor(event_type, occurred),
        by_amount=rule.by_amount,
        version=version,
    )


@dataclass(slots=True)
class RulingTerms:
    """The common values of all entries whose events one ruling judges."""

    event_type: str
    ruling: Ruling
    cap: Cap | None
    is_active: bool  # whether such an event would keep a streak
    was_active: bool  # whether it does by its entry
    breaks_contract: bool  # the candidate's contract refuses the events' properties
    later: tuple["LaterTerms", ...] = ()  # as Ruling.later
    _expiry_dates: dict[date, date] = field(default_factory=dict)  # by the date of the points

    def at(self, created_at: int) -> "RulingTerms":
        """Return the terms of an entry that was written at an instant, in microseconds since 1970."""
        for known_from, terms in self.later:
            if created_at >= known_from:
                return terms
        return self

    def expiry_date(self, day: date) -> date:
        """Return when points of a date expire. The ruling must have a rule of expiry."""
        if day not in self._expiry_dates:
            self._expiry_dates[day] = lot_date(self.ruling.expiry or "", day, self.cap)
        return self._expiry_dates[day]


class LaterTerms(NamedTuple):
    """As LaterRuling."""

    known_from: int  # microseconds since 1970
    terms: RulingTerms


class TermsKey(NamedTuple):
    """What entries with the same terms have in common: the fields of LedgerRow.terms_key, in its order."""

    event_type: str
    version: int  # 0: none
    cap: str | None
    is_passive: bool
    segment: int
    breaks_contract: bool


class TermsMemo(dict[tuple[Any, ...], RulingTerms]):
    """RulingTerms by LedgerRow.terms_key: a plain tuple equals the TermsKey with its values."""

    def __init__(self, timeline: "Timeline") -> None:
        super().__init__()
        self._timeline = timeline

    def __missing__(self, values: tuple[Any, ...]) -> RulingTerms:
        """Find out the terms of a key that is asked for the first time."""
        key = TermsKey._make(values)
        occurred = self._timeline.segment_begin(key.segment)
        ruling = self._timeline.ruling(
            key.event_type, key.version or None, occurred, breaks_contract=key.breaks_contract
        )
        terms = self[key] = _terms_of(ruling, key)
        terms.later = tuple(
            LaterTerms((later.known_from - EPOCH) // MICROSECOND, _terms_of(later.ruling, key))
            for later in ruling.later
        )
        return terms


def _terms_of(ruling: Ruling, key: TermsKey) -> RulingTerms:
    """Return the terms of a ruling. key: has the entries' own values."""
    was_active = not key.is_passive
    keeps_streak = was_active if ruling.keeps_streak is None else ruling.keeps_streak
    return RulingTerms(
        key.event_type,
        ruling,
        cap=Cap.of(key.cap) if ruling.is_as_entry_says else ruling.cap,
        is_active=keeps_streak and not ruling.is_refused,
        was_active=was_active,
        breaks_contract=key.breaks_contract,
    )


class PredictedBooks(Books):
    """The versions that were published by an instant, with the candidate in the place of some.

    They have their rules of expiry. Corrections are computed by them. The versions that the candidate
    replaces can still be looked up by number, for the events that they have judged.
    """

    def __init__(self, timeline: Timeline, now: datetime) -> None:
        known = [
            _with_expiry(version, timeline)
            for version in timeline.real.versions
            if version.published_at <= now
        ]
        in_force = [version for version in known if not timeline.has_candidate_at(version.effective_at)]
        if (candidate := timeline.candidate) is not None:
            in_force.append(_as_version(candidate, CANDIDATE, timeline.since))
        if (until := timeline.until) and known:
            last = Books(known).at(until)
            in_force = [version for version in in_force if version.number != last.number]
            in_force.append(replace(last, effective_at=until))
        super().__init__(in_force or known)
        # Books.numbered and Books.rejudging read this. It also has the replaced versions.
        self._by_number = {version.number: version for version in (*known, *self.versions)}


def _with_expiry(version: Version, timeline: Timeline) -> Version:
    """Return a version with the rule of expiry that its events name; the lake's books have none."""
    rule = timeline.expiries.get(version.number)
    return replace(version, read=partial(replace, version.book, expiry=rule)) if rule else version


def _as_version(candidate: Book, number: int, since: datetime | None) -> Version:
    """Return the candidate as a version. It has no lambda: the processes of a replay get it pickled."""
    return Version(number, since or FIRST_INSTANT, partial(replace, candidate))
