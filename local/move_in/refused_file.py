"""The file of refused lines: as they were, with line, field and reason. Mended, it is a file to import."""

import csv
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from adapters.platform.spreadsheets import cell
from local.move_in.rows import NOTES, RefusedRow

SHOWN_MAX = 20


class RefusedFile:
    """Writes refused lines beside the file that they are of; without any there is no such file."""

    def __init__(self, source: Path, columns: Iterable[str]) -> None:
        self.is_csv = source.suffix.lower() == ".csv"
        self.path = source.with_name(f"{source.stem}.refused{'.csv' if self.is_csv else '.ndjson'}")
        self._columns = [*(each for each in columns if each not in NOTES), *NOTES]
        self._out: IO[str] | None = None
        self.count = 0
        self.reasons: Counter[tuple[str, str]] = Counter()
        self.first: list[RefusedRow] = []
        self.places: set[int] = set()
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        """Return this file."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        if self._out:
            self._out.close()

    def add(self, refused: RefusedRow) -> None:
        """Write a refused line."""
        self.count += 1
        self.places.add(refused.line)
        self.reasons[refused.field, refused.reason[:120]] += 1
        if len(self.first) < SHOWN_MAX:
            self.first.append(refused)
        values = {name: refused.values[name] for name in refused.values if name not in NOTES}
        row = {**values, **dict(zip(NOTES, (refused.line, refused.field, refused.reason), strict=True))}
        if self._out is None:
            # Bytes that are no UTF-8 are written as they were; in JSON, as what reads as them again.
            errors = "surrogateescape" if self.is_csv else "backslashreplace"
            self._out = self.path.open("w", newline="", encoding="utf-8", errors=errors)
            if self.is_csv:
                csv.writer(self._out).writerow(map(cell, self._columns))
        if self.is_csv:
            csv.writer(self._out).writerow(cell(_flat(row.get(name))) for name in self._columns)
        else:
            self._out.write(json.dumps(row, ensure_ascii=False) + "\n")

    def lines(self) -> Iterable[str]:
        """Yield what is told of it."""
        if not self.count:
            return
        yield f"{self.count} lines are refused; with their reasons: {self.path}"
        yield from (f"  line {each.line}: {each.field} {each.reason}" for each in self.first)
        if self.count > len(self.first):
            yield f"  and {self.count - len(self.first)} more"


def _flat(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
