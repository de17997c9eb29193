"""Leagues: their cohorts in the table Boards, and users' memberships in DailyActivity (rule 27).

A cohort's item has the ids of its members while its league is open, then the result beside them, and at last
a result without names. Its key is the week, the division and a number. A membership names the user's cohort.
A user is in a cohort only if both say so: so a process may die between the two writes.

In this order: LeagueStore, which reads and writes items; Leagues, which joins, shows and closes.
"""

import json
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from adapters.engagement.account_items import LEAGUE
from adapters.engagement.account_store import AccountContended, AccountStore
from adapters.logs import Logger, error_summary
from adapters.platform.aws import Unavailable, pauses
from adapters.platform.items import Item, encode_item
from adapters.platform.tables import Unprocessed, chunks, get_all, get_one, query_all, write_if
from rules.book.league_rules import LeagueRules
from rules.days import EPOCH
from rules.engagement.account_state import Profile
from rules.engagement.leagues import (
    Membership,
    Place,
    Row,
    Zone,
    closable_at,
    closes_at,
    has_left,
    is_known,
    is_ranked,
    league_points,
    may_join,
    open_week,
    ranking,
    rules_of,
    week_of,
    weeks_to_close,
)
from rules.engagement.periods import Period, counted_until, period_named
from rules.user_ids import kept_partition, user_of_partition

KEPT_AFTER = timedelta(days=30)  # a cohort's item, after nobody's points of its week are known any more
ATTEMPTS_MAX = 8
KNOWN_MAX = 100_000  # users of the open league whom a process knows
SHOWN_AGE_MAX, SHOWN_MAX = (
    timedelta(seconds=30),
    1000,
)  # a process shows standings that are so old, of so many
WRITERS = 16  # cohorts that are closed at the same time
TRANSIENT = (*Unavailable, Unprocessed)
NAMES = {"#members": "members", "#result": "result"}

logger = Logger(service="leagues")


@dataclass(frozen=True, slots=True)
class Cohort:
    """The item of a cohort."""

    place: Place
    members: frozenset[str]  # user ids; none once the cohort is finished
    standing: tuple[Row, ...] | None = None  # the result; None: the cohort is not closed yet


