"""Memory and features of leads that are merged and parted, whoever dies, and what the next leaf of many costs."""

import random
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from adapters.leads.lead_event_store import EventPage
from adapters.platform.tables import Unprocessed
from rules.days import DAY
from rules.leads.feature_items import FeatureItem
from rules.leads.lead_events import SORT_KEY, LeadEvent, groups_of
from rules.leads.memory import MemoryEntry, derive_entries
from tests.support.effort import effort
from tests.support.items_read import ItemsRead
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Crash, Leads, Requests, message


@pytest.mark.parametrize("kinds", [("memory", "feature"), ("feature", "memory")])
def test_merge_and_unmerge_restore_exactly(leads: Leads, kinds: tuple[str, str]) -> None:
    events = leads.some(14, 2, ("a", "b"))
    only_b = leads.event(90, "preference_stated", START, "b", preferences={"only": "b"})
    leads.store([*events, only_b])
    for event in [*events, only_b]:
        leads.both(event)
    for alone in "ab":
        leads.check(alone)
    before = {which: (leads.root(which).features, leads.memories.all_of(leads.leaf(which))) for which in "ab"}

    def tell(change: Any) -> None:
        for kind in kinds:
            getattr(leads, kind)(change)

    merged = leads.change(1, "ab")
    tell(merged)
    leads.check("a", "b")
    absorbed = leads.root("b")
    assert (absorbed.merged_into, absorbed.features, absorbed.inputs) == (leads.leaf("a"), {}, None)
    late = leads.event(
        91, "purchase_completed", START, "b", amount_minor=100, products=[{"product_id": "late"}]
    )
    leads.store([late])
    leads.both(late)
    leads.check("a", "b")
    tell(merged)
    leads.check("a", "b")
    tell(leads.change(2, "a", "b"))
    leads.check("a")
    leads.check("b")
    assert leads.root("a").features == before["a"][0]
    assert leads.memories.all_of(leads.leaf("a")) == before["a"][1]
    tell(merged)  # an older change that comes late
    leads.check("a")
    leads.check("b")
    gone = leads.client.get_item(
        TableName="Memory",
        Key={"lead_organization_id": {"S": leads.leaf("a")}, "memory_type#key": {"S": "preference#only"}},
    )["Item"]
    assert gone["value"] == {"S": "b"}, "expired and not deleted"
    assert int(gone["expires_at"]["N"]) <= leads.now.timestamp()


@pytest.mark.parametrize("seed", range(effort(2, soak=3)))
def test_changes_among_events_in_flight(leads: Leads, seed: int) -> None:
    """Whatever meets: at the end, each group is what its leaves' events say."""
    chance = random.Random(seed)
    events = leads.some(16, seed, ("a", "b", "c"))
    leads.store(events)
    # Told of all leaves, as before, or only of those that moved.
    parted = ("ca", "b") if seed == 0 else ("c", "b")
    changes = [
        leads.change(1, "ab"), leads.change(2, "cab"), leads.change(3, *parted), leads.change(4, "ac"),
        leads.change(5, "a", "c"), leads.change(6, "bc"),
    ]  # fmt: skip
    first, rest = events[:4], events[4:]
    for event in first:
        leads.both(event)
    work = [
        (each, process) for each in [*rest, *changes, *rest[:5]] for process in (leads.memory, leads.feature)
    ]
    chance.shuffle(work)

    def attempt(pair: Any) -> Any:
        event, process = pair
        try:
            process(event)
        except Exception:
            return pair
        return None

    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            work = [pair for pair in pool.map(attempt, work) if pair]
            if not work:
                break
    assert not work
    leads.check("a")
    leads.check("b", "c")


def test_events_for_a_merged_lead_that_was_alone_when_they_were_stored(leads: Leads) -> None:
    """Memory is joined where the hint says before it is asked where it belongs: neither is left wrong."""
    events = [leads.event(n, "preference_stated", START, which) for n, which in enumerate("ab")]
    leads.store(events)
    leads.both(leads.change(1, "ab"))
    for event in events:  # root_id says that each is alone
        leads.both(event)
    leads.check("a", "b")


