"""Would the schedules of points as money notice? Each bug is planted in the real code; some schedule must find it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import adapters.engagement.expiry
import ingest.engagement.points.commands
import ingest.engagement.points.holds
import rules.engagement.lots
from adapters.engagement.account_store import AccountStore
from ingest.engagement.points.commands import Commands
from rules.book.book import Books
from rules.engagement.lots import Hold
from tests.faults.planting import must_be_caught
from tests.faults.test_schedules import run_money
from tests.support.engine import Engine

SEEDS_MAX = 40
Patch = pytest.MonkeyPatch


def debit_without_a_lot(patch: Patch) -> None:
    patch.setattr(rules.engagement.lots, "_spendings", lambda _: [])


def expiry_written_twice(patch: Patch) -> None:
    patch.setattr(rules.engagement.lots, "_recorded_expiries", lambda *_: {})


def expiry_never_comes_back(patch: Patch) -> None:
    """A late event's lot is settled, and what was spent before is not told of again."""
    patch.setattr(rules.engagement.lots.Expiry, "reopened", lambda self, _: self)


def settlement_on_a_stale_profile(patch: Patch) -> None:
    real = AccountStore.profile_put

    def put(self: Any, *profiles: Any) -> dict[str, Any]:
        return {key: value for key, value in real(self, *profiles).items() if key in ("TableName", "Item")}

    patch.setattr(AccountStore, "profile_put", put)


def lots_are_not_read(patch: Patch) -> None:
    """Only the first date's lot expires."""
    real = AccountStore.lots
    patch.setattr(AccountStore, "lots", lambda *args, **more: list(real(*args, **more))[:1])


def what_is_held_can_be_spent(patch: Patch) -> None:
    patch.setattr(ingest.engagement.points.commands, "held_points", lambda *_: 0)


def held_points_expire(patch: Patch) -> None:
    real = adapters.engagement.expiry.Settler._settlement_basis
    patch.setattr(
        adapters.engagement.expiry.Settler,
        "_settlement_basis",
        lambda *arguments: replace(real(*arguments), holds=()),
    )


def captured_after_its_deadline(patch: Patch) -> None:
    patch.setattr(Hold, "is_open", lambda *_: True)


def captured_after_release(patch: Patch) -> None:
    """A release tells that the hold has ended, and keeps it in the profile."""
    patch.setattr(ingest.engagement.points.holds, "holds_without", lambda holds, _: tuple(holds))


def captured_twice(patch: Patch) -> None:
    """No claim of a hold's end."""
    real = Commands.attempt
    patch.setattr(
        Commands, "attempt", lambda self, *args, **more: real(self, *args, **{**more, "claim": None})
    )
    patch.setattr(ingest.engagement.points.commands, "holds_without", lambda holds, _: tuple(holds))


def price_of_the_newest_version(patch: Patch) -> None:
    patch.setattr(Books, "judging", lambda self, *_: iter([self.newest]))


# Each bug, with schedules that find it at once: they come first.
BUGS: dict[Callable[[Patch], None], tuple[int, ...]] = {
    debit_without_a_lot: (8, 4),
    expiry_written_twice: (2, 1, 4),
    expiry_never_comes_back: (5, 30, 42),
    settlement_on_a_stale_profile: (50, 169, 209),
    lots_are_not_read: (3, 2),
    what_is_held_can_be_spent: (40, 50, 58, 87),
    held_points_expire: (1, 30, 32),
    captured_after_its_deadline: (13, 8, 15),
    captured_after_release: (3, 5, 8),
    captured_twice: (1, 8),
    price_of_the_newest_version: (1, 3),
}


@pytest.mark.parametrize("plant", BUGS, ids=lambda bug: bug.__name__)
def test_is_caught(plant: Callable[[Patch], None], fresh_environment: Engine, monkeypatch: Patch) -> None:
    must_be_caught(plant, run_money, fresh_environment, monkeypatch, (*BUGS[plant], *range(SEEDS_MAX)))
