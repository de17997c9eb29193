"""Would the schedules of goods notice? Each bug is planted in the real code; some schedule must find it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import ingest.engagement.points.clawbacks
import rules.engagement.account
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.rewards import RedemptionStore, RewardStock
from ingest.engagement.points.redemptions import Sale
from local.rerate import Rerater
from rules.engagement.ledger import EntryKind
from tests.faults.planting import must_be_caught
from tests.faults.test_taken_back import run_goods
from tests.support.engine import Engine

SEEDS_MAX = 20
Patch = pytest.MonkeyPatch


def clawback_twice(patch: Patch) -> None:
    """Neither the ledger's entries nor the mark of the EARN say that the event was reversed."""
    real = LedgerStore._marks

    def marks(self: Any, head: Any, carriers: Any) -> Any:
        return real(
            self, head, [replace(each, draft=replace(each.draft, reverses=None)) for each in carriers]
        )

    patch.setattr(LedgerStore, "_marks", marks)
    patch.setattr(ingest.engagement.points.clawbacks, "reversed_events", lambda _: set())


def clawback_leaves_the_date_active(patch: Patch) -> None:
    real = rules.engagement.account._with_entry

    def with_entry(day: Any, entry: Any) -> Any:
        is_gone = entry.draft.kind is EntryKind.CLAWBACK
        return replace(real(day, entry), events_count=day.events_count) if is_gone else real(day, entry)

    patch.setattr(rules.engagement.account, "_with_entry", with_entry)


def stock_by_read_and_write(patch: Patch) -> None:
    """What was read is trusted, and nothing holds at the write."""
    real = RewardStock.take_action

    def take(*arguments: Any) -> Any:
        action = real(*arguments)
        del action["Update"]["ConditionExpression"]
        for name in (":share", ":none"):
            action["Update"]["ExpressionAttributeValues"].pop(name, None)
        return action

    patch.setattr(RewardStock, "take_action", take)


def limit_is_not_in_the_transaction(patch: Patch) -> None:
    """It is counted by a write of its own."""
    real = RedemptionStore.add_owned_action

    def taken(self: Any, reward: Any, real_taken: Any = Sale._take_actions) -> Any:
        actions = real_taken(self, reward)
        if reward.limit_per_user is not None:
            self.store._dynamodb.update_item(
                **real(self.store, self.user_id, self.reward_id, 10**6)["Update"]
            )
            actions.pop()
        return actions

    patch.setattr(Sale, "_take_actions", taken)


def stock_comes_back_twice(patch: Patch) -> None:
    """By a write of its own, and by the transaction."""
    real = RewardStock.give_back_action

    def give_back(self: Any, reward_id: str) -> Any:
        self._dynamodb.update_item(**real(self, reward_id)["Update"])
        return real(self, reward_id)

    patch.setattr(RewardStock, "give_back_action", give_back)


def rerate_on_a_stale_head(patch: Patch) -> None:
    """What is lacking is told by older entries than those after which it is written."""
    real = Rerater._append
    patch.setattr(
        Rerater,
        "_append",
        lambda self, profile, missing, now: real(
            self, self.settler.settle(profile.user_id, now), missing, now
        ),
    )


# Each bug, with schedules that find it at once: they come first.
BUGS: dict[Callable[[Patch], None], tuple[int, ...]] = {
    clawback_twice: (3, 2),
    clawback_leaves_the_date_active: (2, 3),
    stock_by_read_and_write: (15, 20, 25),
    limit_is_not_in_the_transaction: (1, 3),
    stock_comes_back_twice: (2, 1),
    rerate_on_a_stale_head: (11, 1, 8),
}


@pytest.mark.parametrize("plant", BUGS, ids=lambda bug: bug.__name__)
def test_is_caught(plant: Callable[[Patch], None], fresh_environment: Engine, monkeypatch: Patch) -> None:
    must_be_caught(plant, run_goods, fresh_environment, monkeypatch, (*BUGS[plant], *range(SEEDS_MAX)))
