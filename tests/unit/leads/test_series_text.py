"""A series that has changed at its ends is written from the text of before, and as if it were written anew."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from rules.days import DAY
from rules.leads.lead_events import LeadEvent
from rules.leads.series import (
    EMPTY_SERIES,
    SERIES,
    Series,
    add_contribution,
    build_state,
    contributions,
    decode_series,
    encode_series,
    reencode_series,
)
from tests.support.examples import examples
from tests.support.lead_event_strategies import START, histories, lead_event

Days = dict[int, tuple[int, int]]
sums = st.tuples(st.sampled_from((1, 1, 1, 2, 0, -1)), st.sampled_from((0, 5, -7, 1177)))


@st.composite
def before_and_after(draw: st.DrawFn) -> tuple[Days, Days]:
    """Sums by date, and the same with dates dropped, added, changed and moved wherever, most often at the ends."""
    dates = draw(st.lists(st.integers(738_000, 738_040), unique=True, max_size=12))
    before: Days = {day: draw(sums) for day in sorted(dates)}
    after = dict([*before.items()][draw(st.integers(0, 3)) : len(before) - draw(st.integers(0, 1))])
    wherever = st.integers(738_000, 738_050)
    at_the_ends = st.sampled_from((max(after), max(after), min(after))) if after else wherever
    for day in draw(st.lists(st.one_of(at_the_ends, wherever), max_size=2)):
        after[day] = draw(sums)
    if after and draw(st.integers(0, 3)) == 0:
        moved = draw(st.sampled_from(sorted(after)))
        after.setdefault(moved + 1, after.pop(moved))
    return before, dict(sorted(after.items()))


@settings(max_examples=examples(400))
@given(before_and_after())
def test_what_is_written_from_the_text_of_before_is_what_would_be_written(days: tuple[Days, Days]) -> None:
    before, after = (replace(EMPTY_SERIES, days=each) for each in days)
    assert reencode_series(after, before, encode_series(before)) == encode_series(after)


@settings(max_examples=examples(80))
@given(histories(), st.integers(0, 500))
def test_a_text_that_is_carried_from_event_to_event_is_right(events: list[LeadEvent], days: int) -> None:
    texts = {each: encode_series(EMPTY_SERIES) for each in SERIES}
    for number, event in enumerate(sorted(events, key=lambda each: each.occurred_at)):
        as_of = max(START - 900 * DAY, event.occurred) + days * number * timedelta(hours=1)
        for each, contribution in contributions(event).items():
            before = decode_series(texts[each])
            if (after := add_contribution(before, each, contribution, as_of, has_note=True)) is not None:
                texts = {**texts, each: reencode_series(after, before, texts[each])}
                assert texts[each] == encode_series(after)
                assert decode_series(texts[each]) == after


def test_an_event_of_the_newest_date_or_a_later_one_writes_no_other_date() -> None:
    (before, *_), newest = (
        build_state([lead_event(n, at=START - n * DAY) for n in range(9)], START).values(),
        START.toordinal(),
    )
    odd = encode_series(before).replace(",1177,1177,", ",1177,ODD,", 1)

    def written(days: Days) -> str:
        return reencode_series(Series(days=days), before, odd)

    assert "ODD" in written(before.days | {newest: (2, 5)})
    assert "ODD" in written(before.days | {newest + 1: (1, 5)})
    dropped = {day: each for day, each in before.days.items() if day > min(before.days)}
    assert "ODD" in written(dropped | {newest + 1: (1, 5)})
    assert "ODD" not in written(before.days | {newest - 1: (2, 5)})
