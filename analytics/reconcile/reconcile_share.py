"""The reconciliation of one share of the users.

First profiles and days are compared with the lake, which is cheap and finds the suspects. Then each suspect
is examined, or only the suspect's ledger is checked. Last, lapsed streaks leave the leaderboard's index. If a
call has no time for all of it, the next one goes on.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from adapters.engagement.account_items import lapsed_attributes, profile_attributes
from adapters.engagement.account_store import AccountContended
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.objects import Objects
from adapters.platform.tables import chunks
from adapters.privacy.tombstones import NO_ERASURES, ErasureCheck
from analytics.proof import NO_CHECK
from analytics.recompute.lake_days import days_between, days_touched
from analytics.recompute.lake_users import LakeUser, LakeUsers
from analytics.recompute.user_shares import UserShare
from analytics.reconcile.findings import PROGRESS, RESULT, Findings, NightPlan
from analytics.reconcile.journals import day_item, figures_of, journal_of
from analytics.reconcile.reconcile_user import Reconciler, Verdict
from analytics.reconcile.stored_profiles import readable_profile
from rules.book.daily import DailyTerms
from rules.engagement.account_state import Day, Profile
from rules.engagement.brought_forward import brought_forward_as
from rules.engagement.reconciliation import LAKE_LAG, REVIEW, contradictions, has_lapsed
from rules.engagement.review import is_in_doubt
from rules.engagement.streak import is_consistent_streak
from rules.lake.residues import is_residue
from rules.privacy.tombstones import user_subject
from rules.smoke_names import is_smoke
from rules.turns import NIGHTS, slice_of, slices_due

SEGMENTS = 8  # parts of a table that are scanned side by side
THREADS = 8
DAYS_AT_ONCE = 1000
Scan = Callable[[], Iterable[list[Item]]]  # returns a part of a table, page by page
ReadDays = Callable[[Iterable[Mapping[str, str]]], Iterable[list[Item]]]  # returns the items of some keys
USERS_AT_ONCE = 256
# A date ends at another instant in each zone, and a clock may be late.
ZONES_SPAN = timedelta(days=2)
# The fields of a profile that entries set
SETTINGS = (
    *("cover", "chosen_zone", "observed_zone", "observed_at", "tz_changes", "zones_seen", "skews_seen"),
    *(*REVIEW, "reviewed_since", "released_at", "holds", "repairs", "past_entry", "amnesties"),
    "period_points",
)


@dataclass(slots=True)
class ProfileScan:
    """The result of a pass over the profiles."""

    seen: set[str] = field(default_factory=set)  # users with a profile
    candidates: set[str] = field(default_factory=set)  # users to examine
    lapsed: list[Item] = field(default_factory=list)  # profiles to take out of the leaderboard's index
    in_flight: int = 0  # the number of profiles that count entries that are not in the lake yet

    def add(self, other: "ProfileScan") -> None:
        """Add the result of another part of the table."""
        self.seen |= other.seen
        self.candidates |= other.candidates
        self.lapsed += other.lapsed
        self.in_flight += other.in_flight


@dataclass(frozen=True, slots=True)
class RightItems:
    """What decides how a profile's item is written, besides the profile."""

    shards: int  # of a region in the leaderboard's index
    daily_terms: DailyTerms  # what the books say of dates
    pay_bonuses: bool = False  # whether a book pays for achievements


def scan_profiles(
    scans: Sequence[Scan], expected: Iterable[str], lake: LakeUsers, items: RightItems, now: datetime
) -> ProfileScan:
    """Scan the profiles of some parts of the table.

    expected: users whom the lake knows. One of them without a profile is a candidate, too.
    items: how a right item is written.
    """

    def run_scan(scan: Scan) -> ProfileScan:
        result = ProfileScan()
        for page in scan():
            for item in page:
                _scan_profile(result, item, lake, items, now)
        return result

    total = ProfileScan()
    with ThreadPoolExecutor(THREADS) as pool:
        for result in pool.map(run_scan, scans):
            total.add(result)
    total.candidates |= {user for user in expected if user not in total.seen}
    return total


