"""Reads a book of rules from a YAML or JSON file, and knows on which line each part of it stands.

JSON is YAML too. Only what JSON can say is read: no dates (an instant is a text), no anchors, no key twice.
"""

import json
import re
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import yaml

from ingest.book.publication import DOCUMENT_BYTES_MAX
from ingest.web.caller import DETAILS_MAX
from rules.book.document import BookRefused

Place = tuple[str | int, ...]
# Comments and blanks count in a file.
FILE_BYTES_MAX = 4 * DOCUMENT_BYTES_MAX
JSON_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("map", "seq", "str", "bool", "null", "int", "float")}


class UnreadableBook(ValueError):
    """The file is no book; the message has a line for each fault, with the line of the file."""


# To YAML they end a line, or are no text. JSON has them within texts alone, where an escape is the same.
ODD = re.compile("[\x7f-\x9f\u2028\u2029\ufffe\uffff]")
TABS = re.compile(r"(?m)^[ \t]*\t+")
# The scalars of JSON. Any other one is a text.
KINDS = (
    ("bool", r"true|false"),
    ("null", r"null|~|"),
    ("int", r"-?(?:0|[1-9][0-9]*)"),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"),
)
FIRST_SIGNS = [*"tfn~-0123456789", ""]


class _Loader(yaml.SafeLoader):
    """Reads what JSON can say: `on` is a text, and so is 2027-01-01."""


_Loader.yaml_implicit_resolvers = {}
for _kind, _pattern in KINDS:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"(?:{_pattern})$"), FIRST_SIGNS)


@dataclass(frozen=True, slots=True)
class BookFile:
    """document: what the file says. lines: by the keys and places that lead to a value, its line from 1."""

    path: Path
    document: Any
    lines: dict[Place, int]

    def told(self, refused: BookRefused) -> str:
        """Return the first 100 faults, each with its line: `book.yaml:12: boosts.0.since is missing`.

        Where there are more, a last line tells how many.
        """
        told = [f"{self.path.name}:{self._line(each.path)}: {each}" for each in refused.faults[:DETAILS_MAX]]
        if (number := len(refused.faults)) > DETAILS_MAX:
            told.append(f"{self.path.name}: {number} faults, of which these are the first {DETAILS_MAX}")
        return "\n".join(told)

    def _line(self, place: Place) -> int:
        """Return the line of a place, or of the nearest that it lies in."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def read_file(path: Path) -> BookFile:
    """Read a file; raises UnreadableBook, and OSError."""
    if (size := path.stat().st_size) > FILE_BYTES_MAX:
        raise UnreadableBook(f"{path.name}: has {size} bytes; {FILE_BYTES_MAX} are allowed")
    try:
        # YAML forbids tabs before a value, and JSON's indentation may be of them.
        text = TABS.sub(lambda tabs: "  " * len(tabs[0]), path.read_text(encoding="utf-8"))
        if path.suffix == ".json":
            text = ODD.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)
        node = yaml.compose(text, _Loader)
        lines: dict[Place, int] = {}
        document = _value(node, (), lines, set())
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UnreadableBook(f"{path.name}:{line}: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UnreadableBook(f"{path.name}:1: {error}") from None
    except RecursionError:
        raise UnreadableBook(f"{path.name}:1: it is nested too deeply") from None
    return BookFile(path, document, lines)


def _value(node: Any, place: Place, lines: dict[Place, int], seen: set[int]) -> Any:
    """Return what a node says, and note the line of each part. seen: the nodes so far."""
    if node is None:
        return None
    if id(node) in seen:
        raise yaml.MarkedYAMLError(problem="an alias repeats a part", problem_mark=node.start_mark)
    seen.add(id(node))
    if node.tag not in JSON_TAGS:
        raise yaml.MarkedYAMLError(problem=f"{node.tag} is no JSON", problem_mark=node.start_mark)
    lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key, inner in node.value:
            if not isinstance(key, yaml.ScalarNode) or (name := _text(key)) in found:
                problem = f"the key {getattr(key, 'value', '')!r} is there twice, or is no text"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            found[name] = _value(inner, (*place, name), lines, seen)
            lines[*place, name] = key.start_mark.line + 1
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_value(inner, (*place, at), lines, seen) for at, inner in enumerate(node.value)]
    return _scalar(node)


def _scalar(node: Any) -> Any:
    """Return the value of a scalar; a tag that was written, such as !!int, changes nothing."""
    kind, pattern = next(
        ((name, pattern) for name, pattern in KINDS if node.tag == f"tag:yaml.org,2002:{name}"), ("str", "")
    )
    if kind == "str":
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
    r"""Return what a text says: JSON writes a sign beyond U+FFFF as two halves, such as `\ud83c\udf89`."""
    try:
        return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise yaml.MarkedYAMLError(
            problem="it has half of a character", problem_mark=node.start_mark
        ) from None


def written(document: Any) -> str:
    """Return a document as the YAML that `read_file` reads."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)
