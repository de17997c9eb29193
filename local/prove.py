"""`streakline proof`: proofs of ledger entries against the root that each night publishes (rule 19).

A night hashes each account's entries into one digest (the account's leaf), and all leaves into one root. A
proof has the hashes that lead from an entry to its account's leaf, and from this leaf to the root.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from adapters.engagement.account_items import entry_from
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import Item
from adapters.platform.objects import Objects, S3Objects
from adapters.platform.tables import BEFORE_ALL, chunks
from analytics.lake import curated_files, layout
from analytics.ledger_copies import TABLE, CopyFault, copy_faults, lake_copies, warehouse_copies
from analytics.proof import HEADS, LedgerTree, root_fault
from analytics.reconcile.stored_profiles import UNREADABLE
from analytics.warehouse.warehouse import NoWarehouse, Warehouse
from local import check_proof
from local.command import FILE, FILE_OUT, command, option, show
from local.stack import Stack
from local.stores import accounts_of, lake_of, warehouse_of
from rules.days import stamp, stamp_of_key
from rules.engagement.carriers import with_carried
from rules.engagement.ledger import OPENED_AT, Entry, entry_id
from rules.engagement.proof import (
    DROPPED,
    LedgerFault,
    LedgerLink,
    bucket_of,
    chain_of,
    link_of,
    own_faults,
    proof_of,
)
from rules.engagement.reconciliation import LAKE_LAG
from rules.lake.residues import is_residue

ACCOUNTS_AT_ONCE = 1000
LAKE, WAREHOUSE = "lake", "warehouse"
FAULTS_PRINTED_MAX = 1000


def proof(
    objects: Objects, roots: Objects, ledger: LedgerStore, user_id: str, wanted: str = ""
) -> dict[str, Any]:
    """Return the proof of an entry. wanted: its id, created_at or seq; "": the newest that the root has.

    Raises RuntimeError if no night has published a root, if there is no such entry, or if the ledger or the
    tree contradicts the last root.
    """
    last_night, bucket = LedgerTree.read(objects), bucket_of(user_id)
    if fault := root_fault(last_night, roots):
        raise RuntimeError(f"{HEADS} was changed: {fault}")
    if not last_night.at:
        raise RuntimeError("there is no root yet: the first nightly run publishes one")
    entries, _ = ledger.after(user_id, BEFORE_ALL)
    links = list(map(link_of, entries))
    chain, leaves = chain_of(user_id, links), last_night.leaves(objects, bucket)
    account_leaf = leaves.get(chain.tag) if chain else None
    if chain is None or account_leaf is None:
        raise RuntimeError(f"the root of {last_night.at} lacks {user_id}: the next nightly run adds the user")
    if faults := own_faults(links):
        texts = "; ".join(fault.text for fault in faults)
        raise RuntimeError(f"the ledger of {user_id} contradicts itself: {texts}")
    if chain.leaf_at(account_leaf.seq) != account_leaf.digest:
        raise RuntimeError(
            f"the ledger of {user_id} is not the one of the last root: `streakline proof audit`"
        )
    entry = _entry_named(entries, account_leaf.seq, wanted)
    path_to_root = last_night.path(leaves, bucket, chain.tag)
    return proof_of(entry, chain, account_leaf.seq, path_to_root, last_night.root)


def _entry_named(entries: list[Entry], newest_seq: int, wanted: str) -> Entry:
    """Return an entry; raises RuntimeError if there is none, or if it is newer than the last root's."""
    wanted = wanted or str(newest_seq)
    for entry in entries:
        if wanted in (entry_id(entry.created_at), entry.created_at, str(entry.seq)):
            if entry.seq > newest_seq:
                raise RuntimeError(f"entry {wanted} is newer than the last root: the next nightly run has it")
            return entry
    raise RuntimeError(f"there is no entry {wanted}")


