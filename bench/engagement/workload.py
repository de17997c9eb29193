"""The events that the benchmarks apply: users with open accounts, each of whom starts a new date."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_OID, uuid5

BATCH = 100  # records in a batch
PER_USER = (1, 5, 20)  # events of a user in a batch
DAY_ONE = datetime(2026, 3, 20, 8, tzinfo=UTC)
DAY = timedelta(days=1)
# Twenty events just reach the daily cap. The naive design does not know it: only so do results compare.
KIND, POINTS = "LESSON_COMPLETED", 10
Body = dict[str, Any]
Record = dict[str, Any]


def users(per_user: int) -> list[str]:
    """Return as many users as fill one batch."""
    return [str(uuid5(NAMESPACE_OID, f"{per_user} {number}")) for number in range(BATCH // per_user)]


def bodies(who: Sequence[str], per_user: int, at: datetime) -> list[Body]:
    """Return events as an app sends them: user by user, a minute apart, from `at` on."""
    return [_body(user, at + timedelta(minutes=number)) for user in who for number in range(per_user)]


@dataclass(frozen=True, slots=True)
class Mix:
    """How a batch differs from users with events of one type on one date.

    kinds: event types in turn. late_every, again_every: each so many-th event is of two days before, or is
    sent a second time; 0: none.
    """

    name: str
    kinds: tuple[str, ...] = (KIND,)
    late_every: int = 0
    again_every: int = 0

    def bodies(self, counts: Sequence[tuple[str, int]], at: datetime) -> list[Body]:
        """Return the events of a batch. counts: users, each with a number of events."""
        sent: list[Body] = []
        number = 0
        for user, events in counts:
            for place in range(events):
                number += 1
                late = 2 * DAY if self.late_every and number % self.late_every == 0 else timedelta()
                kind = self.kinds[place % len(self.kinds)]
                sent.append(_body(user, at + timedelta(minutes=place) - late, kind))
                if self.again_every and number % self.again_every == 0:
                    sent.append(sent[-1])
        return sent


# None of them is chosen to fit the daily caps: five check-ins earn 5 points together, twenty workouts 60.
MIXES = (
    Mix("one type beyond its cap", ("CHECK_IN",)),
    Mix("types in turn", ("LESSON_COMPLETED", "CHECK_IN", "WORKOUT_COMPLETED", "APP_OPENED", "CONTRIBUTION")),
    Mix("every fifth late", ("LESSON_COMPLETED", "WORKOUT_COMPLETED"), late_every=5),
    Mix("every fifth sent twice", ("LESSON_COMPLETED", "CHECK_IN"), again_every=5),
)


def crowd(events: int, seed: int = 7) -> list[tuple[str, int]]:
    """Return users with their numbers of events: most have one, a few have many (a Pareto law)."""
    chance = random.Random(seed)
    counts: list[tuple[str, int]] = []
    while events > 0:
        number = min(events, int(chance.paretovariate(1.1)))
        counts.append((str(uuid5(NAMESPACE_OID, f"crowd {len(counts)}")), number))
        events -= number
    return counts


def _body(user: str, occurred: datetime, kind: str = KIND) -> Body:
    return {
        "user_id": user,
        "idempotency_key": str(uuid5(NAMESPACE_OID, f"{user} {occurred} {kind}")),
        "event_type": kind,
        "occurred_at": occurred.isoformat(),
        "timezone": "Europe/Berlin",
        "source": "app",
        "properties": {"lesson": "geometry-12", "score": 87},
    }


def record(number: int, image: Body) -> Record:
    """Return a stream record of a stored event, given as a DynamoDB item."""
    return {"eventName": "INSERT", "dynamodb": {"SequenceNumber": f"{number:021}", "NewImage": image}}
