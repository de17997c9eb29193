"""Stats of people who answer against their newest rows in the lake: what was changed by hand is named.

Each write of stats has a version of its own, and makes one row. A night reads the rows of the last days and
of dates that have their turn (dates_due): whose stats were written on one of them has a turn.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from adapters.platform.items import Item, decode_item
from adapters.platform.objects import Objects
from analytics.lake import curated_files
from analytics.lake.curated_files import arrow_table, connect, query
from analytics.lake.layout import curated_files as files_of
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
# A row that was changed by hand may lack what all rows have. copies: rows of one write. There are several if
# a version was changed alone, for the stream carries that.
NEWEST = f"""
SELECT * REPLACE (coalesce(person, '') AS person, coalesce(version, 0) AS version),
  count(*) OVER (PARTITION BY {_WRITTEN}) AS copies FROM stats
QUALIFY row_number() OVER (PARTITION BY person ORDER BY version DESC, updated_at DESC) = 1
"""  # noqa: S608 (declared names)


@dataclass(frozen=True, slots=True)
class StatsRows:
    """The newest row of each person, of those that were read. places: by pseudonym.

    since: all that was written from then on was read, so what is not there is not in the lake.
    """

    table: pa.Table
    places: Mapping[str, int]
    since: str
    now: datetime

    @classmethod
    def read(
        cls, objects: Objects, before: datetime | None, now: datetime, everybody: bool = False
    ) -> "StatsRows":
        """Read what has a turn. before: when that was done last; None: never, so all rows are read."""
        since = before - LAKE_LOST if before else now
        stored = {file: date.fromisoformat(curated_files.date_of(file)) for file in files_of(objects, ENTITY)}
        due = dates_due(set(stored.values()), before and before.date(), now.date())
        files = [each for each, day in stored.items() if everybody or day >= since.date() or day in due]
        db = connect()
        with arrow_table(db, "stats", curated_files.reader(objects, ENTITY, COLUMNS, files=files)):
            table = query(db, NEWEST)
        places = {person: place for place, person in enumerate(table["person"].to_pylist())}
        return cls(table, places, stamp(since), now)

    def version(self, person: str) -> int:
        """Return the version of a person's row; 0: none was read."""
        row = self._row(person)
        return int(row["version"]) if row else 0

    def differences(self, person: str, stored: Item) -> list[Difference]:
        """Return in what the lake's row is not what these stats made; `stored` is the lake's value."""
        found = row_of(ANSWER_STATS, decode_item(stored), self.now)
        row = self._row(person)
        is_due = found["updated_at"] < stamp(self.now - LAKE_LOST)
        if row is None or (row["version"] < found["version"] and row["updated_at"] != found["updated_at"]):
            is_lost = self.since <= found["updated_at"] and is_due
            return [Difference(person, STATS_ENTITY, "", "", None, found["version"])] if is_lost else []
        if row["version"] < found["version"] and not is_due:
            return []  # two writes at one instant, of which the lake has the first
        if row["version"] == found["version"] and row["copies"] > 1:
            return [Difference(person, STATS_ENTITY, "", "version", row["version"], None)]
        names = [name for name in COLUMNS if row[name] != _as_written(found.get(name))]
        if row["version"] != found["version"]:
            names = ["version"]
        return [
            Difference(person, STATS_ENTITY, "", name, row[name], _as_written(found.get(name)))
            for name in names
        ]

    def _row(self, person: str) -> dict[str, Any] | None:
        """Return a person's row, with values as the publisher writes them."""
        place = self.places.get(pseudonym(person))
        if place is None:
            return None
        (row,) = self.table.slice(place, 1).to_pylist()
        return {name: _as_written(each) for name, each in row.items()}


@dataclass(frozen=True, slots=True)
class AnswersLake:
    """What the lake knows of people who answer. answers: by pseudonym."""

    answers: Mapping[str, LakeAnswers]
    rows: StatsRows

    def answers_under(self, hashes: Iterable[str]) -> LakeAnswers:
        """Return what the answers under some hashes come to."""
        whole = LakeAnswers()
        for each in hashes:
            whole = whole.plus(self.answers.get(pseudonym(each), LakeAnswers()))
        return whole


def _as_written(value: Any) -> Any:
    """Return a column's value as the publisher writes it; an empty text is none in the lake."""
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, date):
        return value.isoformat()
    return None if value == "" else value
