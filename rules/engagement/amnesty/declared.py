"""What was declared of amnesties (rule 17)."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from rules.days import GREATEST_OFFSET, LEAST_OFFSET, zone

TICK = timedelta(microseconds=1)
# A longer outage is declared in parts: nobody makes a year neutral by a slip of a digit.
LENGTH_MAX = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Amnesty:
    """One amnesty, as it was declared.

    since, until: when the outage began and was over. zones: names of the zones whose users it concerns; none:
    all. is_listed: it concerns those alone for whom it is applied by name. declared_at, author, reason: when,
    by whom, why. revoked_at: since when it is none any more; "": it is one.
    """

    number: int
    since: datetime
    until: datetime
    zones: frozenset[str] = frozenset()
    is_listed: bool = False
    reason: str = ""
    author: str = ""
    declared_at: str = ""
    revoked_at: str = ""

    def dates_in(self, name: str) -> frozenset[date]:
        """Return the local dates of a zone that the outage touched; none if it does not concern the zone."""
        if self.zones and name not in self.zones:
            return frozenset()
        there = zone(name)
        day, last = (each.astimezone(there).date() for each in (self.since, self.until - TICK))
        return frozenset(day + timedelta(days=number) for number in range((last - day).days + 1))


@dataclass(frozen=True, slots=True)
class Amnesties:
    """All that are known. named: numbers of those that are applied by name to the account at hand."""

    known: tuple[Amnesty, ...] = ()
    named: frozenset[int] = frozenset()


NO_AMNESTIES = Amnesties()


def touched_anywhere(amnesty: Amnesty) -> tuple[date, date]:
    """Return the first and the last date that the outage touched in any zone there is."""
    first = amnesty.since.astimezone(UTC) + LEAST_OFFSET
    last = amnesty.until.astimezone(UTC) - TICK + GREATEST_OFFSET
    return first.date(), last.date()
