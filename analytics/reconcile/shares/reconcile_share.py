"""Reconciles a share of the users: the cheap phase, then a close look at each candidate, then lapsed streaks.

The cheap phase compares profiles and days with the lake, and the ledgers whose turn it is. What a call has no
time for is done by the next one.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from adapters.engagement.account_store import AccountContended
from adapters.platform.items import Item
from adapters.platform.objects import Objects
from adapters.privacy.tombstones import NO_ERASURES, ErasureCheck
from analytics.recompute.lake_days import days_between, days_touched
from analytics.recompute.recompute import RecomputedUsers, Snapshot
from analytics.recompute.user_shares import UserShare
from analytics.reconcile.candidates import SEGMENTS, ProfileScan, Scan, scan_profiles, users_of_other_days
from analytics.reconcile.journals import differs, users_due, users_to_compare
from analytics.reconcile.reconcile_user import Reconciler, Verdict
from analytics.reconcile.shares.findings import PROGRESS, RESULT, Findings
from analytics.reconcile.shares.night_plan import NightPlan
from rules.engagement.reconciliation import LAKE_LAG
from rules.lake.residue import is_residue
from rules.privacy.tombstones import user_subject
from rules.smoke_names import is_smoke
from rules.turns import NIGHTS, slices_due

USERS_AT_ONCE = 256
ZONES_SPAN = timedelta(days=2)  # a date begins, and a clock may be late


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
            findings.users = len(suspects.scan.seen.union(suspects.lake.ids))
            findings.in_flight = suspects.scan.in_flight
            findings.compared = len(wanted)
            self._lower(findings, suspects.scan.lapsed)
        findings.save_share(self.objects, run_id, self.share, RESULT if is_done else PROGRESS)
        return findings

    def _suspects(self, now: datetime) -> Suspects:
        lake = Snapshot(RecomputedUsers.load(self.objects, self.plan.run_id, self.share).table)
        before = self.plan.before[self.share.number]
        if self.plan.everybody or before is None:
            scan = self._scan(
                [partial(self._profiles, set(), n, SEGMENTS) for n in range(SEGMENTS)], lake.ids, lake, now
            )
            return Suspects(scan, self._wanted({*lake.ids, *scan.seen}), frozenset(), lake)
        projections = self.reconciler.projections
        due, touched = users_due(lake, before, self.plan.at), users_to_compare(lake, before)
        lapsing = lake.lapsing(before.date() - ZONES_SPAN, now.date() + ZONES_SPAN)
        named = self._wanted(due | touched | lapsing)
        # Each night a part of the table, too: somebody may be there whom the lake does not know.
        parts = slices_due(before.date(), self.plan.at.date())
        scans = [partial(self._profiles, named, part, NIGHTS) for part in parts]
        scan = self._scan([partial(projections.some_profiles, sorted(named)), *scans], named, lake, now)
        if self.plan.span:
            days, long_ago = days_between(self.objects, *self.plan.span, self.share), set[str]()
        else:
            days, long_ago = days_touched(self.objects, before - LAKE_LAG, self.share)
        differing = users_of_other_days(days, projections.some_days)
        closely = self._wanted(scan.candidates | due | long_ago | differing)
        return Suspects(scan, closely, (named & touched) - closely, lake)

    def _scan(
        self, scans: Sequence[Scan], known: Iterable[str], lake: Snapshot, now: datetime
    ) -> ProfileScan:
        return scan_profiles(scans, known, lake, self.reconciler.accounts.shards, now)

    def _profiles(self, others: Collection[str], part: int, parts: int) -> Iterator[list[Item]]:
        """Yield the share's profiles in a part of the table, but for those of other users."""
        for page in self.reconciler.projections.scan_profiles(part, parts):
            ids = [each["user_id"]["S"] for each in page]
            yield [
                each
                for each, user in zip(page, ids, strict=True)
                if user not in others and self.share.has(user)
            ]

    def _wanted(self, users: Iterable[str]) -> frozenset[str]:
        return frozenset(user for user in users if not self._is_left_out(user))

    def _is_left_out(self, user_id: str) -> bool:
        """Whether lake and tables differ for a reason: of smoke tests, and of users who were erased.

        Also of one who came anew: the lake has another past of that id.
        """
        if is_smoke(user_id) or is_residue(user_id):
            return True
        return self.erased.of(user_subject(user_id)) is not None

    def _look_at(self, findings: Findings, suspects: Suspects, users: Sequence[str], now: datetime) -> bool:
        """Look at users in this order, some at least; returns whether there was time for all."""

        def look(user_id: str) -> LookResult:
            known, own = suspects.lake.user(user_id), self.reconciler
            if user_id in suspects.by_ledger and not differs(
                own.accounts.ledger, known, user_id, own.witness, own.goals
            ):
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
                if self.reconciler.goals:
                    self.reconciler.goals.write(now)
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
