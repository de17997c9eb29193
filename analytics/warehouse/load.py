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
from analytics.warehouse.copy_statement import Copy, manifest
from analytics.warehouse.ddl import LOAD_NUMBER, declared_tables
from analytics.warehouse.statements import literal
from analytics.warehouse.warehouse import Warehouse
from rules.lake.entities import LOADED, Entity

# The SQL of a load: staged rows -> one row per key -> rows that are new or changed -> MERGE.
#
# Redshift's MERGE takes only a table as its source, only equalities as its condition, and one plain UPDATE.
# So the statements before it decide which rows go in.


# Locked before all else: two loads take turns, each with a snapshot of what the other has left. Nobody else
# reads this table. A LOCK of the table that is loaded would keep its readers waiting, and wait for them.
LOCK = "LOCK lake.loads"
MergeColumns = Sequence[tuple[str, str]]
READERS = 16
DAYS_MAX = 200  # in one transaction: 4,800 files. It may have 40 statements of 100 KB
SCHEMAS_MAX = 8  # sets of columns in one transaction: each takes two statements
VALUES_MAX = 500  # rows in one INSERT
WHOLE_DAY = "day"


def create_staging(table: str, columns: MergeColumns) -> str:
    """Return the statement that makes a staging table for files with these columns (name, type)."""
    listed = ", ".join(f'"{name}" {type_}' for name, type_ in columns)
    return f"CREATE TEMP TABLE {table} ({listed})"


def merge(entity: Entity, staged: Sequence[MergeColumns]) -> Iterator[str]:
    """Yield the statements that merge the tables staged_0, staged_1 ... into the entity's lake table.

    staged: the columns of each staging table. An older version never replaces a newer one. Of two equal
    versions the file's row stays.
    """
    lake, columns = f"lake.{entity.name}", _columns(entity)
    names, keys = _list_of(columns), _list_of(entity.key)
    yield _one_per_key(entity, staged, names, keys)
    if entity.version:
        yield (
            f"DELETE FROM incoming USING {lake} WHERE {_same(entity, 'incoming', lake)} "  # noqa: S608
            f'AND {lake}."{entity.version}" > incoming."{entity.version}"'
        )
    # EXCEPT treats two NULLs as equal; `=` does not.
    yield (
        f"CREATE TEMP TABLE fresh AS SELECT {names}, latest.{LOAD_NUMBER} "  # noqa: S608
        f"FROM (SELECT {names} FROM incoming EXCEPT SELECT {_list_of(columns, 'known')} FROM {lake} AS known "
        f"INNER JOIN incoming ON {_same(entity, 'incoming', 'known')}) AS changed "
        f"CROSS JOIN (SELECT COALESCE(MAX({LOAD_NUMBER}), 0) + 1 AS {LOAD_NUMBER} FROM lake.loads "
        f"WHERE entity = {literal(entity.name)}) AS latest"
    )
    yield _note_touched_dates(entity)
    every = [*columns, LOAD_NUMBER]
    changes = ", ".join(f'"{name}" = fresh."{name}"' for name in every if name not in entity.key)
    yield (
        f"MERGE INTO {lake} USING fresh ON {_same(entity, lake, 'fresh')} "  # noqa: S608
        f"WHEN MATCHED THEN UPDATE SET {changes} "
        f"WHEN NOT MATCHED THEN INSERT ({_list_of(every)}) VALUES ({_list_of(every, 'fresh')})"
    )


def _note_touched_dates(entity: Entity) -> str:
    """Return the statement that notes the dates of the rows that are new, and of those that they replace."""
    fresh = f'SELECT fresh.{LOAD_NUMBER}, CAST(fresh."{entity.occurred}" AS DATE) AS dt FROM fresh'  # noqa: S608
    if entity.occurred not in entity.key:
        fresh += (
            f' UNION SELECT fresh.{LOAD_NUMBER}, CAST(known."{entity.occurred}" AS DATE) AS dt '  # noqa: S608
            f"FROM lake.{entity.name} AS known INNER JOIN fresh ON {_same(entity, 'fresh', 'known')}"
        )
    return (
        f"INSERT INTO lake.loads SELECT DISTINCT {literal(entity.name)}, {LOAD_NUMBER}, dt "  # noqa: S608
        f"FROM ({fresh}) AS touched"
    )


def _one_per_key(entity: Entity, staged: Sequence[MergeColumns], names: str, keys: str) -> str:
    parts = " UNION ALL ".join(
        f"SELECT {_as_declared(entity, has)} FROM staged_{number}"  # noqa: S608 (declared names)
        for number, has in enumerate(staged)
    )
    order = f'"{entity.version}" DESC' if entity.version else keys
    return (
        f"CREATE TEMP TABLE incoming AS SELECT {names} FROM (SELECT {names}, "  # noqa: S608
        f"ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {order}) AS place "
        f"FROM ({parts}) AS staged) AS ranked WHERE place = 1"
    )


def _columns(entity: Entity) -> list[str]:
    return [column.name for column in declared_tables()[entity.name].columns if column.name != LOAD_NUMBER]


def _list_of(names: Sequence[str], table: str = "") -> str:
    prefix = f"{table}." if table else ""
    return ", ".join(f'{prefix}"{name}"' for name in names)


def _as_declared(entity: Entity, has: MergeColumns) -> str:
    """Return the staged columns as the lake table has them.

    A column that the files lack (it was declared later) is NULL; one that was widened since is cast.
    """
    there = {name for name, _ in has}
    return ", ".join(
        f'CAST({_list_of([name]) if name in there else "NULL"} AS {type_}) AS "{name}"'
        for name, type_ in ((column.name, column.type) for column in declared_tables()[entity.name].columns)
        if name != LOAD_NUMBER
    )


def _same(entity: Entity, one: str, other: str) -> str:
    return " AND ".join(f'{one}."{key}" = {other}."{key}"' for key in entity.key)


Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CuratedFile:
    """A curated file with its place and its footer."""

    stored: StoredObject
    place: Place
    footer: Footer


@dataclass(frozen=True, slots=True)
class Loader:
    """Loads the files of a nightly run."""

    warehouse: Warehouse
    objects: Objects
    lake: str  # the bucket's URL (or a folder)
    role_arn: str = ""  # the role with which Redshift reads the bucket

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
            *earlier, last = list(chunks(self._store_manifests(run_id, entity, files), SCHEMAS_MAX)) or [[]]
            for staged in earlier:
                self.warehouse.run(self._merge(entity, staged))
            self.warehouse.run([*self._merge(entity, last), *bookkeeping_statements(entity, some, files)])
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

    def _store_manifests(
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
                create_staging(f"staged_{number}", columns),
                Copy(f"staged_{number}", url, self.role_arn).sql(),
            )
        ]
        return [LOCK, *copies, *merge(LOADED[entity], [columns for columns, _ in staged])]


def bookkeeping_statements(
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
    place, counts = file.place, file.footer.counts.as_dict()
    hour = literal(place.hour or WHOLE_DAY)
    return f"({literal(place.entity)}, DATE '{place.dt}', {hour}, {', '.join(map(str, counts.values()))})"
