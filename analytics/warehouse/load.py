"""Loads curated files into the warehouse's lake tables: COPY to staging, then MERGE by key.

The nightly run calls `Loader.load`. Files with the same columns are staged in one table: staged_0, staged_1
and so on. `merge_statements` then brings their rows into the lake table, and `bookkeeping_statements` notes
the files in lake.curation.

The newer version wins. A row that the table already has with the same values is not touched, so loading again
changes nothing. Redshift's MERGE takes only a table as its source, only equalities as its condition, and one
plain UPDATE. So earlier statements reduce the staged rows to one per key, and then to new or changed rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from adapters.platform.objects import Objects, StoredObject
from adapters.platform.tables import chunks
from analytics.lake import layout
from analytics.lake.bookkeeping import Footer, read_footer
from analytics.lake.layout import Partition
from analytics.warehouse.ddl import LOAD_NUMBER, declared_tables
from analytics.warehouse.statements import Copy, literal, manifest
from analytics.warehouse.warehouse import Warehouse
from rules.lake.entities import LOADED, Entity

# This lock makes two loads run one after the other. It is the first statement, so the second load sees all
# rows of the first. Only loads and builds use this table. A LOCK of the loaded table would make all its
# readers wait.
LOCK = "LOCK lake.loads"
READERS = 16  # footers that are read at once
# Days or months in one transaction: 4,800 files. A transaction may have 40 statements of 100 KB. At most 33
# are used: LOCK, 2 for each of 8 sets of columns, 5 of the merge, DELETE, and 10 INSERTs.
DAYS_MAX = 200
COLUMN_SETS_MAX = 8  # sets of columns in one transaction: each takes two statements
VALUES_MAX = 500  # rows in one INSERT
WHOLE_DAY, WHOLE_MONTH = "day", "all"  # in lake.curation: the hour of a day's or month's file
Columns = Sequence[tuple[str, str]]  # of a staging table: (name, Redshift type)
# The hours to load of each date; None: the whole day. A month (YYYY-MM) is loaded as a whole
HoursByDate = Mapping[str, set[str | None]]


@dataclass(frozen=True, slots=True)
class CuratedFile:
    """A curated file with its partition and its footer."""

    stored: StoredObject
    partition: Partition
    footer: Footer


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """The files of one staging table: those that have the same columns."""

    columns: Columns
    manifest_url: str


@dataclass(frozen=True, slots=True)
class Loader:
    """Loads the files of a nightly run."""

    warehouse: Warehouse
    objects: Objects
    lake: str  # the bucket's URL (or a folder)
    role_arn: str = ""  # of the role with which Redshift reads the bucket

    def load(self, run_id: str, tasks: Iterable[Partition]) -> dict[str, int]:
        """Load the partitions of these tasks; returns the number of files by entity.

        Each entity is loaded in one transaction, or in one for each 200 days and 8 sets of columns. Raises
        StatementFailed.
        """
        hours_of: dict[str, dict[str, set[str | None]]] = {}
        for task in tasks:
            if task.entity in LOADED:
                hours_of.setdefault(task.entity, {}).setdefault(task.dt, set()).add(task.hour)
        return {
            entity: self._load_entity(run_id, entity, hours) for entity, hours in sorted(hours_of.items())
        }

    def _load_entity(self, run_id: str, entity: str, hours: HoursByDate) -> int:
        """Load an entity's files; returns their number."""
        count = 0
        for days in chunks(sorted(hours), DAYS_MAX):
            hours_of_days = {dt: hours[dt] for dt in days}
            files = self._files(entity, hours_of_days)
            staged_tables = self._store_manifests(run_id, entity, files)
            transactions = [
                self._load_statements(entity, staged) for staged in chunks(staged_tables, COLUMN_SETS_MAX)
            ]
            # The last transaction also replaces the bookkeeping. Without files it does that alone.
            *earlier, last = transactions or [[]]
            for statements in earlier:
                self.warehouse.run(statements)
            self.warehouse.run([*last, *bookkeeping_statements(entity, hours_of_days, files)])
            count += len(files)
        return count

    def _files(self, entity: str, hours: HoursByDate) -> list[CuratedFile]:
        """Return the files with the rows of these hours. A day's file has the rows of all its hours.

        So has a month's file those of its days.
        """
        stored_files: dict[Partition, StoredObject] = {}
        for dt, wanted in sorted(hours.items()):
            asked = Partition(entity, dt, None)
            for stored in layout.curated_files(self.objects, entity, asked.first_dt, asked.last_dt):
                partition = layout.curated_partition(stored.key)
                if partition and (partition.hour is None or None in wanted or partition.hour in wanted):
                    stored_files[partition] = stored
        with ThreadPoolExecutor(READERS) as pool:
            footers = pool.map(lambda stored: read_footer(self.objects, stored), stored_files.values())
            return list(map(CuratedFile, stored_files.values(), stored_files, footers))

    def _store_manifests(
        self, run_id: str, entity: str, files: Sequence[CuratedFile]
    ) -> Iterator[StagedFiles]:
        """Store and yield a manifest for each set of columns, because a schema grows."""
        by_columns: dict[Columns, list[StoredObject]] = {}
        for file in files:
            by_columns.setdefault(file.footer.columns, []).append(file.stored)
        for number, (columns, stored) in enumerate(by_columns.items()):
            key = layout.run_key(run_id, f"load-{entity}-{files[0].partition.dt}-{number}.manifest")
            self.objects.put(key, manifest(self.lake, stored))
            yield StagedFiles(columns, f"{self.lake}/{key}")

    def _load_statements(self, entity: str, staged: Sequence[StagedFiles]) -> list[str]:
        """Return a transaction's statements. staged: the files of each staging table."""
        statements = [LOCK]
        for number, files in enumerate(staged):
            statements.append(create_staging(f"staged_{number}", files.columns))
            statements.append(Copy(f"staged_{number}", files.manifest_url, self.role_arn).sql())
        return [*statements, *merge_statements(LOADED[entity], [files.columns for files in staged])]


