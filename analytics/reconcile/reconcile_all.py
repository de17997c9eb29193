"""Reconciles all users: the cheap phase, then a close look at each candidate, then lapsed streaks.

The cheap phase compares profiles and days with the lake, and the ledgers whose turn it is.
"""

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from typing import Any

from adapters.engagement.account_store import AccountContended
from adapters.platform.items import Item
from adapters.platform.objects import Objects
from analytics.lake.layout import run_key
from analytics.recompute.lake_days import LakeDays
from analytics.recompute.lake_snapshot import Snapshot
from analytics.recompute.recompute import Recomputed
from analytics.reconcile.candidates import SEGMENTS, scan_days, scan_profiles
from analytics.reconcile.differences import Difference
from analytics.reconcile.journals import differing, last_compared, note_compared, to_compare, whose_turn
from analytics.reconcile.reconcile_user import Reconciler, Verdict
from rules.engagement.ledger_doubts import LAKE_LAG, Doubt, lake_is_at_fault
from rules.smoke_names import is_smoke

RESULT = "differences.json"


@dataclass(slots=True)
class Findings:
    """What a nightly run's reconciliation found. All numbers are numbers of users.

    compared: ledgers that were compared with the lake. different, unrepaired, contended: user ids.
    disagreements: (user, what), if the ledger table is broken or the lake's copy differs from it. frozen:
    those of these users whose redemptions wait for an admin; in a dry run, would wait. lowered: how many
    lapsed streaks were taken out of the leaderboard's index; in a dry run, how many would be.
    """

    users: int = 0
    compared: int = 0
    looked_at: int = 0
    in_flight: int = 0
    different: list[str] = field(default_factory=list)
    unrepaired: list[str] = field(default_factory=list)
    contended: list[str] = field(default_factory=list)
    behind: int = 0
    settled: int = 0
    lowered: int = 0
    differences: list[Difference] = field(default_factory=list)
    disagreements: list[tuple[str, str]] = field(default_factory=list)
    frozen: list[str] = field(default_factory=list)

    def add(self, user_id: str, verdict: Verdict) -> None:
        """Add what was found of one user."""
        self.behind += verdict.is_behind
        self.settled += verdict.is_settled
        self.disagreements += [(user_id, what) for what in verdict.disagreements]
        self.differences += verdict.differences
        if verdict.differences:
            self.different.append(user_id)
            if not verdict.is_repaired:
                self.unrepaired.append(user_id)

    @property
    def counts(self) -> dict[str, int]:
        """Return the run's figures."""
        return {
            "users": self.users,
            "compared": self.compared,
            "looked_at": self.looked_at,
            "in_flight": self.in_flight,
            "different": len(self.different),
            "differences": len(self.differences),
            "repaired": len(self.different) - len(self.unrepaired),
            "unrepaired": len(self.unrepaired),
            "contended": len(self.contended),
            "behind": self.behind,
            "settled": self.settled,
            "lowered": self.lowered,
            "lake_disagreements": len(self.disagreements),
            "frozen": len(self.frozen),
        }

    def save(self, objects: Objects, run_id: str) -> str:
        """Store the findings as the nightly run's result; returns its key."""
        key = run_key(run_id, RESULT)
        told: dict[str, Any] = {"counts": self.counts, **asdict(self)}
        objects.put(key, json.dumps(told, indent=1, default=str).encode())
        return key


@dataclass(frozen=True, slots=True)
class ReconcileScope:
    """What to compare. span: first and last activity date of the days; None: those that have changed since
    ledgers were compared before, or all days, by a scan, if that was never done.

    everybody: look closely at each user, even at those who look right, so that all days and every ledger are
    checked. Otherwise each user has a turn within NIGHTS nights.
    """

    span: tuple[date, date] | None = None
    everybody: bool = False


def reconcile(
    objects: Objects, run_id: str, reconciler: Reconciler, now: datetime, scope: ReconcileScope
) -> Findings:
    """Compare the tables with the nightly run's recompute; check and repair whoever differs by the ledger.

    Users of smoke tests are left out: their rows stay in the lake, and nothing of them in the tables.

    Raises adapters.platform.objects.NoObject if the recompute has left no result.
    """
    lake = Snapshot(Recomputed.load(objects, run_id).table)
    scan = scan_profiles(reconciler.projections, lake, reconciler.shards, now)
    before = None if scope.everybody else last_compared(objects)
    days, long_ago = _days(objects, scope, before)
    candidates = scan.candidates | long_ago | scan_days(reconciler.projections, days)
    if scope.everybody:
        candidates |= scan.seen
    if before:
        candidates |= whose_turn(lake, before, now)
    compared = {each for each in to_compare(lake, before) if not is_smoke(each)}
    candidates |= differing(reconciler.accounts.ledger, lake, sorted(compared - candidates))
    candidates = {each for each in candidates if not is_smoke(each)}
    findings = Findings(len(scan.seen), len(compared | candidates), len(candidates), scan.in_flight)
    _examine(findings, reconciler, lake, sorted(candidates), now)
    _lower(findings, reconciler, scan.lapsed)
    if reconciler.repair:
        note_compared(objects, now)
    return findings


def _days(objects: Objects, scope: ReconcileScope, before: datetime | None) -> tuple[LakeDays, set[str]]:
    """Return the days to compare; and users of whom all days are to be compared."""
    if scope.span or before is None:
        return LakeDays.read(objects, *(scope.span or (None, None))), set()
    return LakeDays.touched(objects, before - LAKE_LAG)


def _lower(findings: Findings, reconciler: Reconciler, lapsed: Iterable[Item]) -> None:
    wrong = {*findings.different, *findings.frozen}
    lapsed = [each for each in lapsed if each["user_id"]["S"] not in wrong]
    if reconciler.repair:
        with ThreadPoolExecutor(SEGMENTS) as pool:
            findings.lowered = sum(pool.map(reconciler.projections.lower, lapsed))
    else:
        findings.lowered = len(lapsed)


def _examine(
    findings: Findings, reconciler: Reconciler, lake: Snapshot, users: Iterable[str], now: datetime
) -> None:
    def look(user_id: str) -> tuple[str, Verdict | None]:
        try:
            return user_id, reconciler.examine(user_id, lake.user(user_id), now)
        except AccountContended:
            return user_id, None  # Others keep writing to this account. The next nightly run looks again.

    doubted: dict[str, Verdict] = {}
    with ThreadPoolExecutor(SEGMENTS) as pool:
        for user_id, verdict in pool.map(look, users):
            if verdict is None:
                findings.contended.append(user_id)
                continue
            findings.add(user_id, verdict)
            if verdict.doubt in (Doubt.CONTRADICTED, Doubt.LACKING):
                doubted[user_id] = verdict
    _freeze(findings, reconciler, lake, doubted, now)


def _freeze(
    findings: Findings, reconciler: Reconciler, lake: Snapshot, doubted: dict[str, Verdict], now: datetime
) -> None:
    """Let redemptions wait. If the lake lacks entries of very many accounts, it is the lake that is wrong."""
    lacking = [user for user, verdict in doubted.items() if verdict.doubt is Doubt.LACKING]
    left_out = set(lacking) if lake_is_at_fault(len(lacking), findings.users) else set()
    for user_id in sorted(doubted.keys() - left_out):
        try:
            if reconciler.repair:
                reconciler.freeze(user_id, lake.user(user_id), doubted[user_id].disagreements, now)
        except AccountContended:
            findings.contended.append(user_id)
        findings.frozen.append(user_id)