class LeagueStore:
    """Cohorts and memberships as items."""

    def __init__(self, dynamodb: Any, boards: str, days: str) -> None:
        """boards, days: the names of the tables Boards and DailyActivity."""
        self._dynamodb, self._boards, self._days = dynamodb, boards, days

    # ---- memberships

    def membership(self, user_id: str) -> Membership:
        """Return a user's membership, strongly consistent; a blank one for a user without."""
        item = get_one(self._dynamodb, self._days, _membership_key(user_id))
        return membership_of(item) if item else Membership()

    def memberships(self, user_ids: Iterable[str]) -> dict[str, Membership]:
        """Return the memberships of users who have one, strongly consistent."""
        items = get_all(self._dynamodb, self._days, map(_membership_key, sorted(set(user_ids))))
        return {user_of_partition(item["user_id"]["S"]): membership_of(item) for item in items}

    def put_membership(self, user_id: str, before: Membership, membership: Membership) -> bool:
        """Store a membership in place of the one that was read; returns whether that was still there."""
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(user_id)"}
        if before.version:
            condition = {
                "ConditionExpression": "#version = :read",
                "ExpressionAttributeNames": {"#version": "version"},
                "ExpressionAttributeValues": encode_item({":read": before.version}),
            }
        fields = {"version": before.version + 1, LEAGUE: membership.text}
        item = encode_item(_membership_key(user_id) | fields)
        return write_if(self._dynamodb.put_item, TableName=self._days, Item=item, **condition)

    # ---- cohorts

    def enter(self, place: Place, user_id: str, size: int, expires_at: datetime) -> bool:
        """Add a user to a cohort, which begins with its first member; returns False if it is full or closed.

        A set has a user once, so a repetition changes nothing.
        """
        return write_if(
            self._dynamodb.update_item,
            TableName=self._boards,
            Key=encode_item(_cohort_key(place)),
            UpdateExpression="ADD #members :me SET expires_at = :expires_at",
            ConditionExpression="attribute_not_exists(#result) AND (attribute_not_exists(#members)"
            " OR contains(#members, :user) OR size(#members) < :size)",
            ExpressionAttributeNames=NAMES,
            ExpressionAttributeValues={
                ":me": {"SS": [user_id]},
                **encode_item({":user": user_id, ":size": size, ":expires_at": int(expires_at.timestamp())}),
            },
        )

    def cohort(self, place: Place) -> Cohort | None:
        """Return a cohort, strongly consistent; None if there is none."""
        item = get_one(self._dynamodb, self._boards, _cohort_key(place))
        return _cohort_of(place, item) if item else None

    def newest(self, week: str, division: int) -> int:
        """Return the number of the newest cohort of a division in a week; 0: it has none."""
        query = self._query(week, division) | {"ScanIndexForward": False, "Limit": 1}
        items = self._dynamodb.query(**query)["Items"]
        return int(items[0]["part"]["S"]) if items else 0

    def unfinished(self, week: str, division: int) -> Iterator[Cohort]:
        """Yield the cohorts of a division in a week that still have members, in their order."""
        query = self._query(week, division) | {
            "FilterExpression": "attribute_exists(#members)",
            "ExpressionAttributeNames": {"#members": "members"},
        }
        for item in query_all(self._dynamodb, **query):
            yield _cohort_of(Place(week, division, int(item["part"]["S"])), item)

    def _query(self, week: str, division: int) -> dict[str, Any]:
        return {
            "TableName": self._boards,
            "KeyConditionExpression": "board = :board",
            "ExpressionAttributeValues": encode_item(
                {":board": _cohort_key(Place(week, division, 0))["board"]}
            ),
            "ConsistentRead": True,
        }

    def write_result(self, cohort: Cohort, standing: Sequence[Row]) -> bool:
        """Write a cohort's result, once; returns False if it has one, or other members than were read."""
        return write_if(
            self._dynamodb.update_item,
            TableName=self._boards,
            Key=encode_item(_cohort_key(cohort.place)),
            UpdateExpression="SET #result = :result",
            ConditionExpression="attribute_not_exists(#result) AND #members = :members",
            ExpressionAttributeNames=NAMES,
            ExpressionAttributeValues={
                ":result": {"B": pack_standing(standing)},
                ":members": {"SS": sorted(cohort.members)},
            },
        )

    def finish(self, cohort: Cohort) -> None:
        """Take the names out of a closed cohort, whose members all have their outcome."""
        nameless = [row._replace(user_id="") for row in cohort.standing or ()]
        write_if(
            self._dynamodb.update_item,
            TableName=self._boards,
            Key=encode_item(_cohort_key(cohort.place)),
            UpdateExpression="SET #result = :result REMOVE #members",
            ConditionExpression="attribute_exists(#result)",
            ExpressionAttributeNames=NAMES,
            ExpressionAttributeValues={":result": {"B": pack_standing(nameless)}},
        )

    # ---- what a run has closed

    def is_done(self, week: str) -> bool:
        """Whether all cohorts of a week are finished."""
        return get_one(self._dynamodb, self._boards, _done_key(week)) is not None

    def mark_done(self, week: str, expires_at: datetime) -> None:
        """Note that all cohorts of a week are finished."""
        item = encode_item(_done_key(week) | {"expires_at": int(expires_at.timestamp())})
        self._dynamodb.put_item(TableName=self._boards, Item=item)


def _membership_key(user_id: str) -> dict[str, str]:
    return {"user_id": kept_partition(user_id), "activity_date": LEAGUE}


