"""Leaderboards: which there are, of streaks and of points, in each region of the world and in all; and how
they are counted once for everybody.
"""

import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rules.days import OTHER_REGION, REGIONS, region_of

GLOBAL = "global"
BOARDS = ("streaks", "points")
ALL_REGIONS = (*REGIONS, OTHER_REGION, GLOBAL)
LISTED_MAX = 100  # rows of a top list
SCORES_IN_CHUNK = 1000
# A snapshot of many users is made less often, so that reading them all costs the same in a month.
USERS_A_SECOND = 1000
PAUSE_MAX = timedelta(hours=6)


def partitions_of(region: str, shards: int) -> list[str]:
    """Return a region's partitions in the index StreakLeaderboard: `europe`, then `europe#1`, `europe#2`."""
    return [f"{region}#{shard}" if shard else region for shard in range(shards)]


def partition_of(user_id: str, region: str, shards: int) -> str:
    """Return which of a region's partitions a user is in; it follows from the user's id."""
    return partitions_of(region, shards)[zlib.crc32(user_id.encode()) % shards]


Board = tuple[str, str]


# A pseudonym is two words and a number: 64 * 64 * 90 of them.
ADJECTIVES = """
Amber Bold Brave Breezy Bright Brisk Calm Cheery Clever Cosmic Cozy Crisp Dapper Daring Eager Early Fair
Fancy Fleet Fond Frosty Gentle Glad Golden Grand Happy Hardy Honest Jolly Keen Kind Lively Lucky Lunar
Mellow Merry Mighty Misty Modest Neat Nimble Noble Patient Plucky Polite Proud Quick Quiet Rapid Rosy Silver
Snowy Solar Steady Sunny Swift Tidy Vivid Warm Wily Windy Wise Witty Zesty
"""
ANIMALS = """
Badger Bat Bear Beaver Bison Buck Camel Cat Cobra Coyote Crab Crane Crow Deer Dingo Dove Duck Eagle Egret
Elk Falcon Ferret Finch Fox Frog Gecko Goose Hare Hawk Hedgehog Heron Ibex Jay Koala Lark Lemur Lion Lynx
Magpie Mole Moose Newt Ocelot Orca Otter Owl Panda Parrot Pelican Puffin Rabbit Raven Robin Salmon Seal
Shrew Stork Swan Swift Tiger Toad Walrus Wolf Wren
"""
PSEUDONYM_DIGITS = 10


def pseudonym(digits: str) -> str:
    """Return the readable name of a hash, at least 10 hexadecimal digits: `Swift Heron 42`.

    It tells what the hash tells. Of a hundred people two have the same one in 1.3 % of cases.
    """
    adjectives, animals = ADJECTIVES.split(), ANIMALS.split()
    rest, number = divmod(int(digits[:PSEUDONYM_DIGITS], 16), 90)
    rest, animal = divmod(rest, len(animals))
    return f"{adjectives[rest % len(adjectives)]} {animals[animal]} {10 + number}"


@dataclass(frozen=True, slots=True)
class Standing:
    """A row of a board."""

    score: int
    user_id: str
    alias: str = ""  # the name that the user chose, "" for none


@dataclass(frozen=True, slots=True)
class ScoreChunk:
    """Some neighbouring scores of a board, packed."""

    first: int  # the highest of them
    data: bytes


class Standings:
    """All boards of (board, region), counted in one pass over the users, in any order.

    It holds distinct scores, the best rows by points, and no list of users: lists of streaks come from the
    index StreakLeaderboard. as_of: the instant before counting began.
    """

    def __init__(self, as_of: datetime) -> None:
        self.as_of, self.users = as_of, 0
        self._counts: dict[Board, Counter[int]] = defaultdict(Counter)
        self._best: dict[Board, _Best] = defaultdict(_Best)

    def add(  # noqa: PLR0913, PLR0917 (a row of the table)
        self, user_id: str, zone: str, points: int, streak: int, lapses_at: int, alias: str = ""
    ) -> None:
        """Count a user, once. A score of 0, and a streak that has lapsed by as_of, are on no board."""
        self.users += 1
        region = region_of(zone)
        if points > 0:
            self._counts["points", region][points] += 1
            self._best["points", region].add(Standing(points, user_id, alias))
        if streak > 0 and lapses_at > self.as_of.timestamp():
            self._counts["streaks", region][streak] += 1

    def boards(self) -> Iterator[tuple[Board, list[Standing], list[ScoreChunk]]]:
        """Yield each board that has somebody, with its best rows, best first, and its packed scores."""
        for name in BOARDS:
            counts: Counter[int] = Counter()
            best: list[Standing] = []
            for board in [each for each in self._counts if each[0] == name]:
                counts.update(self._counts[board])
                own = self._best[board].rows()
                best += own
                yield board, own, pack_scores(self._counts[board])
            if counts:
                best.sort(key=lambda each: (-each.score, each.user_id))
                yield (name, GLOBAL), best[:LISTED_MAX], pack_scores(counts)


