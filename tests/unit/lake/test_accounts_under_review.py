"""Which accounts a night puts under review, and what its report says of one that others keep changing."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adapters.engagement.account_store import AccountContended, AccountStore
from adapters.platform.objects import FolderObjects
from analytics.recompute.user_shares import UserShare
from analytics.reconcile.findings import RESULT, Findings
from analytics.reconcile.reconcile_user import Reconciler
from analytics.reconcile.share_steps import ShareSteps
from rules.engagement.reconciliation import Doubt

NIGHT = datetime(2027, 2, 1, 3, tzinfo=UTC)


@pytest.mark.parametrize("repair", [True, False])
def test_an_account_that_others_keep_changing_is_not_said_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repair: bool
) -> None:
    reviewed: dict[str, list[str]] = {}

    def review(_: Reconciler, user_id: str, reasons: list[str], _now: datetime) -> None:
        if user_id == "bob":
            raise AccountContended(user_id)
        reviewed[user_id] = reasons

    monkeypatch.setattr(Reconciler, "put_under_review", review)
    no_store: Any = None
    objects, share, night = FolderObjects(tmp_path), UserShare(0, 1), {"run_id": "night", "repair": repair}
    steps = ShareSteps(objects, AccountStore(no_store, "", "", no_store, 1), no_store, no_store, shares=1)
    steps.plan(night, NIGHT)
    doubted = {Doubt.CONTRADICTED.value: {"bob": ["b"], "ada": ["a"]}, Doubt.LACKING.value: {"cleo": ["c"]}}
    Findings(users=3, doubted=doubted).save_share(objects, "night", share, RESULT)
    found = steps.collect(night, NIGHT)
    if repair:
        assert (found.frozen, found.contended, reviewed) == (
            ["ada", "cleo"],
            ["bob"],
            {"ada": ["a"], "cleo": ["c"]},
        )
    else:
        assert (found.frozen, found.contended, reviewed) == (["ada", "bob", "cleo"], [], {})
