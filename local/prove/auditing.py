"""Audits accounts: table, lake and warehouse against each other and the last root (rule 19)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from adapters.engagement.account_items import entry_from
from adapters.engagement.account_store import BEFORE_ALL
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import Item
from adapters.platform.objects import Objects
from adapters.platform.tables import chunks
from analytics.proof import TABLE, CopyFault, Heads, audited, lake_copies, warehouse_copies
from analytics.reconcile.profile_settings import UNREADABLE
from analytics.warehouse.warehouse import Warehouse
from rules.engagement.ledger import Entry, with_folded
from rules.engagement.proof import DROPPED, LedgerFault, LedgerLink, bucket_of, chain_of, link_of

AT_ONCE = 1000
LAKE, WAREHOUSE = "lake", "warehouse"


@dataclass(frozen=True, slots=True)
class Auditor:
    """warehouse: None leaves it out. before: entries after this place may be on their way to the lake."""

    objects: Objects
    ledger: LedgerStore
    warehouse: Warehouse | None
    before: str

    def audit(self, accounts: Iterable[str]) -> Iterator[CopyFault]:
        """Yield what is wrong with the copies of these accounts. The lake's history is read once in 1,000."""
        heads = Heads.read(self.objects)
        for some in chunks(sorted(set(accounts)), AT_ONCE):
            lake = lake_copies(self.objects, some)
            loaded = warehouse_copies(self.warehouse, some) if self.warehouse else {}
            for account in some:
                entries, missing, unreadable = self._read(account)
                yield from unreadable
                for each in missing:  # its carrier tells what it was, and the next writer puts it
                    if each.created_at < self.before:
                        yield CopyFault(account, TABLE, LedgerFault(each.seq, DROPPED, each.created_at))
                copies = {TABLE: list(map(link_of, entries)), LAKE: lake.get(account, [])}
                if self.warehouse:
                    copies[WAREHOUSE] = loaded.get(account, [])
                yield from self._one(account, copies, entries, heads)

    def _read(self, account: str) -> tuple[list[Entry], list[Entry], list[CopyFault]]:
        """Return an account's entries in the table, those not stored yet, and those that cannot be read."""
        readable: list[Entry] = []
        faults = []
        for each in self.ledger.stored_after(account, BEFORE_ALL):
            try:
                readable.append(_entry(each))
            except UNREADABLE as error:
                seq = each.get("seq", {}).get("N", "")
                what = f"made unreadable ({type(error).__name__}: {error})"
                fault = LedgerFault(int(seq) if seq.isdigit() else 0, what, each["created_at"]["S"])
                faults.append(CopyFault(account, TABLE, fault))
        return *with_folded(readable), faults

    def _one(
        self, account: str, copies: dict[str, list[LedgerLink]], entries: list[Entry], heads: Heads
    ) -> Iterator[CopyFault]:
        known = heads.leaves(self.objects, bucket_of(account))
        names = [chain_of(account, each) for each in copies.values()]
        leaf = next((known[each.name] for each in names if each and each.name in known), None)
        whole = max((each.seq for each in entries if each.created_at < self.before), default=-1)
        yield from audited(account, copies, leaf, {LAKE: whole, WAREHOUSE: whole})


def _entry(stored: Item) -> Entry:
    """Read an entry; raises an error of UNREADABLE also for numbers that are none."""
    found = entry_from(stored)
    for number in (found.seq, found.balance, found.draft.points):
        if type(number) is not int:
            raise TypeError(f"{number!r} is no number")
    return found
