"""Consumers of one shard share what is read of it, whatever their pace."""

from itertools import count

from hypothesis import example, given, settings
from hypothesis import strategies as st

from local.cloud.shard_reader import PAGES_MAX, ShardReader
from local.cloud.streams import Record, sequence_of
from tests.support.deliveries import record
from tests.support.examples import examples


class Shard:
    """A shard in memory. An iterator is the index of the next record; it serves as often as it is asked."""

    def __init__(self, limit: int = 2) -> None:
        self.records: list[Record] = []
        self.limit, self.begun, self.asked = limit, 0, 0
        clock = count(1)
        self.reader = ShardReader(self.begin, self.ask, lambda: float(next(clock)))

    def begin(self, place: str) -> str:
        self.begun += 1
        return str(int(place) + 1 if place else 0)

    def ask(self, iterator: str) -> tuple[list[Record], str | None]:
        self.asked += 1
        found = self.records[int(iterator) :][: self.limit]
        return found, str(int(iterator) + len(found))

    def grow(self, number: int) -> None:
        self.records += [record(len(self.records) + each) for each in range(number)]


class Consumer:
    def __init__(self, shard: Shard) -> None:
        self.shard, self.place, self.seen_at = shard, "", 0.0
        self.got: list[str] = []

    def look(self) -> bool:
        page = self.shard.reader.read(self.place, self.seen_at)
        assert page.polled_at >= self.seen_at
        self.seen_at = page.polled_at
        self.got += map(sequence_of, page.records)
        self.place = self.got[-1] if self.got else ""
        return bool(page.records)


def test_what_one_consumer_has_read_the_other_gets_without_a_call() -> None:
    shard = Shard()
    shard.grow(4)
    first, second = Consumer(shard), Consumer(shard)
    assert [first.look() for _ in range(3)] == [second.look() for _ in range(3)] == [True, True, False]
    assert first.got == second.got == ["0", "1", "2", "3"]
    assert (shard.asked, shard.begun) == (3, 1)


def test_that_there_is_nothing_is_known_only_until_one_asks_again() -> None:
    shard = Shard()
    first, second = Consumer(shard), Consumer(shard)
    assert not first.look()
    assert not second.look()
    assert shard.asked == 1
    shard.grow(1)
    assert second.look()
    assert first.look()
    assert shard.asked == 2


def test_who_is_far_behind_reads_for_itself() -> None:
    shard = Shard(limit=1)
    shard.grow(PAGES_MAX + 3)
    first, second = Consumer(shard), Consumer(shard)
    while first.look():
        pass
    while second.look():
        pass
    assert second.got == first.got
    assert shard.begun == 2


def test_an_iterator_that_fails_is_not_used_again() -> None:
    shard = Shard()
    shard.grow(3)
    consumer = Consumer(shard)
    consumer.look()
    real, shard.reader.ask = shard.reader.ask, lambda iterator: 1 / 0  # type: ignore[assignment,return-value]
    try:
        consumer.look()
    except ZeroDivisionError:
        shard.reader.ask = real
    assert consumer.look()
    assert (consumer.got, shard.begun) == (["0", "1", "2"], 2)


@settings(max_examples=examples(100))
@example([(1,), 0, (6,), 0, 0, (9,), 0, 0, 0, (9,)], 4)  # one is behind, and gets an older page
@given(st.lists(st.one_of(st.integers(0, 2), st.tuples(st.integers(1, 9))), max_size=80), st.integers(1, 4))
def test_each_consumer_gets_every_record_once_and_in_order(steps: list[int | tuple[int]], limit: int) -> None:
    shard = Shard(limit)
    consumers = [Consumer(shard) for _ in range(3)]
    for step in steps:
        if isinstance(step, int):
            consumers[step].look()
        else:
            shard.grow(step[0])
    for each in consumers:
        while each.look() or each.look():
            pass
        assert each.got == [sequence_of(one) for one in shard.records]