def create_staging(table: str, columns: Columns) -> str:
    """Return the statement that makes a staging table for files with these columns (name, type)."""
    listed = ", ".join(f'"{name}" {type_}' for name, type_ in columns)
    return f"CREATE TEMP TABLE {table} ({listed})"


def merge_statements(entity: Entity, staged: Sequence[Columns]) -> Iterator[str]:
    """Yield the statements that merge the tables staged_0, staged_1 ... into the entity's lake table.

    staged: the columns of each staging table. An older version never replaces a newer one. Of two equal
    versions the file's row stays.
    """
    lake = f"lake.{entity.name}"
    columns = [column.name for column in declared_tables()[entity.name].columns if column.name != LOAD_NUMBER]
    names, keys = _column_list(columns), _column_list(entity.key)
    # incoming: the newest staged row of each key, unless the table has a newer one.
    yield _one_per_key(entity, staged, names, keys)
    if entity.version:
        yield (
            f"DELETE FROM incoming USING {lake} WHERE {_has_same_key(entity, 'incoming', lake)} "  # noqa: S608
            f'AND {lake}."{entity.version}" > incoming."{entity.version}"'
        )
    # fresh: those incoming rows that differ from the table's. EXCEPT treats two NULLs as equal; `=` does not.
    yield (
        f"CREATE TEMP TABLE fresh AS SELECT {names}, latest.{LOAD_NUMBER} "  # noqa: S608
        f"FROM (SELECT {names} FROM incoming "
        f"EXCEPT SELECT {_column_list(columns, 'known')} FROM {lake} AS known "
        f"INNER JOIN incoming ON {_has_same_key(entity, 'incoming', 'known')}) AS changed "
        f"CROSS JOIN (SELECT COALESCE(MAX({LOAD_NUMBER}), 0) + 1 AS {LOAD_NUMBER} FROM lake.loads "
        f"WHERE entity = {literal(entity.name)}) AS latest"
    )
    yield _note_touched_dates(entity)
    with_number = [*columns, LOAD_NUMBER]
    changes = ", ".join(f'"{name}" = fresh."{name}"' for name in with_number if name not in entity.key)
    yield (
        f"MERGE INTO {lake} USING fresh ON {_has_same_key(entity, lake, 'fresh')} "  # noqa: S608
        f"WHEN MATCHED THEN UPDATE SET {changes} "
        f"WHEN NOT MATCHED THEN INSERT ({_column_list(with_number)}) "
        f"VALUES ({_column_list(with_number, 'fresh')})"
    )


