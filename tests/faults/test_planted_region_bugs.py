"""Bugs planted into what two regions rest on: some failover must find each of them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import local.region_return
import local.regions
import processors.region_follower
import rules.regions.standby
import tests.faults.regions.failover
import tests.faults.regions.region
from adapters.regions import FollowedItems
from local.region_fill import RegionFill
from local.region_return import RegionReturn
from tests.faults.planting import must_be_caught
from tests.faults.test_failovers import run
from tests.support.effort import plant_each
from tests.support.engine import Engine

SEEDS_MAX = 30
# Where a bug needs a rare meeting: schedules that have found it come first.
FOUND_BY: dict[str, tuple[int, ...]] = {
    "the_fence_is_not_checked": (2,),
    "nobody_waits_for_the_last_lease": (22, 50),
    "a_double_spend_is_not_listed": (103, 104, 107, 209),
    "the_returned_side_overwrites": (1,),
    "older_changes_overwrite_newer_ones": (4,),
    "profiles_do_not_wait_for_their_days": (26,),
    "places_in_the_writer_s_stream_are_followed": (4,),
    "unseen_events_are_forgotten": (3,),
    "entries_do_not_wait_for_their_events": (62, 52),
    "nobody_stores_what_a_carrier_names": (87, 69, 79),
}
Patch = pytest.MonkeyPatch


def the_fence_is_not_checked(patch: Patch) -> None:
    patch.setattr(tests.faults.regions.region, "guard_client", lambda client, *_: client)


def nobody_waits_for_the_last_lease(patch: Patch) -> None:
    patch.setattr(local.regions, "QUIET_SECONDS", 0.0)
    patch.setattr(tests.faults.regions.failover, "QUIET_SECONDS", 0.0)
    patch.setattr("local.regions.QUIET_SECONDS", 0.0)


def a_double_spend_is_not_listed(patch: Patch) -> None:
    real = RegionReturn._command
    patch.setattr(RegionReturn, "_command", lambda *args: real(*args) and "")


def the_returned_side_overwrites(patch: Patch) -> None:
    real = RegionReturn.apply

    def apply(self: Any, found: Any) -> Any:
        for name in ("UserStreaks", "DailyActivity"):
            for each in self.old.items(name):
                self.new.store(name).put(each)
        return real(self, found)

    patch.setattr(RegionReturn, "apply", apply)


def the_returned_ledger_is_merged(patch: Patch) -> None:
    real = RegionReturn.apply

    def apply(self: Any, found: Any) -> Any:
        for each in self.old.items("RewardsLedger"):
            self.new.store("RewardsLedger").put_missing([each])
        return real(self, found)

    patch.setattr(RegionReturn, "apply", apply)


def unseen_events_are_forgotten(patch: Patch) -> None:
    real = RegionReturn.apply

    def apply(self: Any, found: Any) -> Any:
        found.carried.pop("BPEvents", None)
        return real(self, found)

    patch.setattr(RegionReturn, "apply", apply)


def late_changes_are_followed_by_a_writer(patch: Patch) -> None:
    patch.setattr(processors.region_follower, "followed_epoch", lambda register, _: register.epoch - 1)
    patch.setattr(tests.faults.regions.region, "may_follow", lambda *_: True)
    patch.setattr(tests.faults.regions.failover, "may_follow", lambda *_: True)


def entries_do_not_wait_for_their_predecessors(patch: Patch) -> None:
    real = rules.regions.standby.follow_entry

    def following(head: Any, entry: Any) -> Any:
        found = real(head, entry)
        return found or rules.regions.standby.FollowedEntries(replace(entry, active=True), ())

    patch.setattr("adapters.regions.follow_entry", following)


def older_changes_overwrite_newer_ones(patch: Patch) -> None:
    def put(self: Any, change: Any) -> bool:
        image = {name: each for name, each in change.image.items() if name != "applied_through"}
        number = {"followed": {"S": change.number}}
        self._dynamodb.put_item(TableName=self._tables[change.table], Item={**image, **number})
        return True

    patch.setattr(FollowedItems, "put", put)


def profiles_do_not_wait_for_their_days(patch: Patch) -> None:
    patch.setattr("adapters.regions.FollowedDays.prepare_profile", lambda *_: True)


def events_do_not_wait_for_their_claims(patch: Patch) -> None:
    patch.setattr("adapters.regions.claim_needed", lambda *_: "")


def entries_do_not_wait_for_their_events(patch: Patch) -> None:
    patch.setattr("adapters.regions.events_needed", lambda *_: set())


def nobody_stores_what_a_carrier_names(patch: Patch) -> None:
    patch.setattr("adapters.engagement.ledger_store.LedgerStore.store_new", lambda *_: None)


def places_in_the_writer_s_stream_are_followed(patch: Patch) -> None:
    real = replace

    def kept(entry: Any, **changes: Any) -> Any:
        changes.pop("applied_through", None)
        return real(entry, **changes)

    patch.setattr("rules.regions.standby.replace", kept)

    def put(self: Any, change: Any) -> bool:
        self._dynamodb.put_item(
            TableName=self._tables[change.table], Item={**change.image, "followed": {"S": change.number}}
        )
        return True

    patch.setattr(FollowedItems, "put", put)


def reversals_leave_no_mark(patch: Patch) -> None:
    real = rules.regions.standby.follow_entry

    def following(head: Any, entry: Any) -> Any:
        found = real(head, entry)
        if found and found.carrier and found.carrier.draft.reverses:
            draft = replace(found.carrier.draft, reverses=None)
            return replace(found, carrier=replace(found.carrier, draft=draft))
        return found

    patch.setattr("adapters.regions.follow_entry", following)


def a_region_follows_without_being_filled(patch: Patch) -> None:
    patch.setattr(RegionFill, "run", lambda *_: None)


def the_old_ledger_is_not_cut(patch: Patch) -> None:
    patch.setattr(RegionReturn, "_cut", lambda *_: 0)


BUGS: list[Callable[[Patch], None]] = [
    nobody_waits_for_the_last_lease,
    a_double_spend_is_not_listed,
    unseen_events_are_forgotten,
]
LIKE_THESE: list[Callable[[Patch], None]] = [
    events_do_not_wait_for_their_claims,
    a_region_follows_without_being_filled,
    the_fence_is_not_checked,
    the_returned_side_overwrites,
    the_returned_ledger_is_merged,
    late_changes_are_followed_by_a_writer,
    entries_do_not_wait_for_their_predecessors,
    older_changes_overwrite_newer_ones,
    profiles_do_not_wait_for_their_days,
    entries_do_not_wait_for_their_events,
    nobody_stores_what_a_carrier_names,
    places_in_the_writer_s_stream_are_followed,
    reversals_leave_no_mark,
    the_old_ledger_is_not_cut,
]
BESIDE_THESE = (
    "tests/faults/test_failovers.py with three bugs unlike each other in tests/faults/test_planted_region_bugs.py; "
    "of the product, tests/unit/regions/, tests/integration/test_region_follower.py and test_region_return.py"
)


@plant_each(BUGS, LIKE_THESE, BESIDE_THESE)
def test_is_caught(
    plant: Callable[[Patch], None], regions: tuple[Engine, Engine], monkeypatch: Patch
) -> None:
    def both(_: Engine, seed: int, patch: Patch) -> list[str]:
        return run(regions, seed, patch)

    seeds = (*FOUND_BY.get(plant.__name__, ()), *range(SEEDS_MAX))
    must_be_caught(plant, both, regions[0], monkeypatch, seeds)
