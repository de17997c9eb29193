"""A change of identity is told in events of a bounded size."""

import json
from datetime import UTC, datetime
from uuid import UUID

from adapters.leads.identity_store import IdentityChange
from ingest.leads.lead_consumer import MOVES_MAX, change_events
from rules.leads.lead_events import Group, groups_of

NOW = datetime(2026, 3, 10, tzinfo=UTC)
COLUMN_BYTES = 65_535  # of a text in the warehouse


def change(*groups: Group, kind: str = "merged") -> IdentityChange:
    return IdentityChange(7, "acme", kind, NOW, groups, {"by": "ann"})


def test_a_change_of_thousands_of_leaves_is_told_in_parts_that_everybody_takes() -> None:
    leaves = tuple(str(UUID(int=number)) for number in range(3 * MOVES_MAX))
    events = list(change_events(change(Group(leaves[0], leaves)), NOW))
    assert [each.external_event_id for each in events] == ["7", "7/2", "7/3"]
    assert len({each.id for each in events}) == 3
    assert max(len(json.dumps(each.payload)) for each in events) < COLUMN_BYTES / 2
    told = [groups_of(each) for each in events]
    assert {number for number, _ in told} == {7}
    assert {leaf for _, groups in told for group in groups for leaf in group.leaves} == set(leaves)
    assert {group.root for _, groups in told for group in groups} == {leaves[0]}


def test_a_small_change_is_one_event_that_tells_it_as_it_is() -> None:
    parted = change(Group("a", ("a",)), Group("b", ("b", "c")), kind="unmerged")
    (event,) = change_events(parted, NOW)
    assert groups_of(event) == (7, parted.groups)
    assert (event.event_type, event.payload["by"]) == ("leads_unmerged", "ann")
