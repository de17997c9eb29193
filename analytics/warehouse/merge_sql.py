"""The SQL of a load: staged rows -> one row per key -> rows that are new or changed -> MERGE.

Redshift's MERGE takes only a table as its source, only equalities as its condition, and one plain UPDATE. So
the statements before it decide which rows go in.
"""

from collections.abc import Iterator, Sequence

from analytics.warehouse.ddl import LOAD_NUMBER, declared_tables
from analytics.warehouse.statements import literal
from rules.lake.entities import Entity

# Locked before all else: two loads take turns, each with a snapshot of what the other has left. Nobody else
# reads this table. A LOCK of the table that is loaded would keep its readers waiting, and wait for them.
LOCK = "LOCK lake.loads"
Columns = Sequence[tuple[str, str]]


def stage(table: str, columns: Columns) -> str:
    """Return the statement that makes a staging table for files with these columns (name, type)."""
    listed = ", ".join(f'"{name}" {type_}' for name, type_ in columns)
    return f"CREATE TEMP TABLE {table} ({listed})"


def merge(entity: Entity, staged: Sequence[Columns]) -> Iterator[str]:
    """Yield the statements that merge the tables staged_0, staged_1 ... into the entity's lake table.

    staged: the columns of each staging table. An older version never replaces a newer one. Of two equal
    versions the file's row stays.
    """
    lake, columns = f"lake.{entity.name}", _columns(entity)
    names, keys = _listed(columns), _listed(entity.key)
    yield _one_per_key(entity, staged, names, keys)
    if entity.version:
        yield (
            f"DELETE FROM incoming USING {lake} WHERE {_same(entity, 'incoming', lake)} "  # noqa: S608
            f'AND {lake}."{entity.version}" > incoming."{entity.version}"'
        )
    # EXCEPT treats two NULLs as equal; `=` does not.
    yield (
        f"CREATE TEMP TABLE fresh AS SELECT {names}, latest.{LOAD_NUMBER} "  # noqa: S608
        f"FROM (SELECT {names} FROM incoming EXCEPT SELECT {_listed(columns, 'known')} FROM {lake} AS known "
        f"INNER JOIN incoming ON {_same(entity, 'incoming', 'known')}) AS changed "
        f"CROSS JOIN (SELECT COALESCE(MAX({LOAD_NUMBER}), 0) + 1 AS {LOAD_NUMBER} FROM lake.loads "
        f"WHERE entity = {literal(entity.name)}) AS latest"
    )
    yield _touched(entity)
    every = [*columns, LOAD_NUMBER]
    changes = ", ".join(f'"{name}" = fresh."{name}"' for name in every if name not in entity.key)
    yield (
        f"MERGE INTO {lake} USING fresh ON {_same(entity, lake, 'fresh')} "  # noqa: S608
        f"WHEN MATCHED THEN UPDATE SET {changes} "
        f"WHEN NOT MATCHED THEN INSERT ({_listed(every)}) VALUES ({_listed(every, 'fresh')})"
    )


def _touched(entity: Entity) -> str:
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


def _one_per_key(entity: Entity, staged: Sequence[Columns], names: str, keys: str) -> str:
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


def _listed(names: Sequence[str], table: str = "") -> str:
    prefix = f"{table}." if table else ""
    return ", ".join(f'{prefix}"{name}"' for name in names)


def _as_declared(entity: Entity, has: Columns) -> str:
    """Return the staged columns as the lake table has them.

    A column that the files lack (it was declared later) is NULL; one that was widened since is cast.
    """
    there = {name for name, _ in has}
    return ", ".join(
        f'CAST({_listed([name]) if name in there else "NULL"} AS {type_}) AS "{name}"'
        for name, type_ in ((column.name, column.type) for column in declared_tables()[entity.name].columns)
        if name != LOAD_NUMBER
    )


def _same(entity: Entity, one: str, other: str) -> str:
    return " AND ".join(f'{one}."{key}" = {other}."{key}"' for key in entity.key)
