"""The steps of a night's comparison of users.

One call plans it. Each share is recomputed and reconciled by calls of its own, side by side. The last call
collects what all shares have found.

A *doubt* is a reason to distrust an account's ledger, or its copy in the lake (Doubt). An account in doubt is
not repaired. Unless entries are merely late, it is *put under review*: its redemptions wait for an admin
(rule 8). A ledger's newest entry is its *head*. The *root* (rule 19) is one hash over all ledgers' heads.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Any

from adapters.engagement.account_store import AccountContended, AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.projections import Projections
from adapters.platform.objects import Objects
from adapters.privacy.tombstones import NO_ERASURES, ErasureCheck
from analytics.lake.run_notes import note_odd_object
from analytics.proof import HEADS, LedgerTree, PreviousTree, publish_root, root_fault
from analytics.recompute.lake_books import lake_books
from analytics.recompute.lake_users import LakeUsers
from analytics.recompute.recompute import recompute
from analytics.recompute.user_shares import UserShare
from analytics.reconcile.findings import (
    PROGRESS,
    Findings,
    NightPlan,
    failed_shares,
    note_failed_share,
)
from analytics.reconcile.reconcile_share import ShareReconciliation
from analytics.reconcile.reconcile_user import Reconciler
from analytics.reconcile.user_goals import GoalRows
from rules.engagement.reconciliation import Doubt, is_systemic
from rules.turns import SHARES

# A doubt about very many accounts is a fault of the lake or of code, so nobody is put under review for it.
MAY_BE_SYSTEMIC = (Doubt.UNPROVEN, Doubt.LACKING)
NO_RESULT = {"Error": "NoResult", "Cause": "the share has left no result"}
StepAnswer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ShareSteps:
    """The steps, each with the shape of its event, and the stores that they use."""

    objects: Objects
    accounts: AccountStore
    projections: Projections
    redis: EngagementCache
    shares: int = SHARES  # another number makes the state that earlier nights have left useless
    erased: ErasureCheck = NO_ERASURES  # persons who are left out
    roots: Objects | None = None  # where roots over all accounts' heads are published; None: nowhere

    def plan(self, event: Mapping[str, Any], now: datetime) -> StepAnswer:
        """Plan the night: {"run_id", "repair"?, "from"?, "to"?, "everybody"?} -> items.

        items: the input of each share's step.

        repair: writes only if it is true; the default is false. from, to: the activity dates to compare;
        without both, those that have changed. everybody: examine all users.
        """
        run_id, repair = event["run_id"], event.get("repair") is True
        NightPlan.of(self.objects, now, self.shares, event)
        items = [{"run_id": run_id, "share": number, "repair": repair} for number in range(self.shares)]
        return {"items": items}

    def reconcile(
        self, event: Mapping[str, Any], now: datetime, has_time: Callable[[], bool] = lambda: True
    ) -> StepAnswer:
        """Compare a share: {"run_id", "share", "repair"?} -> {"counts", "is_left"}.

        The first call recomputes the share. is_left: whether users are left for another call.
        """
        plan = NightPlan.load(self.objects, event["run_id"])
        share, reconciler = UserShare(event["share"], plan.shares), self._reconciler(event, plan)
        if not LakeUsers.is_stored(self.objects, plan.run_id, share):
            users = recompute(self.objects, plan.at.date(), anew=plan.everybody, share=share)
            users.save(self.objects, plan.run_id, share)
        reconciliation = ShareReconciliation(self.objects, plan, share, reconciler, has_time, self.erased)
        findings = reconciliation.run(now)
        return {"counts": findings.counts, "is_left": findings.after is not None}

    def give_up(self, event: Mapping[str, Any]) -> StepAnswer:
        """Note a share that failed: {"run_id", "share", "error"} -> {}.

        The report names the share, and the next run compares it.
        """
        note_failed_share(self.objects, event["run_id"], event["share"], event["error"])
        return {}

    def collect(self, event: Mapping[str, Any], now: datetime) -> Findings:
        """Add up the findings of all shares, and put accounts in doubt under review: {"run_id", "repair"?}.

        The sum is stored as the run's result. A share that failed keeps its watermark, so the next night
        compares it again. If `repair` is true, the root over all accounts' heads is published.
        """
        plan = NightPlan.load(self.objects, event["run_id"])
        reconciler = self._reconciler(event, plan)
        by_share, failed = _findings_by_share(self.objects, plan)
        total = Findings()
        for findings in by_share.values():
            total.join(findings)
        total.spared = _systemic_doubts(total.users, by_share)
        users_to_review = _users_to_review(total.spared, by_share)
        _put_under_review(total, users_to_review, reconciler, now)
        for users in (total.different, total.unrepaired, total.contended, total.frozen):
            users.sort()
        if reconciler.may_repair:
            # If very many ledgers contradict the root, the code that hashes is wrong: none may be published.
            if self.roots and Doubt.UNPROVEN not in total.spared:
                total.root = _publish_root(self.objects, self.roots, plan, by_share.values())
            # After the root: if this call dies, the next night notes the same heads again.
            plan.note_compared(self.objects, failed)
        total.save(self.objects, plan.run_id)
        return total

    def _reconciler(self, event: Mapping[str, Any], plan: NightPlan) -> Reconciler:
        may_repair = event.get("repair") is True
        books = cache(partial(lake_books, self.objects))  # they are read when the first user needs them
        return Reconciler(
            self.accounts.judging_by(lambda: books().daily_terms, lambda: books().pay_bonuses),
            self.projections,
            self.redis,
            may_repair=may_repair,
            books=books,
            previous_tree=PreviousTree(self.objects),
            goal_rows=GoalRows(self.objects, plan.run_id, plan.at, books) if may_repair else None,
        )


def _put_under_review(
    total: Findings,
    users_to_review: Iterable[tuple[str, list[str]]],
    reconciler: Reconciler,
    now: datetime,
) -> None:
    """Put users under review, and note them as `frozen`; a dry run only notes them.

    users_to_review: (user, the reasons).
    """
    for user_id, reasons in users_to_review:
        try:
            if reconciler.may_repair:
                reconciler.put_under_review(user_id, reasons, now)
        except AccountContended:
            total.contended.append(user_id)
        else:
            total.frozen.append(user_id)


def _publish_root(
    objects: Objects, roots: Objects, plan: NightPlan, all_findings: Iterable[Findings]
) -> dict[str, Any] | None:
    """Publish the root over all accounts, with the new heads that the shares have noted; then store the tree.

    If the last tree is not the one whose root was published, the report says so, and nothing is published.
    But if it is gone, a new one begins.
    """
    last_tree = LedgerTree.read(objects)
    if fault := root_fault(last_tree, roots):
        note_odd_object(objects, plan.run_id, HEADS, f"the tree over all ledgers was changed: {fault}")
        if last_tree.at:
            return None
    new_heads = [head for findings in all_findings for head in findings.heads]
    tree = last_tree.grown(objects, new_heads, plan.at.isoformat(), plan.run_id)
    root = publish_root(roots, tree)
    if root["root"] == tree.root.hex():  # this run may have published another, before it died
        tree.store(objects)
    return root


def _findings_by_share(objects: Objects, plan: NightPlan) -> tuple[dict[UserShare, Findings], set[int]]:
    """Return the findings of each share, and the numbers of the shares that failed.

    A share has failed if it was given up, or has left no result. Its findings are those that it had so far.
    """
    by_share: dict[UserShare, Findings] = {}
    failed = {failed_share["share"] for failed_share in failed_shares(objects, plan.run_id)}
    for number in range(plan.shares):
        share = UserShare(number, plan.shares)
        result = Findings.of_share(objects, plan.run_id, share)
        if result is None and number not in failed:
            note_failed_share(objects, plan.run_id, number, NO_RESULT)
            failed.add(number)
        by_share[share] = result or Findings.of_share(objects, plan.run_id, share, PROGRESS) or Findings()
    return by_share, failed


def _systemic_doubts(users: int, by_share: Mapping[UserShare, Findings]) -> dict[str, int]:
    """Return the doubts about very many accounts, each with its number of accounts. users: all.

    If the lake lacks entries of very many accounts, the lake is wrong. If very many ledgers contradict the
    root, though lake and ledger agree on the entries, the code is wrong.
    """
    numbers = {
        doubt: sum(len(findings.of_doubt(doubt)) for findings in by_share.values())
        for doubt in MAY_BE_SYSTEMIC
    }
    return {doubt.value: number for doubt, number in numbers.items() if is_systemic(number, users)}


def _users_to_review(
    spared: Mapping[str, int], by_share: Mapping[UserShare, Findings]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the users in a doubt that is not spared, with the reasons."""
    for findings in by_share.values():
        reasons: dict[str, list[str]] = {}
        for doubt in (Doubt.CONTRADICTED, *MAY_BE_SYSTEMIC):
            if doubt not in spared:
                reasons |= findings.of_doubt(doubt)
        yield from sorted(reasons.items())
