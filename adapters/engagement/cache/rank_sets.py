"""Exact ranks from Redis's sorted sets, and the rounds in which these are made and renewed.

A round reads all profiles and places each in the sets, where writers place theirs meanwhile: the newer
version wins. Then it sweeps out whom it has not seen. How far it is stands in Redis beside the sets, so the
next process goes on where one has stopped, and a Redis that lost its sets has lost the round too. Sets that
were whole stay readable all the time. Sets that were not begin empty.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from adapters.engagement.cache.cache_link import CacheLink
from adapters.engagement.cache.rank_commands import (
    LAPSE_PAUSE_MS,
    READY,
    ROUND,
    begin_command,
    finish_command,
    hold_command,
    lapse_command,
    place_commands,
    sweep_command,
)
from adapters.platform.redis import Command
from adapters.platform.tables import chunks
from rules.engagement.account_state import Profile

PLACED_AT_ONCE = 500
# The pages of all profiles after a user id: each with the id after which the next page begins, "" at the end.
Pages = Callable[[str], Iterable[tuple[Iterable[Profile], str]]]


class RankSets:
    """The sorted sets, over one process's connection."""

    def __init__(self, link: CacheLink) -> None:
        self._run = link.run

    def ready(self, seconds: int = 0) -> bool:
        """Whether the sorted sets hold everybody, and count for more than so many seconds yet."""
        answers = self._run([["TTL", READY]])
        return bool(answers and answers[0] > seconds)

    def can_tell(self) -> bool:
        """Whether Redis says at all if there are sets: it is there, and knows of no lost writes."""
        return self._run([["EXISTS", READY]]) is not None

    def is_under_way(self) -> bool:
        """Whether a round has begun and is not finished."""
        answers = self._run([["EXISTS", ROUND]])
        return bool(answers and answers[0])

    def top(self, board: str, region: str, limit: int, now: datetime) -> list[tuple[str, int]] | None:
        """Return (user, score), best first, ties by user id; None if Redis cannot tell."""
        flat = self._told(board, ["ZRANGE", f"{{board}}:{board}:{region}", 0, limit - 1, "WITHSCORES"], now)
        if flat is None:
            return None
        return [(user, -int(float(score))) for user, score in zip(flat[::2], flat[1::2], strict=True)]

    def count_above(self, board: str, region: str, score: int, now: datetime) -> int | None:
        """Return how many have a higher score; None if Redis cannot tell."""
        above = self._told(board, ["ZCOUNT", f"{{board}}:{board}:{region}", "-inf", f"({-score}"], now)
        return None if above is None else int(above)

    def _told(self, board: str, question: Command, now: datetime) -> Any:
        """Return the answer of whole sets; None if they are not, or hold streaks that show 0 by now.

        Each question about streaks takes a slice of these out; the next minute's run takes out the rest.
        """
        lapse = [lapse_command(now)] if board == "streaks" else []
        answers = self._run([*lapse, question, ["EXISTS", READY]])
        if not answers:
            return None
        *left, answer, is_ready = answers
        return answer if is_ready and not any(left) else None

    def lapse(self, now: datetime, until: float = math.inf) -> bool:
        """Take out all streaks that show 0 by now, slice by slice; returns whether none is left.

        until: the monotonic second at which to stop.
        """
        while (answers := self._run([lapse_command(now)])) is not None:
            if not answers[0]:
                return True
            if time.monotonic() >= until:
                break
            time.sleep(LAPSE_PAUSE_MS / 1000)
        return False

    def rebuild(self, pages: Pages, now: datetime, until: float = math.inf) -> bool:
        """Make or renew the sets from all profiles; returns whether this has finished it.

        It goes on where the last run stopped. A lock keeps other processes from doing the same. It is renewed
        at each step, and whoever has lost it stops. until: the monotonic second at which to stop.
        """
        token = uuid4().hex
        begun = self._run([begin_command(token)])
        if not begun or begun[0] is None:
            return False
        phase, _, reached = begun[0].partition(":")
        if phase == "scan" and not self._scan(token, reached, pages, now, until):
            return False
        return self._sweep(token, reached if phase == "sweep" else "0", until) and self._held(
            [finish_command(token)]
        )

    def _scan(self, token: str, after: str, pages: Pages, now: datetime, until: float) -> bool:
        """Place everybody after a user; returns whether all are placed."""
        for profiles, following in pages(after):
            for chunk in chunks(profiles, PLACED_AT_ONCE):
                places = place_commands(chunk, now)
                if not self._held([*places, hold_command(token, f"scan:{after}")]):
                    return False
            after = following
            if not self._held([hold_command(token, f"scan:{after}" if after else "sweep:0")]):
                return False
            if time.monotonic() >= until:
                return False
        return True

    def _sweep(self, token: str, cursor: str, until: float) -> bool:
        """Take out whom the round has not seen; returns whether all were looked at."""
        while time.monotonic() < until:
            answers = self._run([sweep_command(token, cursor)])
            if (
                not answers
                or answers[0] is None
                or not self._held([hold_command(token, f"sweep:{answers[0]}")])
            ):
                return False
            cursor = answers[0]
            if cursor == "0":
                return True
        return False

    def _held(self, commands: Sequence[Command]) -> bool:
        """Run commands; returns whether the last of them still found the lock held."""
        answers = self._run(commands)
        return bool(answers and answers[-1])