def _scan_profile(
    result: ProfileScan, stored: Item, lake: LakeUsers, items: RightItems, now: datetime
) -> None:
    user_id = stored["user_id"]["S"]
    result.seen.add(user_id)
    user = lake.user(user_id)
    if is_ahead(stored, user):
        result.in_flight += 1
    if not looks_right(stored, user, items, now):
        result.candidates.add(user_id)
    elif "run_length" not in stored and has_lapsed(decode_item(stored).get("lapses_at"), now):
        result.lapsed.append(stored)


def is_ahead(stored: Item, lake: LakeUser | None) -> bool:
    """Whether a profile counts entries that are not in the lake yet."""
    head = stored.get("ledger_head", {}).get("S", "")
    return bool(head > (lake.head or "" if lake else ""))


def looks_right(stored: Item, lake: LakeUser | None, items: RightItems, now: datetime) -> bool:
    """Whether a profile agrees with the lake, and its item is exactly as this system would write it."""
    profile = readable_profile(stored, items.daily_terms)
    if profile is None or lake is None or not lake.is_sound:
        return False
    if not _is_as_written(stored, profile, items.shards, now):
        return False
    if profile.streak and not is_consistent_streak(profile.streak, profile.cover):
        return False
    head = (profile.head.created_at, profile.head.seq) if profile.head else (None, None)
    journal = (profile.total_points, profile.bonus_points, profile.balance, *head)
    if journal != (lake.total_points, lake.profile.bonus_points, lake.balance, lake.head, lake.seq):
        return False
    # The lake does not have the streak as of each date. So the stored sums are taken, and compared below.
    sums = profile.cover.brought_forward
    whole = replace(lake.profile, streak=lake.streak)
    by_lake = brought_forward_as(whole, profile, sums.start if sums else None)
    names = ["streak", *(name for name in SETTINGS if not (name in REVIEW and is_in_doubt(profile)))]
    return all(getattr(profile, name) == getattr(by_lake, name) for name in names)


def _is_as_written(stored: Item, profile: Profile, shards: int, now: datetime) -> bool:
    """Whether this system has written an item for the profile. A lapsed streak may have two forms."""
    attributes = profile_attributes(profile, shards)
    if stored == encode_item(attributes):
        return True
    is_lapsed = has_lapsed(attributes.get("lapses_at"), now)
    return is_lapsed and bool(stored == encode_item(lapsed_attributes(attributes)))


def users_of_other_days(days: Iterable[Day], read: ReadDays) -> set[str]:
    """Return the users for whom DailyActivity lacks one of these days, or has another item of it."""
    users: set[str] = set()
    for batch in chunks(days, DAYS_AT_ONCE):
        expected = {(day.user_id, day.activity_date.isoformat()): day_item(day) for day in batch}
        for page in read([{"user_id": user, "activity_date": when} for user, when in expected]):
            for stored in page:
                key = stored["user_id"]["S"], stored["activity_date"]["S"]
                if stored == expected[key]:
                    del expected[key]
        users.update(user for user, _ in expected)
    return users


