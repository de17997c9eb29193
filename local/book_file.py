"""Reads the file of a book of rules, which is YAML or JSON (JSON is YAML, too).

Only what JSON can express is read: no dates (an instant is a text), no anchors, no key twice. A fault is
shown with its line.
"""

import json
import re
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import yaml

from ingest.book_document import DOCUMENT_BYTES_MAX
from ingest.web.caller import DETAILS_MAX
from rules.book.document import BookRefused

NodePath = tuple[str | int, ...]  # the keys and indexes that lead to a value of a document
# A file may have more bytes than its document: it has comments and blanks, too.
FILE_BYTES_MAX = 4 * DOCUMENT_BYTES_MAX
JSON_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("map", "seq", "str", "bool", "null", "int", "float")}
# YAML takes these characters for the end of a line, or refuses them. JSON has them within texts alone. There
# an escape such as \u2028 means the same.
NO_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufffe\uffff]")
LEADING_TABS = re.compile(r"(?m)^[ \t]*\t+")
# How JSON writes its scalars. Every other scalar is a text.
SCALAR_PATTERNS = (
    ("bool", r"true|false"),
    ("null", r"null|~|"),
    ("int", r"-?(?:0|[1-9][0-9]*)"),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"),
)
# The first characters of a scalar that is no text; "" is the scalar without any, which is null.
FIRST_CHARACTERS = [*"tfn~-0123456789", ""]


class UnreadableBook(ValueError):
    """The file is no book; the message has a line for each fault, with the line of the file."""


class _Loader(yaml.SafeLoader):
    """Reads what JSON can express: `on` is a text, and so is 2027-01-01."""


_Loader.yaml_implicit_resolvers = {}
for _kind, _pattern in SCALAR_PATTERNS:
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(f"(?:{_pattern})$"), FIRST_CHARACTERS
    )


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
    """Return a file's document, and the line of each of its values. Nobody has checked the document yet.

    Raises UnreadableBook, OSError.
    """
    if (size := path.stat().st_size) > FILE_BYTES_MAX:
        raise UnreadableBook(f"{path.name}: has {size} bytes; {FILE_BYTES_MAX} are allowed")
    try:
        # YAML forbids tabs before a value, and JSON's indentation may be of them.
        text = LEADING_TABS.sub(lambda tabs: "  " * len(tabs[0]), path.read_text(encoding="utf-8"))
        if path.suffix == ".json":
            text = NO_YAML.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)
        node = yaml.compose(text, _Loader)
        lines: dict[NodePath, int] = {}
        document = _read_value(node, (), lines, set())
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UnreadableBook(f"{path.name}:{line}: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UnreadableBook(f"{path.name}:1: {error}") from None
    except RecursionError:
        raise UnreadableBook(f"{path.name}:1: it is nested too deeply") from None
    return BookFile(path, document, lines)


def _read_value(node: Any, path: NodePath, lines: dict[NodePath, int], seen: set[int]) -> Any:
    """Return the value of a node. Adds the line of each value within it to `lines`.

    path: the node's own. seen: the ids of the nodes that were read before, because an alias comes as the same
    node again. Raises yaml.MarkedYAMLError for what JSON cannot express.
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
            values[name] = _read_value(value_node, (*path, name), lines, seen)
            lines[*path, name] = key.start_mark.line + 1
        return values
    if isinstance(node, yaml.SequenceNode):
        return [_read_value(item, (*path, index), lines, seen) for index, item in enumerate(node.value)]
    return _read_scalar(node)


def _read_scalar(node: Any) -> Any:
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
