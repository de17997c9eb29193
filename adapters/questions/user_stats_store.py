"""The UserStats table: a person's stats and the leaderboard by points (UserStatsStore), and the transaction
that counts answers, stats and marks, all or nothing (AnswerCounts).
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from heapq import nlargest
from typing import Any

from adapters.engagement.projections import unchanged_condition
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import REFUSED, cancellation_reasons, get_all, scan_all
from adapters.questions.response_store import ResponseStore
from rules.days import stamp
from rules.engagement.streak import Streak
from rules.questions import answer_stats
from rules.questions.answer_stats import BADGES, BadgeMeasure, Category, SettledDates, Stats, earned_badges
from rules.questions.responses import Response

# Answers in the categories that are not counted one by one. No category has this name.
OTHERS = "*"
DATE_CHARACTERS = 4
# Badges of categories follow from the categories, which keep their first dates.
_SETTLES = {each.name for each in BADGES if each.counted is not BadgeMeasure.CATEGORIES}
# The attribute that the index ByTotalPoints is partitioned by, and its value in the first partition.
LEADERBOARD = "_leaderboard"
# Whoever changes an item changes one of these. A repair is put on condition that all are as they were read.
STATS_MARKS = ("version", "updated_at", "total_points", "total_answers", "days", "settled")
# A transaction takes 100 actions: one for the stats, and one for each of two older hashes (KEYS_MAX) that
# they move from; a mark for each answer.
RESPONSES_MAX = 97


def stats_attributes(person: str, stats: Stats) -> dict[str, Any]:
    """Return stats as table attributes: less than 1 KB, however long a person has been answering.

    Stats are read again from days, settled, badges with badge_days, answers_by_category with category_days,
    newest_at, zone and created_at. The other attributes are what shows, as of the last activity date.
    """
    streak, names, badges = stats.streak, sorted(stats.categories), earned_badges(stats)
    answers = {name: stats.categories[name].answers for name in names}
    return {
        "fingerprint_hash": person,
        "total_points": stats.total_points,
        "total_answers": stats.total_answers,
        "streak_days": streak.length if streak else 0,
        "longest_streak_days": streak.longest if streak else 0,
        "streak_last_date": streak.last.isoformat() if streak else None,
        "badges": [each.badge.name for each in badges],
        "badge_days": _encode(each.earned_on for each in badges),
        "answers_by_category": answers | ({OTHERS: stats.others} if stats.others else {}),
        "category_days": _encode(stats.categories[name].first for name in names),
        "days": answer_stats.encode_days(stats.days),
        "settled": _settled_text(stats.settled),
        "created_at": stats.created_at or None,
        "newest_at": stats.newest[0],
        "zone": stats.newest[1],
    }


def stats_from(stored: Mapping[str, Any]) -> Stats:
    """Read stored stats; raises ValueError or KeyError for what stats_attributes() did not write."""
    days, newest = answer_stats.decode_days(stored["days"]), (stored["newest_at"], stored["zone"])
    answers = dict(stored["answers_by_category"])
    others = answers.pop(OTHERS, 0)
    firsts = _decode(stored["category_days"])
    categories = {
        name: Category(answers[name], first) for name, first in zip(sorted(answers), firsts, strict=True)
    }
    earned = dict(zip(stored["badges"], _decode(stored["badge_days"]), strict=True))
    settled = _settled_from(stored.get("settled"), earned)
    return Stats(days, categories, newest, settled, others, stored.get("created_at", ""))


def _settled_text(settled: SettledDates) -> str | None:
    streak = settled.streak
    if streak is None:
        return None
    numbers = (streak.last.toordinal(), streak.length, streak.longest, streak.active_days)
    return ":".join(map(str, (settled.answers, settled.points, *numbers)))


def _settled_from(text: str | None, earned: Mapping[str, date]) -> SettledDates:
    if text is None:
        return SettledDates()
    answers, points, last, length, longest, active_days = map(int, text.split(":"))
    streak = Streak(date.fromordinal(last), length, longest, active_days)
    kept = {name: day for name, day in earned.items() if day <= streak.last and name in _SETTLES}
    return SettledDates(answers, points, streak, kept)


def _encode(days: Iterable[date]) -> str:
    return "".join(answer_stats.base36(day.toordinal(), DATE_CHARACTERS) for day in days)


def _decode(text: str) -> list[date]:
    places = range(0, len(text), DATE_CHARACTERS)
    return [date.fromordinal(int(text[at : at + DATE_CHARACTERS], 36)) for at in places]


@dataclass(frozen=True, slots=True)
class StoredStats:
    """A person's stats as they are stored."""

    person: str  # the hash under which the next writing puts them
    stats: Stats
    version: int = 0  # 0: the person has none
    updated_at: str = ""
    older: tuple[str, ...] = ()  # all other hashes that the person has had
    hashes_to_redirect: tuple[tuple[str, int], ...] = ()  # (hash, version): the next writing sets `moved_to`
    is_split_over_hashes: bool = False  # several have stats: they are counted anew from all responses

    @property
    def stored_under(self) -> str:
        """The hash under which the stats are now, and boards have them."""
        former = [] if self.version else [each for each, version in self.hashes_to_redirect if version]
        return former[0] if former else self.person

    @property
    def hashes(self) -> tuple[str, ...]:
        """All hashes under which the person has answered."""
        return self.person, *self.older


