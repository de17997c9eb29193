"""Leaderboards of streaks and of points, one for each region of the world and one for all regions.

In this order: partitions of the index of streaks; the snapshot of all boards, which is counted once for
everybody; pseudonyms and ranks; how a snapshot is packed.
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
# A snapshot reads all users. The pause between two snapshots is a second long for each 1,000 users. So the
# reads of a month cost much the same, however many users there are.
USERS_PER_SECOND_OF_PAUSE = 1000
PAUSE_MAX = timedelta(hours=6)
Board = tuple[str, str]  # name and region
# A pseudonym is an adjective, an animal and a number of two digits: 64 * 64 * 90 pseudonyms.
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
Shrew Stork Swan Tern Tiger Toad Walrus Wolf Wren
"""
FIRST_PSEUDONYM_NUMBER, PSEUDONYM_NUMBERS = 10, 90  # the numbers from 10 to 99
HASH_DIGITS = 10  # hexadecimal digits of a hash from which its pseudonym is made


def partitions_of(region: str, shards: int) -> list[str]:
    """Return a region's partitions in the index StreakLeaderboard: `europe`, then `europe#1`, `europe#2`."""
    return [f"{region}#{shard}" if shard else region for shard in range(shards)]


def partition_of(user_id: str, region: str, shards: int) -> str:
    """Return the partition of a region that a user is in. It follows from the user's id."""
    return partitions_of(region, shards)[zlib.crc32(user_id.encode()) % shards]


@dataclass(frozen=True, slots=True)
class Standing:
    """A row of a board."""

    score: int
    user_id: str
    alias: str = ""  # the name that the user chose, "" for none


@dataclass(frozen=True, slots=True)
class ScoreChunk:
    """Neighbouring scores of a board, packed (pack_scores)."""

    first: int  # the highest score
    data: bytes


class Standings:
    """All boards of (board, region), counted in one pass over the users, in any order.

    It holds the number of users by score, and the best rows by points. It has no rows of streaks, because
    these lists come from the index StreakLeaderboard. as_of: the instant before counting began.
    """

    def __init__(self, as_of: datetime) -> None:
        self.as_of, self.users = as_of, 0
        self._counts: dict[Board, Counter[int]] = defaultdict(Counter)
        # Score below 0, user id and alias of the best rows, so that they sort
        self._best: dict[Board, list[tuple[int, str, str]]] = defaultdict(list)

    def add(  # noqa: PLR0913, PLR0917 (a row of the table)
        self,
        user_id: str,
        zone: str,
        points: int,
        streak: int,
        lapses_at: int,
        alias: str = "",
        is_hidden: bool = False,
    ) -> None:
        """Count a user, once.

        A score of 0, a streak that has lapsed by as_of, and who has left the boards, are on none.
        """
        self.users += 1
        if is_hidden:
            return
        region = region_of(zone)
        if points > 0:
            self._counts["points", region][points] += 1
            best = self._best["points", region]
            best.append((-points, user_id, alias))
            if len(best) >= 2 * LISTED_MAX:  # sorting once in a while is cheaper than at each row
                best[:] = sorted(best)[:LISTED_MAX]
        if streak > 0 and lapses_at > self.as_of.timestamp():
            self._counts["streaks", region][streak] += 1

    def boards(self) -> Iterator[tuple[Board, list[Standing], list[ScoreChunk]]]:
        """Yield each board that has a user, with its best rows, best first, and its packed scores."""
        for name in BOARDS:
            all_counts: Counter[int] = Counter()
            all_rows: list[Standing] = []
            for (board_name, region), counts in self._counts.items():
                if board_name != name:
                    continue
                best = sorted(self._best.get((name, region), ()))[:LISTED_MAX]
                rows = [Standing(-score, user, alias) for score, user, alias in best]
                all_counts.update(counts)
                all_rows += rows
                yield (name, region), rows, pack_scores(counts)
            if all_counts:
                all_rows.sort(key=lambda standing: (-standing.score, standing.user_id))
                yield (name, GLOBAL), all_rows[:LISTED_MAX], pack_scores(all_counts)


