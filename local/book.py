"""`streakline rules`: the files in which books of rules are written, compared and put into force.

A file is YAML or JSON, which is YAML too. Only what JSON can express is read: no dates (an instant is a
text), no anchors, no key twice. A fault is shown with its line.
"""

import getpass
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

import click
import yaml

from adapters.book import PublicationConflict, shipped_document
from adapters.platform.objects import Objects
from ingest.book import NOW, Proposal, publish, version_view
from ingest.book_document import DOCUMENT_BYTES_MAX, book_of_document
from ingest.web.caller import DETAILS_MAX
from local.command import FILE, FILE_OUT, Reader, as_yaml, command, option
from local.stack import Stack
from local.stores import books_of, lake_of
from rules.book.book import differences
from rules.book.book_schema import BOOK
from rules.book.document import BookRefused
from rules.days import parse_moment
from rules.engagement.achievements import beginnings

NodePath = tuple[str | int, ...]  # the keys and indexes that lead to a value of a document
FILE_BYTES_MAX = 4 * DOCUMENT_BYTES_MAX  # more than a document may have: a file has comments and blanks, too
JSON_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("map", "seq", "str", "bool", "null", "int", "float")}
# To YAML these end a line, or are no text. JSON has them within texts alone, where an escape is the same.
NO_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufffe\uffff]")
LEADING_TABS = re.compile(r"(?m)^[ \t]*\t+")
# The scalars of JSON. Any other one is a text.
SCALAR_PATTERNS = (
    ("bool", r"true|false"),
    ("null", r"null|~|"),
    ("int", r"-?(?:0|[1-9][0-9]*)"),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"),
)
FIRST_SIGNS = [*"tfn~-0123456789", ""]  # with which a scalar that is no text begins
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
INSTANT = "a date (midnight UTC), or an instant with its zone, such as 2027-01-01T00:00:00Z"


class UnreadableBook(ValueError):
    """The file is no book; the message has a line for each fault, with the line of the file."""


class _Loader(yaml.SafeLoader):
    """Reads what JSON can express: `on` is a text, and so is 2027-01-01."""


_Loader.yaml_implicit_resolvers = {}
for _kind, _pattern in SCALAR_PATTERNS:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"(?:{_pattern})$"), FIRST_SIGNS)


@dataclass(frozen=True, slots=True)
class BookFile:
    """A book as a file has it."""

    path: Path
    document: Any
    lines: dict[NodePath, int]  # of each value of the document, counted from 1

    def faults_text(self, refused: BookRefused) -> str:
        """Return the first 100 faults, each with its line: `book.yaml:12: boosts.0.since is missing`.

        Where there are more, a last line tells how many.
        """
        lines = [
            f"{self.path.name}:{self._line(fault.path)}: {fault}" for fault in refused.faults[:DETAILS_MAX]
        ]
        if (number := len(refused.faults)) > DETAILS_MAX:
            lines.append(f"{self.path.name}: {number} faults, of which these are the first {DETAILS_MAX}")
        return "\n".join(lines)

    def _line(self, path: NodePath) -> int:
        """Return the line of a value; of one that is missing, the line of the nearest value around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_file(path: Path) -> BookFile:
    """Return a file's document with its lines, not checked yet. Raises UnreadableBook, and OSError."""
    if (size := path.stat().st_size) > FILE_BYTES_MAX:
        raise UnreadableBook(f"{path.name}: has {size} bytes; {FILE_BYTES_MAX} are allowed")
    try:
        # YAML forbids tabs before a value, and JSON's indentation may be of them.
        text = LEADING_TABS.sub(lambda tabs: "  " * len(tabs[0]), path.read_text(encoding="utf-8"))
        if path.suffix == ".json":
            text = NO_YAML.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)
        node = yaml.compose(text, _Loader)
        lines: dict[NodePath, int] = {}
        document = _value(node, (), lines, set())
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UnreadableBook(f"{path.name}:{line}: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UnreadableBook(f"{path.name}:1: {error}") from None
    except RecursionError:
        raise UnreadableBook(f"{path.name}:1: it is nested too deeply") from None
    return BookFile(path, document, lines)


def check(path: Path) -> BookFile:
    """Return a book that makes sense; raises RuntimeError with a line for each fault."""
    book = read_file(path)
    try:
        book_of_document(book.document)
    except BookRefused as refused:
        raise RuntimeError(book.faults_text(refused)) from None
    return book


def _instant(text: str) -> datetime:
    try:
        return parse_moment(f"{text}T00:00:00Z" if DATE.fullmatch(text) else text).utc
    except ValueError as error:
        raise ValueError(f"{error}: {INSTANT}") from None


def _effective(text: str) -> datetime | None:
    return None if text == NOW else _instant(text)


book_argument = click.argument("file", type=FILE)
at_option = option("--at", type=Reader("instant", _instant), help=f"at {INSTANT}", show_default="now")


@command("rules init book.yaml")
@click.argument("file", type=FILE_OUT)
def init(file: Path) -> None:
    """Write the book that the service comes with, to begin a book of your own."""
    with file.open("x", encoding="utf-8") as out:
        out.write(as_yaml(shipped_document()))
    print(f"{file}: change it, then `streakline rules check {file}`")


@command("rules schema > book.schema.json")
def schema() -> None:
    """Print the JSON Schema of a book, by which editors complete and check it."""
    print(json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **BOOK}, indent=2))