class UserStatsStore:
    """Stats of all people. shards: partitions that the leaderboard's index is cut into."""

    def __init__(self, dynamodb: Any, table: str, shards: int) -> None:
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def of(self, person: str, older: Iterable[str] = ()) -> StoredStats:
        """Return a person's stats, strongly consistent: one request, unless they are under another hash yet.

        older: hashes that the person is known to have had.
        """
        home = self._home(person)
        unknown = sorted(set(older) - set(home.hashes))
        if not unknown:
            return home
        found = {each.person: each for each in map(self._home, unknown)}
        home = found.pop(home.person, home)  # somebody moved them there meanwhile
        live = [each for each in (home, *found.values()) if each.version]
        hashes = {*unknown, *home.older, *(each for one in found.values() for each in one.hashes)}
        return replace(
            home,
            stats=live[0].stats if live else home.stats,
            updated_at=max(each.updated_at for each in (home, *found.values())),
            older=tuple(sorted(hashes - {home.person})),
            hashes_to_redirect=tuple((each.person, each.version) for each in found.values()),
            is_split_over_hashes=len(live) > 1,
        )

    def _home(self, person: str) -> StoredStats:
        """Follow a person's hashes to where their stats are, or would be; raises ValueError for a circle."""
        seen = set[str]()
        while found := get_all(self._dynamodb, self._table, [{"fingerprint_hash": person}]):
            if person in seen:
                raise ValueError(f"stats have moved in a circle: {person}")
            seen.add(person)
            kept = decode_item(found[0])
            if "moved_to" not in kept:
                version, older = kept["version"], tuple(kept.get("older_hashes", ()))
                return StoredStats(person, stats_from(kept), version, kept["updated_at"], older)
            person = kept["moved_to"]
        return StoredStats(person, Stats())

    def attributes(self, person: str, stats: Stats, older: tuple[str, ...]) -> dict[str, Any]:
        """Return stats as they are stored, without version and updated_at."""
        return stats_attributes(person, stats) | {
            LEADERBOARD: leaderboard_partition(person, self._shards) if stats.total_points else None,
            "older_hashes": older or None,
        }

    def scan(self, segment: int, segments: int) -> Iterator[Item]:
        """Yield a segment of all items as they are stored; eventually consistent."""
        return scan_all(self._dynamodb, TableName=self._table, Segment=segment, TotalSegments=segments)

    def stored(self, person: str) -> Item | None:
        """Return an item as it is stored, strongly consistent."""
        key = encode_item({"fingerprint_hash": person})
        found: Item | None = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True).get(
            "Item"
        )
        return found

    def put_in_place(self, new: Item, before: Item | None) -> bool:
        """Put an item in place of the one that was read; False: it has changed since."""
        condition, names, values = unchanged_condition(before, STATS_MARKS, "fingerprint_hash")
        named: dict[str, Any] = {"ExpressionAttributeNames": names} if names else {}
        named |= {"ExpressionAttributeValues": values} if values else {}
        try:
            self._dynamodb.put_item(TableName=self._table, Item=new, ConditionExpression=condition, **named)
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def put_actions(self, before: StoredStats, stats: Stats, now: str) -> list[dict[str, Any]]:
        """Return a transaction's actions: put stats if nobody has changed them since they were read."""
        person = before.person
        whole = self.attributes(person, stats, before.older)
        actions = [self._put_action(whole, before.version, now)]
        for each, version in before.hashes_to_redirect:
            actions.append(self._put_action({"fingerprint_hash": each, "moved_to": person}, version, now))
        return actions

    def _put_action(self, attributes: Mapping[str, Any], before: int, now: str) -> dict[str, Any]:
        whole = {**attributes, "version": before + 1, "updated_at": now}
        put: dict[str, Any] = {"TableName": self._table, "Item": encode_item(whole)}
        if before == 0:
            return {"Put": put | {"ConditionExpression": "attribute_not_exists(fingerprint_hash)"}}
        return {
            "Put": put
            | {
                "ConditionExpression": "version = :before",
                "ExpressionAttributeValues": encode_item({":before": before}),
            }
        }

    def top(self, limit: int) -> list[tuple[str, int, int]]:
        """Return (fingerprint_hash, points, answers), best first: one request a shard."""
        rows = (row for shard in range(self._shards) for row in self._best(shard, limit))
        return nlargest(limit, rows, key=lambda row: (row[1], row[0]))

    def _best(self, shard: int, limit: int) -> list[tuple[str, int, int]]:
        answer = self._dynamodb.query(
            TableName=self._table,
            IndexName="ByTotalPoints",
            KeyConditionExpression="#board = :partition",
            ExpressionAttributeNames={"#board": LEADERBOARD},
            ExpressionAttributeValues=encode_item({":partition": _partition(shard)}),
            ScanIndexForward=False,
            Limit=limit,
        )
        found = map(decode_item, answer["Items"])
        return [(each["fingerprint_hash"], each["total_points"], each["total_answers"]) for each in found]


