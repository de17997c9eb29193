"""Places in a stream: an order of all, and `is_beyond` only within one stream."""

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from rules.engagement.events import is_beyond, newer_position, newest_position

labels = st.sampled_from(["2026-03-01T00:00:00.000", "2026-03-09T00:00:00.000"])
# As long as DynamoDB's may be: 21 to 40 digits. So they are no texts to compare.
numbers = st.integers(10**20, 10**40 - 1)
places = st.one_of(st.just(""), st.builds("{}/{}".format, labels, numbers))


@given(st.lists(places, min_size=1))
def test_the_newest_does_not_depend_on_the_order(some: list[str]) -> None:
    best = reduce(newer_position, some)
    assert best == reduce(newer_position, sorted(some)) == reduce(newer_position, some[::-1])
    assert not any(is_beyond(each, best) for each in some)
    assert newest_position(some) == (best if all(some) else "")


@given(labels, numbers, st.integers(1, 10**21))
def test_a_later_record_is_beyond_an_earlier_one_of_its_stream(label: str, number: int, more: int) -> None:
    assert is_beyond(f"{label}/{number + more}", f"{label}/{number}")
    assert not is_beyond(f"{label}/{number}", f"{label}/{number}")
    assert not is_beyond(f"{label}/{number}", f"{label}/{number + more}")


@given(numbers, numbers)
def test_another_stream_s_record_is_never_beyond(one: int, other: int) -> None:
    old, new = f"2026-03-01T00:00:00.000/{one}", f"2026-03-09T00:00:00.000/{other}"
    assert not is_beyond(new, old)
    assert not is_beyond(old, new)
    assert newer_position(old, new) == new
    assert not is_beyond("", old)
    assert not is_beyond(new, "")
