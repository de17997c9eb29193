"""Fills the tables of engagement again from the lake, one user after the other (rule 21).

Stored items stay. So a restore may die anywhere and run again: it writes the items that are still missing. A
table that is to be replaced gets the items that the lake has, and loses all others.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby

from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.platform.item_tables import ItemTable
from adapters.platform.items import Item
from adapters.platform.tables import chunks
from adapters.privacy.tombstones import Tombstones, subjects_of
from analytics.reconcile.journals import journal_of
from analytics.reconcile.reconcile_share import RightItems
from analytics.reconcile.reconcile_user import Reconciler
from analytics.restore.restored_users import DAYS, LEDGER, ORDER, PROFILES, Lack, RebuiltUser, rebuild_user
from analytics.restore.user_rows import LakeBefore, LakeRows, Row
from rules.days import unstamp
from rules.engagement.ledger import Entry, EntryKind
from rules.lake.table_items import is_of_other_thing, item_of
from rules.privacy.tombstones import Tombstone, user_subject
from rules.user_ids import user_holder

ERASURES, RULES = "Erasures", "RuleBooks"
RESTORED = (ERASURES, RULES, *ORDER)
WRITTEN_AT = ("created_at", "updated_at", "received_at", "since")
COPIED_AT_ONCE = 1_000


@dataclass(slots=True)
class RestoreReport:
    """The figures of a restore."""

    users: int = 0
    erased: int = 0  # erased persons, who were not brought back
    # What the lake has of parts, by PartRestore.counted
    others: Counter[str] = field(default_factory=Counter)
    repaired: int = 0  # accounts that the nightly comparison has repaired
    changes: Counter[str] = field(default_factory=Counter)  # items written or deleted, by table
    lacks: list[Lack] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Restorer:
    """Restores users' tables from the lake."""

    lake: LakeBefore
    tables: Mapping[str, ItemTable]  # by name in the template, of RESTORED
    accounts: AccountStore
    reconciler: Reconciler
    cache: EngagementCache
    erased: Tombstones  # they are read again once the lake's tombstones are written
    keep: Collection[str] = ()  # tables that are not written
    replaced: Collection[str] = ()  # tables that get the lake's items, and lose all others

    def run(self, now: datetime, progress: Callable[[RestoreReport], None] = lambda _: None) -> RestoreReport:
        """Restore all users. It is safe to repeat. Raises AccountContended."""
        report = RestoreReport()
        partitions = self._restore_ownerless(report)
        self.erased.look()
        with closing(self.lake.users()) as users:
            for rows in users:
                tombstone = self.erased.of(user_subject(rows.user_id))
                if tombstone and tombstone.stands:
                    report.erased += 1
                    continue
                partitions |= {rows.user_id, user_holder(rows.user_id)}
                self._restore_user(rows_since_lifted(rows, tombstone), report, now)
                report.users += 1
                progress(report)
        for table in sorted(self._tables_to_replace):
            report.changes[table] += self._remove_others(table, partitions)
        return report

    @property
    def _tables_to_replace(self) -> set[str]:
        """The tables that lose what the lake lacks, none that is kept. A tombstone is never taken back."""
        return {*self.replaced} & {*RESTORED} - {*self.keep} - {ERASURES}

    def _restore_ownerless(self, report: RestoreReport) -> set[str]:
        """Write tombstones, books, amnesties and stocks; returns their partition keys."""
        partitions = set()
        for store, rows in groupby(self.lake.ownerless_items(), key=lambda row: str(row["store"])):
            table = self.tables[store]
            items = [item_of(row["item"]) for row in rows]
            for partition, partition_items in groupby(items, key=table.partition_of):
                report.changes[store] += self._write(store, partition, list(partition_items))
                partitions.add(partition)
        return partitions

    def _restore_user(self, rows: LakeRows, report: RestoreReport, now: datetime) -> None:
        """Restore one user's items, and let the comparison examine the account."""
        stored: list[Entry] = []
        if LEDGER not in self._tables_to_replace:
            stored, _ = journal_of(self.accounts.ledger, rows.user_id)
        accounts = self.accounts
        items = RightItems(accounts.shards, accounts.daily_terms(), accounts.pay_bonuses())
        user = rebuild_user(rows, stored, items, now)
        if LEDGER not in self.keep:
            for entry in user.entries_to_mark:
                self.tables[LEDGER].put(entry)
            report.changes[LEDGER] += len(user.entries_to_mark)
        for table in ORDER:
            report.changes[table] += self._write(
                table, _partition(table, rows.user_id), user.items.get(table, ())
            )
        report.lacks += self._final_lacks(user)
        if user.items:
            self._reconcile(user, report, now)

    def _final_lacks(self, user: RebuiltUser) -> Iterator[Lack]:
        """Yield a user's lacks, without those of items that their tables still have."""
        for table, lacks in groupby(sorted(user.lacks), key=lambda lack: lack.store):
            by_key = {
                (_partition(table, user.user_id), lack.sort_key): lack for lack in lacks if lack.sort_key
            }
            stored = self.tables[table].stored_keys(by_key)
            yield from (lack for key, lack in by_key.items() if key not in stored)
        yield from (lack for lack in user.lacks if not lack.sort_key)

    def _write(self, table: str, partition: str, items: Iterable[Item]) -> int:
        """Write the items of one partition key; returns how many were written or deleted."""
        if table in self.keep:
            return 0
        if table in self._tables_to_replace:
            return self.tables[table].make_equal(partition, items)
        return self.tables[table].put_missing(items)

    def _reconcile(self, user: RebuiltUser, report: RestoreReport, now: datetime) -> None:
        """Let the nightly comparison examine the account: items that stayed may be of another time.

        It repairs the account unless a table that it would write is kept.
        """
        may_repair = self.reconciler.may_repair and {DAYS, PROFILES}.isdisjoint(self.keep)
        verdict = replace(self.reconciler, may_repair=may_repair).examine(user.user_id, None, now)
        report.repaired += verdict.is_repaired
        report.lacks += [Lack(LEDGER, user.user_id, disagreement) for disagreement in verdict.disagreements]
        if self.cache.is_configured and self.cache.forget(user.user_id, now):
            self.cache.write_through([self.accounts.profile(user.user_id)])

    def _remove_others(self, table: str, partitions: Collection[str]) -> int:
        """Delete the items of all other partition keys; returns how many. Leads' claims stay."""
        deleted = 0
        for item in self.tables[table].all_items():
            partition = self.tables[table].partition_of(item)
            if partition not in partitions and not is_of_other_thing(table, partition):
                self.tables[table].delete(item)
                deleted += 1
        return deleted