def pseudonym(digits: str) -> str:
    """Return a readable name for a hash, such as `Swift Heron 42`. digits: the hash, in hexadecimal digits.

    Two people may have the same name. Among a hundred people, that happens in 1.3 % of cases.
    """
    adjectives, animals = ADJECTIVES.split(), ANIMALS.split()
    quotient, number = divmod(int(digits[:HASH_DIGITS], 16), PSEUDONYM_NUMBERS)
    quotient, animal = divmod(quotient, len(animals))
    adjective = adjectives[quotient % len(adjectives)]
    return f"{adjective} {animals[animal]} {FIRST_PSEUDONYM_NUMBER + number}"


def best_first(scores: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Sort (user, score) pairs as every list shows them: the best first, and who ties by user id."""
    return sorted(scores, key=lambda row: (-row[1], row[0]))


def with_ranks(scores: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """Return rank, user_id and score of (user, score) pairs, which come best first."""
    rows: list[dict[str, Any]] = []
    for number, (user, score) in enumerate(scores, 1):
        tied = bool(rows) and rows[-1]["score"] == score
        rows.append({"rank": rows[-1]["rank"] if tied else number, "user_id": user, "score": score})
    return rows


def pause_between(users: int) -> timedelta:
    """Return the least time between two snapshots of so many users."""
    return min(timedelta(seconds=users // USERS_PER_SECOND_OF_PAUSE), PAUSE_MAX)


def is_due(last_at: datetime, users: int, now: datetime) -> bool:
    """Whether a snapshot is due. last_at: when the last one was made. users: how many users it counted."""
    return now - last_at >= pause_between(users)


def pack_rows(rows: Iterable[Standing]) -> bytes:
    """Pack rows."""
    return _packed([[row.user_id, row.score, row.alias] for row in rows])


def unpack_rows(data: bytes) -> list[Standing]:
    """Read what pack_rows wrote."""
    return [Standing(score, user, alias) for user, score, alias in _unpacked(data)]


def pack_scores(counts: Mapping[int, int]) -> list[ScoreChunk]:
    """Pack how many users have each score, into chunks from the highest score to the lowest.

    A chunk is a list of numbers: how many users are above it; its first score, and how many users have it;
    then for each further score, how much lower it is, and how many users have it.
    """
    in_order, users_above, chunks = sorted(counts, reverse=True), 0, []
    for begin in range(0, len(in_order), SCORES_IN_CHUNK):
        scores = in_order[begin : begin + SCORES_IN_CHUNK]
        numbers, previous = [users_above], 0
        for score in scores:
            numbers += [previous - score if previous else score, counts[score]]
            users_above, previous = users_above + counts[score], score
        chunks.append(ScoreChunk(scores[0], _packed(numbers)))
    return chunks


def pack_index(chunks: Iterable[ScoreChunk]) -> bytes:
    """Pack the chunks' first scores."""
    return _packed([chunk.first for chunk in chunks])


def chunk_of(index: bytes, score: int) -> int | None:
    """Return the number of the chunk that tells how many users are above a score; None if no user is."""
    chunks_above = sum(first > score for first in _unpacked(index))
    return chunks_above - 1 if chunks_above else None


def count_above_in_chunk(data: bytes, score: int) -> int:
    """Return how many users have a higher score. data: of the chunk that chunk_of names."""
    numbers: Iterator[int] = iter(_unpacked(data))
    users_above, chunk_score = next(numbers), 0
    for value in numbers:
        users = next(numbers)
        chunk_score = chunk_score - value if chunk_score else value
        if chunk_score <= score:
            break
        users_above += users
    return users_above


def _packed(plain: list[Any]) -> bytes:
    return zlib.compress(json.dumps(plain, separators=(",", ":")).encode())


def _unpacked(data: bytes) -> list[Any]:
    plain: list[Any] = json.loads(zlib.decompress(data)) if data else []
    return plain
