"""Fills the tables of engagement again, one user after the other (rule 21).

What is there stays, so it may die anywhere and run again: then it writes what is missing yet, and at the end
nothing. A table that is to be replaced gets what the lake had, and loses what the lake did not have.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.platform.item_tables import ItemTable
from adapters.platform.items import Item
from adapters.privacy.tombstones import Tombstones, subject_of
from analytics.reconcile.journals import journal_of
from analytics.reconcile.reconcile_user import Reconciler
from analytics.restore.restored_users import LEDGER, ORDER, RebuiltUser, rebuild_user
from analytics.restore.user_rows import Lack, LakeBefore, LakeRows, Row
from rules.days import unstamp
from rules.engagement.ledger import EntryKind
from rules.lake.table_items import OTHERS, item_of
from rules.privacy.tombstones import Tombstone, user_subject

ERASURES, RULES = "Erasures", "RuleBooks"
RESTORED = (ERASURES, RULES, *ORDER)
WRITTEN_AT = ("created_at", "updated_at", "received_at")


@dataclass(slots=True)
class RestoreReport:
    """What a restore has done."""

    users: int = 0
    erased: int = 0  # how many persons were not brought back
    phones: int = 0  # phones, lead_events: how many the lake has
    lead_events: int = 0
    erased_events: int = 0  # those of them that are of erased leads
    repaired: int = 0
    written: Counter[str] = field(default_factory=Counter)  # items by table
    lacks: list[Lack] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Restorer:
    """Restores users' tables from the lake."""

    lake: LakeBefore
    tables: Mapping[str, ItemTable]  # by name in the template, of RESTORED
    accounts: AccountStore
    reconciler: Reconciler
    cache: EngagementCache
    erased: Tombstones  # is asked afresh
    keep: Collection[str] = ()  # tables that are not written
    replaced: Collection[str] = ()  # tables that get what the lake has and nothing else

    def run(self, now: datetime, progress: Callable[[RestoreReport], None] = lambda _: None) -> RestoreReport:
        """Restore everybody. Raises AccountContended; it is safe to repeat."""
        report = RestoreReport()
        seen = self._nobody_s(report)
        self.erased.look()
        with closing(self.lake.users()) as users:
            for rows in users:
                tombstone = self.erased.of(user_subject(rows.user_id))
                if tombstone and tombstone.stands:
                    report.erased += 1
                    continue
                seen.add(rows.user_id)
                self._user(rows_since_lifted(rows, tombstone), report, now)
                report.users += 1
                progress(report)
        for table in sorted({*self.replaced} & {*RESTORED} - {ERASURES}):
            report.written[table] += self._remove_others(table, seen)
        return report

    def _nobody_s(self, report: RestoreReport) -> set[str]:
        """Write tombstones, books, amnesties and stocks; returns their partitions."""
        seen = set()
        for store, rows in groupby(self.lake.nobody_s(), key=lambda row: str(row["store"])):
            table = self.tables[store]
            items = [item_of(row["item"]) for row in rows]
            for first, some in groupby(items, key=table.partition_of):
                report.written[store] += self._write(store, first, list(some))
                seen.add(first)
        return seen

    def _user(self, rows: LakeRows, report: RestoreReport, now: datetime) -> None:
        is_new = LEDGER in self.replaced
        there = [] if is_new else journal_of(self.accounts.ledger, rows.user_id)[0]
        found = rebuild_user(rows, there, self.accounts.shards, now)
        report.lacks += found.lacks
        if LEDGER not in self.keep:
            for each in found.remarked:
                self.tables[LEDGER].put(each)
            report.written[LEDGER] += len(found.remarked)
        for table in ORDER:
            report.written[table] += self._write(table, rows.user_id, found.items.get(table, ()))
        if found.items:
            self._agree(found, report, now)

    def _write(self, table: str, first: str, items: Iterable[Item]) -> int:
        if table in self.keep:
            return 0
        if table in self.replaced and table != ERASURES:  # a tombstone is never taken back
            return self.tables[table].make_equal(first, items)
        return self.tables[table].put_missing(items)

    def _agree(self, user: RebuiltUser, report: RestoreReport, now: datetime) -> None:
        """Let the ordinary comparison look at the account: what was there already may be of another time."""
        verdict = self.reconciler.examine(user.user_id, None, now)
        report.repaired += verdict.is_repaired
        report.lacks += [Lack(LEDGER, user.user_id, disagreement) for disagreement in verdict.disagreements]
        if self.cache.is_configured and self.cache.forget(user.user_id, now):
            self.cache.write_through([self.accounts.profile(user.user_id)])

    def _remove_others(self, table: str, seen: Collection[str]) -> int:
        """Delete items of users whom the lake did not know; returns how many. Leads' claims stay."""
        gone = 0
        for item in self.tables[table].all_items():
            first = self.tables[table].partition_of(item)
            if first not in seen and OTHERS.isdisjoint(first):
                self.tables[table].delete(item)
                gone += 1
        return gone


def copy_table(source: ItemTable, to: ItemTable, erased: Tombstones) -> tuple[int, int]:
    """Copy a table that came back by point-in-time recovery; returns how many items were put, and refused.

    What is there stays. Items of persons who were erased are refused; of those who came anew, what does not
    tell that it is of later.
    """
    refused = 0
    allowed: list[Item] = []
    put = 0
    for item in source.all_items():
        if (subject := subject_of(item)) and erased.forbids(subject, _told_at(item)):
            refused += 1
            continue
        allowed.append(item)
        if len(allowed) == 1000:
            put += to.put_missing(allowed)
            allowed = []
    return put + to.put_missing(allowed), refused


def _told_at(stored: Item) -> str:
    """Return when an item was written, or what it tells occurred; "" if it does not say."""
    written = max((stored[name]["S"] for name in WRITTEN_AT if name in stored), default="")
    return min(written, str(stored.get("occurred_at", {}).get("S", written)))


def rows_since_lifted(rows: LakeRows, tombstone: Tombstone | None) -> LakeRows:
    """Return rows without those of before a person came anew, if that person was erased."""
    if tombstone is None:
        return rows
    lifted = unstamp(tombstone.lifted_at)

    def stays(row: Row, at: str) -> bool:
        return bool(row[at] >= lifted)

    return LakeRows(
        rows.user_id,
        [each for each in rows.ledger if each["kind"] == EntryKind.OPEN or stays(each, "created_at")],
        [event for event in rows.events if stays(event, "created_at")],
        [streak for streak in rows.streaks if stays(streak, "updated_at")],
        {store: [each for each in some if stays(each, "changed_at")] for store, some in rows.items.items()},
    )
