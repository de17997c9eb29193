"""The ledger's copies in lake and warehouse, account by account, in the form that is compared (rule 19)."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adapters.platform.objects import Objects, StoredObject
from analytics.lake import curated_files, layout
from analytics.warehouse.statements import literal_lists
from analytics.warehouse.warehouse import Warehouse
from rules.engagement.proof import LedgerLink
from rules.engagement.seals import HIDDEN, SHOWN, encoded_fields, fields_of
from rules.lake.residue import is_residue

COLUMNS = (*SHOWN, *HIDDEN, "seal")
Copies = dict[str, list[LedgerLink]]


def link_of_row(row: Mapping[str, Any]) -> LedgerLink:
    """Return a row of the lake or the warehouse."""
    first, _, name = (row["seal"] or "").partition(" ")
    seal, gone = bytes.fromhex(first), is_residue(row["account_id"])
    hidden = None if gone else encoded_fields(fields_of(row, HIDDEN))
    place = {name: value for name, _, value in fields_of(row, HIDDEN)}["created_at"]
    shown = encoded_fields(fields_of(row, SHOWN))
    if gone:
        return LedgerLink(row["seq"], place, shown, hidden, committed=seal, name=bytes.fromhex(name))
    return LedgerLink(row["seq"], place, shown, hidden, begins=seal)


def lake_copies(
    objects: Objects, accounts: Collection[str], files: Iterable[StoredObject] | None = None
) -> Copies:
    """Return what the lake has of some accounts; it reads the ledger's whole history, or these files."""
    asked = pa.array(sorted(accounts), pa.string())
    rows: list[Mapping[str, Any]] = []
    found = layout.curated_files(objects, "ledger") if files is None else files
    for _, table in curated_files.tables(objects, "ledger", found, COLUMNS):
        rows += table.filter(pc.is_in(table["account_id"], asked)).to_pylist()
    return _by_account(rows)


def warehouse_copies(warehouse: Warehouse, accounts: Collection[str]) -> Copies:
    """Return what the warehouse has of some accounts."""
    rows = list[Mapping[str, Any]]()
    names = ", ".join(f'"{each}"' for each in COLUMNS)
    for some in literal_lists(sorted(accounts)):
        rows += warehouse.rows(f"SELECT {names} FROM lake.ledger WHERE account_id IN ({some})")  # noqa: S608 (quoted)
    return _by_account(rows)


def _by_account(rows: Iterable[Mapping[str, Any]]) -> Copies:
    copies: Copies = {}
    for row in rows:
        copies.setdefault(row["account_id"], []).append(link_of_row(row))
    return {account: list(_ordered(links)) for account, links in copies.items()}


def _ordered(links: list[LedgerLink]) -> Iterator[LedgerLink]:
    """Yield entries in the order of their places. Copies of an opening entry may lie in two partitions."""
    last = None
    for each in sorted(links, key=lambda link: (link.place, link.seq)):
        if each.seq > 0 or each != last:
            yield each
        last = each
