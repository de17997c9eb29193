"""Holds boards, leagues and streaks of friends against the readings of rules 25, 26 and 27."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.oracle.board_reading import (
    Span,
    as_stored,
    counted,
    declared,
    final_from,
    is_counted,
    name_of,
    over_everywhere,
    points_of,
    spans_of,
    standing,
)
from tests.oracle.calendar_dates import DAY, date_in, instant
from tests.oracle.company_erasures import left_of
from tests.oracle.friend_reading import Person, friend_streak
from tests.oracle.league_reading import SETTLES, Career, Place, closes, joinable, results, week_of
from tests.oracle.streak_reading import Protection, left_out, told

if TYPE_CHECKING:
    from tests.oracle.company_rounds import CompanyRound, Life, Since

HOUR = timedelta(hours=1)
LEAGUES_KNOWN = (
    timedelta(days=18) - 6 * HOUR
)  # after a closing: until then a profile has the points of the week
CLASSES = ("4b", "4c")
COVERED = ("paused", "skipped", "rest", "short")
Entry = Mapping[str, Any]


def value_at(history: "Since", when: datetime, otherwise: Any) -> Any:
    """What was set before an instant."""
    return [otherwise, *(value for since, value in history if since < when)][-1]


@dataclass(frozen=True)
class Seat:
    """What a user's membership names, and whether it is stored at all."""

    place: Place | None
    version: int


