"""Items of a table that have become old: read by key, and changed only if they still are what was read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.platform.aws import THROTTLES, pauses
from adapters.platform.batches import WRITE_MAX, Unprocessed, chunks, get_all
from adapters.platform.items import Item

ATTEMPTS_MAX = 8
CHANGED = "ConditionalCheckFailed"
Statement = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AgedItems:
    """A table's items. key: the names of its key, the partition's first.

    A deletion or a change costs a write of the item, whether it still is what was read or not; one of an
    item that is gone costs a unit.
    """

    dynamodb: Any
    table: str
    key: tuple[str, ...]

    def held(self, keys: Iterable[Mapping[str, str]]) -> list[Item]:
        """Return the items that are there, strongly consistent. keys: none twice. Raises Unprocessed."""
        return get_all(self.dynamodb, self.table, keys)

    def delete(self, items: Sequence[Item]) -> int:
        """Delete items, each if all that was read of it is as it was; returns how many others there were.

        Deleting what is gone changes nothing. Raises Unprocessed; it is safe to repeat.
        """
        change = f'DELETE FROM "{self.table}"'  # noqa: S608 (a setting names the table)
        return self._carry_out([self._statement(change, (), each, each) for each in items])

    def remove(self, items: Sequence[Item], name: str, left: Sequence[tuple[str, Any]] = ()) -> int:
        """Take an attribute out of items, each if it has the value that was read; returns how many had not.

        left: attributes to set instead, one of each item, by name and wire format. Raises Unprocessed.
        """
        made = []
        for place, each in enumerate(items):
            instead = left[place : place + 1]
            sets = "".join(f' SET "{other}" = ?' for other, _ in instead)
            change = f'UPDATE "{self.table}"{sets} REMOVE "{name}"'
            made.append(self._statement(change, [value for _, value in instead], each, (name,)))
        return self._carry_out(made)

    def _statement(
        self, change: str, values: Sequence[Any], read: Item, compared: Iterable[str]
    ) -> Statement:
        names = [*self.key, *(name for name in compared if name not in self.key)]
        conditions = " AND ".join(f'"{name}" = ?' for name in names)
        return {
            "Statement": f"{change} WHERE {conditions}",
            "Parameters": [*values, *(read[name] for name in names)],
        }

    def _carry_out(self, statements: Sequence[Statement]) -> int:
        changed = 0
        for chunk in chunks(statements, WRITE_MAX):
            left = chunk
            for _ in pauses(ATTEMPTS_MAX):
                codes = self._asked(left)
                changed += codes.count(CHANGED)
                left = [each for each, code in zip(left, codes, strict=True) if code in THROTTLES]
                if not left:
                    break
            else:
                raise Unprocessed(f"{self.table}: items left unchanged")
        return changed

    def _asked(self, statements: Sequence[Statement]) -> list[str]:
        answer = self.dynamodb.batch_execute_statement(Statements=list(statements))
        errors = [each.get("Error", {}) for each in answer["Responses"]]
        codes = [str(each.get("Code", "")) for each in errors]
        for code, error in zip(codes, errors, strict=True):
            if code and code != CHANGED and code not in THROTTLES:
                raise RuntimeError(f"{self.table}: {code}: {error.get('Message')}")
        return codes
