"""Rule 27, read again: when a week's league closes, and who goes where. Slow and plain.

Imports nothing of the product. A league is a section of a book's document.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from tests.oracle.board_reading import Span, name_of, over_everywhere
from tests.oracle.calendar_dates import DAY, Starts

Section = Mapping[str, Any]
Place = tuple[date, int, int]  # the week's Monday, the number of the division, the cohort's number
SETTLES = timedelta(minutes=10)


def week_of(monday: date) -> Span:
    return monday, monday + 6 * DAY


def closes(monday: date, starts: Starts) -> datetime:
    """When a week's league closes: six hours after the week is over everywhere."""
    return over_everywhere(monday + 6 * DAY, starts) + timedelta(hours=6)


def joinable(now: datetime, starts: Starts) -> date | None:
    """The Monday of the week whose league may be joined; None for ten minutes after a closing."""
    monday = now.date() - (now.date().isoweekday() + 6) * DAY
    while closes(monday, starts) <= now:
        monday += 7 * DAY
    return monday if closes(monday - 7 * DAY, starts) + SETTLES <= now else None


def results(points: Mapping[str, int], section: Section, division: int) -> dict[str, tuple[int, int, str]]:
    """Rank, points and zone of each who is ranked in a cohort."""
    found, count = {}, len(points)
    has = {user: max(0, own) for user, own in points.items()}
    for user, own in has.items():
        above = sum(other > own for other in has.values())
        as_low = sum(other <= own for other in has.values())
        zone = "stay"
        # In proportion: `above` of `count` are fewer than `up` of `size`, and so on.
        if (
            own
            and above * section["size"] < section["up"] * count
            and division < len(section["divisions"]) - 1
        ):
            zone = "up"
        elif as_low * section["size"] <= section["down"] * count and division > 0:
            zone = "down"
        found[user] = above + 1, own, zone
    return found


@dataclass
class Career:
    """A user in the leagues, as of some instant."""

    division: int = 0
    name: str = ""
    place: Place | None = None
    is_settled: bool = True
    has_left: bool = False
    last: Mapping[str, Any] | None = None

    def division_in(self, section: Section) -> int:
        """The division that the user has in a week with other divisions, perhaps."""
        names = section["divisions"]
        return names.index(self.name) if self.name in names else min(self.division, len(names) - 1)

    def join(self, place: Place, section: Section) -> None:
        self.place, self.is_settled = place, False
        self.division, self.name = place[1], section["divisions"][place[1]]

    def leave(self) -> None:
        self.has_left = True

    def come_back(self, now: datetime, starts: Starts) -> None:
        if self.has_left and not (self.place and now < closes(self.place[0], starts)):
            self.begin_anew()
        self.has_left = False

    def begin_anew(self) -> None:
        """Go on in the lowest division: who had left when the league closed, or comes back later."""
        self.division, self.name, self.is_settled = 0, "", True

    def close(self, section: Section, result: tuple[int, int, str] | None, members: int) -> None:
        """The cohort has closed. result: None if the user is not ranked, and keeps the division."""
        assert self.place
        self.is_settled = True
        if result:
            rank, points, zone = result
            played = section["divisions"][self.place[1]]
            week = name_of(week_of(self.place[0]))
            self.last = {
                "week": week,
                "division": played,
                "rank": rank,
                "points": points,
                "zone": zone,
                "members": members,
            }
            self.division = self.place[1] + {"up": 1, "stay": 0, "down": -1}[zone]
            self.name = section["divisions"][self.division]
