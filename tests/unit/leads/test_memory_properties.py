"""Memory is a join-semilattice of evidence: any order, any repetition, any grouping gives one answer."""

from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.leads.memory_store import entry_attributes, memory_from
from adapters.platform.items import decode_item, encode_item
from rules.days import DAY, stamp
from rules.leads.lead_events import CAMPAIGN_TYPES
from rules.leads.memory import (
    TYPES,
    Evidence,
    MemoryEntry,
    campaign_contact,
    derive_entries,
    entry_of_leaves,
    join_entries,
    memory_entry,
    remembered_entries,
)
from tests.support.examples import examples
from tests.support.lead_event_strategies import START, deliveries, histories


def piece(days: int, number: int, value: str, weight: int, home: str) -> Evidence:
    """As they are: an event's id tells its time, leaf and reaction."""
    at = stamp(START - days * DAY)
    return Evidence(at, f"{at} {number} {home} {value}", value, weight, "ab"[weight % 2], home)


pieces = st.builds(
    piece,
    st.integers(0, 1200),
    st.integers(0, 1),
    st.sampled_from(("-500", "0", "7", "500")),
    st.sampled_from((150, 601, 1000)),
    st.sampled_from(("x", "y")),
)
kinds = st.sampled_from(sorted(TYPES.values(), key=lambda each: each.name))


def entries(kind: Any) -> st.SearchStrategy[MemoryEntry]:
    return st.lists(pieces, min_size=1, max_size=14).map(lambda some: memory_entry(kind, "k", some))


@settings(max_examples=examples(50))
@given(st.data())
def test_joining_is_commutative_associative_and_idempotent(data: st.DataObject) -> None:
    kind = data.draw(kinds)
    a, b, c = (data.draw(entries(kind)) for _ in range(3))
    assert join_entries(a, b) == join_entries(b, a)
    assert join_entries(join_entries(a, b), c) == join_entries(a, join_entries(b, c))
    assert join_entries(a, a) == a
    assert join_entries(join_entries(a, b), b) == join_entries(a, b)
    whole = join_entries(a, b)
    assert Decimal(0) <= whole.confidence <= 1
    assert whole.confidence == whole.confidence.quantize(Decimal("0.001"))


@settings(max_examples=examples(30))
@given(st.data())
def test_any_delivery_gives_what_all_events_give(data: st.DataObject) -> None:
    events = data.draw(histories(leaves=("a", "b")))
    found: dict[str, MemoryEntry] = {}
    for event in data.draw(deliveries(events)):
        for each in derive_entries(event):
            found[each.name] = join_entries(found[each.name], each) if each.name in found else each
    assert found == remembered_entries(events)


@settings(max_examples=examples(30))
@given(st.data())
def test_an_entry_is_read_as_it_was_written(data: st.DataObject) -> None:
    found = data.draw(entries(data.draw(kinds)))
    wire = encode_item({**entry_attributes("x", found), "lead_organization_id": "x", "version": 3})
    name, stored = memory_from(decode_item(wire))
    assert (name, stored.version, stored.entry) == (found.name, 3, found)


@settings(max_examples=examples(30))
@given(st.data())
def test_a_reaction_is_never_evicted(data: st.DataObject) -> None:
    events = data.draw(histories(types=sorted(CAMPAIGN_TYPES), leaves=("a", "b")))
    for leaves in (("a",), ("b",), ("a", "b")):
        ours = [each for each in events if each.lead_organization_id in leaves]
        found = {name: entry_of_leaves(each, leaves) for name, each in remembered_entries(events).items()}
        expected = {name: campaign_contact(each) for name, each in remembered_entries(ours).items()}
        assert {name: campaign_contact(each) for name, each in found.items() if each} == expected
        for name, each in expected.items():
            kinds_met = [e.event_type for e in ours if f"campaign_contact#{e.payload['campaign_id']}" == name]
            assert each.reacted == any(kind != "campaign_sent" for kind in kinds_met)
