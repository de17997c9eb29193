"""Rest days (docs/rules.md, rule 2): weekdays on which a date without activity is no miss. And short dates.

The book names them, or lets each user choose some. What a version says of it judges the dates that begin
under the version, and a choice counts from a later date on. So neither changes a date that has begun.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta

from rules.book.daily import NO_REST, DailyTerms, Weekday, short_dates, weekday_names
from rules.days import DAY, GREATEST_OFFSET

CHOICE_KEPT = timedelta(days=28)  # from one choice to the next
Choice = tuple[date, tuple[Weekday, ...]]  # the first date on which it counts, and weekdays in their order
NO_TERMS: DailyTerms = ()


class ChoiceTooSoon(ValueError):
    """The last choice was made less than CHOICE_KEPT ago."""

    def __init__(self, again_at: datetime) -> None:
        super().__init__(f"the next choice may be made at {again_at.isoformat()}")
        self.again_at = again_at  # the first instant at which another one is taken


@dataclass(frozen=True, slots=True)
class RestDays:
    """The rest days of one user."""

    # What the books say, each from its date on until the next (Books.daily_terms). It is the same for all
    # users, so no profile stores it: who reads a profile adds it.
    terms: DailyTerms = field(default=NO_TERMS, compare=False)
    chosen: tuple[Choice, ...] = ()  # by date, one a date

    def on(self, day: date) -> frozenset[Weekday]:
        """Return the weekdays that are rest days under the rules of a date."""
        rules = next((rules for since, rules in reversed(self.terms) if since <= day), NO_REST)
        if rules.chosen_max:
            # If a later book allows fewer, the first weekdays of the choice count, from Monday on.
            return frozenset(self.chosen_on(day)[: rules.chosen_max])
        return rules.rest_days

    def includes(self, day: date) -> bool:
        """Whether a date is a rest date."""
        return bool(self.terms) and day.weekday() in self.on(day)

    def is_short(self, day: date) -> bool:
        """Whether a date was cut short, because a version of the book lets later dates begin earlier."""
        return bool(self.terms) and day in short_dates(self.terms)

    def chosen_on(self, day: date) -> tuple[Weekday, ...]:
        """Return the user's own choice as of a date, whatever the book allows."""
        return next((weekdays for since, weekdays in reversed(self.chosen) if since <= day), ())

    def with_choice(self, since: date, weekdays: Iterable[Weekday]) -> "RestDays":
        """Return the rest days with a choice that counts from a date on."""
        chosen = {**dict(self.chosen), since: tuple(sorted(set(weekdays)))}
        return replace(self, chosen=tuple(sorted(chosen.items())))

    def since(self, day: date) -> "RestDays":
        """Return the rest days of the dates from a date on: no choices that another one has replaced by then.

        The answer's choices have the dates that they had.
        """
        replaced = sum(since <= day for since, _ in self.chosen) - 1
        return replace(self, chosen=self.chosen[max(0, replaced) :])

    def until(self, last: date) -> "RestDays":
        """Return the rest days that the dates up to one follow from."""
        return RestDays(
            tuple(each for each in self.terms if each[0] <= last),
            tuple(each for each in self.chosen if each[0] <= last),
        )

    def is_same(self, other: "RestDays") -> bool:
        """Whether both are the same, the books' terms included."""
        return (self.terms, self.chosen) == (other.terms, other.chosen)


def first_date_to_come(now: datetime) -> date:
    """Return the first date that has begun nowhere on earth."""
    return (now.astimezone(UTC) + GREATEST_OFFSET).date() + DAY


def chosen_anew(rest: RestDays, weekdays: Sequence[Weekday], now: datetime) -> RestDays:
    """Return the rest days with a user's new choice, or the same ones if it is the newest choice already.

    Raises ChoiceTooSoon.
    """
    wanted = tuple(sorted(set(weekdays)))
    last_since, last = rest.chosen[-1] if rest.chosen else (None, ())
    if wanted == last:
        return rest
    since = first_date_to_come(now)
    if last_since and since < last_since + CHOICE_KEPT:
        again = datetime.combine(last_since + CHOICE_KEPT - DAY, time(), UTC) - GREATEST_OFFSET
        raise ChoiceTooSoon(again)
    return rest.with_choice(since, wanted)


def choice_text(since: date, weekdays: Iterable[Weekday]) -> str:
    """Return a choice as it is stored: `2026-12-05 saturday sunday`."""
    return " ".join((since.isoformat(), *weekday_names(weekdays)))


def choice_of_text(text: str) -> Choice:
    """Read what choice_text wrote; raises ValueError for another text."""
    since, *names = text.split(" ")
    return date.fromisoformat(since), tuple(sorted(map(Weekday.of, names)))
