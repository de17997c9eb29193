"""What leaves the tables when it is old: events, the raw payloads of leads' events, and the words of answers.

Each takes rows of the lake, which name the items, and looks at the items themselves before it changes them.
So what the lake does not know stays where it is. Doing it again changes nothing.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, ClassVar

from adapters.platform.item_tables import AgedItems
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import chunks, query_all
from rules.days import stamp
from rules.lake.entities import EVENTS
from rules.lake.item_copies import is_in_lake
from rules.lake.residue import is_residue
from rules.leads.lead_events import SORT_KEY

READ_AT_ONCE = 100
THREADS = 16  # as many connections has a client
RAW_PAYLOAD = "raw_payload"
# An answer may be stored a moment after its question has closed. Its agent may ask under the same key again
# 90 days later; those answers are not meant.
STORED_AFTER = timedelta(days=1)
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RemovalCounts:
    """left: items, or parts of items. stayed: those that the lake holds differently, or that have changed."""

    left: int = 0
    stayed: int = 0

    def __add__(self, other: "RemovalCounts") -> "RemovalCounts":
        """Return both together."""
        return RemovalCounts(self.left + other.left, self.stayed + other.stayed)


def _in_threads(leave: Callable[[Sequence[Row]], RemovalCounts], rows: Sequence[Row]) -> RemovalCounts:
    """Let rows leave, a hundred in a thread: most of the time is waiting for answers."""
    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(leave, chunks(rows, READ_AT_ONCE)), RemovalCounts())


@dataclass(frozen=True, slots=True)
class RetentionRule(ABC):
    """A kind of thing that leaves items of a table.

    days: so old they are when they leave; 0: never. setting: which says so. name: of the
    state. entity: whose rows name the items. age: the column that says since when they age. had_ttl: whether
    items expired before there was a setting.
    """

    items: AgedItems
    days: int
    setting: ClassVar[str]
    name: ClassVar[str]
    entity: ClassVar[str]
    age: ClassVar[str]
    had_ttl: ClassVar[bool] = False

    @abstractmethod
    def leave(self, rows: Sequence[Row]) -> RemovalCounts:
        """Let what these rows name leave. Raises Unprocessed; it is safe to repeat."""


@dataclass(frozen=True, slots=True)
class Events(RetentionRule):
    """Items of BPEvents leave once the lake holds them, value by value."""

    setting = "EventHotDays"
    name, entity, age = "events", "events", "created_at"
    had_ttl = True

    def leave(self, rows: Sequence[Row]) -> RemovalCounts:
        """Delete the items that are what the lake has, on condition that they still are."""
        return _in_threads(self._leave, [row for row in rows if not is_residue(row["user_id"])])

    def _leave(self, rows: Sequence[Row]) -> RemovalCounts:
        by_key = {(row["user_id"], row["event_id"]): row for row in rows}
        found = self.items.held({"user_id": user, "event_id": event} for user, event in by_key)
        held = [each for each in found if self._is_held(each, by_key)]
        changed = self.items.delete(held)
        return RemovalCounts(len(held) - changed, len(found) - len(held) + changed)

    @staticmethod
    def _is_held(found: Item, by_key: Mapping[tuple[str, str], Row]) -> bool:
        attributes = decode_item(found)
        return is_in_lake(EVENTS, attributes, by_key[attributes["user_id"], attributes["event_id"]])


@dataclass(frozen=True, slots=True)
class RawPayloads(RetentionRule):
    """What an integration sent leaves the items of Event; what was read of it stays."""

    setting = "PayloadRetentionDays"
    name, entity, age = "raw_payloads", "lead_events", "received_at"

    def leave(self, rows: Sequence[Row]) -> RemovalCounts:
        """Take the attribute out of the items that have it."""
        return _in_threads(self._leave, rows)

    def _leave(self, rows: Sequence[Row]) -> RemovalCounts:
        found = [each for each in self.items.held(map(_lead_key, rows)) if RAW_PAYLOAD in each]
        changed = self.items.remove(found, RAW_PAYLOAD)
        return RemovalCounts(len(found) - changed, changed)


def _lead_key(row: Row) -> dict[str, str]:
    place = f"{stamp(row['occurred_at'])}#{row['event_id']}"
    return {"lead_organization_id": row["lead_organization_id"], SORT_KEY: place}


@dataclass(frozen=True, slots=True)
class AnswerTexts(RetentionRule):
    """The words of answers leave Responses. Their length stays, which the lake has too."""

    setting = "AnswerTextRetentionDays"
    name, entity, age = "answer_texts", "questions", "closes_at"

    def leave(self, rows: Sequence[Row]) -> RemovalCounts:
        """Put the length in the place of the words, in the answers to these questions."""
        answers = list(chain.from_iterable(self._of(row["question_id"], row["closes_at"]) for row in rows))
        lengths = [("answer_characters", {"N": str(len(each["answer"]["S"]))}) for each in answers]
        changed = self.items.remove(answers, "answer", lengths)
        return RemovalCounts(len(answers) - changed, changed)

    def _of(self, question_id: str, closes_at: datetime) -> list[Item]:
        found = query_all(
            self.items.dynamodb,
            TableName=self.items.table,
            KeyConditionExpression="question_id = :question",
            ExpressionAttributeValues=encode_item({":question": question_id}),
            ConsistentRead=True,
        )
        until = stamp(closes_at + STORED_AFTER)
        return [each for each in found if "answer" in each and each["created_at"]["S"] <= until]
