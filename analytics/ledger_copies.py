"""Compares all copies of an account's ledger with each other, and with the last root (rule 19).

Table, lake and warehouse have one copy each. They are compared account by account.

A *link* is an entry as a copy has it. Its *place* is the entry's created_at. A copy is *sound* if the hashes
of its entries lead to the account's leaf in the tree of the last night (rules/engagement/proof.py). Of later
entries no root says which copy is right: there the table is taken for sound, and the fault says so.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adapters.platform.objects import Objects, StoredObject
from analytics.lake import curated_files, layout
from analytics.warehouse.statements import literal_lists
from analytics.warehouse.warehouse import Warehouse
from rules.engagement.proof import (
    DROPPED,
    FLIPPED,
    HIDDEN_FIELDS,
    SHOWN_FIELDS,
    LedgerFault,
    LedgerLink,
    TreeLeaf,
    chain_differences,
    chain_of,
    encoded_fields,
    fields_of,
    own_faults,
)
from rules.lake.residues import is_residue

TABLE = "table"
COLUMNS = (*SHOWN_FIELDS, *HIDDEN_FIELDS, "seal")
Copies = dict[str, list[LedgerLink]]  # by account


@dataclass(frozen=True, slots=True)
class CopyFault:
    """A fault of one copy of an account's ledger."""

    account: str
    copy: str  # table, lake or warehouse
    fault: LedgerFault

    @property
    def text(self) -> str:
        """The fault in words."""
        return f"{self.account}: {self.copy}: {self.fault.text}"


def copy_faults(
    account: str,
    copies: Mapping[str, Sequence[LedgerLink]],
    leaf: TreeLeaf | None = None,
    complete_until: Mapping[str, int] | None = None,
) -> Iterator[CopyFault]:
    """Yield the faults of the copies of one account.

    All are compared with the table's copy if it is sound, otherwise with another sound one. leaf: of the
    account in the last root; None: no root has the account. complete_until: the seq up to which each copy
    must be complete, by copy. Later entries may be on their way to it.
    """
    names = sorted(copies, key=lambda name: name != TABLE)  # the table first: the others follow from it
    sound = next((name for name in names if _is_sound(account, copies[name], leaf)), None)
    proven_until = leaf.seq if leaf else -1
    if sound is None:
        yield from _faults_without_root(account, copies, leaf)
        return
    for name in names:
        if name == sound:
            continue
        last = (complete_until or {}).get(name, copies[sound][-1].seq)
        for fault in chain_differences(copies[name], copies[sound]):
            if fault.change == DROPPED and fault.seq > last:
                continue  # it is on its way
            told = fault.change
            if fault.seq > proven_until:
                told += f", unless the {sound} is wrong: no root has it yet"
            yield CopyFault(account, name, replace(fault, change=told))


def _faults_without_root(
    account: str, copies: Mapping[str, Sequence[LedgerLink]], leaf: TreeLeaf | None
) -> Iterator[CopyFault]:
    """Yield how each copy contradicts itself or the root, if no copy is sound."""
    for name, links in copies.items():
        faults = own_faults(links)
        yield from (CopyFault(account, name, fault) for fault in faults)
        if leaf and links and not faults:
            yield CopyFault(
                account, name, LedgerFault(leaf.seq, f"{FLIPPED}, or one before it: the root differs")
            )


def _is_sound(account: str, links: Sequence[LedgerLink], leaf: TreeLeaf | None) -> bool:
    if not links or own_faults(links):
        return False
    if leaf is None:  # no root says anything of this account
        return True
    chain = chain_of(account, links)
    return chain is not None and chain.leaf_at(leaf.seq) == leaf.digest


def link_of_row(row: Mapping[str, Any]) -> LedgerLink:
    """Return the link that a row of the lake or the warehouse has.

    Its column `seal` is hexadecimal. A ledger's first entry has the salt there. The residue of an erased
    person's entry has the commitment to the hidden fields; at the first entry, a blank and the account's tag
    follow. Otherwise it is empty.
    """
    seal, _, tag = (row["seal"] or "").partition(" ")
    hidden_fields = fields_of(row, HIDDEN_FIELDS)
    place = {field: value for field, _, value in hidden_fields}["created_at"]
    shown = encoded_fields(fields_of(row, SHOWN_FIELDS))
    if is_residue(row["account_id"]):
        committed = bytes.fromhex(seal)
        return LedgerLink(row["seq"], place, shown, None, committed, tag=bytes.fromhex(tag))
    return LedgerLink(row["seq"], place, shown, encoded_fields(hidden_fields), salt=bytes.fromhex(seal))


def lake_copies(
    objects: Objects, accounts: Collection[str], files: Iterable[StoredObject] | None = None
) -> Copies:
    """Return the lake's copies of some accounts. files: the files to read; None: all of the ledger."""
    wanted = pa.array(sorted(accounts), pa.string())
    rows: list[Mapping[str, Any]] = []
    if files is None:
        files = layout.curated_files(objects, "ledger")
    for _, table in curated_files.tables(objects, "ledger", files, COLUMNS):
        rows += table.filter(pc.is_in(table["account_id"], wanted)).to_pylist()
    return _by_account(rows)


def warehouse_copies(warehouse: Warehouse, accounts: Collection[str]) -> Copies:
    """Return the warehouse's copies of some accounts."""
    rows = list[Mapping[str, Any]]()
    names = ", ".join(f'"{column}"' for column in COLUMNS)
    for ids in literal_lists(sorted(accounts)):
        rows += warehouse.rows(f"SELECT {names} FROM lake.ledger WHERE account_id IN ({ids})")  # noqa: S608 (quoted)
    return _by_account(rows)


def _by_account(rows: Iterable[Mapping[str, Any]]) -> Copies:
    copies: Copies = {}
    for row in rows:
        copies.setdefault(row["account_id"], []).append(link_of_row(row))
    return {account: list(_in_order(links)) for account, links in copies.items()}


def _in_order(links: list[LedgerLink]) -> Iterator[LedgerLink]:
    """Yield entries in the order of their places.

    An opening entry may lie in two partitions. It is yielded once.
    """
    last = None
    for link in sorted(links, key=lambda link: (link.place, link.seq)):
        is_second_opening = link.seq == 0 and link == last
        if not is_second_opening:
            yield link
        last = link
