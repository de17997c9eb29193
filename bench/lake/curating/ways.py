"""The ways of curation, for worker processes: one loads what its own way needs, so its memory is its own."""

import importlib
import os
import time
from pathlib import Path
from typing import Any

OURS, PACKED, LOOSE = "ours", "ours packed", "duckdb read_json"
FLOORS = ("gunzip", "write")
# Of each way: its module and function here, and the libraries that the function imports.
WAYS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    OURS: ("ours", "plain", ()),
    PACKED: ("ours", "packed", ()),
    "duckdb": ("rivals", "with_duckdb", ("duckdb",)),
    LOOSE: ("rivals", "with_duckdb_reader", ("duckdb",)),
    "polars": ("rivals", "with_polars", ("polars",)),
    "clickhouse": ("rivals", "with_clickhouse", ("chdb",)),
    "gunzip": ("floors", "gunzip", ()),
    "write": ("floors", "write", ()),
}


def place(folder: Path, way: str) -> Path:
    """Return the folder of the lake that a way reads."""
    return folder.with_name(f"{folder.name}-packed") if way == PACKED else folder


def warm(way: str) -> None:
    """Load all that a way needs, so that imports and the start of an engine are outside the clock."""
    module, _, libraries = WAYS[way]
    for library in (f"bench.lake.curating.{module}", *libraries):
        importlib.import_module(library)
    if way == "clickhouse":
        importlib.import_module("bench.lake.curating.rivals").clickhouse()
    time.sleep(0.5)  # so that each process takes one of these tasks


def one(way: str, folder: Path, entity: str, hour: str) -> tuple[int, float, float, Any]:
    """Do an hour one way; returns the process, its highest MB of memory, CPU seconds and the result."""
    module, function, _ = WAYS[way]
    do = getattr(importlib.import_module(f"bench.lake.curating.{module}"), function)
    cpu = time.process_time()
    result = do(folder, entity, hour)
    cpu = time.process_time() - cpu
    peak = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    return os.getpid(), int(peak.split()[1]) / 1024, cpu, result
