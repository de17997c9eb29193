"""The paths that a cache changes, with one that holds what they look for."""

from collections.abc import Iterator
from datetime import timedelta

from bench.counting.desk import Desk, Units
from bench.counting.redis_stand_in import redis_stand_in
from bench.units.paths.engagement import DAY, USER_ID, apply, ask
from bench.units.paths.lead import registry, sent
from rules.engagement.boards import BOARDS

SIZES = (1, 5)
URL = "redis://nowhere:6379/0"


def cached_paths(desk: Desk) -> Iterator[tuple[str, dict[str, Units]]]:
    """Yield posts, reads and a known lead's webhook. The desk must have been set up with REDIS_URL."""

    def count(name: str, number: float) -> None:
        desk.meter.counts[name] += number

    with redis_stand_in(lambda: desk.now, count), registry(desk):
        user = USER_ID.format(5 * 10**6)
        apply(desk, user, 1)
        for size in SIZES:
            desk.tick(DAY)
            apply(desk, user, 1)
            desk.tick(timedelta(minutes=30))
            desk.forget()
            apply(desk, user, size)
            yield f"cached.events.again.{size}", desk.take()
        yield from _reads(desk, user)
        sent(desk, 0, 0)
        yield "cached.lead.next", sent(desk, 1, 0, after=timedelta(minutes=10))


def _reads(desk: Desk, user: str) -> Iterator[tuple[str, dict[str, Units]]]:
    asked = {"read.profile": f"/v1/users/{user}"}
    for board in BOARDS:
        asked |= {
            f"board.{board}.top": f"/v1/leaderboards/{board}",
            f"board.{board}.rank": f"/v1/leaderboards/{board}/users/{user}",
        }
    for name, path in asked.items():
        ask(desk, name, path, user)
        yield f"cached.{name}", ask(desk, name, path, user, after=timedelta(seconds=1))
