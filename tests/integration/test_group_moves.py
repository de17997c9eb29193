"""Leaves move between roots: whoever dies, and whatever comes in between, each group is what its events say."""

from collections.abc import Iterable, Iterator

import pytest

from rules.days import DAY
from rules.leads.feature_items import FeatureItem
from rules.leads.lead_events import LeadEvent, groups_of
from rules.leads.memory import MemoryEntry
from tests.support.engine import Engine
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Crash, Leads, Requests, message


@pytest.fixture
def leads(engine: Engine, request: pytest.FixtureRequest) -> Leads:
    return Leads(engine.own_client("dynamodb"), request.node.name)


@pytest.mark.parametrize("change", [("ab",), ("a", "b")], ids=["merged", "parted"])
def test_a_process_that_dies_at_any_write_of_a_change_leaves_what_others_get_right(
    leads: Leads, change: tuple[str, ...]
) -> None:
    """Events come in between, and the change comes again."""
    requests, place, was_crash = Requests(leads.client), 0, True
    while was_crash:
        place += 1
        one, two = f"{place}a", f"{place}b"
        groups = [[f"{place}{each}" for each in group] for group in change]
        events = [
            leads.event(10 * place + n, "purchase_completed", START - n * DAY, (one, two)[n % 2])
            for n in range(5)
        ]
        leads.store(events)
        for each in events[:2]:
            leads.both(each)
        if len(change) > 1:
            leads.both(leads.change(100 * place, [one, two]))
        told = leads.change(100 * place + 1, *groups)
        requests.take()
        requests.die_at, requests.after = (place + 1) // 2, place % 2 == 0
        try:
            leads.memory(told)
            leads.feature(told)
            was_crash = False
        except Crash:
            pass
        requests.take()
        for each in events[2:4]:
            leads.both(each)
        for each in (told, events[4]):
            leads.feature(each)
            leads.memory(each)
        for group in groups:
            leads.check(*group)
    assert place > 6


def test_an_event_stored_while_its_leaf_moves_is_counted_once_and_found(leads: Leads) -> None:
    """Stored before the move and announced after it, or noted at the former root."""
    own, theirs, late = (
        leads.event(n, "purchase_completed", START - n * DAY, each) for n, each in enumerate("abb")
    )
    leads.store([own, theirs])
    leads.both(own)
    leads.both(leads.change(1, "ab"))
    leads.store([late])
    leads.both(leads.change(2, "a", "b"))
    leads.both(late)
    leads.check("a")
    leads.check("b")
    leads.both(leads.change(3, "ab"))
    leads.both(late)
    leads.check("a", "b")


def test_a_leaf_that_leaves_between_two_reads_is_not_counted_at_its_former_root(
    leads: Leads, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, theirs, late = (
        leads.event(n, "purchase_completed", START - n * DAY, each) for n, each in enumerate("abb")
    )
    leads.store([own, theirs])
    leads.both(leads.change(1, "ab"))
    leads.store([late])
    parted, get = leads.change(2, "a", "b"), leads.features.get

    def overtaken(lead: str) -> FeatureItem | None:
        found = get(lead)
        monkeypatch.undo()
        leads.both(parted)
        leads.both(own)
        return found

    monkeypatch.setattr(leads.features, "get", overtaken)
    leads.feature_processor.handle({**message(late), "root_id": leads.leaf("a")}, leads.now)
    leads.both(late)
    leads.check("a")
    leads.check("b")


def test_what_a_leaf_brings_while_it_leaves_is_not_remembered_of_its_former_root(
    leads: Leads, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [
        leads.event(n, "preference_stated", START, which, preferences={which: "1"})
        for n, which in enumerate("ab")
    ]
    leads.store(events)
    for each in events:
        leads.both(each)
    merged, parted, join = leads.change(1, "ab"), leads.change(2, "a", "b"), leads.memories.join

    def overtaken(root: str, entries: Iterable[MemoryEntry]) -> None:
        monkeypatch.undo()
        leads.both(parted)
        join(root, entries)

    monkeypatch.setattr(leads.memories, "join", overtaken)
    leads.memory(merged)
    leads.feature(merged)
    leads.check("a")
    leads.check("b")


def test_what_is_built_anew_without_a_leaf_that_comes_meanwhile_is_not_written(
    leads: Leads, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [leads.event(n, "purchase_completed", START - n * DAY, which) for n, which in enumerate("abc")]
    leads.store(events)
    for each in (*events, leads.change(1, "ab")):
        leads.both(each)
    merged, members = leads.change(2, "ac"), leads.features.members

    def overtaken(root: str, asked: Iterable[str]) -> set[str]:
        found = members(root, asked)
        monkeypatch.undo()
        leads.both(merged)
        return found

    monkeypatch.setattr(leads.features, "members", overtaken)
    leads.feature_processor.handle({"rebuild": {"leads": [leads.leaf("a")]}}, leads.now)
    leads.check("a", "b", "c")


def test_memory_that_is_built_while_a_leaf_leaves_is_built_again(
    leads: Leads, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [
        leads.event(n, "preference_stated", START, which, preferences={which: "1"})
        for n, which in enumerate("ab")
    ]
    leads.store(events)
    for each in events:
        leads.both(each)
    merged, parted, of_person = leads.change(1, "ab"), leads.change(2, "a", "b"), leads.people.of_person
    leads.topology.set(*groups_of(merged))  # and then the process dies: memory has nothing of the leaf

    def overtaken(item: FeatureItem) -> Iterator[LeadEvent]:
        found = list(of_person(item))
        monkeypatch.undo()
        leads.both(parted)
        return iter(found)

    monkeypatch.setattr(leads.people, "of_person", overtaken)
    leads.group.rebuild(leads.leaf("a"), leads.now)
    leads.check("a")
    leads.check("b")


@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2), (2, 1, 0)])
def test_changes_come_in_any_order(leads: Leads, order: tuple[int, ...]) -> None:
    events = [leads.event(n, "purchase_completed", START - n * DAY, which) for n, which in enumerate("abc")]
    leads.store(events)
    changes = [leads.change(1, "ab"), leads.change(2, "a", "b"), leads.change(3, "ac")]
    for place in order:
        leads.both(changes[place])
    for each in events:
        leads.both(each)
    leads.check("a", "c")
    leads.check("b")
