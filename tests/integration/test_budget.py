"""The budget: what each path costs is what local/plan/units.json says; a change that makes one dearer shows."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any
from unittest.mock import patch

from adapters.engagement.event_store import EventStore
from bench.counting.desk import desk
from bench.units.budget import (
    ACCEPT,
    NAIVE_BUDGETS,
    PARTS,
    differences,
    measure_all,
    message,
    write_units_of_both,
)
from bench.units.engagement import (
    board_paths,
    engagement_rows,
    event_paths,
    publishing_paths,
    reading_paths,
)
from bench.units.leads import lead_paths
from bench.units.outgoing import outgoing_paths
from bench.units.points import points_paths
from bench.units.standing import sizes
from bench.units.years import years_paths
from local.plan.cost import UNITS
from tests.support.effort import only_soak


@only_soak(
    "tests/integration/test_budget.py::test_the_first_paths_of_each_family_cost_what_the_file_says, and "
    "test_a_path_that_is_gone_or_new_is_told"
)
def test_each_path_costs_what_the_file_says() -> None:
    told = differences(json.loads(UNITS.read_text()), measure_all())
    assert not told, message(told)


def test_events_of_one_user_write_no_more_units_than_planned() -> None:
    """A user's next date: claims, events and entries, 5 for the head, its carrier, the day, the profile, 2 for
    the index of streaks, in which the user moves, and 1 for each further carrier of eight entries.

    The usual design (bench/naive.py) writes 10.0, 9.2 and 9.05 an event at 1, 5 and 20 of them.
    """
    found = write_units_of_both(json.loads(UNITS.read_text())["paths"])
    assert {size: round(size * ours) for size, (ours, _) in found.items()} == {
        n: 3 * n + 7 + (n - 1) // 8 for n in (1, 5, 20)
    }
    assert [naive for _, naive in found.values()] == [10.0, 9.2, 9.05]
    assert all(ours / naive <= NAIVE_BUDGETS[size] for size, (ours, naive) in found.items())


@contextmanager
def extra_write() -> Iterator[None]:
    """A change that somebody might make: the door also notes when it saw the user last."""
    put = EventStore.put

    def also(self: Any, events: Any) -> None:
        put(self, events)
        for each in events:
            self._dynamodb.update_item(
                TableName="IdempotencyKeys",
                Key={"user_id": {"S": each.user_id}, "idempotency_key": {"S": "last-seen"}},
                UpdateExpression="SET created_at = :at",
                ExpressionAttributeValues={":at": {"S": each.created_at}},
            )

    with patch.object(EventStore, "put", also):
        yield


def changed(found: dict[str, Any], **more: Any) -> list[str]:
    planned = json.loads(UNITS.read_text())
    before = {**planned, "paths": {name: planned["paths"][name] for name in found}}
    return differences(before, {**planned, "paths": found, **more})


def test_the_first_paths_of_each_family_cost_what_the_file_says() -> None:
    """All of events, reads and leads, and what stands in each size, the machine of nights too."""
    found = dict[str, Any]()
    with desk() as shared:
        rows = engagement_rows(shared)
        for family, number in (
            (event_paths, None),
            (reading_paths, None),
            *((part.paths, None if part.paths == lead_paths else 1) for part in PARTS),
        ):
            found |= islice(family(shared), number)
        found |= islice(publishing_paths(shared, rows), 1)
    for family, number in ((board_paths, 1), (points_paths, 3), (outgoing_paths, 3), (years_paths, 1)):
        with desk() as own:
            found |= islice(family(own), number)
    told = changed(found, sizes=sizes())
    assert not told, message(told)


def test_a_planted_write_on_the_event_path_is_told_with_the_figures_before_and_after() -> None:
    with extra_write(), desk() as fresh:
        engagement_rows(fresh)  # as before it in units.json
        told = changed(dict(islice(event_paths(fresh), 2)))
    assert "  events.first.1, EventsApiFunction: write.IdempotencyKeys was 1 and is 2 (dearer)" in told
    assert ACCEPT in message(told)


def test_a_path_that_is_gone_or_new_is_told() -> None:
    old: dict[str, Any] = {"paths": {"a": {"F": {"write.T": 1}}}, "sizes": {}}
    new: dict[str, Any] = {
        "paths": {"b": {"F": {"write.T": 1}}},
        "sizes": {"small": {"idle": {"sqs.requests": 3}}},
    }
    assert differences(old, new) == [
        "  a, F: write.T was 1 and is 0 (cheaper)",
        "  b, F: write.T was 0 and is 1 (dearer)",
        "  small, idle: sqs.requests was 0 and is 3 (dearer)",
    ]
    assert not differences(new, new)
