"""Would the schedules of bonuses notice? Each bug is planted in the real code; some schedule must find it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import adapters.engagement.achievements
import rules.engagement.account
import rules.engagement.bonuses
from adapters.engagement.expiry import Settler
from rules.engagement.ledger import EntryKind
from tests.faults.planting import must_be_caught
from tests.faults.test_bonuses import run_bonuses
from tests.support.engine import Engine

SEEDS_MAX = 40
Patch = pytest.MonkeyPatch


def paid_twice(patch: Patch) -> None:
    """What was paid is not read in the ledger, so whoever settles after somebody else pays again."""
    patch.setattr("rules.engagement.achievements.with_bonuses", lambda paid, _: paid)


def the_mark_goes_before_the_ledger(patch: Patch) -> None:
    """Whoever dies between the two writes leaves an account that looks settled."""
    write = Settler._write

    def marked(self: Any, account: Any, settlement: Any, now: Any) -> Any:
        before = account.profile
        profile = replace(before, expiry=settlement.expiry, version=before.version + 1)
        self.accounts.dynamodb.put_item(**self.accounts.profile_put(before, profile))
        return write(self, replace(account, profile=profile), settlement, now)

    patch.setattr(Settler, "_write", marked)


def a_death_takes_the_mark_along(patch: Patch) -> None:
    """Whoever finishes what another process has begun does not mark the account."""
    real = rules.engagement.account.profile_with_entries

    def unmarked(profile: Any, entries: Any) -> Any:
        counted = real(profile, entries)
        return replace(counted, expiry=replace(counted.expiry, bonuses_due=profile.expiry.bonuses_due))

    patch.setattr("rules.engagement.account.profile_with_entries", unmarked)


def not_taken_back(patch: Patch) -> None:
    drafts = rules.engagement.bonuses.bonus_drafts
    patch.setattr(
        adapters.engagement.achievements,
        "bonus_drafts",
        lambda *given: [draft for draft in drafts(*given) if draft.points > 0],
    )


def a_reversal_makes_nothing_due(patch: Patch) -> None:
    due = rules.engagement.bonuses.may_change_bonuses
    patch.setattr(
        "rules.engagement.account.may_change_bonuses",
        lambda draft: draft.kind is not EntryKind.CLAWBACK and due(draft),
    )


def a_late_event_moves_nothing(patch: Patch) -> None:
    real = rules.engagement.bonuses.bonus_drafts

    def unmoved(paid: Any, due: Any, paying: Any) -> Any:
        drafts = real(paid, due, paying)
        names = [draft.reward_id for draft in drafts]
        return [draft for draft in drafts if names.count(draft.reward_id) == 1]

    patch.setattr(adapters.engagement.achievements, "bonus_drafts", unmoved)


# Each bug, with schedules that find it at once: they come first.
BUGS: dict[Callable[[Patch], None], tuple[int, ...]] = {
    paid_twice: (1, 2),
    the_mark_goes_before_the_ledger: (28,),
    a_death_takes_the_mark_along: (1, 2),
    not_taken_back: (4, 6),
    a_reversal_makes_nothing_due: (14, 18, 21),
    a_late_event_moves_nothing: (4, 6),
}


@pytest.mark.parametrize("plant", BUGS, ids=lambda bug: bug.__name__)
def test_is_caught(plant: Callable[[Patch], None], fresh_environment: Engine, monkeypatch: Patch) -> None:
    must_be_caught(plant, run_bonuses, fresh_environment, monkeypatch, (*BUGS[plant], *range(SEEDS_MAX)))
