"""The fault schedules are only worth something if they catch what they are made for.

Each bug is planted in the real code; some schedule must find it. A schedule that no longer can
fail would show up here.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import adapters.engagement.account_store
import adapters.engagement.claims
import adapters.engagement.ledger_store
import processors.engagement
import rules.engagement.account
import rules.engagement.account_settings
from adapters.engagement.account_items import day_attributes
from adapters.platform.items import encode_item
from rules.engagement.streak import advance
from tests.faults.planting import must_be_caught
from tests.faults.test_schedules import run
from tests.support.engine import Engine

SEEDS_MAX = 40
Patch = pytest.MonkeyPatch


def no_condition_on_the_head(patch: Patch) -> None:
    real = adapters.engagement.ledger_store.LedgerStore._marks

    def marks(self: Any, head: Any, carriers: Any) -> Any:
        actions = real(self, head, carriers)
        for action in actions:
            action["Update"].pop("ConditionExpression")
            action["Update"]["ExpressionAttributeValues"].pop(":yes", None)
            if not action["Update"]["ExpressionAttributeValues"]:
                action["Update"].pop("ExpressionAttributeValues")
        return actions

    patch.setattr(adapters.engagement.ledger_store.LedgerStore, "_marks", marks)


def lost_deactivation(patch: Patch) -> None:
    patch.setattr(adapters.engagement.ledger_store.LedgerStore, "_marks", lambda *_: [])


def unconditional_profile(patch: Patch) -> None:
    real = adapters.engagement.account_store.AccountStore.profile_put

    def put(self: Any, *profiles: Any) -> dict[str, Any]:
        return {key: value for key, value in real(self, *profiles).items() if key in ("TableName", "Item")}

    patch.setattr(adapters.engagement.account_store.AccountStore, "profile_put", put)


def unconditional_day(patch: Patch) -> None:
    def put(self: Any, read: Any, day: Any) -> dict[str, Any]:
        return {"TableName": self._days, "Item": encode_item(day_attributes(day))}

    patch.setattr(adapters.engagement.account_store.AccountStore, "day_put", put)


def swallowed_partial_failure(patch: Patch) -> None:
    real = processors.engagement.handler

    def handler(event: Any, context: Any) -> Any:
        real(event, context)
        return {"batchItemFailures": []}

    patch.setattr(processors.engagement, "handler", handler)


def forgotten_duplicates(patch: Patch) -> None:
    real = adapters.engagement.account_store.AccountStore.with_pending_entries
    patch.setattr(
        adapters.engagement.account_store.AccountStore,
        "with_pending_entries",
        lambda self, *args: real(self, *args)._replace(applied={}),
    )


def blind_trust_in_the_fast_path(patch: Patch) -> None:
    patch.setattr(processors.engagement, "events_to_look_up", lambda *_: {})


def no_repair_of_carried_entries(patch: Patch) -> None:
    real = adapters.engagement.ledger_store.LedgerStore.after
    patch.setattr(adapters.engagement.ledger_store.LedgerStore, "after", lambda *args: (real(*args)[0], []))


def profile_before_days(patch: Patch) -> None:
    real = adapters.engagement.account_store.AccountStore.commit

    def commit(self: Any, decision: Any) -> None:
        real(self, replace(decision, days={}))
        real(self, replace(decision, entries=(), profile=decision.before.profile))

    patch.setattr(adapters.engagement.account_store.AccountStore, "commit", commit)


def profile_before_ledger(patch: Patch) -> None:
    real = adapters.engagement.account_store.AccountStore.commit

    def commit(self: Any, decision: Any) -> None:
        real(self, replace(decision, entries=()))
        if decision.entries:
            self.ledger.append(decision.head, decision.entries)

    patch.setattr(adapters.engagement.account_store.AccountStore, "commit", commit)


def claims_not_conditional(patch: Patch) -> None:
    def claim(self: Any, claims: Any, _now: Any) -> tuple[dict[Any, Any], set[Any]]:
        for each in claims:
            self._dynamodb.put_item(TableName=self._table, Item=adapters.engagement.claims.claim_item(each))
        return {each.key: each for each in claims}, {each.key for each in claims}

    patch.setattr(adapters.engagement.claims.ClaimStore, "claim", claim)


def events_left_unstored(patch: Patch) -> None:
    patch.setattr("adapters.engagement.event_store.EventStore.missing", lambda *_: [])


def no_watermark_on_days(patch: Patch) -> None:
    real = rules.engagement.account.days_with_entries

    def absorb(days: Any, entries: Any) -> Any:
        return real({when: day and replace(day, watermark="") for when, day in days.items()}, entries)

    patch.setattr(rules.engagement.account, "days_with_entries", absorb)


def late_dates_do_not_rejoin_runs(patch: Patch) -> None:
    def streak_after(old: Any, cover: Any, new_dates: Any, *_: Any, **__: Any) -> Any:
        for day in sorted(new_dates):
            if old is None or day > old.last:
                old = advance(old, day, cover)
        return old

    patch.setattr(rules.engagement.account, "streak_after", streak_after)


def freezes_never_refunded(patch: Patch) -> None:
    real = rules.engagement.account.freeze_drafts
    patch.setattr(
        rules.engagement.account,
        "freeze_drafts",
        lambda journalled, streak: [draft for draft in real(journalled, streak) if draft.kind != "REVERSE"],
    )


def reversal_not_conditional(patch: Patch) -> None:
    real = adapters.engagement.ledger_store.LedgerStore._marks

    def marks(self: Any, head: Any, carriers: Any) -> Any:
        actions = real(self, head, carriers)
        for action in actions:
            condition = action["Update"]["ConditionExpression"]
            action["Update"]["ConditionExpression"] = condition.replace(
                " AND attribute_not_exists(reversed_by)", ""
            )
        return actions

    patch.setattr(adapters.engagement.ledger_store.LedgerStore, "_marks", marks)
    real_get = adapters.engagement.ledger_store.LedgerStore.get

    def get(self: Any, *args: Any) -> Any:
        entry = real_get(self, *args)
        return entry and replace(entry, reversed_by=None)

    patch.setattr(adapters.engagement.ledger_store.LedgerStore, "get", get)


def settings_without_an_entry(patch: Patch) -> None:
    patch.setattr("rules.engagement.account.setting_drafts", lambda *_: [])


def a_zone_in_the_profile_alone(patch: Patch) -> None:
    """The caller's profile has the zone, and the ledger does not."""
    real = rules.engagement.account_settings.setting_drafts
    patch.setattr(
        "rules.engagement.account.setting_drafts",
        lambda *profiles: [draft for draft in real(*profiles) if draft.setting != "zone"],
    )

    def decided(account: Any, changed: Any, now: Any) -> Any:
        decision = rules.engagement.account.decide_settings(account, changed, now)
        profile = replace(
            decision.profile, chosen_zone=changed.chosen_zone, version=account.profile.version + 1
        )
        return replace(decision, profile=profile)

    patch.setattr("ingest.engagement.preferences.decide_settings", decided)


