"""Synthetic profiles, by number, and the processes that put them into Redis's sorted sets.

`python -m bench.engagement.millions.crowd round URL SIZE SECONDS`: runs of a round as the scheduled function
does them, each so many seconds long at most, until the round is finished. Whoever starts it may kill it.
`... fill URL SIZE PART PARTS`: puts a part of everybody into the sets, in bulk. Both print their CPU seconds.
"""

import sys
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

from adapters.engagement.account_items import profile_attributes
from adapters.engagement.engagement_cache import EngagementCache
from adapters.platform import redis
from adapters.platform.redis import Command
from rules.days import region_of
from rules.engagement.account_state import Profile
from rules.engagement.boards import GLOBAL
from rules.engagement.streak import Streak

PAGE = 2_000
NOW = datetime(2026, 6, 2, 12, tzinfo=UTC)
# Two of five were last active on June 1st, in UTC: their streaks show 0 from this midnight on.
MIDNIGHT = datetime(2026, 6, 3, tzinfo=UTC)
LAPSING = 0.4


def user_of(number: int) -> str:
    """Return somebody's id."""
    return f"{number:08x}-0000-4000-8000-{number:012x}"


def length_of(number: int) -> int:
    """Return somebody's streak."""
    return 1 + number % 700


def points_of(number: int) -> int:
    """Return somebody's points."""
    return 5 * (1 + number * 7919 % 1_000_003)


def profile(number: int, version: int = 3) -> Profile:
    """Return somebody with a streak, points and a zone by number; the zone follows from its last digit."""
    lapses = number % 5 < 5 * LAPSING
    length = length_of(number)
    return Profile(
        user_of(number),
        version=version,
        streak=Streak(date(2026, 6, 1 if lapses else 2), length, length, length),
        total_points=points_of(number),
        timezone="Etc/UTC" if lapses or number % 2 else "America/New_York",
        updated_at=(NOW - timedelta(hours=1)).isoformat(),
    )


def lapsing(size: int) -> int:
    """Return how many of so many lapse at that midnight."""
    return sum(1 for number in range(5) if number < 5 * LAPSING) * (size // 5)


def pages(size: int, after: str) -> Iterator[tuple[list[Profile], str]]:
    """Yield the profiles after a place, in pages, each with the place after it."""
    for begin in range(int(after or 0), size, PAGE):
        end = min(begin + PAGE, size)
        yield list(map(profile, range(begin, end))), str(end) if end < size else ""


def be_patient() -> None:
    """Wait longer for Redis than the product does: where others load the machine, it may get no core."""
    redis.TIMEOUT_SECONDS = 30.0


def run_round(url: str, size: int, seconds: float) -> None:
    """Run a round to its end."""
    ranks = EngagementCache(url).ranks
    while not ranks.rebuild(lambda after: pages(size, after), NOW, time.monotonic() + seconds):
        time.sleep(0.2)  # another process has the lock, or the run is over


def fill(url: str, size: int, part: int, parts: int) -> None:
    """Put each PARTS-th page into the sets."""
    connection = redis.Redis(url)
    for begin in range(part * PAGE, size, parts * PAGE):
        connection.pipeline(bulk_commands(range(begin, min(begin + PAGE, size))))


def bulk_commands(numbers: range) -> list[Command]:
    """Return what a round's scripts come to for these people (redis_profiles.py holds it against them)."""
    members: dict[str, list[str | int]] = {}
    state: list[str | int] = []
    kinds = [
        (region_of(each.zone), int(profile_attributes(each)["lapses_at"])) for each in map(profile, range(10))
    ]
    for number in numbers:
        user, (region, lapses_at) = user_of(number), kinds[number % 10]
        state += [user, f'{{"version":3,"region":"{region}","round":""}}']
        members.setdefault("{board}:lapses", []).extend((lapses_at, user))
        for where in (region, GLOBAL):
            members.setdefault(f"{{board}}:streaks:{where}", []).extend((-length_of(number), user))
            members.setdefault(f"{{board}}:points:{where}", []).extend((-points_of(number), user))
    return [["HSET", "{board}:state", *state], *(["ZADD", name, *rows] for name, rows in members.items())]


def main(task: str, url: str, *numbers: str) -> None:
    """Do one of the two."""
    be_patient()
    if task == "fill":
        fill(url, *map(int, numbers))
    else:
        run_round(url, int(numbers[0]), float(numbers[1]))
    print(f"{time.process_time():.1f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