@dataclass(frozen=True, slots=True)
class Auditor:
    """Compares the copies of ledgers in table, lake and warehouse with each other and with the last root."""

    objects: Objects
    ledger: LedgerStore
    warehouse: Warehouse | None  # None leaves it out
    before: str  # entries created after this stamp may be on their way to the lake and the warehouse

    def audit(self, accounts: Iterable[str]) -> Iterator[CopyFault]:
        """Yield what is wrong with the copies of these accounts. Reads the lake once per 1,000 accounts."""
        last_night = LedgerTree.read(self.objects)
        for chunk in chunks(sorted(set(accounts)), ACCOUNTS_AT_ONCE):
            in_lake = lake_copies(self.objects, chunk)
            in_warehouse = warehouse_copies(self.warehouse, chunk) if self.warehouse else {}
            for account in chunk:
                entries, missing, unreadable = self._read_table(account)
                yield from unreadable
                for entry in missing:
                    if entry.created_at < self.before:
                        yield CopyFault(account, TABLE, LedgerFault(entry.seq, DROPPED, entry.created_at))
                copies = {TABLE: list(map(link_of, entries)), LAKE: in_lake.get(account, [])}
                if self.warehouse:
                    copies[WAREHOUSE] = in_warehouse.get(account, [])
                yield from self._account_faults(account, copies, entries, last_night)

    def _read_table(self, account: str) -> tuple[list[Entry], list[Entry], list[CopyFault]]:
        """Return an account's entries, those of them that the table lacks, and faults of unreadable items.

        Another entry carries an entry that the table lacks. The account's next writer stores it.
        """
        readable: list[Entry] = []
        faults = []
        for item in self.ledger.stored_after(account, BEFORE_ALL):
            try:
                readable.append(_entry(item))
            except UNREADABLE as error:
                seq = item.get("seq", {}).get("N", "")
                what = f"made unreadable ({type(error).__name__}: {error})"
                place = stamp_of_key(item["created_at"]["S"])
                fault = LedgerFault(int(seq) if seq.isdigit() else 0, what, place)
                faults.append(CopyFault(account, TABLE, fault))
        entries, missing = with_carried(readable)
        return entries, missing, faults

    def _account_faults(
        self, account: str, copies: dict[str, list[LedgerLink]], entries: list[Entry], last_night: LedgerTree
    ) -> Iterator[CopyFault]:
        """Yield the faults of an account's copies, also against its leaf in the last root, if it has one.

        Only a chain tells under which tag the leaf is, so the first copy whose chain has a leaf decides.
        """
        leaves = last_night.leaves(self.objects, bucket_of(account))
        chains = [chain_of(account, copy) for copy in copies.values()]
        account_leaf = next((leaves[chain.tag] for chain in chains if chain and chain.tag in leaves), None)
        # The lake and the warehouse must have the entries up to this one.
        # OPEN is as old as time itself, so it is due only if another entry is.
        due = (entry.seq for entry in entries if OPENED_AT < entry.created_at < self.before)
        newest_due_seq = max(due, default=-1)
        complete_until = dict.fromkeys((LAKE, WAREHOUSE), newest_due_seq)
        yield from copy_faults(account, copies, account_leaf, complete_until)


def _entry(stored: Item) -> Entry:
    """Return an item's entry. Raises an error of UNREADABLE, also for a number that is no integer."""
    entry = entry_from(stored)
    for number in (entry.seq, entry.balance, entry.draft.points):
        if type(number) is not int:
            raise TypeError(f"{number!r} is no number")
    return entry


@command("proof make --user ann", "proof make --user ann --entry 12 --out twelfth.json")
@option("--user", required=True, metavar="ID")
@option("--entry", default="", metavar="ID", help="its id or seq", show_default="the newest with a root")
@option("--out", type=FILE_OUT, default=Path("proof.json"), help="where to write it")
def make(stack: Stack, user: str, entry: str, out: Path) -> Any:
    """Write a small file that proves an entry of a user's ledger."""
    document = proof(lake_of(stack), _roots_of(stack), accounts_of(stack).ledger, user, entry)
    out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    seq = int(next(value for name, _, value in document["entry"]["shown"] if name == "seq"))
    newest = seq + len(document["after"])
    return {"entry": seq, "proven_up_to_entry": newest, "root": document["root"], "file": str(out)}


def _roots_of(stack: Stack) -> S3Objects:
    return S3Objects(stack.client("s3"), stack.outputs["RootsBucketName"])


@command("proof check proof.json --root 64_HEXADECIMAL_DIGITS")
@click.argument("file", type=FILE)
@option(
    "--root",
    required=True,
    help="64 hexadecimal digits: of a nightly report, and not of whoever sent the file",
)
def check_command(file: Path, root: str) -> None:
    """Verify a proof with nothing but its file and the announced root."""
    print("\n".join(["proven:", *check_proof.check(file, root)]))


@command("proof audit", "proof audit --user ann --user bob")
@option("--user", "users", multiple=True, metavar="ID", help="these alone; repeatable", show_default="all")
def audit_command(stack: Stack, users: Sequence[str], as_json: bool) -> None:
    """Hold table, lake and warehouse against each other and the last root; fails if a copy is wrong."""
    lake = lake_of(stack)
    before = copied_before(LedgerTree.read(lake).at, datetime.now(UTC))
    accounts = set(users) or accounts_in(lake)
    deployed = warehouse_of(stack)
    warehouse = None if isinstance(deployed, NoWarehouse) else deployed
    faults = [
        fault.text for fault in Auditor(lake, accounts_of(stack).ledger, warehouse, before).audit(accounts)
    ]
    if fault := root_fault(LedgerTree.read(lake), _roots_of(stack)):
        faults.insert(0, f"{HEADS} was changed: {fault}")
    texts = faults[:FAULTS_PRINTED_MAX]
    if as_json:
        show({"accounts": len(accounts), "faults": len(faults), "first_faults": texts}, as_json=True)
    else:
        print("\n".join([*texts, f"{len(accounts)} accounts; {len(faults)} faults"]))
    if faults:
        raise RuntimeError("copies of the ledger differ: see docs/runbook.md")


def copied_before(night: str, now: datetime) -> str:
    """Return the stamp before which the lake and the warehouse must have all entries: a night copies them.

    night: when the last one began; "": there was none, so nothing is due.
    """
    return stamp(min(now, datetime.fromisoformat(night)) - LAKE_LAG) if night else ""


def accounts_in(objects: Objects) -> set[str]:
    """Return all accounts that the lake has, but for residues."""
    accounts: set[str] = set()
    files = layout.curated_files(objects, "ledger")
    for _, table in curated_files.tables(objects, "ledger", files, ("account_id",)):
        accounts.update(table["account_id"].unique().to_pylist())
    return {account for account in accounts if not is_residue(account)}
