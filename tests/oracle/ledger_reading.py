"""Rules 5, 6 and 8, read again: goes through a ledger from its first entry, and says what no rule allows.

Imports nothing of the product. An entry is a mapping as the API shows it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from itertools import product
from typing import Any

from tests.oracle.bonus_reading import History, bonuses_due
from tests.oracle.calendar_dates import date_in
from tests.oracle.facts import Facts, Taken
from tests.oracle.points_reading import TABLE, capped
from tests.oracle.repair_reading import repairable
from tests.oracle.streak_reading import Protection, left_out, told

TOGETHER = timedelta(hours=8)
DAY = timedelta(days=1)
HELD_MAX = 5
ZONES_OF_EARTH = ("-12:00", "+00:00", "+14:00")
Entry = Mapping[str, Any]


def is_repair(entry: Entry) -> bool:
    """Whether an entry buys the repair of a date."""
    bought = (entry["kind"], entry.get("reward_id"), entry.get("freeze"))
    return bought == ("REDEEM", "streak_repair", "freeze_granted")


@dataclass
class LedgerReading:
    """What a ledger has come to, entry by entry.

    wrote, steps: entry's number -> the clock of who wrote it, and the step, for the last entry of each
    transaction. days: the events of each date, in order of application. wrong: what no rule allows.
    """

    facts: Facts
    wrote: Mapping[int, datetime]
    steps: Mapping[int, int]
    wrong: list[str] = field(default_factory=list)
    balances: list[int] = field(default_factory=list)
    total: int = 0
    days: dict[date, list[str]] = field(default_factory=lambda: defaultdict(list))
    placed: dict[str, tuple[date, int]] = field(default_factory=dict)
    earned: dict[tuple[date, str], int] = field(default_factory=lambda: defaultdict(int))
    changes: list[tuple[date, int]] = field(default_factory=list)
    used: dict[date, int] = field(default_factory=lambda: defaultdict(int))
    spendings: dict[str, Entry] = field(default_factory=dict)
    undone: dict[str, str] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)
    together: dict[str, date] = field(default_factory=dict)
    repairs: dict[str, date] = field(default_factory=dict)  # by entry; without those that were undone
    returned: set[str] = field(
        default_factory=set
    )  # repairs that were given back, because nothing needs them
    worths: dict[str, int] = field(default_factory=dict)  # of events that earned, before any cap
    reversed: dict[str, str] = field(default_factory=dict)  # entry by event that was taken back
    bonuses: dict[tuple[str, date], int] = field(default_factory=lambda: defaultdict(int))
    repairing: list[date] = field(default_factory=list)  # dates that the transaction has yet to repair

    def read(self, entries: Sequence[Entry]) -> "LedgerReading":
        """entries: all of them, oldest first."""
        places = [each["created_at"] for each in entries]
        self.must(places == sorted(set(places)), "places do not increase")
        for number, entry in enumerate(entries):
            if number == 0 or number - 1 in self.wrote:
                self.together = self._together(number, entries)
                self.repairing = self._repaired_at(number, entries)
            self._read(number, entry)
            if entry["kind"] == "BONUS" and (number in self.wrote or number == len(entries) - 1):
                self._settled(number)
        earned = {entry_id for entry_id, _ in self.placed.items()}
        self.must(earned == set(self.facts.events), f"entries of {earned ^ set(self.facts.events)}")
        return self

    def must(self, holds: bool, what: str) -> None:
        if not holds:
            self.wrong.append(f"ledger: {what}")

    def _read(self, number: int, entry: Entry) -> None:
        kind, points, name = entry["kind"], entry["points"], f"entry {number} ({entry['kind']})"
        balance = (self.balances[-1] if self.balances else 0) + points
        self.balances.append(balance)
        self.must(entry["seq"] == number, f"{name} has the number {entry['seq']}")
        self.must(entry["balance"] == balance, f"{name} says {entry['balance']}, the sum is {balance}")
        may_owe = points >= 0 or kind in ("CLAWBACK", "BONUS")
        self.must(balance >= 0 or may_owe, f"{name} leads into debt: {balance}")
        self.must(entry.get("debt", 0) == max(0, -balance), f"{name} says a debt of {entry.get('debt')}")
        self.must((kind == "OPEN") == (number == 0), f"{name} is out of place")
        if kind == "EARN":
            self._earn(name, entry)
        elif kind == "CLAWBACK":
            self._taken_back(name, entry)
        elif kind == "BONUS":
            self._bonus(name, entry)
        elif kind == "REDEEM":
            self.spendings[entry["entry_id"]] = entry
            self.must(points <= 0, f"{name} gives {points}")
        elif entry.get("reverses"):
            self._undo(name, entry)
        else:
            self.must(points == 0, f"{name} has {points} points")
        note, when = entry.get("freeze"), entry.get("freeze_date")
        if note == "freeze_spent":
            self.used[date.fromisoformat(str(when))] += 1
        elif note == "freeze_refunded":
            self.used[date.fromisoformat(str(when))] -= 1
        elif note:
            self._freeze(number, name, entry, date.fromisoformat(str(when)))

    # ---- events

    def _earn(self, name: str, entry: Entry) -> None:
        taken = self.facts.events.get(entry["event_id"])
        self.must(entry["event_id"] not in self.placed, f"{name}: {entry['event_id']} earns a second time")
        if taken is None:
            self.wrong.append(f"ledger: {name}: {entry['event_id']} was never accepted")
            return
        again = self.facts.renewed.get(entry["event_id"])
        if again and again.event_type == entry["event_type"]:
            taken = again  # accepted again after its key had expired, and before the first was applied
        day = date.fromisoformat(entry["activity_date"])
        allowed = self._allowed(entry["event_id"], taken)
        self.must(
            day in allowed,
            f"{name}: {taken.when} claimed for {taken.claimed} is {day}; allowed {sorted(map(str, allowed))}",
        )
        if day != taken.claimed:
            self.moved[entry["event_id"]] = entry["seq"]
        due = capped(taken.event_type, taken.worth, self.earned[day, taken.event_type])
        self.must(
            entry["points"] == due, f"{name}: {taken.event_type} on {day} earns {entry['points']}, not {due}"
        )
        self.earned[day, taken.event_type] += entry["points"]
        self.total += entry["points"]
        self.days[day].append(entry["event_id"])
        self.placed[entry["event_id"]] = (day, entry["points"])
        self.worths[entry["event_id"]] = taken.worth

    def _taken_back(self, name: str, entry: Entry) -> None:
        """From now on everything is as if the event had never counted."""
        event_id = entry["event_id"]
        self.must(event_id in self.placed, f"{name}: {event_id} has not earned")
        self.must(event_id not in self.reversed, f"{name}: {event_id} is taken back a second time")
        if event_id not in self.placed or event_id in self.reversed:
            return
        day, kind = self.placed[event_id][0], self.facts.events[event_id].event_type
        self.reversed[event_id] = entry["entry_id"]
        self.days[day].remove(event_id)
        left = [self.worths[each] for each in self.days[day] if self.facts.events[each].event_type == kind]
        due = min(TABLE[kind][1], sum(left)) - self.earned[day, kind]
        self.must(entry["points"] == due, f"{name}: {kind} of {day} changes by {entry['points']}, not {due}")
        self.earned[day, kind] += entry["points"]
        self.total += entry["points"]
        if not self.days[day]:
            del self.days[day]

    # ---- bonuses

    def _bonus(self, name: str, entry: Entry) -> None:
        paid = entry["reward_id"], date.fromisoformat(entry["activity_date"])
        self.bonuses[paid] += entry["points"]
        self.must(self.bonuses[paid] >= 0, f"{name}: the bonus {paid} is taken back, and was not paid")
        self.total += entry["points"]

    def _settled(self, number: int) -> None:
        """What a transaction leaves of bonuses is what the entries before it earn, to the point."""
        # A pause that was told while this was written, or later, may not have been known.
        allowed = [self.bonuses_due(self.clock(number), pauses) for pauses in self._known_pauses(number)]
        paid = self.bonuses_paid()
        self.must(paid in allowed, f"entry {number} leaves the bonuses {paid}; allowed {allowed}")

    def bonuses_paid(self) -> dict[str, tuple[date, int]]:
        """What is left of each bonus, by achievement."""
        left = {paid: points for paid, points in self.bonuses.items() if points}
        names = [name for name, _ in left]
        self.must(len(set(names)) == len(names), f"bonuses are paid twice: {left}")
        return {name: (day, points) for (name, day), points in left.items()}

    def bonuses_due(
        self, at: datetime, pauses: Sequence[tuple[date, date]] | None = None
    ) -> dict[str, tuple[date, int]]:
        """The bonuses that the events earn which have been applied, by the book of an instant."""
        events = {
            day: Counter(self.facts.events[each].event_type for each in ids) for day, ids in self.days.items()
        }
        points: dict[date, int] = Counter()
        for (day, _), earned in self.earned.items():
            points[day] += earned
        protection = self.protection()
        if pauses is not None:
            protection = replace(protection, pauses=tuple(pauses))
        history = History(events, points, protection, self.facts.streaks)
        return bonuses_due(self.facts.paying(at), history)

    def _together(self, number: int, entries: Sequence[Entry]) -> dict[str, date]:
        """The events that one transaction applied at once, the first of which has this number."""
        last = min((each for each in self.wrote if each >= number), default=number)
        earned = [each for each in entries[number : last + 1] if each["kind"] == "EARN"]
        return {each["event_id"]: date.fromisoformat(each["activity_date"]) for each in earned}

    def _allowed(self, event_id: str, taken: Taken) -> set[date]:
        """The dates that an event may count for.

        The rule leaves open what a date's first event is, by its instant or by application, and in which order
        events are applied that one transaction applies.
        """
        # An instant has dates of three days at most: what lies further away says nothing of this one.
        beside = [taken.claimed + distance * DAY for distance in range(-4, 5)]
        placed = {day: self.days[day] for day in beside if day in self.days}
        before = self._opened(placed, lambda other: other not in self.together)
        if taken.claimed in before:
            return {taken.claimed}
        at_once: dict[date, list[str]] = defaultdict(list)
        for other, day in self.together.items():
            if other != event_id and other in self.facts.events:
                at_once[day].append(other)
        orders = (
            lambda _: False,
            lambda other: other in self.placed,
            lambda other: self.facts.events[other].when <= taken.when,
            lambda _: True,
        )
        found: set[date] = set()
        for first, order in product((min, lambda instants: instants[0]), orders):
            known = {day: list(instants) for day, instants in before.items()}
            for day, instants in self._opened(at_once, order).items():
                known.setdefault(day, []).extend(instants)
            opened = {day: first(instants) for day, instants in known.items()}
            instant_has_another = any(when == taken.when for when in opened.values())
            near = [when for when in opened.values() if abs(when - taken.when) < TOGETHER]
            if taken.claimed in opened or not (instant_has_another or len(near) >= 2):
                found.add(taken.claimed)
                continue
            distance = min(abs(when - taken.when) for when in opened.values())
            found |= {day for day, when in opened.items() if abs(when - taken.when) == distance}
        return found

    def _opened(
        self, days: Mapping[date, Sequence[str]], counts: Callable[[str], bool]
    ) -> dict[date, list[datetime]]:
        """The instants of those events that count, by their dates."""
        found = {
            day: [self.facts.events[each].when for each in ids if counts(each)] for day, ids in days.items()
        }
        return {day: instants for day, instants in found.items() if instants}

    def _instants_by_date(self) -> dict[date, list[datetime]]:
        return {day: self._instants(day) for day in self.days}

    def _instants(self, day: date) -> list[datetime]:
        return [self.facts.events[each].when for each in self.days[day]]

    # ---- repairs

    def _repaired_at(self, number: int, entries: Sequence[Entry]) -> list[date]:
        """The dates that a transaction repairs, the first entry of which has this number."""
        last = min((each for each in self.wrote if each >= number), default=number)
        dates = [
            date.fromisoformat(each["freeze_date"]) for each in entries[number : last + 1] if is_repair(each)
        ]
        if dates:
            terms = self.facts.book_at(self.clock(number)).repairs
            # A pause that was told while this was written, or later, may not have been known. Nor was the zone
            # of an event that was not applied yet.
            found = [
                offer[0]
                for today in self.todays(number)
                for pauses in self._known_pauses(number)
                for skipped in (self.protection().skipped, self._left_out())
                if terms
                and (
                    offer := repairable(
                        set(self.days),
                        replace(self.protection(), pauses=tuple(pauses), skipped=skipped),
                        list(self.repairs.values()),
                        terms,
                        max([today, *self.days]),
                    )
                )
            ]
            self.must(dates in found, f"entry {number}: {dates} are repaired; allowed {found}")
        return dates

    def _known_pauses(self, number: int) -> list[Sequence[tuple[date, date]]]:
        step = self.steps[self._last_of(number)]
        surely = sum(told_at < step for told_at in self.facts.pauses_told_at)
        return [self.facts.pauses[:count] for count in range(surely, len(self.facts.pauses) + 1)]

    def needs_no_repair(self, day: date) -> bool:
        """Whether a date is active, or one that the user never had."""
        return day in self.days or day in self.protection().skipped

    # ---- freezes

    def protection(self) -> Protection:
        """What protects the streak by now."""
        far = max(self.days, default=date.min.replace(year=1970)) + timedelta(days=60)
        skipped = self.facts.skipped(min(self.days), far) if self.days else frozenset()
        return Protection(
            tuple(self.changes),
            tuple(self.facts.pauses),
            skipped | self._left_out(),
            self.facts.rests_by,
            tuple(self.facts.choices),
            self.facts.short,
        )

    def _left_out(self) -> frozenset[date]:
        """The dates that a flight left out. A short one needs no flight."""
        return left_out(self._instants_by_date()) - self.facts.short

    def _undo(self, name: str, entry: Entry) -> None:
        undone = entry["reverses"]
        self.must(undone in self.spendings, f"{name} reverses {undone}, which is no redemption")
        self.must(undone not in self.undone, f"{name}: {undone} is reversed twice")
        self.undone[undone] = entry["entry_id"]
        points = self.spendings.get(undone, entry)["points"]
        self.must(entry["points"] == -points, f"{name} gives back {entry['points']} of {points}")

    def _freeze(self, number: int, name: str, entry: Entry, when: date) -> None:
        if is_repair(entry):
            terms = self.facts.book_at(self.clock(number)).repairs
            price = terms.price_points if terms else 0
            self.must(entry["points"] == -price != 0, f"{name}: {entry['points']}")
            self.must(self.repairing[:1] == [when], f"{name} repairs {when}")
            del self.repairing[:1]
            self.repairs[entry["entry_id"]] = when
            self.changes.append((when, +1))
            return
        repaired = self.repairs.pop(entry.get("reverses", ""), None)
        if repaired and self.needs_no_repair(repaired):
            self.must(when == repaired, f"{name}: the repair of {repaired} goes on {when}")
            self.returned.add(entry["reverses"])
            self.changes.append((when, -1))
            return
        if entry["kind"] == "REDEEM":
            shown = told(self.days, self.protection(), max([when, *self.days]))
            self.must(entry["points"] == 0 or shown.freezes < HELD_MAX, f"{name}: {shown.freezes} are held")
            self.changes.append((when, +1))
            return
        granted = date.fromisoformat(self.spendings[entry["reverses"]]["freeze_date"])
        todays = self.todays(number)
        # A pause that was told while this was written, or later, may not have been known.
        pauses = self._known_pauses(number)
        allowed = {
            day for today in todays for known in pauses for day in self._returned(granted, today, known)
        }
        self.must(
            when in allowed, f"{name}: the freeze of {granted} goes on {when}; allowed {sorted(allowed)}"
        )
        self.changes.append((when, -1))

    def clock(self, number: int) -> datetime:
        """The clock of who wrote an entry, alone or with later ones."""
        return self.wrote[self._last_of(number)]

    def _last_of(self, number: int) -> int:
        """The last entry of the transaction that wrote an entry."""
        return min(each for each in self.wrote if each >= number)

    def todays(self, number: int) -> set[date]:
        """The user's today when an entry was written: by the zone that was set then, else by any of earth."""
        clock, step = self.clock(number), self.steps[self._last_of(number)]
        is_known = len(self.facts.moves) == 1 and self.facts.moves_told_at[0] < step
        zones = [str(self.facts.zone_set)] if is_known else ZONES_OF_EARTH
        return {date_in(zone, clock, self.facts.starts) for zone in zones}

    def _returned(self, granted: date, today: date, pauses: Sequence[tuple[date, date]]) -> set[date]:
        """Unused: as if it had never been granted. Used: gone from today on. Of several alike: either.

        A machine whose clock is behind may give back what is to be granted.
        """
        today = max(today, granted)
        with_it, shown = replace(self.protection(), pauses=tuple(pauses)), max([today, *self.days])
        spent = told(self.days, with_it, shown).spent
        matters = spent != told(self.days, with_it.without((granted, +1)), shown).spent
        earlier = sum(change for day, change in with_it.changes if day < granted)
        same = sum(change for day, change in with_it.changes if day == granted)
        may_be_used, surely_used = len(spent) > earlier, len(spent) >= earlier + same
        if matters and surely_used:
            return {today, shown}
        return {granted, today, shown} if matters or may_be_used else {granted}
