"""Answers `SHOW TABLES` and `DESCRIBE NAME` from the declarations of lake and models."""

import difflib
import re
import shutil
import textwrap
from collections.abc import Collection, Iterator

from analytics.warehouse.ddl import LOAD_NUMBER
from analytics.warehouse.models import LOAD_NUMBER_DOC, models
from local.analyst.output import QueryFailed
from local.analyst.read_only_sql import BYTE_ORDER_MARK
from rules.lake.entities import LOADED, loaded_entities
from rules.parts import ALL_PARTS, Part

Rows = list[dict[str, str]]
TABLES = re.compile(r"(?:show\s+tables|\.tables)\s*;?", re.IGNORECASE)
DESCRIBE = re.compile(r"(?:describe|desc|\.describe)(?:\s+([\w.]+))?\s*;?", re.IGNORECASE)


def names(deployed: Collection[Part] = ALL_PARTS) -> Iterator[str]:
    """Yield the name of each table and view. Those that are asked most come first: marts."""
    model_names = models(deployed=deployed)
    for folder in ("marts", "dimensions", "facts", "staging"):
        yield from sorted(name for name in model_names if name.startswith(f"{folder}."))
    yield from (f"lake.{name}" for name in loaded_entities(deployed))


def answer(query: str, deployed: Collection[Part] = ALL_PARTS) -> Rows | None:
    """Return the rows of SHOW TABLES or DESCRIBE; None for another query. Raises QueryFailed."""
    text = query.removeprefix(BYTE_ORDER_MARK).strip()
    if TABLES.fullmatch(text):
        return [{"name": name, "grain": grain_of(name)} for name in names(deployed)]
    if match := DESCRIBE.fullmatch(text):
        return describe(match[1] or "", deployed)
    if text.startswith("."):
        raise QueryFailed(f"there is no {text.split()[0]}: there are .tables, .describe NAME and .quit")
    return None


def grain_of(name: str) -> str:
    """Return what a row of a table or view is."""
    folder, _, table = name.partition(".")
    return LOADED[table].doc if folder == "lake" else models()[name].grain


def describe(name: str, deployed: Collection[Part] = ALL_PARTS) -> Rows:
    """Return the columns of a table or view, with what they say. `funnel` would be marts.funnel."""
    full_names = list(names(deployed))
    full_name = next(
        (known for known in full_names if name.lower() in (known, known.partition(".")[2])), None
    )
    if full_name is None:
        short_names = [known.partition(".")[2] for known in full_names]
        near = difflib.get_close_matches(name, [*full_names, *short_names])
        hint = f"did you mean {' or '.join(near)}?" if near else "`.tables` lists all"
        raise QueryFailed(f"there is no {name or 'name'} to describe: {hint}")
    folder, _, table = full_name.partition(".")
    if folder == "lake":
        columns = {field.name: field.doc for field in LOADED[table].fields} | {LOAD_NUMBER: LOAD_NUMBER_DOC}
    else:
        columns = dict(models()[full_name].columns)
    return [{"column": column, "says": says} for column, says in columns.items()]


def as_text(rows: Rows) -> str:
    """Return rows of two columns as lines; the second column is broken where the terminal ends."""
    size = max((len(next(iter(row.values()))) for row in rows), default=0) + 2
    room = max(30, shutil.get_terminal_size((110, 24)).columns - size)
    lines = []
    for first, second in (row.values() for row in rows):
        parts = textwrap.wrap(second, room) or [""]
        lines += [f"{first:<{size}}{parts[0]}".rstrip(), *(" " * size + part for part in parts[1:])]
    return "\n".join(lines)