@pytest.mark.parametrize("kind", ["memory", "feature"])
def test_while_a_root_has_moved_and_its_leaf_has_not_the_leafs_events_wait(
    leads: Leads, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Else an event could be added to a root that is none any more."""
    monkeypatch.setattr("adapters.leads.feature_store.pauses", range)
    monkeypatch.setattr("adapters.leads.feature_store.LEAVES_MAX", 2)
    events = [leads.event(n, "purchase_completed", START, which) for n, which in enumerate("abz")]
    leads.store(events)
    leads.both(leads.change(1, "ab"))
    leads.both(events[0])
    moved = leads.change(2, "zab")
    requests = Requests(leads.client)
    requests.die_at, requests.after = 1, True
    with pytest.raises(Crash):
        leads.feature(moved)
    requests.take()
    assert (leads.root("a").merged_into, leads.root("b").merged_into) == (leads.leaf("z"), leads.leaf("a"))
    with pytest.raises(Unprocessed):
        getattr(leads, kind)(events[1])
    leads.both(moved)
    leads.both(events[1])
    leads.check("z", "a", "b")


def test_evidence_of_a_departed_leaf_that_comes_late_is_undone(leads: Leads) -> None:
    own = leads.event(1, "campaign_sent", START - 9 * DAY, "a", campaign_id="c")
    theirs = leads.event(2, "campaign_opened", START - 8 * DAY, "b", campaign_id="c")
    leads.store([own, theirs])
    leads.both(leads.change(1, "ab"))
    leads.both(leads.change(2, "a", "b"))
    hinted = {**message(theirs), "root_id": leads.leaf("a")}
    leads.memories.join(leads.leaf("a"), derive_entries(theirs))  # the process died here
    leads.feature(own)
    assert leads.root("a").features["campaign_ignored"] == 1
    leads.memory_processor.handle(hinted, leads.now)
    leads.both(own)
    leads.feature(theirs)
    leads.check("a")
    leads.check("b")


@pytest.mark.parametrize(
    "change",
    [("a", "b"), ("ab",)][: effort(1, soak=2)],
    ids=" ".join,
)
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
        requests.die_at = place  # before this write, and so after the one before it
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
    assert place > 3


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


DEVICES = (10, 30)


def of_device(leads: Leads, which: str, number: int) -> list[LeadEvent]:
    at = START - number % 60 * DAY
    made = [
        leads.event(10 * number, "page_viewed", at, which, category=f"c{number % 7}"),
        leads.event(10 * number + 1, "purchase_completed", at, which, amount_minor=number),
    ]
    # A campaign goes to addresses and numbers, of which a person has few.
    sent = leads.event(10 * number + 2, "campaign_sent", START - 5 * DAY, which, campaign_id=f"{number % 3}")
    return [*made, sent] if number < 5 else made


def test_the_next_device_costs_the_same_whatever_there_is(leads: Leads) -> None:
    """And the group is what its events say: features, memory, and an event that comes again."""
    requests, read, costs = Requests(leads.client), ItemsRead(leads.client), list[tuple[int, int, int]]()
    for place, size in enumerate(DEVICES):
        devices = [f"person{place}-{number}" for number in range(size + 1)]
        events = {which: of_device(leads, which, number) for number, which in enumerate(devices)}
        leads.store(each for some in events.values() for each in some)
        for each in (*events[devices[0]], *events[devices[-1]]):
            leads.both(each)
        before, change = (
            leads.change(2 * place + 1, devices[:-1]),
            leads.change(2 * place + 2, devices[::size]),
        )
        leads.both(before)
        requests.take()
        read.take()
        leads.feature(change)
        leads.memory(change)
        bytes_ = sum(len(str(each)) for each in requests.updates)
        costs.append((sum(requests.take()), read.take(), bytes_))
        leads.check(*devices)
        for each in (*events[devices[0]], *events[devices[size // 2]], *events[devices[-1]]):
            leads.both(each)
        leads.check(*devices)
    (few, many) = costs
    assert many[0] <= few[0] + 4, "a key more or less of memory"
    assert many[1] <= few[1] + 4
    assert max(few[:2]) <= 40, costs
    assert many[2] <= 1.5 * few[2], "what is written does not name the others"


def test_a_change_that_took_a_leaf_out_and_comes_after_the_one_that_took_it_back(leads: Leads) -> None:
    """The later change did not touch the leaf's own item, because the root named it already."""
    events = [leads.event(n, "purchase_completed", START, which) for n, which in enumerate("abc")]
    leads.store(events)
    for event in events:
        leads.both(event)
    first, parted, again = leads.change(1, "ab"), leads.change(2, "a", "b"), leads.change(3, "abc")
    for change in (first, again, parted):
        leads.memory(change)
        leads.feature(change)
    leads.check("a", "b", "c")
    late = leads.event(9, "purchase_completed", START, "b", amount_minor=3)
    leads.store([late])
    leads.both(late)
    leads.check("a", "b", "c")


@pytest.mark.parametrize(
    "kind",
    ["page_viewed", ""][: effort(1, soak=2)],
)
def test_a_page_of_a_person_reads_the_same_whatever_leaves_there_are(leads: Leads, kind: str) -> None:
    """And pages go over all events once, in order, whatever leaf they are of; those of a parted leaf are not there."""
    limit, read, costs, rebuilt = 10, ItemsRead(leads.client), list[int](), list[int]()
    requests = Requests(leads.client)
    for size in DEVICES:
        random = Random(size)
        leaves = [f"{size}leaf{number}" for number in range(size)]
        events = [
            leads.event(
                10_000 * size + number,
                "page_viewed",
                START - timedelta(seconds=random.randrange(10**6)),
                leaves[number % size],
            )
            for number in range(6 * size)
        ]
        *late, gone = events[: size + 1]
        leads.store(events[size:])
        for each in (
            leads.change(100 * size, leaves),
            leads.change(100 * size + 1, leaves[:1], [leaves[size // 2]]),
        ):
            leads.feature(each)
        leads.store([*late, gone])
        theirs = leads.leaf(leaves[size // 2])
        expected = sorted(
            (
                each.sort_key
                for each in leads.stored
                if each.lead_organization_id.startswith(leads.leaf(f"{size}leaf"))
                and each.lead_organization_id != theirs
                and kind in ("", each.event_type)
            ),
            reverse=True,
        )
        root, until, seen = leads.root(leaves[0]), "~", list[str]()
        assert not root.pending
        requests.take()
        leads.feature_processor.handle({"rebuild": {"leads": [leads.leaf(leaves[0])]}}, leads.now)
        rebuilt.append(sum(requests.take()))
        leads.check_features(*(each for each in leaves if leads.leaf(each) != theirs))
        root = leads.root(leaves[0])
        read.take()
        requests.take()
        for _ in range(4):
            rows = leads.people.newest(root, leads.leaf(leaves[1]), EventPage(kind, "0", until, limit))
            seen += [row[SORT_KEY] for row in rows]
            costs += [read.take(), sum(requests.take())]
            until = seen[-1]
        assert seen == expected[: 4 * limit]
    assert max(costs[::2]) <= 8 * (limit + 1), costs
    assert max(costs[1::2]) <= 10, costs
    assert max(rebuilt) <= 20, "a read for each hundred events, and not a query for each leaf"
