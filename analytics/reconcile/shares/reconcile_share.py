"""Reconciles a share of the users: the cheap phase, then a close look at each candidate, then lapsed streaks.

The cheap phase compares profiles and days with the lake, and the ledgers whose turn it is. What a call has no
time for is done by the next one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from adapters.engagement.account_store import AccountContended
from adapters.platform.items import Item
from adapters.platform.objects import Objects
from adapters.privacy.tombstones import NO_ERASURES, ErasureCheck
from analytics.lake.layout import curated_files
from analytics.recompute.lake_days import LakeDays
from analytics.recompute.recompute import RecomputedUsers, Snapshot
from analytics.recompute.settled_users import UserShare
from analytics.reconcile.candidates import SEGMENTS, ProfileScan, scan_days, scan_profiles
from analytics.reconcile.journals import differs, users_due, users_to_compare
from analytics.reconcile.reconcile_user import Reconciler, Verdict
from analytics.reconcile.shares.findings import PROGRESS, RESULT, Findings
from analytics.reconcile.shares.night_plan import NightPlan
from analytics.reconcile.shares.split import TableScans
from rules.engagement.reconciliation import LAKE_LAG
from rules.lake.residue import is_residue
from rules.privacy.tombstones import user_subject
from rules.smoke_names import is_smoke

USERS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Suspects:
    """Whom to look at: closely, and by their ledger alone unless that differs. lake: what it says of all."""

    scan: ProfileScan
    closely: frozenset[str]
    by_ledger: frozenset[str]
    lake: Snapshot


@dataclass(slots=True)
class LookResult:
    """What a look at a user gave. verdict: None if the ledger was enough, or others keep writing."""

    verdict: Verdict | None = None
    is_contended: bool = False
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class ShareReconciliation:
    """A share's comparison. has_time: whether to look at more users; the rest is for the next call."""

    objects: Objects
    plan: NightPlan
    share: UserShare
    reconciler: Reconciler
    has_time: Callable[[], bool] = lambda: True
    erased: ErasureCheck = NO_ERASURES

    def run(self, now: datetime) -> Findings:
        """Compare a share of the tables with its recompute; repair by the ledger.

        If users are left for another call, the findings' `after` is set. Users of smoke tests, and those who
        were erased, are left out: their rows stay in the lake, and nothing of them in the tables. A share is
        done once. Raises adapters.platform.objects.NoObject if the recompute has left no result.
        """
        run_id = self.plan.run_id
        if done := Findings.of_share(self.objects, run_id, self.share):
            return done
        findings = Findings.of_share(self.objects, run_id, self.share, PROGRESS) or Findings()
        suspects = self._suspects(now)
        wanted = sorted(suspects.closely | suspects.by_ledger)
        left = [each for each in wanted if findings.after is None or each > findings.after]
        try:
            is_done = self._look_at(findings, suspects, left, now)
        except Exception:
            findings.save_share(self.objects, run_id, self.share, PROGRESS)  # what was repaired is told
            raise
        if is_done:
            findings.after = None
            findings.users, findings.in_flight = len(suspects.scan.seen), suspects.scan.in_flight
            findings.compared = len(wanted)
            self._lower(findings, suspects.scan.lapsed)
        findings.save_share(self.objects, run_id, self.share, RESULT if is_done else PROGRESS)
        return findings

    def _suspects(self, now: datetime) -> Suspects:
        plan, reconciler = self.plan, self.reconciler
        lake = Snapshot(RecomputedUsers.load(self.objects, plan.run_id, self.share).table)
        scans = TableScans(self.objects, plan, reconciler.projections)
        scan = scan_profiles(scans.of("profiles", self.share), lake, reconciler.accounts.shards, now)
        before = plan.before[self.share.number]
        days, long_ago = self._days(before)
        if days.is_whole:
            looked = scan_days(scans.of("days", self.share), days)
        else:
            looked = scan_days([partial(reconciler.projections.some_days, days.table_keys())], days)
        closely = scan.candidates | long_ago | looked
        if plan.everybody:
            closely |= scan.seen
        if before:
            closely |= users_due(lake, before, plan.at)
        closely = {each for each in closely if not self._is_left_out(each)}
        by_ledger = {each for each in users_to_compare(lake, before) if not self._is_left_out(each)}
        return Suspects(scan, frozenset(closely), frozenset(by_ledger - closely), lake)

    def _is_left_out(self, user_id: str) -> bool:
        """Whether lake and tables differ for a reason: of smoke tests, and of users who were erased.

        Also of one who came anew: the lake has another past of that id.
        """
        if is_smoke(user_id) or is_residue(user_id):
            return True
        return self.erased.of(user_subject(user_id)) is not None

    def _days(self, before: datetime | None) -> tuple[LakeDays, set[str]]:
        """Return the days to compare; and users of whom all days are to be compared."""
        folder = self.share.key(self.plan.run_id) if self.share.of > 1 else ""
        files = curated_files(self.objects, "ledger", folder=folder)
        if self.plan.span or before is None:
            since, until = self.plan.span or (None, None)
            return LakeDays.read(self.objects, since, until, files), set()
        return LakeDays.touched(self.objects, before - LAKE_LAG, files)

    def _look_at(self, findings: Findings, suspects: Suspects, users: Sequence[str], now: datetime) -> bool:
        """Look at users in this order, some at least; returns whether there was time for all."""

        def look(user_id: str) -> LookResult:
            known, ledger = suspects.lake.user(user_id), self.reconciler.accounts.ledger
            if user_id in suspects.by_ledger and not differs(ledger, known, user_id, self.reconciler.witness):
                return LookResult()
            try:
                return LookResult(self.reconciler.examine(user_id, known, now))
            except AccountContended:
                return LookResult(is_contended=True)  # The next nightly run looks again.
            except Exception as error:  # noqa: BLE001 (raised below, after what came of the others is noted)
                return LookResult(error=error)

        with ThreadPoolExecutor(SEGMENTS) as pool:
            for start in range(0, len(users), USERS_AT_ONCE):
                if start and not self.has_time():
                    return False
                some = users[start : start + USERS_AT_ONCE]
                _note(findings, dict(zip(some, pool.map(look, some), strict=True)))
                findings.heads += self.reconciler.witness.brought() if self.reconciler.witness else []
                findings.after = some[-1]
        return True

    def _lower(self, findings: Findings, lapsed: Iterable[Item]) -> None:
        wrong = {*findings.different, *(user for users in findings.doubted.values() for user in users)}
        lapsed = [each for each in lapsed if each["user_id"]["S"] not in wrong]
        if self.reconciler.repair:
            with ThreadPoolExecutor(SEGMENTS) as pool:
                findings.lowered = sum(pool.map(self.reconciler.projections.lower, lapsed))
        else:
            findings.lowered = len(lapsed)


def _note(findings: Findings, looked_at: Mapping[str, LookResult]) -> None:
    """Add what came of some users; raises the first error."""
    for user_id, looked in looked_at.items():
        if looked.is_contended:
            findings.contended.append(user_id)
        if looked.verdict:
            findings.add(user_id, looked.verdict)
    for looked in looked_at.values():
        if looked.error:
            raise looked.error
