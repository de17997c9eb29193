"""The reconciliation of one share of the users.

First a cheap phase compares profiles and days with the lake. Then each suspect is looked at closely, or by
the ledger alone. At last lapsed streaks are lowered. What a call has no time for is done by the next one.
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
from analytics.reconcile.journals import differs, users_due
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
    """The users to look at."""

    scan: ProfileScan
    closely: frozenset[str]
    by_ledger: frozenset[str]  # by their ledger, and closely only if that differs
    lake: Snapshot  # what the lake says of all users


@dataclass(slots=True)
class LookResult:
    """What a look at a user gave."""

    verdict: Verdict | None = None  # None: the ledger was enough, or others keep writing
    is_contended: bool = False
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class ShareReconciliation:
    """A share's comparison."""

    objects: Objects
    plan: NightPlan
    share: UserShare
    reconciler: Reconciler
    has_time: Callable[[], bool] = lambda: True  # whether to look at more users in this call
    erased: ErasureCheck = NO_ERASURES

    def run(self, now: datetime) -> Findings:
        """Compare a share of the tables with its recompute, and repair by the ledger.

        Returns the findings. If users are left for another call, their `after` is set. A share that is done
        is not compared again. Users of smoke tests, and those who were erased, are left out: their rows stay
        in the lake, and nothing of them in the tables. Raises NoObject if the recompute has left no result.
        """
        run_id = self.plan.run_id
        if result := Findings.of_share(self.objects, run_id, self.share):
            return result
        findings = Findings.of_share(self.objects, run_id, self.share, PROGRESS) or Findings()
        suspects = self._suspects(now)
        wanted = sorted(suspects.closely | suspects.by_ledger)
        left = [user for user in wanted if findings.after is None or user > findings.after]
        try:
            is_done = self._look_at(findings, suspects, left, now)
        except Exception:
            findings.save_share(self.objects, run_id, self.share, PROGRESS)  # the report names repairs
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
        due, touched = users_due(lake, before, self.plan.at), lake.touched(before - LAKE_LAG)
        lapsing = lake.lapsing(before.date() - ZONES_SPAN, now.date() + ZONES_SPAN)
        expected = self._wanted(due | touched | lapsing)
        # A part of the table is read each night, too: it may have users whom the lake does not know.
        parts = slices_due(before.date(), self.plan.at.date())
        scans = [partial(self._profiles, expected, part, NIGHTS) for part in parts]
        read_expected = partial(projections.some_profiles, sorted(expected))
        scan = self._scan([read_expected, *scans], expected, lake, now)
        if self.plan.span:
            days, long_ago = days_between(self.objects, *self.plan.span, self.share), set[str]()
        else:
            days, long_ago = days_touched(self.objects, before - LAKE_LAG, self.share)
        differing = users_of_other_days(days, projections.some_days)
        closely = self._wanted(scan.candidates | due | long_ago | differing)
        return Suspects(scan, closely, (expected & touched) - closely, lake)

    def _scan(
        self, scans: Sequence[Scan], expected: Iterable[str], lake: Snapshot, now: datetime
    ) -> ProfileScan:
        return scan_profiles(scans, expected, lake, self.reconciler.accounts.shards, now)

    def _profiles(self, left_out: Collection[str], part: int, parts: int) -> Iterator[list[Item]]:
        """Yield the share's profiles in a part of the table, without those of some users."""
        for page in self.reconciler.projections.scan_profiles(part, parts):
            users = [item["user_id"]["S"] for item in page]
            yield [
                item
                for item, user in zip(page, users, strict=True)
                if user not in left_out and self.share.has(user)
            ]

    def _wanted(self, users: Iterable[str]) -> frozenset[str]:
        return frozenset(user for user in users if not self._is_left_out(user))

    def _is_left_out(self, user_id: str) -> bool:
        """Whether lake and tables differ for a reason: the user is of a smoke test, or was erased.

        A user who came again after an erasure is left out, too: the lake has another past of that id.
        """
        if is_smoke(user_id) or is_residue(user_id):
            return True
        return self.erased.of(user_subject(user_id)) is not None

    def _look_at(self, findings: Findings, suspects: Suspects, users: Sequence[str], now: datetime) -> bool:
        """Look at users in this order, at the first ones at least; returns whether there was time for all."""
        look = partial(self._look, suspects, now)
        with ThreadPoolExecutor(SEGMENTS) as pool:
            for start in range(0, len(users), USERS_AT_ONCE):
                if start and not self.has_time():
                    return False
                batch = users[start : start + USERS_AT_ONCE]
                _add_results(findings, dict(zip(batch, pool.map(look, batch), strict=True)))
                findings.heads += self.reconciler.witness.take_heads() if self.reconciler.witness else []
                if self.reconciler.goals:
                    self.reconciler.goals.write(now)
                findings.after = batch[-1]
        return True

    def _look(self, suspects: Suspects, now: datetime, user_id: str) -> LookResult:
        """Look at one user. An error is returned, so that the findings have what came of the others."""
        lake, reconciler = suspects.lake.user(user_id), self.reconciler
        ledger, witness, goals = reconciler.accounts.ledger, reconciler.witness, reconciler.goals
        if user_id in suspects.by_ledger and not differs(ledger, lake, user_id, witness, goals):
            return LookResult()
        try:
            return LookResult(reconciler.examine(user_id, lake, now))
        except AccountContended:
            return LookResult(is_contended=True)  # The next nightly run looks again.
        except Exception as error:  # noqa: BLE001 (_add_results raises it)
            return LookResult(error=error)

    def _lower(self, findings: Findings, lapsed: Iterable[Item]) -> None:
        """Take lapsed streaks out of the leaderboard's index, but for users who are not as they must be."""
        wrong = {*findings.different, *(user for users in findings.doubted.values() for user in users)}
        lapsed = [item for item in lapsed if item["user_id"]["S"] not in wrong]
        if self.reconciler.repair:
            with ThreadPoolExecutor(SEGMENTS) as pool:
                findings.lowered = sum(pool.map(self.reconciler.projections.lower, lapsed))
        else:
            findings.lowered = len(lapsed)


def _add_results(findings: Findings, results: Mapping[str, LookResult]) -> None:
    """Add the results of some users to the findings, and then raise the first error among them."""
    for user_id, result in results.items():
        if result.is_contended:
            findings.contended.append(user_id)
        if result.verdict:
            findings.add(user_id, result.verdict)
    for result in results.values():
        if result.error:
            raise result.error