class _Best:
    """The best LISTED_MAX rows of those added, the same scores by user id."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, str, str]] = []
        self._least = 0

    def add(self, row: Standing) -> None:
        if row.score >= self._least:
            self._rows.append((-row.score, row.user_id, row.alias))
            if len(self._rows) >= 2 * LISTED_MAX:
                self._cut()

    def rows(self) -> list[Standing]:
        self._cut()
        return [Standing(-score, user, alias) for score, user, alias in self._rows]

    def _cut(self) -> None:
        self._rows.sort()
        del self._rows[LISTED_MAX:]
        if len(self._rows) == LISTED_MAX:
            self._least = -self._rows[-1][0]


def with_ranks(scores: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """Return rank, user_id and score of (user, score) pairs, which come best first."""
    rows: list[dict[str, Any]] = []
    for number, (user, score) in enumerate(scores, 1):
        tied = bool(rows) and rows[-1]["score"] == score
        rows.append({"rank": rows[-1]["rank"] if tied else number, "user_id": user, "score": score})
    return rows


def pause_between(users: int) -> timedelta:
    """Return how long there is at least between two snapshots of so many users."""
    return min(timedelta(seconds=users // USERS_A_SECOND), PAUSE_MAX)


def is_due(last_at: datetime, users: int, now: datetime) -> bool:
    """Whether a snapshot is to be made, if the last one was made at last_at and found so many users."""
    return now - last_at >= pause_between(users)


def pack_rows(rows: Iterable[Standing]) -> bytes:
    """Pack rows."""
    return _packed([[each.user_id, each.score, each.alias] for each in rows])


def unpack_rows(data: bytes) -> list[Standing]:
    """Read what pack_rows wrote."""
    return [Standing(score, user, alias) for user, score, alias in _unpacked(data)]


def pack_scores(counts: Mapping[int, int]) -> list[ScoreChunk]:
    """Pack how many users have each score, into chunks from the highest score to the lowest.

    A chunk is a list of numbers: how many users are above it; its first score and how many have that; then
    for each further score, by how much it is lower, and how many have it.
    """
    scores, above, chunks = sorted(counts, reverse=True), 0, []
    for begin in range(0, len(scores), SCORES_IN_CHUNK):
        part = scores[begin : begin + SCORES_IN_CHUNK]
        numbers, last = [above], 0
        for score in part:
            numbers += [last - score if last else score, counts[score]]
            above, last = above + counts[score], score
        chunks.append(ScoreChunk(part[0], _packed(numbers)))
    return chunks


def pack_index(chunks: Iterable[ScoreChunk]) -> bytes:
    """Pack the chunks' first scores."""
    return _packed([each.first for each in chunks])


def chunk_of(index: bytes, score: int) -> int | None:
    """Return the number of the chunk that shows how many are above a score; None if nobody is."""
    above = sum(first > score for first in _unpacked(index))
    return above - 1 if above else None


def count_above(data: bytes, score: int) -> int:
    """Return how many have a higher score. data: of the chunk that chunk_of names."""
    numbers: Iterator[int] = iter(_unpacked(data))
    above, last = next(numbers), 0
    for value in numbers:
        users = next(numbers)
        last = last - value if last else value
        if last <= score:
            break
        above += users
    return above


def _packed(plain: list[Any]) -> bytes:
    return zlib.compress(json.dumps(plain, separators=(",", ":")).encode())


def _unpacked(data: bytes) -> list[Any]:
    found: list[Any] = json.loads(zlib.decompress(data)) if data else []
    return found