# Each bug, with schedules that find it at once: they come first.
BUGS: dict[Callable[[Patch], None], tuple[int, ...]] = {
    no_condition_on_the_head: (1, 2, 3),
    lost_deactivation: (2, 1),
    unconditional_profile: (122, 123),
    unconditional_day: (54, 185),
    swallowed_partial_failure: (2, 3),
    forgotten_duplicates: (2, 1),
    blind_trust_in_the_fast_path: (1, 2),
    no_repair_of_carried_entries: (6, 18, 19),
    profile_before_days: (1, 2),
    profile_before_ledger: (1, 4),
    claims_not_conditional: (2, 1),
    events_left_unstored: (3, 8),
    no_watermark_on_days: (2, 3),
    late_dates_do_not_rejoin_runs: (3, 1),
    freezes_never_refunded: (39, 20),
    reversal_not_conditional: (3, 4),
    settings_without_an_entry: (1, 2),
    a_zone_in_the_profile_alone: (1, 2),
}


@pytest.mark.parametrize("plant", BUGS, ids=lambda bug: bug.__name__)
def test_is_caught(plant: Callable[[Patch], None], fresh_environment: Engine, monkeypatch: Patch) -> None:
    must_be_caught(plant, run, fresh_environment, monkeypatch, (*BUGS[plant], *range(SEEDS_MAX)))
