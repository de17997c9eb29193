"""`streakline prove` and `audit` (rule 19): audit compares all copies of ledgers with each other and the last
root.
"""

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from adapters.engagement.account_items import entry_from
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import Item
from adapters.platform.objects import Objects, S3Objects
from adapters.platform.tables import BEFORE_ALL, chunks
from analytics.lake import curated_files, layout
from analytics.proof import TABLE, CopyFault, Heads, copy_faults, lake_copies, warehouse_copies
from analytics.reconcile.profile_settings import UNREADABLE
from analytics.warehouse.warehouse import NoWarehouse, Warehouse
from local.smoke.lake import warehouse_of
from local.stack import Stack, accounts_of
from rules.days import stamp
from rules.engagement.ledger import Entry, entry_id, with_carried
from rules.engagement.proof import (
    DROPPED,
    LedgerFault,
    LedgerLink,
    bucket_of,
    chain_of,
    fault_texts,
    link_of,
    own_faults,
    proof_of,
)
from rules.engagement.reconciliation import LAKE_LAG
from rules.lake.residue import is_residue

# Makes a proof from the table and what the last night has left in the lake (rule 19).


def proof(objects: Objects, ledger: LedgerStore, user_id: str, named: str = "") -> dict[str, Any]:
    """Return the proof of an entry: by its id, its place or its seq; of the newest one that has a root.

    Raises RuntimeError if there is none, or if the ledger contradicts the last root.
    """
    entries, _ = ledger.after(user_id, BEFORE_ALL)
    links = list(map(link_of, entries))
    heads, bucket = Heads.read(objects), bucket_of(user_id)
    chain, leaves = chain_of(user_id, links), heads.leaves(objects, bucket)
    leaf = leaves.get(chain.name) if chain else None
    if chain is None or leaf is None:
        raise RuntimeError(f"no root has {user_id} yet: the next nightly run writes one")
    if faults := own_faults(user_id, links):
        raise RuntimeError(f"the ledger of {user_id} contradicts itself: {'; '.join(fault_texts(faults))}")
    if chain.leaf_at(leaf.seq) != leaf.digest:
        raise RuntimeError(f"the ledger of {user_id} is not the one of the last root: `streakline audit`")
    entry = _named(entries, leaf.seq, named)
    return proof_of(entry, chain, leaf.seq, heads.path(leaves, bucket, chain.name), heads.root)


def _named(entries: list[Entry], newest: int, named: str) -> Entry:
    wanted = named or str(newest)
    for each in entries:
        if wanted in (entry_id(each.created_at), each.created_at, str(each.seq)):
            if each.seq > newest:
                raise RuntimeError(f"entry {wanted} is newer than the last root: the next nightly run has it")
            return each
    raise RuntimeError(f"there is no entry {wanted}")


# Audits accounts: table, lake and warehouse against each other and the last root (rule 19).


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
        """Yield what is wrong with the copies of these accounts. Reads the lake once per 1,000 accounts."""
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
                yield from self._account_faults(account, copies, entries, heads)

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
        return *with_carried(readable), faults

    def _account_faults(
        self, account: str, copies: dict[str, list[LedgerLink]], entries: list[Entry], heads: Heads
    ) -> Iterator[CopyFault]:
        leaves = heads.leaves(self.objects, bucket_of(account))
        names = [chain_of(account, each) for each in copies.values()]
        leaf = next((leaves[each.name] for each in names if each and each.name in leaves), None)
        newest_settled_seq = max((each.seq for each in entries if each.created_at < self.before), default=-1)
        settled = dict.fromkeys((LAKE, WAREHOUSE), newest_settled_seq)
        yield from copy_faults(account, copies, leaf, settled)


def _entry(stored: Item) -> Entry:
    """Read an entry; raises an error of UNREADABLE also for numbers that are none."""
    found = entry_from(stored)
    for number in (found.seq, found.balance, found.draft.points):
        if type(number) is not int:
            raise TypeError(f"{number!r} is no number")
    return found


SHOWN_MAX = 1000


def prove(arguments: argparse.Namespace, stack: Stack) -> dict[str, Any]:
    """Write a proof; returns what it is of."""
    made = proof(_lake(stack), accounts_of(stack).ledger, arguments.user, arguments.entry)
    arguments.out.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    seq = next(value for name, _, value in made["entry"]["shown"] if name == "seq")
    return {"entry": int(seq), "root": made["root"], "file": str(arguments.out)}


def audit(arguments: argparse.Namespace, stack: Stack) -> None:
    """Print what is wrong with any copy of these users' ledgers; raises RuntimeError if something is."""
    lake, before = _lake(stack), stamp(datetime.now(UTC) - LAKE_LAG)
    users = set(arguments.user) or accounts_in(lake)
    warehouse = warehouse_of(stack)
    checked_warehouse = None if isinstance(warehouse, NoWarehouse) else warehouse
    auditor = Auditor(lake, accounts_of(stack).ledger, checked_warehouse, before)
    found = list(auditor.audit(users))
    print(
        "\n".join([*(each.text for each in found[:SHOWN_MAX]), f"{len(users)} accounts; {len(found)} faults"])
    )
    if found:
        raise RuntimeError("copies of the ledger differ: see docs/runbook.md")


def accounts_in(objects: Objects) -> set[str]:
    """Return all accounts that the lake has, but for residues."""
    found: set[str] = set()
    files = layout.curated_files(objects, "ledger")
    for _, table in curated_files.tables(objects, "ledger", files, ("account_id",)):
        found.update(table["account_id"].unique().to_pylist())
    return {each for each in found if not is_residue(each)}


def _lake(stack: Stack) -> Objects:
    return S3Objects(stack.client("s3"), stack.outputs["LakeBucketName"])
