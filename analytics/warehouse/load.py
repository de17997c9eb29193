"""Loads curated files into the warehouse's lake tables: COPY to staging, then MERGE by key.

The newer version wins. A row that is there already with the same values is not touched, so loading again
changes nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from adapters.platform.objects import Objects, StoredObject
from adapters.platform.tables import chunks
from analytics.lake import layout
from analytics.lake.bookkeeping import Footer, read_footer
from analytics.lake.layout import Place
from analytics.warehouse import merge_sql
from analytics.warehouse.statements import literal
from analytics.warehouse.transfer.copying import Copy, manifest
from analytics.warehouse.warehouse import Warehouse
from rules.lake.entities import LOADED

READERS = 16
DAYS_MAX = 200  # in one transaction: 4,800 files. It may have 40 statements of 100 KB
SCHEMAS_MAX = 8  # sets of columns in one transaction: each takes two statements
VALUES_MAX = 500  # rows in one INSERT
WHOLE_DAY = "day"
Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CuratedFile:
    """A curated file with its place and its footer."""

    stored: StoredObject
    place: Place
    footer: Footer


@dataclass(frozen=True, slots=True)
class Loader:
    """Loads the files of a nightly run.

    lake: the bucket's URL (or a folder); role_arn: the role with which Redshift reads the bucket.
    """

    warehouse: Warehouse
    objects: Objects
    lake: str
    role_arn: str = ""

    def load(self, run_id: str, tasks: Iterable[Place]) -> dict[str, int]:
        """Load the partitions of these tasks; returns the number of files by entity.

        Each entity is loaded in one transaction, or in one for each 200 days and 8 sets of columns. Raises
        StatementFailed.
        """
        days: dict[str, dict[str, set[str | None]]] = {}
        for task in tasks:
            if task.entity in LOADED:
                days.setdefault(task.entity, {}).setdefault(task.dt, set()).add(task.hour)
        return {entity: self._load(run_id, entity, hours) for entity, hours in sorted(days.items())}

    def _load(self, run_id: str, entity: str, hours: Mapping[str, set[str | None]]) -> int:
        days, count = sorted(hours), 0
        for start in range(0, len(days), DAYS_MAX):
            some = {dt: hours[dt] for dt in days[start : start + DAYS_MAX]}
            files = self._files(entity, some)
            *earlier, last = list(chunks(self._staged(run_id, entity, files), SCHEMAS_MAX)) or [[]]
            for staged in earlier:
                self.warehouse.run(self._merge(entity, staged))
            self.warehouse.run([*self._merge(entity, last), *curation(entity, some, files)])
            count += len(files)
        return count

    def _files(self, entity: str, hours: Mapping[str, set[str | None]]) -> list[CuratedFile]:
        found = []
        for dt, wanted in sorted(hours.items()):
            for stored in layout.curated_files(self.objects, entity, dt, dt):
                place = layout.curated_place(stored.key)
                if place and (place.hour is None or None in wanted or place.hour in wanted):
                    found.append((stored, place))
        with ThreadPoolExecutor(READERS) as pool:
            footers = pool.map(lambda each: read_footer(self.objects, each[0]), found)
            return [CuratedFile(*each, footer) for each, footer in zip(found, footers, strict=True)]

    def _staged(
        self, run_id: str, entity: str, files: Sequence[CuratedFile]
    ) -> Iterator[tuple[Columns, str]]:
        """Store manifests of files with the same columns (a schema grows); yield columns and URL of each."""
        by_columns: dict[Columns, list[StoredObject]] = {}
        for file in files:
            by_columns.setdefault(file.footer.columns, []).append(file.stored)
        for number, (columns, stored) in enumerate(by_columns.items()):
            key = layout.run_key(run_id, f"load-{entity}-{files[0].place.dt}-{number}.manifest")
            self.objects.put(key, manifest(self.lake, stored))
            yield columns, f"{self.lake}/{key}"

    def _merge(self, entity: str, staged: Sequence[tuple[Columns, str]]) -> list[str]:
        """Return the load's statements. staged: columns and manifest of each staging table."""
        if not staged:
            return []
        copies = [
            statement
            for number, (columns, url) in enumerate(staged)
            for statement in (
                merge_sql.stage(f"staged_{number}", columns),
                Copy(f"staged_{number}", url, self.role_arn).sql(),
            )
        ]
        return [merge_sql.LOCK, *copies, *merge_sql.merge(LOADED[entity], [columns for columns, _ in staged])]


def curation(
    entity: str, hours: Mapping[str, set[str | None]], files: Sequence[CuratedFile]
) -> Iterator[str]:
    """Yield the statements that replace the bookkeeping of the loaded partitions.

    hours: the loaded ones, by date; None: the whole day.
    """
    whole = {file.place.dt for file in files if file.place.hour is None}
    # A day's file replaces the rows of all its hours. An hour's file replaces the row of the day's file.
    touched = " OR ".join(
        f"(dt = DATE '{dt}'{'' if dt in whole or None in wanted else _hours(wanted)})"
        for dt, wanted in sorted(hours.items())
    )
    yield f"DELETE FROM lake.curation WHERE entity = '{entity}' AND ({touched})"  # noqa: S608 (checked forms)
    rows = [_row(file) for file in files]
    for start in range(0, len(rows), VALUES_MAX):
        yield f"INSERT INTO lake.curation VALUES {', '.join(rows[start : start + VALUES_MAX])}"  # noqa: S608


def _hours(wanted: set[str | None]) -> str:
    names = sorted({WHOLE_DAY, *(hour for hour in wanted if hour)})
    return f" AND hour IN ({', '.join(map(literal, names))})"


def _row(file: CuratedFile) -> str:
    place, footer = file.place, file.footer
    counts = (footer.rows_in, footer.curated, footer.duplicates, footer.quarantined)
    hour = literal(place.hour or WHOLE_DAY)
    return f"({literal(place.entity)}, DATE '{place.dt}', {hour}, {', '.join(map(str, counts))})"