@dataclass(frozen=True, slots=True)
class Suspects:
    """The users to look at."""

    scan: ProfileScan
    to_examine: frozenset[str]  # their items are compared with their whole ledger
    # Their ledger is compared with the lake. If it differs, they are examined, too.
    to_check: frozenset[str]
    lake: LakeUsers  # the share's users, as the lake has them


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
        is not compared again. Users of smoke tests, and those who were erased, are left out: the lake has
        rows of them, and the tables have no items. Raises NoObject if the recompute has left no result.
        """
        run_id = self.plan.run_id
        if result := Findings.of_share(self.objects, run_id, self.share):
            return result
        findings = Findings.of_share(self.objects, run_id, self.share, PROGRESS) or Findings()
        suspects = self._suspects(now)
        all_suspects = sorted(suspects.to_examine | suspects.to_check)
        users_left = [user for user in all_suspects if user > (findings.after or "")]
        try:
            is_done = self._look_at(findings, suspects, users_left, now)
            if is_done:
                self._remove_lapsed_from_leaderboard(findings, suspects.scan.lapsed)
        except Exception:
            # The report then names the users who were repaired before the error.
            findings.save_share(self.objects, run_id, self.share, PROGRESS)
            raise
        if is_done:
            findings.after, findings.examined = None, []
            findings.users = len(suspects.scan.seen.union(suspects.lake.ids))
            findings.in_flight = suspects.scan.in_flight
            findings.compared = len(all_suspects)
        findings.save_share(self.objects, run_id, self.share, RESULT if is_done else PROGRESS)
        return findings

    def _suspects(self, now: datetime) -> Suspects:
        lake = LakeUsers.load(self.objects, self.plan.run_id, self.share)
        last_compared_at = self.plan.last_compared_at[self.share.number]
        if self.plan.everybody or last_compared_at is None:
            return self._all_users(lake, now)
        return self._changed_since(last_compared_at, lake, now)

    def _all_users(self, lake: LakeUsers, now: datetime) -> Suspects:
        scans = [partial(self._profiles, set(), segment, SEGMENTS) for segment in range(SEGMENTS)]
        scan = scan_profiles(scans, lake.ids, lake, self._right_items(), now)
        return Suspects(scan, self._without_left_out({*lake.ids, *scan.seen}), frozenset(), lake)

    def _changed_since(self, last_compared_at: datetime, lake: LakeUsers, now: datetime) -> Suspects:
        """Return the users who have changed since then, those whose turn it is, and those who differ.

        Each night some segments of the table of profiles are scanned, too: it may have users whom the lake
        lacks.
        """
        projections = self.reconciler.projections
        # Each number, from 0 to 27, is used twice: as a slice of the users by hash, and as a segment of a
        # scan of the table. A slice and a segment of the same number have different users.
        turns = slices_due(last_compared_at.date(), self.plan.at.date())
        having_turn = {user for user in lake.ids if slice_of(user) in turns}
        touched = lake.touched(last_compared_at - LAKE_LAG)
        lapsing = lake.lapsing(last_compared_at.date() - ZONES_SPAN, now.date() + ZONES_SPAN)
        expected = self._without_left_out(having_turn | touched | lapsing)
        read_expected = partial(projections.some_profiles, sorted(expected))
        scans = [partial(self._profiles, expected, segment, NIGHTS) for segment in turns]
        scan = scan_profiles([read_expected, *scans], expected, lake, self._right_items(), now)
        users_of_unread_days: set[str] = set()  # the lake's days of these users are incomplete
        if self.plan.span:  # the operator has named dates to compare
            days = days_between(self.objects, *self.plan.span, self.share)
        else:
            days, users_of_unread_days = days_touched(self.objects, last_compared_at - LAKE_LAG, self.share)
        users_of_wrong_days = users_of_other_days(days, projections.some_days)
        to_examine = self._without_left_out(
            scan.candidates | having_turn | users_of_unread_days | users_of_wrong_days
        )
        return Suspects(scan, to_examine, (expected & touched) - to_examine, lake)

    def _right_items(self) -> RightItems:
        accounts = self.reconciler.accounts
        return RightItems(accounts.shards, accounts.daily_terms())

    def _profiles(self, left_out: Collection[str], segment: int, segments: int) -> Iterator[list[Item]]:
        """Yield pages of the share's profiles in a segment of the table, without those of `left_out`."""
        for page in self.reconciler.projections.scan_profiles(segment, segments):
            users = [item["user_id"]["S"] for item in page]
            yield [
                item
                for item, user in zip(page, users, strict=True)
                if user not in left_out and self.share.has(user)
            ]

    def _without_left_out(self, users: Iterable[str]) -> frozenset[str]:
        """Return the users without those of smoke tests, and without those who were erased.

        Also a user who has returned after an erasure is left out: the lake has rows from before it, too.
        """
        return frozenset(
            user
            for user in users
            if not (is_smoke(user) or is_residue(user) or self.erased.of(user_subject(user)))
        )

    def _look_at(self, findings: Findings, suspects: Suspects, users: Sequence[str], now: datetime) -> bool:
        """Look at users in this order; returns whether there was time for all.

        The first USERS_AT_ONCE are looked at in any case, so each call makes progress. After an error the
        next call looks at the same users again, because their goals may not be written.
        """
        look = partial(self._look_at_user, suspects, now)
        with ThreadPoolExecutor(THREADS) as pool:
            for start in range(0, len(users), USERS_AT_ONCE):
                if start and not self.has_time():
                    return False
                batch = users[start : start + USERS_AT_ONCE]
                results = dict(zip(batch, pool.map(look, batch), strict=True))
                errors = _add_results(findings, results)
                if self.reconciler.previous_tree:
                    findings.heads += self.reconciler.previous_tree.take_heads()
                if self.reconciler.goal_rows:
                    self.reconciler.goal_rows.write(now)
                if errors:
                    raise next(iter(errors.values()))
                findings.after = batch[-1]
                findings.examined = [user for user in findings.examined if user > batch[-1]]
        return True

    def _look_at_user(self, suspects: Suspects, now: datetime, user_id: str) -> Verdict | Exception | None:
        """Look at one user; None: the check of the ledger was enough.

        An error is returned, so that the results of the others are not lost.
        """
        lake = suspects.lake.user(user_id)
        try:
            if user_id in suspects.to_check and self._passes_check(user_id, lake):
                return None
            return self.reconciler.examine(user_id, lake, now)
        except Exception as error:  # noqa: BLE001 (_look_at raises it)
            return error

    def _passes_check(self, user_id: str, lake: LakeUser | None) -> bool:
        """Check a user's ledger; returns False if the user must be examined.

        That is so if the ledger is broken, or contradicts the lake's copy of it or the last published root of
        all ledgers' heads. A ledger that passes is passed on to tonight's tree and to the rows of goals. The
        ledger is read eventually consistent, which costs half: if it seems to differ, `examine` reads it
        again.
        """
        tree, goal_rows = self.reconciler.previous_tree, self.reconciler.goal_rows
        entries, faults = journal_of(self.reconciler.accounts.ledger, user_id, is_strong=False)
        check = tree.check(user_id, entries) if tree else NO_CHECK
        if faults or check.faults or contradictions(entries, figures_of(lake)):
            return False
        if tree:
            tree.note_head(user_id, check.head)
        if goal_rows:
            goal_rows.fold(user_id, entries)
        return True

    def _remove_lapsed_from_leaderboard(self, findings: Findings, lapsed: Iterable[Item]) -> None:
        """Lower lapsed streaks: show them as 0, and take them out of the index (Projections.lower).

        Users with differences or doubts stay as they are until a night finds them right.
        """
        wrong = {*findings.different, *(user for users in findings.doubted.values() for user in users)}
        lapsed = [item for item in lapsed if item["user_id"]["S"] not in wrong]
        if self.reconciler.may_repair:
            results = self.reconciler.projections.lower_all(lapsed)
            findings.lowered += results.count(True)
            for error in results:
                if isinstance(error, BaseException):
                    raise error  # the next call lowers those that are left
        else:
            findings.lowered = len(lapsed)


def _add_results(
    findings: Findings, results: Mapping[str, Verdict | Exception | None]
) -> dict[str, Exception]:
    """Add the results of users, but nobody's twice; returns the errors among them, by user."""
    errors, added = {}, {*findings.examined}
    for user_id, result in results.items():
        if isinstance(result, Exception) and not isinstance(result, AccountContended):
            errors[user_id] = result
        elif result is not None and user_id not in added:
            findings.examined.append(user_id)
            if isinstance(result, Verdict):
                findings.add(user_id, result)
            else:
                findings.contended.append(user_id)
    return errors
