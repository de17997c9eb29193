"""Finds and removes the lines of some persons in texts of raw lines."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from rules.lake.packed_records import row_text
from rules.lake.residue import PERSONS

# Takes a row of one of the persons, and returns whether it is to be removed.
MustGo = Callable[[Mapping[str, Any]], bool]


def every_row(_row: Mapping[str, Any]) -> bool:
    """Return True: every row of the persons is to be removed."""
    return True


class Finder:
    """Finds lines of an entity whose rows are of some persons."""

    def __init__(
        self, entity: str, names: Collection[str], must_go: MustGo = every_row, column: str = ""
    ) -> None:
        """Find lines of persons who have these names in a column of the entity's rows.

        must_go: says which of their rows are to be removed. column: "" stands for the column of PERSONS.
        """
        self._column, self._names, self._must_go = column or PERSONS[entity], frozenset(names), must_go
        self._name_of: dict[bytes, str] = {}  # by the JSON texts in which a line may have the name
        for name in names:
            for ascii_only in (True, False):
                self._name_of[json.dumps(name, ensure_ascii=ascii_only).encode(errors="replace")] = name
        pattern = b"|".join(map(re.escape, sorted(self._name_of)))
        self._pattern = re.compile(pattern) if pattern else None  # None: no names

    def may_be_in(self, text: bytes) -> bool:
        """Whether a text has any of the names."""
        return self._pattern is not None and self._pattern.search(text) is not None

    def count_names(self, text: bytes) -> Counter[str]:
        """Return how often a text has each of the names."""
        matches = self._pattern.findall(text) if self._pattern else ()
        return Counter(self._name_of[match] for match in matches)

    def person_to_remove(self, line: bytes) -> str | None:
        """Return the person whose line is to be removed; None for a line that stays.

        A line that is not a row of any person is to be removed if it has one of the names in it.
        """
        match = self._pattern.search(line) if self._pattern else None
        if match is None:
            return None
        try:
            row = json.loads(row_text(line))
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict) or not isinstance(row.get(self._column), str):
            return self._name_of[match[0]]
        person: str = row[self._column]
        return person if person in self._names and self._must_go(row) else None

    def without(
        self, text: bytes, read: Callable[[bytes], bytes] | None = None
    ) -> tuple[bytes, Counter[str]]:
        """Return a text without the lines that are to be removed, and how many of them each person had.

        read: returns the raw line that a line of the text holds; None: each line is a raw line itself.
        """
        removed: Counter[str] = Counter()
        if read is None and not self.may_be_in(text):
            return text, removed
        staying_lines = []
        for line in re.findall(rb"[^\n]*\n|[^\n]+", text):
            if person := self.person_to_remove(read(line) if read else line):
                removed[person] += 1
            else:
                staying_lines.append(line)
        return b"".join(staying_lines), removed