def membership_of(item: Item) -> Membership:
    """Return the membership of an item; a blank one, to be replaced, of a damaged item."""
    version = int(item["version"]["N"])
    try:
        return Membership.of(item[LEAGUE]["S"], version)
    except (KeyError, ValueError):
        return Membership(version)


def _cohort_key(place: Place) -> dict[str, str]:
    return {"board": f"league#{place.week}#{place.division}", "part": f"{place.cohort:07}"}


def _done_key(week: str) -> dict[str, str]:
    return {"board": f"league#{week}", "part": "done"}


def _cohort_of(place: Place, item: Item) -> Cohort:
    members = frozenset(item["members"]["SS"]) if "members" in item else frozenset[str]()
    return Cohort(place, members, unpack_standing(item["result"]["B"]) if "result" in item else None)


def pack_standing(standing: Iterable[Row]) -> bytes:
    """Pack the rows of a cohort."""
    return zlib.compress(json.dumps([list(row) for row in standing], separators=(",", ":")).encode())


def unpack_standing(packed: bytes) -> tuple[Row, ...]:
    """Read what pack_standing wrote."""
    rows = json.loads(zlib.decompress(packed))
    return tuple(Row(user, rank, points, Zone(zone)) for user, rank, points, zone in rows)


def leave_cohort(dynamodb: Any, boards: str, membership: Item) -> None:
    """Take a user's name out of the cohort that the item of a membership names. Raises Unprocessed."""
    place = membership_of(membership).place
    if place is not None:
        user = user_of_partition(membership["user_id"]["S"])
        remove_member(dynamodb, boards, encode_item(_cohort_key(place)), user)


def remove_member(dynamodb: Any, boards: str, key: Item, user_id: str) -> None:
    """Take an erased user's name out of a cohort. Its result keeps the row. Raises Unprocessed."""
    for _ in pauses(ATTEMPTS_MAX):
        item = dynamodb.get_item(TableName=boards, Key=key, ConsistentRead=True).get("Item", {})
        if user_id not in item.get("members", {}).get("SS", ()):
            return
        change: dict[str, Any] = {
            "UpdateExpression": "DELETE #members :me",
            "ConditionExpression": "attribute_not_exists(#result)",
        }
        values: Item = {":me": {"SS": [user_id]}}
        if "result" in item:
            standing = unpack_standing(item["result"]["B"])
            nameless = [row._replace(user_id="") if row.user_id == user_id else row for row in standing]
            change = {
                "UpdateExpression": "DELETE #members :me SET #result = :result",
                "ConditionExpression": "#result = :read",
            }
            values |= {":result": {"B": pack_standing(nameless)}, ":read": item["result"]}
        if write_if(
            dynamodb.update_item,
            TableName=boards,
            Key=key,
            **change,
            ExpressionAttributeNames=NAMES,
            ExpressionAttributeValues=values,
        ):
            return
    raise Unprocessed("a cohort kept changing")


@dataclass(frozen=True, slots=True)
class RankedCohort:
    """A cohort's standing, and what it was made of."""

    standing: Sequence[Row]
    memberships: Mapping[str, Membership]  # by user id, of those who name the cohort
    aliases: Mapping[str, str | None]  # by user id, as the users have chosen them
    left: frozenset[str] = frozenset()  # users who had left the leagues or the boards


@dataclass(frozen=True, slots=True)
class OpenLeague:
    """A user's cohort whose result is not known yet."""

    week: Period
    rules: LeagueRules  # of the week
    closes_at: datetime
    ranked: RankedCohort


@dataclass(frozen=True, slots=True)
class LeagueState:
    """What a user sees of the leagues."""

    membership: Membership  # with the newest outcome, also if it is not stored yet
    league: OpenLeague | None  # None: the user is in none now
    rules: LeagueRules | None  # of that league, or of the one that comes next; None: there is none


