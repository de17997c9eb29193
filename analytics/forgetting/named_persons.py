"""Finds persons in objects that are no rows of the lake: state, files of runs, reports, answers.

Most ids are like nothing else, so a file with such a word names the person. But an id may be a number, a
date, or a word that our own files are full of: `7`, `events`. Such an *ordinary* id counts only where these
files have ids: in certain fields and columns, and in quotes.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.curation.raw_lines import readable_text
from analytics.forgetting.erasees import KIND_OF_COLUMN
from analytics.lake.layout import REPORT_CELL_MAX, REPORT_TITLE
from rules.engagement.reconciliation import Doubt

ATHENA = "athena/"
PARQUET = b"PAR1"
Name = tuple[str, str]  # kind of name, name
NameCounts = Mapping[Name, int]
# Only a whole name counts: `ann-2`, `ann@example.com` and `mary.ann` are not `ann`. But a sentence may end
# with a name, and a file of a person has an ending. Any other point or @ with something behind it belongs to
# a longer name.
_ENDINGS = rb"\.(?:csv|gz|html|json|md|parquet|pdf|txt|zip)\b"
_NAME_BEGINS, _NAME_ENDS = rb"(?<![\w-])(?<![\w-][.@])", rb"(?:(?=" + _ENDINGS + rb")|(?![\w-]|[.@][\w-]))"
# Numbers, dates, times and signs; short hexadecimal texts; words and names of tables, also between signs;
# keys, and parts of them.
_ORDINARY = re.compile(
    r"[\W\d_TZ]+|[0-9a-fA-F]{1,15}|[\W_]*[A-Za-z_.]+[\W_]*"
    r"|(?:raw|curated|quarantine|errors|state|runs|reports|athena|what_if)/.*"
    r"|(?:arrived|dt|hour)=.*|hour-\d\d.*|.*\.(?:parquet|json|md|csv|gz)",
    re.ASCII,
)
# Fields and columns that have an id, or a list of ids.
_ID_FIELDS = frozenset(KIND_OF_COLUMN) | {
    *("user", "lead", "fingerprint_hash", "different", "unrepaired", "contended", "uncounted", "frozen"),
    *("examined", "after"),
}
_PAIRS = frozenset({"disagreements", "ledger_and_lake"})  # fields with lists, each of an id and a text
_BY_USER = frozenset(Doubt) - {Doubt.NONE}  # fields with an object whose names are ids
# A text may be cut off within a quotation.
_QUOTED = re.compile(r"'([^']+)(?:'|\Z)|`([^`]+)(?:`|\Z)|\"([^\"]+)(?:\"|\Z)|ledger of (\S+)")


def is_ordinary(name: str) -> bool:
    """Whether our own files may have a word like a name without meaning the person."""
    return _ORDINARY.fullmatch(name) is not None


def count_names(key: str, data: bytes, names: Mapping[str, Collection[str]]) -> Counter[Name]:
    """Return how often an object has each of the names. names: of persons, by kind."""
    if data.startswith(PARQUET):
        return _count_in_columns(data, names)
    text = readable_text(data)
    has_ordinary = any(is_ordinary(name) for names_of_kind in names.values() for name in names_of_kind)
    ids = _ids_of(key, text) if has_ordinary else None
    counts: Counter[Name] = Counter()
    for kind, names_of_kind in names.items():
        for name in names_of_kind:
            if ids is not None and is_ordinary(name):
                number = sum(ids[each] for each in {name, name[:REPORT_CELL_MAX]})
            else:
                number = len(re.findall(_NAME_BEGINS + re.escape(name.encode()) + _NAME_ENDS, text))
            if number:
                counts[kind, name] += number
    return counts


def _count_in_columns(data: bytes, names: Mapping[str, Collection[str]]) -> Counter[Name]:
    file = pq.ParquetFile(pa.BufferReader(data))
    counts: Counter[Name] = Counter()
    for column in KIND_OF_COLUMN.keys() & set(file.schema_arrow.names):
        kind = KIND_OF_COLUMN[column]
        values = file.read([column])[column].to_pylist()
        counts.update((kind, value) for value in values if value in names[kind])
    return counts


def _ids_of(key: str, text: bytes) -> Counter[str] | None:
    """Return what stands where an object has ids; None if nobody knows the form of its text."""
    if key.startswith(ATHENA):
        csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
        return Counter(_ids_of_table(csv.reader(io.StringIO(text.decode(errors="replace")))))
    if text.startswith(REPORT_TITLE.encode()):
        return Counter(_ids_of_report(text.decode(errors="replace")))
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        try:
            document = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            return None
    return Counter(_ids_of_json(document, ""))


def _ids_of_json(value: Any, field: str) -> Iterator[str]:
    """Yield the ids in a value. field: whose value it is; "": of the whole document."""
    if isinstance(value, str):
        if field in _ID_FIELDS or not field:
            yield value
        else:
            yield from ("".join(quoted) for quoted in _QUOTED.findall(value))
    elif isinstance(value, dict):
        if field in _BY_USER:
            yield from value
        for name, part in value.items():
            yield from _ids_of_json(part, field if name == "S" else name)  # {"S": text}: as DynamoDB has it
    elif isinstance(value, list):
        for part in value:
            if field in _PAIRS and isinstance(part, list) and part:
                yield str(part[0])
            # A list of names may be a whole document; lists of lists are tables of other things.
            is_table = not field and isinstance(part, list)
            yield from _ids_of_json(part, "lists" if is_table else field)


def _ids_of_report(text: str) -> Iterator[str]:
    """Yield the ids in the tables of a report for people."""
    table: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            table.append([cell.strip().replace("\\|", "|") for cell in cells])
        else:
            yield from _ids_of_table(iter(table))
            table = []


def _ids_of_table(rows: Iterator[list[str]]) -> Iterator[str]:
    """Yield the ids in rows of cells. The first row names the columns."""
    heads = next(rows, [])
    for row in rows:
        for head, cell in zip(heads, row, strict=False):
            yield from _ids_of_json(cell, head or "?")
