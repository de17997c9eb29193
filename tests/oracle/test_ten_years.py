"""Ten simulated years of one user: she syncs once in six weeks, loses answers, moves, pauses, spends, and comes late."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from tests.oracle import plans
from tests.oracle.machines import Stream
from tests.oracle.rounds import played
from tests.support.effort import only_soak
from tests.support.engine import Engine

START = datetime(2026, 1, 1, 18, tzinfo=UTC)
DAYS, SYNC, RUN = 3_652, 42, 11
HOMES = ("Europe/Berlin", "America/New_York", "Asia/Tokyo")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def synced(chance: random.Random, day: int) -> plans.Post:
    """What a producer sends for six weeks: an event on most dates of a run, shuffled, and one of them twice."""
    home = HOMES[day * len(HOMES) // DAYS]
    bodies = []
    for number in range(day, day + RUN):
        if chance.random() < 0.9:
            when = START + (number - RUN) * DAY - chance.randrange(8) * HOUR
            kind = chance.choice(("CHECK_IN", "CONTRIBUTION"))
            sent = {"idempotency_key": f"d{number}", "event_type": kind, "timezone": home}
            bodies.append({**sent, "occurred_at": f"{when:%Y-%m-%dT%H:%M:%SZ}"})
    bodies += chance.sample(bodies, k=1)
    chance.shuffle(bodies)
    return plans.Post(tuple(bodies), "producer")


def ten_years() -> plans.Plan:
    chance = random.Random("ten years")
    phases: list[plans.Phase] = []
    late: list[plans.Body] = []
    for day in range(0, DAYS, SYNC):
        post = synced(chance, day)
        late.append(post.bodies[0])
        # One event of each run comes half a year later, where it joins runs.
        bodies = post.bodies[1:] + ((late[-7],) if len(late) > 7 else ())
        actions: list[plans.Action] = [plans.Post(bodies, "producer")]
        place, now = day // SYNC, START + day * DAY
        if place % 3 == 0:
            actions.append(plans.TakeFreeze(f"freeze{day}", "user"))
        if place % 3 == 1:
            actions.append(plans.Redeem(f"mug{day}", 50))
        if place % 9 == 5:
            actions += [plans.Undo(f"mug{day - SYNC}"), plans.Again(3)]
        if place % 9 == 7:
            first = now.date() + 3 * DAY
            actions.append(plans.Pause(first, first + 20 * DAY))
        # A redelivery after six weeks: what is not applied now is applied with the next run.
        drain = chance.random() < 0.8 or day + SYNC >= DAYS
        judge = place == 43 or day + SYNC >= DAYS
        phases.append(plans.Phase(now, tuple(actions), busy=False, drain=drain, judge=judge))
    return plans.Plan(-1, "ten years", "some", False, False, False, tuple(phases), batches=(30,))


@only_soak(
    "tests/oracle/test_rounds.py, of weeks and of archives, and in tests/unit/engagement/test_brought_forward.py "
    "test_whatever_happens_all_answers_are_those_of_a_profile_that_keeps_everything, of years"
)
def test_ten_years_of_one_user(environment: Engine, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    assert played(environment, stream, ten_years(), monkeypatch) == []
