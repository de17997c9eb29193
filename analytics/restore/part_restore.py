"""How a part's restore is declared (local/restore.py), which follows that of users."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.privacy.tombstones import ErasureCheck
from analytics.restore.restorer import RestoreReport
from analytics.restore.user_rows import LakeBefore


@dataclass(frozen=True, slots=True)
class RestoreInput:
    """What a restore works with."""

    lake: LakeBefore
    dynamodb: Any
    tables: Mapping[str, str]  # names of the deployed tables, by name in the template
    erased: ErasureCheck  # knows the persons who are not brought back
    keep: Collection[str] = ()  # names of tables that are not written
    replaced: Collection[str] = ()  # names of tables that are made equal to the lake


@dataclass(frozen=True, slots=True)
class PartRestore:
    """The restore of a part's tables."""

    entities: tuple[str, ...]  # of the lake, which it reads
    replaceable: tuple[str, ...]  # tables that may be made equal to the lake
    filled: tuple[str, ...]  # tables of which the lake has rows, and not the items
    keys: Mapping[str, tuple[str, ...]]  # of the tables in `filled`
    not_in_the_lake: Mapping[str, str]  # as local.restore.NOT_IN_THE_LAKE
    # What it counts in RestoreReport.others: name, the words after the number
    counted: Mapping[str, str]
    # Restores the tables that are deployed. It is safe to repeat.
    run: Callable[[RestoreInput, RestoreReport, datetime], None]