class Leagues:
    """Joins, shows and closes leagues, as one process sees them."""

    def __init__(self, store: LeagueStore, accounts: AccountStore) -> None:
        self.store, self._accounts = store, accounts
        self._week, self._joined = "", set[str]()  # the users of the open week's league, as far as known
        self._open: dict[int, int] = {}  # by division, the cohort that was joined last
        self._shown: dict[Place, tuple[datetime, RankedCohort]] = {}
        self._done = set[str]()  # weeks whose cohorts are all finished

    # ---- joining

    def join_all(self, profiles: Iterable[Profile], now: datetime) -> int:
        """Let users who have earned points join the open league; returns how many have joined.

        profiles: as they were written now. Errors are logged, whatever they are: points come first, and who
        is not in yet joins with the next event.
        """
        terms = self._accounts.daily_terms()
        week = open_week(now, terms)
        rules = rules_of(week, terms) if week else None
        if week is None or rules is None:
            return 0
        if week.name != self._week or len(self._joined) > KNOWN_MAX:
            self._week, self._joined, self._open = week.name, set(), {}
        joining = {
            profile.user_id
            for profile in profiles
            if profile.user_id not in self._joined and may_join(profile, week)
        }
        count = 0
        try:
            memberships = self.store.memberships(joining)
        except Exception as error:  # noqa: BLE001 (a league holds no points up)
            logger.warning("league not joined", extra={"users": len(joining), "error": error_summary(error)})
            return 0
        for user in sorted(joining):
            try:
                count += self._join(user, memberships.get(user, Membership()), week, rules, now)
            except Exception as error:  # noqa: BLE001 (nor does one user stop another)
                logger.warning("league not joined", extra={"user_id": user, "error": error_summary(error)})
        return count

    def _join(
        self, user_id: str, membership: Membership, week: Period, rules: LeagueRules, now: datetime
    ) -> bool:
        """Let a user join a week's league, unless that has happened; returns whether it has happened now."""
        if membership.left_at:
            return False
        if membership.place and membership.place.week >= week.name:
            self._joined.add(user_id)
            return False
        settled = self._settle_last(user_id, membership, now)
        if settled is None:
            return False
        place = self._enter(user_id, week, rules.division_of(settled.name, settled.division), rules)
        # If another process was first, this cohort has a name too many, which its closing leaves out.
        joined = settled.joining(week, rules, place.cohort)
        has_joined = self.store.put_membership(user_id, settled, joined)
        if has_joined:
            self._joined.add(user_id)
        return has_joined

    def _enter(self, user_id: str, week: Period, division: int, rules: LeagueRules) -> Place:
        """Add a user to the newest cohort of a division that has room, and return it. Raises Unprocessed."""
        number = self._open.get(division) or self.store.newest(week.name, division) or 1
        expires_at = counted_until(week, self._accounts.daily_terms()) + KEPT_AFTER
        for attempt in range(ATTEMPTS_MAX):
            place = Place(week.name, division, number)
            if self.store.enter(place, user_id, rules.size, expires_at):
                self._open[division] = number
                return place
            # The next one is usually right. Who comes after a long time looks.
            number = number + 1 if not attempt else max(number + 1, self.store.newest(week.name, division))
        raise Unprocessed(f"no cohort of {week.name} had room in {ATTEMPTS_MAX} attempts")

    def _settle_last(self, user_id: str, membership: Membership, now: datetime) -> Membership | None:
        """Return a membership with the outcome of its last league; None if that cannot be known yet.

        A cohort that nobody has closed is closed.
        """
        if membership.is_settled or membership.place is None:
            return membership
        terms, week = self._accounts.daily_terms(), period_named(membership.place.week)
        if now < closable_at(week, terms):
            return None
        rules = rules_of(week, terms)
        cohort = self.store.cohort(membership.place)
        if rules is None or cohort is None:
            return replace(membership, is_settled=True)
        ranked = self._close(cohort, week, rules, now)
        if user_id in ranked.left:  # the closing has written that
            return self.store.membership(user_id)
        return membership.settled(rules, user_id, ranked.standing)

    # ---- the standing of a cohort, and its closing

    def _rank(
        self, cohort: Cohort, week: Period, rules: LeagueRules, until: datetime, *, is_known: bool = True
    ) -> RankedCohort:
        """Return the standing of a cohort at an instant, at most that of its closing."""
        # Whose outcome comes before the result had left: a closing has said so, and died before its end.
        memberships = {
            user: each
            for user, each in self.store.memberships(cohort.members).items()
            if each.place == cohort.place and not each.is_settled
        }
        profiles = self._accounts.readable_profiles(memberships) if is_known else {}
        points = {
            user: league_points(profile, week)
            for user, profile in profiles.items()
            if is_ranked(profile, memberships[user].left_at, until)
        }
        aliases = {user: profile.alias for user, profile in profiles.items()}
        left = frozenset(
            user for user, profile in profiles.items() if has_left(profile, memberships[user].left_at, until)
        )
        return RankedCohort(ranking(points, rules, cohort.place.division), memberships, aliases, left)

    def _close(self, cohort: Cohort, week: Period, rules: LeagueRules, now: datetime) -> RankedCohort:
        """Return the result of a cohort, which is written if it has none. Raises Unprocessed.

        Whoever closes it, and when: the result is the same, and the first one that is written stays.
        """
        terms, found = self._accounts.daily_terms(), cohort
        for _ in pauses(ATTEMPTS_MAX):
            if found.standing is not None:
                return RankedCohort(found.standing, {}, {})
            known = is_known(week, terms, now)
            ranked = self._rank(found, week, rules, closes_at(week, terms), is_known=known)
            # Before the result, which does not name them: whoever finds it need not ask who had left.
            for user in ranked.left:
                self._settle(user, ranked.memberships[user], found.place, Membership.beginning_anew)
            if self.store.write_result(found, ranked.standing):
                return ranked
            found = self.store.cohort(cohort.place) or found
        raise Unprocessed(f"cohort {cohort.place} kept changing")

    def close_due(self, now: datetime, until: float) -> Counter[str]:
        """Close the cohorts of all leagues that have ended. Returns how many: finished, failed, left.

        A run goes on where another has ended, two at once do no harm, and a week that was missed is closed as
        it would have been. until: the monotonic second at which the run ends.
        """
        counts, terms = Counter[str](), self._accounts.daily_terms()
        for week in weeks_to_close(now, terms):
            rules = rules_of(week, terms)
            if rules is None or week.name in self._done or self.store.is_done(week.name):
                self._done.add(week.name)
                continue
            of_week = self._finish_week(week, rules, now, until)
            counts += of_week
            if of_week["left"]:
                break
            if not of_week["failed"]:
                self.store.mark_done(week.name, counted_until(week, terms) + KEPT_AFTER)
        return counts

    def _finish_week(self, week: Period, rules: LeagueRules, now: datetime, until: float) -> Counter[str]:
        """Finish a week's cohorts. Returns how many: finished, failed, left for the next run."""
        counts = Counter[str]()

        def finish(cohort: Cohort) -> str:
            if time.monotonic() >= until:
                return "left"
            try:
                self.finish(cohort, week, rules, now)
            except TRANSIENT as error:
                logger.warning("cohort not closed", extra={"error": error_summary(error)})
                return "failed"
            except Exception:  # one cohort does not stop another
                logger.exception("cohort not closed", extra={"cohort": str(cohort.place)})
                return "failed"
            return "finished"

        with ThreadPoolExecutor(WRITERS) as pool:
            for division in range(len(rules.divisions)):
                for some in chunks(self.store.unfinished(week.name, division), 4 * WRITERS):
                    counts.update(pool.map(finish, some))
                    if counts["left"]:
                        return counts
        return counts

    def finish(self, cohort: Cohort, week: Period, rules: LeagueRules, now: datetime) -> None:
        """Close a cohort, give its members their outcome, and take their names out. Raises Unprocessed."""
        ranked = self._close(cohort, week, rules, now)
        memberships = ranked.memberships or self.store.memberships(cohort.members)
        for user, membership in memberships.items():
            settled = partial(Membership.settled, rules=rules, user_id=user, standing=ranked.standing)
            self._settle(user, membership, cohort.place, settled)
        self.store.finish(replace(cohort, standing=tuple(ranked.standing)))

    def _settle(
        self,
        user_id: str,
        membership: Membership,
        place: Place,
        settled: Callable[[Membership], Membership],
    ) -> None:
        """Write a member's outcome, once: the membership still names the cohort, and has no outcome of it."""
        for _ in pauses(ATTEMPTS_MAX):
            if membership.place != place or membership.is_settled:
                return
            if self.store.put_membership(user_id, membership, settled(membership)):
                return
            membership = self.store.membership(user_id)
        raise Unprocessed("a membership kept changing")

    # ---- what a user sees and changes

    def state(self, user_id: str, now: datetime) -> LeagueState:
        """Return what a user sees of the leagues."""
        terms = self._accounts.daily_terms()
        membership = self.store.membership(user_id)
        following = rules_of(open_week(now, terms) or week_of(now.date()), terms)
        league = self._open_league(user_id, membership, now)
        if league is None:
            membership = self._view_outcome(user_id, membership)
        return LeagueState(membership, league, league.rules if league else following)

    def _open_league(self, user_id: str, membership: Membership, now: datetime) -> OpenLeague | None:
        """Return the cohort of a user's membership, if its result is not known yet.

        None for a user who has left the boards. It may be SHOWN_AGE_MAX old, but has the user, who perhaps
        has just joined.
        """
        place = membership.place
        if place is None or membership.is_settled or membership.left_at:
            return None
        terms, week = self._accounts.daily_terms(), period_named(place.week)
        rules, end = rules_of(week, terms), closes_at(week, terms)
        if rules is None or now >= closable_at(week, terms):
            return None
        at, ranked = self._shown.get(place, (EPOCH, None))
        if ranked is None or user_id not in ranked.memberships or not at <= now < at + SHOWN_AGE_MAX:
            cohort = self.store.cohort(place)
            if cohort is None:
                return None
            ranked = self._rank(cohort, week, rules, min(now, end))
            if len(self._shown) >= SHOWN_MAX:
                self._shown.clear()
            self._shown[place] = now, ranked
        if user_id in ranked.left:
            return None
        return OpenLeague(week, rules, end, ranked)

    def _view_outcome(self, user_id: str, membership: Membership) -> Membership:
        """Return a membership with the outcome of its last league, if its cohort has one. Writes nothing."""
        if membership.is_settled or membership.place is None:
            return membership
        terms, week = self._accounts.daily_terms(), period_named(membership.place.week)
        rules, cohort = rules_of(week, terms), self.store.cohort(membership.place)
        if rules is None or cohort is None or cohort.standing is None:
            return membership
        return membership.settled(rules, user_id, cohort.standing)

    def take_part(self, user_id: str, now: datetime, *, takes_part: bool) -> None:
        """Let a user leave the leagues, or come back. Raises AccountContended, Unprocessed.

        Whoever comes back when the league has closed closes the cohort first: its result follows from who had
        left by then, and a membership knows only whether the user is away now.
        """
        for _ in pauses(ATTEMPTS_MAX):
            before = self.store.membership(user_id)
            if takes_part is not bool(before.left_at):
                return
            if takes_part:
                settled = self._settle_last(user_id, before, now)
                after = (settled or before).returning(has_seat=settled is None)
            else:
                after = before.leaving(now)
            if self.store.put_membership(user_id, before, after):
                self._shown.clear()
                return
        raise AccountContended(user_id)
