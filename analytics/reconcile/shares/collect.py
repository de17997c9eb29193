"""What all shares of a night found, and what only all of them together can decide: who is frozen."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from adapters.engagement.account_store import AccountContended
from adapters.platform.objects import Objects
from analytics.lake.shares import UserShare
from analytics.proof import Heads, changes_of, publish_root
from analytics.recompute.recompute import LakeUser, Recomputed, Snapshot
from analytics.reconcile.reconcile_user import Reconciler
from analytics.reconcile.shares import failed
from analytics.reconcile.shares.findings import PROGRESS, Findings
from analytics.reconcile.shares.night_plan import ACCOUNTS, NightPlan
from analytics.reconcile.shares.watermarks import note_compared
from analytics.reconcile.shares.way import Way
from rules.engagement.reconciliation import Doubt, is_no_fault_of_theirs

PIECES = ("curated/", "profiles/", "days/", f"{ACCOUNTS}/")
SPARED = (Doubt.UNPROVEN, Doubt.LACKING)  # of these there may be too many to be true
NO_RESULT = {"Error": "NoResult", "Cause": "the share has left no result"}


def collect(
    objects: Objects, plan: NightPlan, reconciler: Reconciler, now: datetime, roots: Objects | None = None
) -> Findings:
    """Put together what the shares found, freeze who is to be frozen, and note what is compared.

    roots: where the root over all accounts' heads is published; None: it is not. Neither is it if very many
    chains are broken.

    A share that was given up, or has left no result, keeps its watermark: the next night takes it up again.
    """
    whole = Findings()
    by_share, given_up = _findings(objects, plan)
    for found in by_share.values():
        whole.join(found)
    whole.users = Way.load(objects, plan.run_id).users or whole.users
    whole.spared = _spared(whole.users, by_share)
    _freeze(whole, _to_freeze(objects, plan, whole.spared, by_share), reconciler, now)
    for users in (whole.different, whole.unrepaired, whole.contended, whole.frozen):
        users.sort()
    if reconciler.repair:
        note_compared(objects, plan.shares, plan.at, given_up)
        if roots and Doubt.UNPROVEN not in whole.spared:  # what wrong code hashes must not get into a root
            whole.root = _published(objects, roots, plan, by_share.values())
    whole.save(objects, plan.run_id)
    if plan.shares > 1:
        _delete_pieces(objects, plan)
    return whole


def _freeze(
    whole: Findings,
    wrong: Iterable[tuple[str, LakeUser | None, list[str]]],
    reconciler: Reconciler,
    now: datetime,
) -> None:
    for user_id, lake, why in wrong:
        try:
            if reconciler.repair:
                reconciler.freeze(user_id, lake, why, now)
        except AccountContended:
            whole.contended.append(user_id)
        whole.frozen.append(user_id)


def _published(
    objects: Objects, roots: Objects, plan: NightPlan, found: Iterable[Findings]
) -> dict[str, Any]:
    """Publish the root over all accounts, with the heads that the shares have brought."""
    brought = changes_of([head for each in found for head in each.heads])
    heads = Heads.read(objects).with_changes(objects, brought, plan.at.isoformat(), plan.run_id)
    return publish_root(roots, heads)


def _findings(objects: Objects, plan: NightPlan) -> tuple[dict[UserShare, Findings], set[int]]:
    """Return what each share found, up to where it came; and which have failed."""
    found: dict[UserShare, Findings] = {}
    given_up = {each["share"] for each in failed.noted(objects, plan.run_id)}
    for share in _shares(plan):
        whole = Findings.of_share(objects, plan.run_id, share)
        if whole is None and share.number not in given_up:
            failed.note(objects, plan.run_id, share.number, NO_RESULT)
            given_up.add(share.number)
        found[share] = whole or Findings.of_share(objects, plan.run_id, share, PROGRESS) or Findings()
    return found, given_up


def _shares(plan: NightPlan) -> Iterator[UserShare]:
    return (UserShare(number, plan.shares) for number in range(plan.shares))


def _spared(users: int, by_share: Mapping[UserShare, Findings]) -> dict[str, int]:
    """Return the doubts of which there are too many, each with its number: nobody waits for those.

    If the lake lacks entries of very many accounts, the lake is wrong; if very many chains are broken whose
    entries lake and ledger agree on, the code is.
    """
    numbers = {each: sum(len(found.of_doubt(each)) for found in by_share.values()) for each in SPARED}
    return {each.value: number for each, number in numbers.items() if is_no_fault_of_theirs(number, users)}


def _to_freeze(
    objects: Objects, plan: NightPlan, spared: Mapping[str, int], by_share: Mapping[UserShare, Findings]
) -> Iterator[tuple[str, LakeUser | None, list[str]]]:
    """Yield whose redemptions must wait, what the lake says of them, and why."""
    for share, found in by_share.items():
        doubts = [found.of_doubt(each) for each in (Doubt.CONTRADICTED, *SPARED) if each not in spared]
        if wrong := {user: why for each in doubts for user, why in each.items()}:
            lake = Snapshot(Recomputed.load(objects, plan.run_id, share).table)
            yield from ((user, lake.user(user), wrong[user]) for user in sorted(wrong))


def _delete_pieces(objects: Objects, plan: NightPlan) -> None:
    for share in _shares(plan):
        for each in PIECES:
            objects.delete([piece.key for piece in objects.list(share.key(plan.run_id, each))])
