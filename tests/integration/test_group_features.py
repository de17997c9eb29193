"""Memory and features of leads that are merged and parted: each group is what its leaves' events say."""

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from adapters.platform.tables import Unprocessed
from rules.days import DAY
from rules.leads.memory import derive_entries
from tests.support.engine import Engine
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Crash, Leads, Requests, message


@pytest.fixture
def leads(engine: Engine, request: pytest.FixtureRequest) -> Leads:
    return Leads(engine.own_client("dynamodb"), request.node.name)


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


@pytest.mark.parametrize("seed", range(3))
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