def leaderboard_partition(fingerprint_hash: str, shards: int) -> str:
    """Return the partition of the leaderboard that a person is in: the same in every process."""
    return _partition(zlib.crc32(fingerprint_hash.encode()) % shards)


def _partition(shard: int) -> str:
    """Name a partition: `_leaderboard`, then `_leaderboard#1` and so on. Small deployments have the first."""
    return f"{LEADERBOARD}#{shard}" if shard else LEADERBOARD


@dataclass(frozen=True, slots=True)
class CountRefusal:
    """Why a transaction wrote nothing."""

    moved: bool  # the stats have changed since they were read (or two transactions met)
    marked: bool  # an answer is counted already, or gone


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Writes UserStats and Responses."""

    dynamodb: Any
    stats: UserStatsStore
    responses: ResponseStore

    def count(
        self,
        change: tuple[StoredStats, Stats],
        answers: Sequence[Response],
        now: datetime,
    ) -> CountRefusal | None:
        """Count up to 97 distinct answers of one person; returns why not, or None.

        change: the stats as read, and with these answers.
        One request writes the stats and each answer's mark. So a process that dies leaves all of it or
        nothing.
        """
        at, (before, after) = stamp(now), change
        actions = self.stats.put_actions(before, after, at)
        puts = len(actions)
        actions += [self.responses.mark_action(each, at) for each in answers]
        try:
            self.dynamodb.transact_write_items(TransactItems=actions)
        except self.dynamodb.exceptions.TransactionCanceledException as error:
            codes = [each.get("Code") for each in cancellation_reasons(error, len(actions))]
            return _refusal(codes, puts)
        return None

    def replace(self, before: StoredStats, stats: Stats, now: datetime) -> bool:
        """Put stats that were computed afresh; False if the stored ones have changed since they were read.

        before: as read by one hash, so that nothing is to be moved.
        """
        (action,) = self.stats.put_actions(before, stats, stamp(now))
        try:
            self.dynamodb.put_item(**action["Put"])
        except self.dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True


def _refusal(codes: Sequence[str | None], puts: int) -> CountRefusal:
    """Return why a transaction was refused. codes: of the stats (the first `puts`), and of each mark."""
    moved = REFUSED in codes[:puts] or REFUSED not in codes
    return CountRefusal(moved, REFUSED in codes[puts:])