def _one_per_key(entity: Entity, staged: Sequence[Columns], names: str, keys: str) -> str:
    """Return the statement that makes the table `incoming`, with the newest staged row of each key."""
    parts = " UNION ALL ".join(
        f"SELECT {_as_declared(entity, columns)} FROM staged_{number}"  # noqa: S608 (declared names)
        for number, columns in enumerate(staged)
    )
    # Without a version all rows of a key are equal, so any one of them will do.
    order = f'"{entity.version}" DESC' if entity.version else keys
    return (
        f"CREATE TEMP TABLE incoming AS SELECT {names} FROM (SELECT {names}, "  # noqa: S608
        f"ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {order}) AS place "
        f"FROM ({parts}) AS staged) AS ranked WHERE place = 1"
    )


def _as_declared(entity: Entity, staged: Columns) -> str:
    """Return the staged columns with the names and types of the lake table.

    A column that was declared after the files were written is NULL. A column whose type was widened is cast.
    """
    staged_names = {name for name, _ in staged}
    return ", ".join(
        f'CAST({_column_list([name]) if name in staged_names else "NULL"} AS {type_}) AS "{name}"'
        for name, type_ in ((column.name, column.type) for column in declared_tables()[entity.name].columns)
        if name != LOAD_NUMBER
    )


def _note_touched_dates(entity: Entity) -> str:
    """Return the statement that notes the dates of the new rows, and of the rows that they replace."""
    fresh = f'SELECT fresh.{LOAD_NUMBER}, CAST(fresh."{entity.occurred}" AS DATE) AS dt FROM fresh'  # noqa: S608
    if entity.occurred not in entity.key:
        fresh += (
            f' UNION SELECT fresh.{LOAD_NUMBER}, CAST(known."{entity.occurred}" AS DATE) AS dt '  # noqa: S608
            f"FROM lake.{entity.name} AS known INNER JOIN fresh ON {_has_same_key(entity, 'fresh', 'known')}"
        )
    return (
        f"INSERT INTO lake.loads SELECT DISTINCT {literal(entity.name)}, {LOAD_NUMBER}, dt "  # noqa: S608
        f"FROM ({fresh}) AS touched"
    )


def _column_list(names: Sequence[str], table: str = "") -> str:
    """Return column names as SQL lists them, each with the table's name if one is given."""
    prefix = f"{table}." if table else ""
    return ", ".join(f'{prefix}"{name}"' for name in names)


def _has_same_key(entity: Entity, one: str, other: str) -> str:
    """Return the condition that rows of two tables have the same key."""
    return " AND ".join(f'{one}."{key}" = {other}."{key}"' for key in entity.key)


def bookkeeping_statements(entity: str, hours: HoursByDate, files: Sequence[CuratedFile]) -> Iterator[str]:
    """Yield the statements that replace the bookkeeping of the loaded partitions."""
    whole = {file.partition for file in files if file.partition.hour is None}
    replaced = []
    for dt, loaded in sorted(hours.items()):
        day = Partition(entity, dt, None)
        partition = day.month if day.month in whole else day
        condition = f"dt = DATE '{partition.first_dt}'"
        if partition.is_month:  # its file replaces the rows of all its days
            condition = f"dt BETWEEN DATE '{partition.first_dt}' AND DATE '{partition.last_dt}'"
        # A day's file replaces the rows of all its hours. An hour's file replaces the row of the day's file.
        elif partition not in whole and None not in loaded:
            names = sorted({WHOLE_DAY, *(hour for hour in loaded if hour)})
            condition += f" AND hour IN ({', '.join(map(literal, names))})"
        replaced.append(f"({condition})")
    yield f"DELETE FROM lake.curation WHERE entity = '{entity}' AND ({' OR '.join(replaced)})"  # noqa: S608 (checked forms)
    for rows in chunks(map(_curation_row, files), VALUES_MAX):
        yield f"INSERT INTO lake.curation VALUES {', '.join(rows)}"  # noqa: S608


def _curation_row(file: CuratedFile) -> str:
    """Return a file's row of lake.curation."""
    partition, counts = file.partition, ", ".join(map(str, file.footer.counts.as_dict().values()))
    hour = partition.hour or (WHOLE_MONTH if partition.is_month else WHOLE_DAY)
    return f"({literal(partition.entity)}, DATE '{partition.first_dt}', {literal(hour)}, {counts})"
