"""`streakline prove` and `audit` (rule 19)."""

import argparse
import json
from datetime import UTC, datetime
from typing import Any

from adapters.platform.objects import Objects, S3Objects
from analytics.lake import curated_files, layout
from analytics.warehouse.warehouse import NoWarehouse
from local.prove.auditing import Auditor
from local.prove.proving import proof
from local.smoke.lake import warehouse_of
from local.stack import Stack, accounts_of
from rules.days import stamp
from rules.engagement.reconciliation import LAKE_LAG
from rules.lake.residue import is_residue

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
    known = None if isinstance(warehouse, NoWarehouse) else warehouse
    auditor = Auditor(lake, accounts_of(stack).ledger, known, before)
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
