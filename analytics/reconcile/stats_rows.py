"""Compares the stats of people who answer with their newest rows in the lake.

Each write of stats has a version of its own and makes one row. A night reads the rows of the last days, and
those of the dates whose turn it is (rules.turns.dates_due). It compares the stats that were written on one of
these dates.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any

import pyarrow as pa

from adapters.platform.items import Item, decode_item
from adapters.platform.objects import Objects
from analytics.lake.curated_files import arrow_table, connect, date_of, query, reader
from analytics.lake.layout import curated_files
from analytics.reconcile.differences import Difference
from rules.days import stamp
from rules.engagement.reconciliation import LAKE_LOST
from rules.lake.entities import ANSWER_STATS, row_of
from rules.lake.question_entities import pseudonym
from rules.questions.answer_doubts import LakeAnswers
from rules.turns import dates_due

ENTITY = ANSWER_STATS.name
STATS_ENTITY = f"lake.{ENTITY}"
COLUMNS = tuple(field.name for field in ANSWER_STATS.fields)
_WRITTEN = ", ".join(column for column in COLUMNS if column != "version")
# The newest row of each person. A row that was changed by hand may lack its person or version. copies: how
# many rows differ in nothing but their versions. There are several if somebody has changed the version of an
# item alone, because the stream brings each change into the lake.
NEWEST = f"""
SELECT * REPLACE (coalesce(person, '') AS person, coalesce(version, 0) AS version),
  count(*) OVER (PARTITION BY {_WRITTEN}) AS copies FROM stats
QUALIFY row_number() OVER (PARTITION BY person ORDER BY version DESC, updated_at DESC) = 1
"""  # noqa: S608 (declared names)


@dataclass(frozen=True, slots=True)
class StatsRows:
    """The newest row of each person, of the rows that a night reads."""

    table: pa.Table
    row_of_person: Mapping[str, int]  # pseudonym -> index of the row in the table
    since: str  # all rows of writes since this instant were read: a missing one is not in the lake
    now: datetime

    @classmethod
    def read(
        cls, objects: Objects, last_compared_at: datetime | None, now: datetime, everybody: bool = False
    ) -> "StatsRows":
        """Read the rows of the last days and of the dates whose turn it is. everybody: read all rows.

        last_compared_at: None if stats were never compared; then it is the turn of all dates.
        """
        # The first night reports no lost row, because it does not know since when the lake has rows.
        since = last_compared_at - LAKE_LOST if last_compared_at else now
        dates = {file: date.fromisoformat(date_of(file)) for file in curated_files(objects, ENTITY)}
        last_compared_on = last_compared_at.date() if last_compared_at else None
        due = dates_due(set(dates.values()), last_compared_on, now.date())
        files = [file for file, day in dates.items() if everybody or day >= since.date() or day in due]
        db = connect()
        with arrow_table(db, "stats", reader(objects, ENTITY, COLUMNS, files=files)):
            table = query(db, NEWEST)
        row_of_person = {person: index for index, person in enumerate(table["person"].to_pylist())}
        return cls(table, row_of_person, stamp(since), now)

    def version(self, fingerprint_hash: str) -> int:
        """Return the version of a person's row; 0: none was read."""
        row = self._row(fingerprint_hash)
        return int(row["version"]) if row else 0

    def differences(self, fingerprint_hash: str, item: Item) -> list[Difference]:
        """Return in what the lake's row differs from the row that the stats must have.

        item: the stats, as the table has them. A Difference has the lake's value as `stored`, and the item's
        value as `expected`.
        """
        difference = partial(Difference, fingerprint_hash, STATS_ENTITY, "")
        expected, row = row_of(ANSWER_STATS, decode_item(item), self.now), self._row(fingerprint_hash)
        is_old = expected["updated_at"] < stamp(self.now - LAKE_LOST)  # its row would be in the lake by now
        # The lake has no row of the person, or an older one.
        if row is None or (
            row["version"] < expected["version"] and row["updated_at"] != expected["updated_at"]
        ):
            is_lost = is_old and self.since <= expected["updated_at"]
            return [difference("", None, expected["version"])] if is_lost else []
        # There were two writes at one instant, and so far only the row of the first is in the lake.
        if row["version"] < expected["version"] and not is_old:
            return []
        # Somebody has changed only the version, and the rows of both versions are in the lake.
        if row["version"] == expected["version"] and row["copies"] > 1:
            return [difference("version", row["version"], None)]
        # The row is ahead of the table; or somebody has changed only the version, and that one has no row.
        if row["version"] != expected["version"]:
            return [difference("version", row["version"], expected["version"])]
        return [
            difference(name, row[name], _as_written(expected.get(name)))
            for name in COLUMNS
            if row[name] != _as_written(expected.get(name))
        ]

    def _row(self, fingerprint_hash: str) -> dict[str, Any] | None:
        """Return a person's row, with values as the publisher writes them."""
        index = self.row_of_person.get(pseudonym(fingerprint_hash))
        if index is None:
            return None
        (row,) = self.table.slice(index, 1).to_pylist()
        return {name: _as_written(value) for name, value in row.items()}


@dataclass(frozen=True, slots=True)
class AnswersLake:
    """The lake's figures and rows of people who answer."""

    answers: Mapping[str, LakeAnswers]  # by pseudonym
    rows: StatsRows

    def answers_under(self, hashes: Iterable[str]) -> LakeAnswers:
        """Return the figures of all answers under these hashes together."""
        total = LakeAnswers()
        for fingerprint_hash in hashes:
            total = total.plus(self.answers.get(pseudonym(fingerprint_hash), LakeAnswers()))
        return total


def _as_written(value: Any) -> Any:
    """Return a column's value as the publisher writes it. The lake has no empty text: it is None there."""
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, date):
        return value.isoformat()
    return None if value == "" else value
