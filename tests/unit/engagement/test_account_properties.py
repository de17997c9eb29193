"""Any order, any split and any crash between two writes lead to one account (rule 7)."""

from datetime import UTC, date, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from rules.engagement.account import days_with_entries, profile_with_entries
from rules.engagement.events import Event
from rules.engagement.ledger import Draft
from tests.support.account_world import World, grant, revoke
from tests.support.engagement_strategies import TYPES, bases, event, near
from tests.support.examples import examples


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[Event], list[Draft]]:
    """Events of one user around a base, and freezes granted or revoked around it."""
    base = draw(st.one_of(bases, st.just(date(2011, 12, 24))))
    picks = draw(
        st.lists(
            st.tuples(
                near(base, 12),
                st.sampled_from(TYPES),
                st.sampled_from(["UTC", "Pacific/Apia", "-07:00"]),
                st.sampled_from([5, 10, 15, 30]),
                st.integers(0, 23),
            ),
            min_size=1,
            max_size=14,
        )
    )
    events = [
        event(
            str(number),
            day,
            kind,
            zone,
            points=points,
            at=datetime(day.year, day.month, day.day, hour, tzinfo=UTC),
        )
        for number, (day, kind, zone, points, hour) in enumerate(picks)
    ]
    commands = []
    for day in draw(st.lists(near(base, 12), max_size=3)):
        commands.append(grant(day))
        if draw(st.integers(0, 3)) == 0:
            commands.append(revoke(day + timedelta(days=draw(st.integers(0, 5)))))
    return events, commands


def cuts(data: st.DataObject, events: list[Event]) -> list[list[Event]]:
    order = data.draw(st.permutations(events))
    parts: list[list[Event]] = [[]]
    for each in order:
        if data.draw(st.booleans()):
            parts.append([])
        parts[-1].append(each)
    return [part for part in parts if part]


@settings(max_examples=examples(120))
@given(batches(), st.data())
def test_any_split_and_order_of_events_and_commands_give_one_answer(
    batch: tuple[list[Event], list[Draft]], data: st.DataObject
) -> None:
    events, commands = batch
    whole = World()
    whole.apply(events, commands)
    whole.check()
    steps: list[tuple[list[Event], list[Draft]]] = [(part, []) for part in cuts(data, events)]
    for command in commands:
        place = data.draw(st.integers(0, len(steps)))
        steps.insert(place, ([], [command]))
    split = World()
    for part, some in steps:
        split.apply(part, some)
        split.check()
    assert split.answer() == whole.answer()


@settings(max_examples=examples(120))
@given(batches(), st.data())
def test_a_process_that_dies_after_any_write_leaves_nothing_that_the_next_does_not_finish(
    batch: tuple[list[Event], list[Draft]], data: st.DataObject
) -> None:
    events, commands = batch
    whole = World()
    whole.apply(commands=commands)
    whole.apply(events)
    broken = World()
    broken.apply(commands=commands, writes=data.draw(st.integers(1, 3)))
    for part in cuts(data, events):
        broken.apply(part, writes=data.draw(st.integers(0, 6)))
        broken.apply(part, writes=data.draw(st.integers(0, 6)))
        broken.apply(part)
    broken.apply()
    broken.check()
    assert broken.answer() == whole.answer()


@given(batches(), st.data())
def test_absorbing_pending_entries_twice_counts_them_once(
    batch: tuple[list[Event], list[Draft]], data: st.DataObject
) -> None:
    events, commands = batch
    world = World()
    entries = world.apply(events, commands, writes=1).entries
    days = days_with_entries({}, entries)
    assert days_with_entries(days, entries) == {}
    assert days_with_entries(days, entries[: data.draw(st.integers(0, len(entries)))]) == {}
    profile = profile_with_entries(world.profile, entries)
    newer = [entry for entry in entries if profile.head and entry.created_at > profile.head.created_at]
    assert newer == []
    assert profile_with_entries(profile, newer) is profile
    cut = data.draw(st.integers(0, len(entries)))
    halves = profile_with_entries(profile_with_entries(world.profile, entries[:cut]), entries[cut:])
    assert (halves.total_points, halves.head, halves.cover) == (
        profile.total_points,
        profile.head,
        profile.cover,
    )
    first = days_with_entries({}, entries[:cut])
    assert {**first, **days_with_entries(first, entries)} == days