class CompanyJudge:
    """Of one round. wrong: what has been found."""

    def __init__(self, round_: "CompanyRound") -> None:
        self.round, self.machines = round_, round_.machines
        self.wrong: list[str] = []
        self.finals: dict[Span, Any] = {}  # final results, as they were first seen

    def must(self, holds: bool, what: str) -> None:
        if not holds:
            self.wrong.append(what)

    @property
    def starts(self) -> Any:
        """When dates begin, by the books that are published."""
        facts = next(iter(self.round.lives.values())).facts
        return type(facts)(books=self.known(facts.books)).starts

    def known(self, books: Any) -> Any:
        return tuple(each for each in books if each.since <= self.machines.now)

    def boards(self) -> Any:
        return tuple(self.round.boards[: len(self.known(self._books()))])

    def _books(self) -> Any:
        return next(iter(self.round.lives.values())).facts.books

    def league_of(self, monday: date) -> Any:
        """The section that judges a week's league; None: there is none."""
        known = self.round.leagues[: len(self.known(self._books()))]
        section = [each for since, each in known if since < monday][-1]
        on = declared(self.boards(), week_of(monday))
        return section if section and section["board"] in on else None

    # ---- who joins a league

    def seats(self, users: Sequence[str]) -> dict[str, Seat]:
        """What is stored of users in leagues."""
        found = {}
        for user in users:
            key = {"user_id": {"S": f"{user}#kept"}, "activity_date": {"S": "league"}}
            item = self.machines.stream.real.get_item(TableName="DailyActivity", Key=key).get("Item")
            stored = json.loads(item["league"]["S"]) if item else {}
            week, division, cohort = stored.get("place") or ("", 0, 0)
            place = (
                (date.fromisocalendar(int(week[:4]), int(week[-2:]), 1), division, cohort) if week else None
            )
            found[user] = Seat(place, int(item["version"]["N"]) if item else 0)
        return found

    def joined(self, before: Mapping[str, Seat], began: datetime, *, is_sure: bool) -> None:
        """After a batch: who had to join the open league, has, and nobody else. is_sure: no answer was lost."""
        after, now = self.seats(list(before)), self.machines.now
        monday = joinable(began, self.starts)
        if monday != joinable(now, self.starts):  # a league has closed, or opened, in the midst of the batch
            for user, seat in after.items():
                if seat.place and seat.place != before[user].place:
                    at = began if seat.place[0] == monday else now
                    self.round.lives[user].places.append((at, seat.place))
            return
        section = self.league_of(monday) if monday else None
        for user, seat in after.items():
            if user not in self.round.living:
                continue  # forgotten() says whether nothing is stored
            if seat.place == before[user].place and (not section or (seat.place and seat.place[0] == monday)):
                continue  # no league to join, or it is joined
            life, entries = self.round.lives[user], self.entries(user)
            takes_part = not value_at(life.hidden, now, False) and value_at(life.leagues, now, True)
            points = points_of(entries, week_of(monday), closes(monday, self.starts)) if monday else 0
            is_new = any(each["kind"] == "EARN" and instant(each["created_at"]) >= began for each in entries)
            may = bool(section) and takes_part and points > 0
            reviewed = [value_at(life.reviews, now, False), self._reviewed(user)]  # before, and by now
            has_seat = bool(seat.place and monday and seat.place[0] == monday)
            if seat.place != before[user].place:
                self.must(
                    may and has_seat and not all(reviewed), f"{user} joined {seat} at {now}, with {points}"
                )
                assert seat.place
                life.places.append((now, seat.place))
            elif is_sure and may and is_new and not any(reviewed):
                self.must(has_seat, f"{user} did not join at {now}, with {points}")

    def _reviewed(self, user: str) -> bool:
        return user in {each["user_id"] for each in self.round.look("/v1/review")["accounts"]}

    # ---- what everybody is shown

    def entries(self, user: str) -> list[Entry]:
        """A user's ledger, oldest first."""
        self.machines.user = user
        found: list[Entry] = self.machines.pages("/ledger", "entries")[::-1]
        return found

    def judge(self) -> None:
        """Hold everything against the ledgers; for use when all is applied, and a run has closed what is due."""
        ledgers = {
            user: life.erased.entries if life.erased else self.entries(user)
            for user, life in self.round.lives.items()
        }
        self.forgotten()
        self._counters(ledgers)
        self._boards(ledgers)
        self._leagues(ledgers)
        self._friends(ledgers)

    def forgotten(self) -> None:
        """Nobody who was erased is in any table."""
        gone = [user for user in self.round.lives if user not in self.round.living]
        self.wrong += left_of(self.round, *gone)

    def _counters(self, ledgers: Mapping[str, Sequence[Entry]]) -> None:
        for user in self.round.living:
            entries, key = ledgers[user], {"user_id": {"S": user}}
            item = self.machines.stream.real.get_item(TableName="UserStreaks", Key=key).get("Item", {})
            found = as_stored(item["period_points"]["S"] if "period_points" in item else "")
            expected = counted(entries, self.starts, self.boards())
            self.must(found == expected, f"{user}: boards count {found}, not {expected}")

    # ---- rule 25

    def _boards(self, ledgers: Mapping[str, Sequence[Entry]]) -> None:
        days = {
            date.fromisoformat(each["activity_date"])
            for some in ledgers.values()
            for each in some
            if is_counted(each)
        }
        spans = {span for day in days for span in spans_of(day, self.boards())}
        for span in sorted(spans):
            for name, board in declared(self.boards(), span).items():
                for value in CLASSES if "group" in board else ("",):
                    self._board(span, name, value, ledgers)

    def _board(self, span: Span, name: str, value: str, ledgers: Mapping[str, Sequence[Entry]]) -> None:
        now, final = self.machines.now, final_from(span, self.starts)
        if span[0] > (now + timedelta(hours=14)).date():
            return
        query = {"period": name_of(span), "limit": "100", **({"group": value} if value else {})}
        status, shown = self.round.answer(f"/v1/boards/{name}", **query)
        what, at = f"{name} of {query} at {now}", min(now, final)
        is_closed = any(final + HOUR <= each < final + 15 * DAY for each in self.round.closed)
        if status != 200 or (now >= final + 15 * DAY and not is_closed):
            is_gone = status == 404 and now >= final + 15 * DAY and not is_closed
            self.must(is_gone, f"{what}: {status} {shown}")
            return
        state = (
            "final" if is_closed else "open" if now < over_everywhere(span[1], self.starts) else "provisional"
        )
        self.must(shown["state"] == state, f"{what} is {shown['state']}, not {state}")
        points = {
            user: points_of(entries, span, final)
            for user, entries in ledgers.items()
            if self._may_be_on(user, query["period"])
            and not value_at(self.round.lives[user].hidden, at, False)
            and not value_at(self.round.lives[user].reviews, at, False)
            and (not value or value_at(self.round.lives[user].groups, at, "") == value)
        }
        rows = [(rank, score) for rank, _, score in standing(points)]
        found = [(row["rank"], row["score"]) for row in shown["entries"]]
        self.must(found == rows, f"{what}: {found}, not {rows} of {points}")
        self.must(shown["users"] == len(rows), f"{what}: {shown['users']} users, not {len(rows)}")
        if not value:
            self._own_ranks(name, span, what, points, ledgers)

    def _may_be_on(self, user: str, period: str) -> bool:
        """Of those who were erased, the rows stay of results that were made before."""
        erased = self.round.lives[user].erased
        return erased is None or period in erased.results

    def _own_ranks(
        self, name: str, span: Span, what: str, points: Mapping[str, int], ledgers: Mapping[str, Any]
    ) -> None:
        now, ranks = self.machines.now, {user: rank for rank, user, _ in standing(points)}
        for user, life in self.round.living.items():
            status, mine = self.round.answer(f"/v1/boards/{name}/users/{user}", user, period=name_of(span))
            if value_at(life.hidden, now, False):
                self.must((status, mine["error"]["code"]) == (409, "boards_left"), f"{what}: {mine}")
                continue
            score = points_of(ledgers[user], span, final_from(span, self.starts))
            shown = (mine["rank"], mine["score"])
            is_provisional = mine["state"] == "provisional" and now >= final_from(span, self.starts)
            if not is_provisional:  # then the own rank is that of now, among those of the final instant
                expected = (ranks.get(user), max(0, score) if user in ranks else score)
                self.must(shown == expected, f"{what}: {user} has {shown}, not {expected}")

    # ---- rule 27

    def careers(self, ledgers: Mapping[str, Sequence[Entry]]) -> dict[str, Career]:
        """All users' careers until now: what happened in its order, and each league closed when it was due."""
        facts: list[tuple[datetime, int, str, Any]] = []
        for user, life in self.round.lives.items():
            facts += [(at, 1, user, place) for at, place in life.places]
            facts += [(at, 1, user, takes_part) for at, takes_part in life.leagues]
        mondays = {place[0] for life in self.round.lives.values() for _, place in life.places}
        for monday in mondays:
            at = closes(monday, self.starts)
            if at + SETTLES <= self.machines.now:
                facts.append((at, 0, "", monday))
        careers = {user: Career() for user in self.round.lives}
        for at, _, user, fact in sorted(facts, key=lambda each: each[:3]):
            if not user:
                self._close(fact, at, careers, ledgers)
            elif fact is False:
                careers[user].leave()
            elif fact is True:
                careers[user].come_back(at, self.starts)
            else:
                section, career = self.league_of(fact[0]), careers[user]
                due = career.division_in(section)
                self.must(fact[1] == due, f"{user} joined {fact}, and is in division {due}")
                career.join(fact, section)
        return careers

    def _close(
        self,
        monday: date,
        at: datetime,
        careers: Mapping[str, Career],
        ledgers: Mapping[str, Sequence[Entry]],
    ) -> None:
        section, cohorts = self.league_of(monday), defaultdict[Place, list[str]](list)
        for user, career in careers.items():
            if career.place and career.place[0] == monday:
                cohorts[career.place].append(user)
        for place, members in cohorts.items():
            if not self._is_closed_in_time(at, members):
                for user in members:  # nobody knows the points of the week any more
                    careers[user].is_settled = True
                continue
            living = [user for user in members if user in self.round.living]  # another one has the seat
            self.must(len(living) <= section["size"], f"{place} has {members}")
            ranked = [user for user in members if self._is_ranked(user, careers[user], at)]
            points = {user: points_of(ledgers[user], week_of(monday), at) for user in ranked}
            result = results(points, section, place[1])
            for user in members:
                if careers[user].has_left or value_at(self.round.lives[user].hidden, at, False):
                    careers[user].begin_anew()
                elif not careers[user].is_settled:
                    careers[user].close(section, result.get(user), len(ranked))

    def _is_closed_in_time(self, at: datetime, members: Sequence[str]) -> bool:
        """Whether somebody has closed a cohort: the schedule, or a member who plays on or comes back."""
        moments = list(self.round.closed)
        for user in members:
            life = self.round.lives[user]
            moments += [when for when, _ in life.places]
            takes_part = True
            for when, wish in life.leagues:
                moments += [when] if wish and not takes_part else []
                takes_part = wish
        return any(at + SETTLES <= each < at + LEAGUES_KNOWN for each in moments)

    def _is_ranked(self, user: str, career: Career, at: datetime) -> bool:
        life = self.round.lives[user]
        is_out = value_at(life.hidden, at, False) or value_at(life.reviews, at, False)
        is_missing = life.erased is not None and life.erased.open_cohort == career.place
        return not (is_out or career.has_left or is_missing)

    def _leagues(self, ledgers: Mapping[str, Sequence[Entry]]) -> None:
        now, starts = self.machines.now, self.starts
        careers = self.careers(ledgers)
        for user, career in careers.items():
            status, shown = self.round.answer(f"/v1/users/{user}/league", user)
            if user not in self.round.living:
                self.must(status == 410, f"{user} is erased, and sees {shown}")
                continue
            place = career.place
            is_hidden = value_at(self.round.lives[user].hidden, now, False)
            is_open = bool(place and not (career.has_left or is_hidden or career.is_settled))
            this_week = now.date() - (now.date().isoweekday() - 1) * DAY
            monday = place[0] if place and is_open else joinable(now, starts) or this_week
            section = self.league_of(monday)
            if section is None:
                self.must(status == 404, f"{user}: there is no league of {monday}, and it shows {shown}")
                continue
            what = f"{user} at {now}, {career}"
            if status != 200:
                self.wrong.append(f"{what}: {shown}")
                continue
            division = section["divisions"][career.division_in(section)]
            self.must(shown["division"]["name"] == division, f"{what}: {shown['division']}, not {division}")
            self.must(shown["last"] == career.last, f"{what}: {shown['last']}")
            self.must(shown["taking_part"] is not career.has_left, f"{what}: {shown}")
            week = shown["league"] and shown["league"]["week"]
            self.must(week == (name_of(week_of(monday)) if is_open else None), f"{what}: in {week}")

    # ---- rule 26

    def _friends(self, ledgers: Mapping[str, Sequence[Entry]]) -> None:
        people = {user: self._person(life, ledgers[user]) for user, life in self.round.living.items()}
        for user in people:
            shown = {
                each["user_id"]: each
                for each in self.round.look(f"/v1/users/{user}/friends", user)["friends"]
            }
            own = {
                next(iter(pair - {user})): since for pair, since in self.round.pairs.items() if user in pair
            }
            self.must(set(shown) == set(own), f"{user} has the friends {set(shown)}, not {set(own)}")
            for friend in set(own) & set(shown):
                self._pair(user, friend, own[friend], shown[friend], people)

    def _pair(self, user: str, friend: str, since: datetime, shown: Any, people: Mapping[str, Any]) -> None:
        now, starts = self.machines.now, self.starts
        # An event from further east may have been on a later date already.
        today = min(
            max([date_in(self._zone(each), now, starts), *people[each][0]]) for each in (user, friend)
        )
        length = friend_streak(people[user], people[friend], since, today)
        active = [today in people[each][0] for each in (user, friend)]
        reasons = [self._reason(people[each], today) for each in (user, friend)]
        is_done = all(on or why in COVERED for on, why in zip(active, reasons, strict=True))
        expected = {
            "today": str(today),
            "streak": length,
            "at_risk": length > 0 and not is_done,
            "active_today": active[0],
            "friend_active_today": active[1],
        }
        found = {name: shown[name] for name in expected}
        self.must(found == expected, f"{user} and {friend} since {since} at {now}: {found}, not {expected}")

    def _reason(self, person: Person, today: date) -> str | None:
        dates, guard = person
        return told(dates, guard, today).reasons.get(today)

    def _zone(self, user: str) -> str:
        self.machines.user = user
        zone: str = self.machines.get("")["timezone"]
        return zone

    def _person(self, life: "Life", entries: Sequence[Entry]) -> tuple[list[date], Protection]:
        taken_back = {each["event_id"] for each in entries if each["kind"] == "CLAWBACK"}
        days: dict[date, list[datetime]] = defaultdict(list)
        for each in entries:
            if each["kind"] == "EARN" and each["event_id"] not in taken_back:
                days[date.fromisoformat(each["activity_date"])].append(life.instants[each["event_id"]])
        facts = type(life.facts)(books=self.known(life.facts.books))
        changes = tuple(
            (date.fromisoformat(each["freeze_date"]), 1)
            for each in entries
            if each["kind"] == "REDEEM" and each.get("freeze")
        )
        skipped = left_out(days) - facts.short
        guard = Protection(changes, tuple(life.facts.pauses), skipped, facts.rests_by, (), facts.short)
        return sorted(days), guard
