"""A question told to a million phones: how long, for how much, and whether all classes come along.

Nothing here talks to AWS. The read and write units of a person told are measured (local/plan/units.json), the
pages and partitions are those of the code, and a partition of an index takes 1,000 write units a second. How
long a call takes on AWS is an assumption, named below. Beside it is the former way: one function that went
through the classes one after the other, six messages at a time, and was cut off after 15 minutes.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil

from bench.figure import Figure
from local.plan.measured_units import load_units, minus
from processors.questions.fan_out import PAGE_SIZE
from rules.questions.notifications import INTERVALS, LISTENER_SHARDS

SUBSCRIBERS = 1_000_000
PARTITION_UNITS_A_SECOND = 1_000
WRITERS, WRITERS_BEFORE, SECONDS_BEFORE = 16, 6, 10 * 900
# Assumed: a claim and a settling, transactions of 20 ms each; a publish of 30 ms; reading a page, 60 ms.
SECONDS_A_PERSON, SECONDS_A_PAGE = 0.07, 0.06
DOLLARS_A_WRITE, DOLLARS_A_READ, DOLLARS_A_PUSH = 0.625e-6, 0.125e-6, 0.50e-6


@dataclass
class Shard:
    """One chain of pages: people left by class, in its own partitions of the index."""

    left: Counter[int]
    units_a_person: float
    seconds: float = 0.0
    told: list[tuple[float, int]] = field(default_factory=list)

    def page(self) -> None:
        """Tell a page: as many of each class, for as long as the slowest limit takes."""
        classes = [each for each in INTERVALS if self.left[each]]
        some = {each: min(self.left[each], max(1, PAGE_SIZE // len(classes))) for each in classes}
        people = sum(some.values())
        # A class has a partition of its own; open claims of all classes share one.
        partitions = [*some.values(), people]
        throttled = max(partitions) * self.units_a_person / 2 / PARTITION_UNITS_A_SECOND
        self.seconds += max(ceil(people / WRITERS) * SECONDS_A_PERSON + SECONDS_A_PAGE, throttled)
        for each, number in some.items():
            self.left[each] -= number
            self.told += [(self.seconds, each)] * number


def run() -> Iterator[Figure]:
    """Yield the figures, for people spread over all classes, and for all in one."""
    units = load_units()
    size = units.sizes["question.told"][0]
    person = minus(units.paths[f"question.told.{size}"], units.paths["question.asked"])
    writes, reads = (
        sum(count for name, count in person["FanOutFunction"].items() if name.startswith(kind)) / size
        for kind in ("write.", "read.")
    )
    index = person["FanOutFunction"]["write.Subscriptions/ByLastNotified"] / size
    yield Figure("write units to tell a person", writes, "<=", 16, f"{index:g} of them in the index")
    dollars = SUBSCRIBERS * (writes * DOLLARS_A_WRITE + reads * DOLLARS_A_READ + DOLLARS_A_PUSH)
    yield Figure("dollars to tell a million", dollars, "<=", 20)
    for name, weights in (("all classes", [1] * len(INTERVALS)), ("one class", [0, 0, 0, 1] + [0] * 7)):
        yield from _figures(name, weights, index)
    before = SUBSCRIBERS / (WRITERS_BEFORE / SECONDS_A_PERSON)
    reached = min(1.0, SECONDS_BEFORE / before)
    yield Figure("former way: share told when it gave up", reached, detail=f"{before:,.0f} s needed")


def _figures(name: str, weights: list[int], index_units: float) -> Iterator[Figure]:
    chance = random.Random(1)
    people = Counter(zip(chance.choices(INTERVALS, weights, k=SUBSCRIBERS), _shards(chance), strict=True))
    shards = [
        Shard(Counter({each: people[each, shard] for each in INTERVALS}), index_units)
        for shard in range(LISTENER_SHARDS)
    ]
    for shard in shards:
        while shard.left.total():
            shard.page()
    seconds = max(each.seconds for each in shards)
    yield Figure(
        f"minutes to tell a million, {name}", seconds / 60, "<=", 60, f"{SUBSCRIBERS / seconds:,.0f}/s"
    )
    told = sorted(moment for shard in shards for moment in shard.told)
    assert len(told) == SUBSCRIBERS
    first = Counter(each for _, each in told[: SUBSCRIBERS // 10])
    fair = SUBSCRIBERS / 10 / sum(1 for each in weights if each)
    least = min(first[each] for each, weight in zip(INTERVALS, weights, strict=True) if weight) / fair
    yield Figure(f"least share of a class in the first tenth, {name}", least, ">=", 0.9)


def _shards(chance: random.Random) -> list[int]:
    return chance.choices(range(LISTENER_SHARDS), k=SUBSCRIBERS)
