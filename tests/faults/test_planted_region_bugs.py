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
from tests.support.engine import Engine

SEEDS_MAX = 30
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


def events_do_not_wait_for_their_claims(patch: Patch) -> None:
    patch.setattr("adapters.regions.claim_needed", lambda *_: "")


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


# Each bug, with failovers that find it at once: they come first. What makes a profile wait for its days, and an entry
# for its event, no failover meets in time: tests/integration/test_region_follower.py finds that it is gone.
BUGS: dict[Callable[[Patch], None], tuple[int, ...]] = {
    the_fence_is_not_checked: (2,),
    nobody_waits_for_the_last_lease: (50, 22),
    a_double_spend_is_not_listed: (103, 104, 107, 209),
    the_returned_side_overwrites: (1,),
    the_returned_ledger_is_merged: (1, 2),
    unseen_events_are_forgotten: (3,),
    late_changes_are_followed_by_a_writer: (0, 1),
    entries_do_not_wait_for_their_predecessors: (0, 1),
    older_changes_overwrite_newer_ones: (0, 4),
    events_do_not_wait_for_their_claims: (40,),
    nobody_stores_what_a_carrier_names: (86, 97),
    places_in_the_writer_s_stream_are_followed: (0, 4),
    reversals_leave_no_mark: (0, 1),
    a_region_follows_without_being_filled: (0,),
    the_old_ledger_is_not_cut: (1,),
}


@pytest.mark.parametrize("plant", BUGS, ids=lambda bug: bug.__name__)
def test_is_caught(
    plant: Callable[[Patch], None], regions: tuple[Engine, Engine], monkeypatch: Patch
) -> None:
    def both(_: Engine, seed: int, patch: Patch) -> list[str]:
        return run(regions, seed, patch)

    must_be_caught(plant, both, regions[0], monkeypatch, (*BUGS[plant], *range(SEEDS_MAX)))