def _partition(table: str, user_id: str) -> str:
    """Return the partition key of a user's items."""
    return user_holder(user_id) if table == "Rewards" else user_id


def copy_table(source: ItemTable, to: ItemTable, erased: Tombstones) -> tuple[int, int]:
    """Copy a table that came back by point-in-time recovery; returns how many items were put, and refused.

    Stored items stay. Items of persons who were erased are refused. Of a person who signed up again after the
    erasure, only items with a later time are copied.
    """
    put = refused = 0
    for items in chunks(source.all_items(), COPIED_AT_ONCE):
        allowed = [item for item in items if not _is_refused(item, erased)]
        refused += len(items) - len(allowed)
        put += to.put_missing(allowed)
    return put, refused


def _is_refused(item: Item, erased: Tombstones) -> bool:
    """Whether a person whom an item names was erased after the item was written."""
    return any(erased.forbids(subject, _time_of(item)) for subject in subjects_of(item))


def _time_of(item: Item) -> str:
    """Return when an item was last written, or its event's time if that is earlier; "" if nothing says it."""
    written_at = max((item[name].get("S", "") for name in WRITTEN_AT if name in item), default="")
    return min(written_at, str(item.get("occurred_at", {}).get("S", written_at)))


def rows_since_lifted(rows: LakeRows, tombstone: Tombstone | None) -> LakeRows:
    """Return a person's rows since the tombstone was lifted; all rows if there is no tombstone."""
    if tombstone is None:
        return rows
    lifted = unstamp(tombstone.lifted_at)
    return LakeRows(
        rows.user_id,
        [row for row in rows.ledger if row["kind"] == EntryKind.OPEN or row["created_at"] >= lifted],
        _rows_since(lifted, rows.events, "created_at"),
        _rows_since(lifted, rows.streaks, "updated_at"),
        {store: _rows_since(lifted, items, "changed_at") for store, items in rows.items.items()},
    )


def _rows_since(instant: datetime, rows: Iterable[Row], column: str) -> list[Row]:
    return [row for row in rows if row[column] >= instant]