@command("rules check book.yaml")
@book_argument
def check_command(file: Path) -> None:
    """Say what is wrong with a book, by line; this needs no deployment."""
    check(file)
    print(f"{file.name}: a book of rules")


@command("rules diff book.yaml", "rules diff book.yaml --at 2027-01-01")
@book_argument
@at_option
def diff(stack: Stack, file: Path, at: datetime | None) -> None:
    """Say how a book differs from the one in force."""
    lines = list(differences(_document(stack, at), check(file).document))
    print("\n".join(lines) or "no difference")


@command("rules show > book.yaml", "rules show --at 2027-01-01")
@at_option
def show_command(stack: Stack, at: datetime | None) -> Any:
    """Print the book in force, as `rules publish` takes it."""
    return _document(stack, at)


@command("rules list")
def list_command(stack: Stack) -> Any:
    """Print all versions, the newest first."""
    return [version_view(version, is_admin=True) for version in reversed(books_of(stack).look().versions)]


@command('rules publish book.yaml --note "a rainy week"', "rules publish book.yaml --effective 2027-01-01")
@book_argument
@option(
    "--effective",
    type=Reader("instant", _effective),
    help=f"from when it is in force: {INSTANT}, or `{NOW}`",
    show_default=NOW,
)
@option("--note", default="", help="why, for those who come later")
@option("--rerate", is_flag=True, help="it may be in the past: run `streakline rules rerate` afterwards")
@option("--author", default=getpass.getuser, help="who says so", show_default="your user name")
def publish_command(
    *,
    stack: Stack,
    file: Path,
    effective: datetime | None,
    note: str,
    rerate: bool,
    author: str,
) -> Any:
    """Put a book into force; every function knows it within a minute."""
    book, store = check(file), books_of(stack)
    proposal = Proposal(book.document, effective, author, note, rerate)
    try:
        version = publish(store, proposal, datetime.now(UTC))
    except BookRefused as refused:
        raise RuntimeError(book.faults_text(refused)) from None
    except PublicationConflict:
        raise RuntimeError(
            "somebody else has just published a version: look at `streakline rules list`"
        ) from None
    view = version_view(version, is_admin=True)
    return view | {"beginnings": list(beginnings(store.look(), version))}


@command("rules recompute")
def recompute_command(stack: Stack) -> None:
    """Recompute all points from the lake's files, and say which weeks differ from the ledger."""
    print(recompute(lake_of(stack)))


def _document(stack: Stack, at: datetime | None) -> Any:
    """Return the book in force at an instant; None: now."""
    store = books_of(stack)
    return store.document(store.look().at(at or datetime.now(UTC)).number)


def recompute(objects: Objects) -> str:
    """Return a line with what was compared; raises RuntimeError with a line for each week that differs."""
    from analytics.recompute.point_weeks import differing_weeks  # imports DuckDB, which is slow

    weeks, differing = differing_weeks(objects)
    if differing:
        line = (
            "{user_id}, week of {week_start}: by the book {points_by_book}, "
            "by the events {points_by_events}, in the ledger {points_in_ledger}"
        )
        raise RuntimeError("\n".join(line.format(**week) for week in differing))
    return f"{weeks} weeks of users, none of which differs"


def _value(node: Any, path: NodePath, lines: dict[NodePath, int], seen: set[int]) -> Any:
    """Return the value of a node; adds the line of each value within to `lines`.

    seen: the ids of the nodes so far. Raises yaml.MarkedYAMLError for what JSON cannot express.
    """
    if node is None:
        return None
    if id(node) in seen:
        raise yaml.MarkedYAMLError(problem="an alias repeats a part", problem_mark=node.start_mark)
    seen.add(id(node))
    if node.tag not in JSON_TAGS:
        raise yaml.MarkedYAMLError(problem=f"{node.tag} is no JSON", problem_mark=node.start_mark)
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        values: dict[str, Any] = {}
        for key, value_node in node.value:
            if not isinstance(key, yaml.ScalarNode) or (name := _text(key)) in values:
                problem = f"the key {getattr(key, 'value', '')!r} is there twice, or is no text"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            values[name] = _value(value_node, (*path, name), lines, seen)
            lines[*path, name] = key.start_mark.line + 1
        return values
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, index), lines, seen) for index, item in enumerate(node.value)]
    return _scalar(node)


def _scalar(node: Any) -> Any:
    """Return the value of a scalar; a tag that was written, such as !!int, changes nothing."""
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    pattern = dict(SCALAR_PATTERNS).get(kind)
    if pattern is None:
        return _text(node)
    try:
        if not re.fullmatch(pattern, node.value):
            raise ValueError("it has another form")
        value = None if kind == "null" else json.loads(node.value)
        if isinstance(value, float) and not isfinite(value):
            raise ValueError("it is too large")
        return value
    except ValueError:
        problem = f"{node.value[:40]!r} is no {kind} as JSON writes it"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from None


def _text(node: Any) -> str:
    r"""Return a text: JSON writes a sign beyond U+FFFF as two halves, such as `\ud83c\udf89`."""
    try:
        return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise yaml.MarkedYAMLError(
            problem="it has half of a character", problem_mark=node.start_mark
        ) from None
