"""Takes persons' lines out of texts of raw objects, of the quarantine, and of Firehose's errors."""

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from rules.lake.packed_records import row_text
from rules.lake.residue import PERSONS

_BASE64 = re.compile(rb"[A-Za-z0-9+/]{8,}")
# Tells whether a row of a person is to go; it is one of those who are looked for.
Goes = Callable[[Mapping[str, Any]], bool]


def always(_row: Mapping[str, Any]) -> bool:
    """Say of each row that it goes."""
    return True


class Finder:
    """Finds lines of an entity whose rows are of some persons. ids: their names in it.

    column: another one than that of persons, whose values are the ids.
    """

    def __init__(self, entity: str, ids: Collection[str], goes: Goes = always, column: str = "") -> None:
        self._column, self._ids, self._goes = column or PERSONS[entity], frozenset(ids), goes
        self._written: dict[bytes, str] = {}
        for each in ids:
            for ascii_only in (True, False):
                self._written[json.dumps(each, ensure_ascii=ascii_only).encode(errors="replace")] = each
        written = b"|".join(map(re.escape, sorted(self._written)))
        self._any = re.compile(written) if written else None

    def may_be_in(self, text: bytes) -> bool:
        """Whether a text has any of the names."""
        return self._any is not None and self._any.search(text) is not None

    def named(self, text: bytes) -> Counter[str]:
        """Return whom a text names, and how often."""
        return Counter(self._written[each] for each in self._any.findall(text)) if self._any else Counter()

    def whose(self, line: bytes) -> str | None:
        """Return whose line it is; None if it is of none of them, or does not go.

        A line that is no row of anybody goes if it has a name in it.
        """
        found = self._any.search(line) if self._any else None
        if found is None:
            return None
        try:
            row = json.loads(row_text(line))
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict) or not isinstance(row.get(self._column), str):
            return self._written[found[0]]
        person: str = row[self._column]
        return person if person in self._ids and self._goes(row) else None

    def without(
        self, text: bytes, read: Callable[[bytes], bytes] | None = None
    ) -> tuple[bytes, Counter[str]]:
        """Return a text of lines without theirs, and how many each had.

        read: returns the raw line that a line of the text has, if it is not that line itself.
        """
        gone: Counter[str] = Counter()
        if read is None and not self.may_be_in(text):
            return text, gone
        kept = []
        for line in re.findall(rb"[^\n]*\n|[^\n]+", text):
            if person := self.whose(read(line) if read else line):
                gone[person] += 1
            else:
                kept.append(line)
        return b"".join(kept), gone


def in_base64(text: bytes) -> Iterator[bytes]:
    """Yield what a text may have in base64, wherever that begins: the data of a record that was cut off."""
    for run in _BASE64.findall(text.replace(b"\\/", b"/")):
        for start in range(4):
            part = run[start:]
            yield base64.b64decode(part[: len(part) // 4 * 4])
