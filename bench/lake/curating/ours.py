"""Curation of an hour as the deployed function does it, of plain rows and of packed records."""

from pathlib import Path

from analytics.curation.curate import Task
from analytics.curation.curate_all import curate_one
from bench.lake.curating.rivals import DT
from bench.lake.curating.ways import PACKED, place


def plain(folder: Path, entity: str, hour: str) -> None:
    curate_one(str(folder), Task(entity, DT, hour))


def packed(folder: Path, entity: str, hour: str) -> None:
    plain(place(folder, PACKED), entity, hour)
