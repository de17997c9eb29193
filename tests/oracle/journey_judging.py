"""Holds all readers of one journey against each other: explain, night, SQL, what-if, and both clients' estimates.

The live answers themselves are held against the oracle when the journey is played (judging.py).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any

from tests.oracle.calendar_dates import offset_at, start_of
from tests.oracle.facts import Taken
from tests.oracle.journeys import Journey
from tests.oracle.judging import CALLED
from tests.oracle.plans import WEEKDAYS
from tests.oracle.streak_reading import every_date, told
from tests.support.journey_clients import FIGURES, Guess

DAY, WEEK = timedelta(days=1), timedelta(days=7)
NEAR = 3 * DAY  # so far around an active date each date is explained
AFTER = 5  # dates after the end, for which a device guesses
STALE = (-2, 0, 1, 2)  # dates after an active one, as of which a device has a profile
LATER = (1, 2, 3, 5)  # dates after that, for which it guesses
GIVEN_BACK = "a late date may give back a freeze"
Rows = Sequence[Mapping[str, Any]]


def waiting(events: list[Taken]) -> list[tuple[datetime, timedelta]]:
    """Return events as a device has them: instants, each with its offset then."""
    return [(each.when, offset_at(each.zone, each.when)) for each in events]


@dataclass
class JourneyJudge:
    """Of one journey. wrong: what has been found. not_promised: guesses that no client promises, by the reason."""

    journey: Journey
    wrong: list[str] = field(default_factory=list)
    not_promised: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        reading = self.journey.judge.reading
        assert reading
        self.user = self.journey.machines.user
        self.reading = reading
        self.protection, self.today = reading.protection(), self.journey.today
        self.last = max(reading.days, default=None)
        get = self.journey.machines
        self.activity = {
            date.fromisoformat(each["activity_date"]): each for each in get.pages("/activity", "activity")
        }
        self.ledger = get.pages("/ledger", "entries")
        self.at_last: dict[str, Any] = get.get("", as_of=str(self.last)) if self.last else {}
        self.achieved = get.get("/achievements")["achievements"]

    def must(self, is_so: bool, what: str) -> None:
        if not is_so:
            self.wrong.append(f"{self.user}: {what}")

    def same(self, who: str, found: Any, expected: Any) -> None:
        self.must(found == expected, f"{who} says {found}, not {expected}")

    # ---- explain

    def explained(self) -> None:
        """Each date has the reason and the length of the oracle; the dates together have the profile's figures."""
        days = self.reading.days
        if not self.last:
            return
        until = max(self.today, self.last)
        walked = told(days, self.protection, until)
        repaired = set(self.reading.repairs.values())
        lengths, covered = dict[date, int](), set[date]()
        for day in self._near_dates(until):
            given = self.journey.machines.get("/streak/explain", date=str(day))
            reason = walked.reasons.get(day, "before")
            called = CALLED["repair" if reason == "freeze" and day in repaired else reason]
            called = called | (CALLED["open"] if day >= self.today and reason == "missed" else set())
            self.must(given["reason"] in called, f"explain calls {day} {given['reason']}, not {reason}")
            self.same(f"explain of {day}", given["streak_length"], walked.lengths.get(day, 0))
            self.same(f"explain of {day}", given["events_count"], len(days.get(day, ())))
            lengths[day] = given["streak_length"]
            if given["reason"] in ("covered_by_freeze", "repaired"):
                covered.add(day)
        shown = self.journey.shown
        self.same("explain of today", lengths.get(until), shown["current_streak"])
        self.same("explain, longest", max(lengths.values()), shown["longest_streak"])
        self.same("explain, covered", covered, walked.spent & set(lengths))

    def _near_dates(self, until: date) -> Iterator[date]:
        active = self.reading.days
        for day in every_date(min(active) - DAY, until):
            spans = (day + distance * DAY for distance in range(-NEAR.days, NEAR.days + 1))
            if day >= until - NEAR or any(each in active for each in spans):
                yield day

    # ---- night and SQL

    def recomputed(self, night: Any) -> None:
        """The nightly recompute of the lake has the live streak and points. night: its user; None: nobody."""
        self.must((night is None) == (not self.ledger), f"the night has {night}")
        if night is None:
            return
        shown, streak = self.journey.shown, night.streak
        self.same("the night's points", night.total_points, shown["total_bestie_points"])
        self.same("the night's balance", night.balance, shown["balance"])
        self.must(night.is_sound, "the night finds the ledger unsound")
        self.same("the night's last date", streak and streak.last, self.last)
        if streak:
            self.same(
                "the night", self._figures(streak.length, streak.longest, streak.active_days), self._live()
            )
            spent = told(self.reading.days, self.protection, streak.last).spent
            self.same("the night's covered dates", set(streak.spent), spent)

    def _figures(self, current: int, longest: int, active_days: int) -> tuple[int, int, int]:
        return current, longest, active_days

    def _live(self) -> tuple[int, int, int]:
        """What the profile shows as of the last active date."""
        shown = self.at_last
        return self._figures(shown["current_streak"], shown["longest_streak"], shown["active_days"])

    def in_sql(self, marts: Mapping[str, Mapping[str, Rows]]) -> None:
        """marts: rows of this journey's user by model, and then by user."""
        rows = {name: of.get(self.user, []) for name, of in marts.items()}
        shown = self.journey.shown
        for row in rows["marts.streaks_recomputed"]:
            self.same("SQL's last date", row["last_activity_date"], self.last)
            self.same(
                "SQL's points",
                (row["total_bestie_points"], row["balance"]),
                (shown["total_bestie_points"], shown["balance"]),
            )
            if self.last:
                found = (row["current_streak"], row["longest_streak"], row["active_days"])
                self.same("SQL's streak", found, self._live())
                spent = sorted(told(self.reading.days, self.protection, self.last).spent)
                self.same("SQL's covered dates", row["freezes_spent"] or "", ",".join(map(str, spent)))
        self.same("SQL's streaks", len(rows["marts.streaks_recomputed"]), 1 if self.ledger else 0)
        self._points_in(rows)
        self._goals_in(rows)
        stored = {
            row["activity_date"]: (row["points_earned"], row["events_count"])
            for row in rows["facts.daily_activity"]
        }
        live = {day: (row["points_earned"], row["events_count"]) for day, row in self.activity.items()}
        self.same("SQL's days", {day: each for day, each in stored.items() if any(each)}, live)

    def _points_in(self, rows: Mapping[str, Rows]) -> None:
        weeks = Counter[date]()
        for day, row in self.activity.items():
            weeks[day - day.weekday() * DAY] += row["points_earned"]
        expected = {monday: points for monday, points in weeks.items() if points}
        for name in ("points_in_ledger", "points_by_book", "points_by_events"):
            found = {row["week_start"]: row[name] for row in rows["facts.user_point_weeks"] if row[name]}
            self.same(f"SQL's {name}", found, expected)
        (level,) = [row["level_name"] for row in rows["marts.user_levels"]] or [None]
        live = self.journey.shown["level"]
        if self.ledger:
            self.same("SQL's level", level, live and live["name"])

    def _goals_in(self, rows: Mapping[str, Rows]) -> None:
        paid, due = self.reading.bonuses_paid(), self.reading.bonuses_due(self.journey.machines.actor.clock)
        marts = rows["marts.bonuses"]
        found = {row["name"]: (row["activity_date"], row["points"]) for row in marts if row["points"]}
        self.same("SQL's bonuses", found, paid)
        said = {row["name"]: (row["due_date"], row["points_due"]) for row in marts if row["points_due"]}
        self.same("SQL's bonuses that are due", said, due)
        names = {row["name"] for row in rows["marts.achievements_recomputed"]}
        self.same("SQL's achievements", names, {each["name"] for each in self.achieved if each["achieved"]})

    def repairs_by_month(self) -> Counter[tuple[date, str]]:
        """What the live ledger has of repairs."""
        found = Counter[tuple[date, str]]()
        for entry in self.ledger:
            if entry.get("reward_id") == "streak_repair" and entry.get("freeze"):
                month = date.fromisoformat(entry["created_at"][:10]).replace(day=1)
                is_back = entry["kind"] == "REVERSE"
                found[month, "given_back_dates" if is_back else "repaired_dates"] += 1
                found[month, "points_given_back" if is_back else "points"] += abs(entry["points"])
        return found

    # ---- what-if

    def predicted(self, row: Mapping[str, Any] | None) -> None:
        """The same book, asked what would have been, says what is, before and after."""
        moved = any(each["kind"] not in ("OPEN", "SETTING") for each in self.ledger)
        self.must((row is not None) == moved, f"what-if has {row}")
        if row is None:
            return
        shown = self.journey.shown
        live: dict[str, Any] = {
            "earned": shown["total_bestie_points"],
            "balance": shown["balance"],
            "shown": shown["current_streak"],
            "longest": shown["longest_streak"],
            "active_days": shown["active_days"],
        }
        if self.last:
            live["length"] = self.at_last["current_streak"]
        for when in ("before", "after"):
            self.same(f"what-if, {when}", {name: row[f"{name}_{when}"] for name in live}, live)

    # ---- clients

    def guesses(self) -> Iterator[tuple[Guess, dict[str, Any]]]:
        """Yield what devices are asked, each with what the service shows. Guesses that nobody promises are counted."""
        shown, get = self.journey.shown, self.journey.machines.get
        for number in range(1, AFTER + 1):
            asked = self.today + number * DAY
            if names := self._promised(shown, [], asked):
                yield Guess(shown, [], str(asked), names), get("", as_of=str(asked))
        yield from self._past_guesses()
        arrived = self.journey.arrived
        if names := self._promised(self.journey.before, arrived, self.today):
            yield Guess(self.journey.before, waiting(arrived), str(self.today), names), shown

    def _past_guesses(self) -> Iterator[tuple[Guess, dict[str, Any]]]:
        """Yield what a device is asked that was offline for days of the journey, and has its events of these days."""
        shown, active = cache(lambda day: self.journey.machines.get("", as_of=str(day))), self.reading.days
        for known in sorted({day + number * DAY for day in active for number in STALE}):
            for asked in (known + number * DAY for number in LATER):
                ids = [each for day, each in active.items() if known <= day <= asked]
                events = [self.journey.facts.events[each] for of_date in ids for each in of_date]
                if asked <= self.today and (names := self._promised(shown(known), events, asked)):
                    yield Guess(shown(known), waiting(events), str(asked), names), shown(asked)

    def _promised(self, profile: Any, events: list[Taken], asked: date) -> tuple[str, ...]:
        """Return which figures of an estimate are promised; none: no client promises any."""
        doubts = {*self._doubts(profile, events, asked)}
        self.not_promised.update(doubts or {""})
        if doubts <= {GIVEN_BACK}:
            return tuple(name for name in FIGURES if not doubts or name != "freezes_available")
        return ()

    def _doubts(self, profile: Any, events: list[Taken], asked: date) -> Iterator[str]:
        """Yield why an estimate may differ (docs/clients.md, The estimate; rule 2)."""
        known = date.fromisoformat(profile["last_activity_date"]) if profile["last_activity_date"] else None
        as_of, protection = date.fromisoformat(profile["as_of"]), self.protection
        is_broken = profile["streak_status"] == "broken"
        placed = {key: day for key, (day, _) in self.reading.placed.items()}
        ids = {key for key, each in self.journey.facts.events.items() if any(each is some for some in events)}
        if any(placed.get(key) != self.journey.facts.events[key].claimed for key in ids):
            yield "the service has placed an event on another date"
        events = [each for each in events if each.claimed != known]  # that date is active anyway
        if known and any(each.claimed <= known or (is_broken and each.claimed < as_of) for each in events):
            yield "a late date may join runs"
        if any(each.claimed < as_of for each in events):
            yield GIVEN_BACK
        first = min([as_of, *([known] if known else []), *(each.claimed for each in events)])
        dates = list(every_date(first, asked))
        # By its offset alone a device dates an early hour on the date before, also where the zone has left that out.
        skipped = any(day in protection.skipped for day in [*dates, asked + DAY])
        if skipped or any(map(protection.paused, dates)):
            yield "pauses and skipped dates are the service's"
        starts, rests = self.journey.facts.starts, set(map(WEEKDAYS.index, profile.get("rest_days", ())))
        if any(
            start_of(day, starts).isoformat("minutes") != profile["day_starts_at"]
            for day in [*dates, asked + DAY]
        ):
            yield "the start of the day moves"
        if any(day in protection.short for day in dates):
            yield "the start of the day moves"
        if any(protection.rests(day) != (day.weekday() in rests) for day in dates):
            yield "rest days change"
        if any(as_of < day <= asked for day, _ in protection.changes):
            yield "a freeze counts from a later date"

    # ---- what happened

    def happened(self) -> Counter[str]:
        """Count what the journey has of what may go wrong."""
        found = Counter({f"entries {each['kind']}": 1 for each in self.ledger})
        paid = Counter(
            (each["reward_id"], each["points"] > 0) for each in self.ledger if each["kind"] == "BONUS"
        )
        found["a bonus was lost"] = any(not is_paid for _, is_paid in paid)
        found["a bonus was earned again"] = any(count > 1 for (_, is_paid), count in paid.items() if is_paid)
        found["a repair was bought"] = bool(self.reading.repairs or self.reading.returned)
        found["a repair became needless"] = bool(self.reading.returned)
        found["rest days were chosen"] = bool(self.journey.facts.choices)
        found["rest days were changed"] = len(self.journey.facts.choices) > 1
        found["dates were moved"] = bool(self.reading.moved)
        found["an event was taken back"] = bool(self.reading.reversed)
        found["a freeze covers a date"] = any(self.reading.used.values())
        found["paused"] = bool(self.journey.facts.pauses)
        found["a date was skipped"] = (
            any(min(self.reading.days) < day < self.today for day in self.protection.skipped)
            if self.last
            else False
        )
        found["alive at the end"] = self.journey.shown["current_streak"] > 1
        return +Counter({name: int(count) for name, count in found.items()})
