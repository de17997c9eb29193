"""The Questions table. One index has the questions by status, one by agent, both newest first. A third has
the open questions by closing time.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import get_all, get_one, query_all, write_if
from rules.days import key_of_stamp, stamp
from rules.questions.questions import (
    ANSWERABLE,
    STORED_WITHIN,
    Question,
    QuestionStatus,
    from_item,
    statuses_to_read,
    to_item,
)

# A page reads no more questions once it has read so many, however few of them match.
READ_MAX = 200
# A page first reads as many questions as it shows. If some do not match, it reads this many more at a time.
READ_AGAIN = 50
# Where the next page begins: for each partition, the (created_at, question_id) that was read last.
ListPosition = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class QuestionPage:
    """One page of a list."""

    questions: list[Question]  # newest first
    next: ListPosition | None  # where the next page begins; None: this is the last one


class _ListIndex(NamedTuple):
    name: str
    attribute: str  # that it is partitioned by


class _ListedKey(NamedTuple):
    """A row of such an index."""

    partition: str
    created_at: str
    question_id: str


BY_STATUS, BY_AGENT = _ListIndex("ByStatus", "status"), _ListIndex("ByAgentId", "agent_id")


class QuestionStore:
    """Stores, reads, lists and expires questions of all agents.

    The indexes hold nothing but keys, and of all answers only the first and the last one change a key: the
    status. So the other answers write to no index. DynamoDB takes 1,000 writes a second in one partition. In
    OPEN a question takes two, when it is asked and when it has an answer: 500 questions a second.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self.table = dynamodb, table

    def create(self, question: Question, now: datetime) -> Question:
        """Put a question, unless its id is taken; returns the question that the table has afterwards."""
        is_new = write_if(
            self._dynamodb.put_item,
            TableName=self.table,
            Item=encode_item(to_item(question)),
            ConditionExpression="attribute_not_exists(question_id) OR expires_at <= :now",
            ExpressionAttributeValues={":now": {"N": str(int(now.timestamp()))}},
        )
        # The earlier question may expire between both requests. Then the new one stands for it.
        return question if is_new else self.get(question.question_id) or question

    def get(self, question_id: str) -> Question | None:
        """Return one question, strongly consistent: one request."""
        item = get_one(self._dynamodb, self.table, {"question_id": question_id})
        return from_item(decode_item(item)) if item else None

    def expirable(self, now: datetime) -> Iterator[str]:
        """Yield the ids of questions that are stored as open or partial, and that no answer can reach."""
        until = key_of_stamp(stamp(now - STORED_WITHIN))
        for status in ANSWERABLE:
            items = query_all(
                self._dynamodb,
                TableName=self.table,
                IndexName="ByClosing",
                KeyConditionExpression="#status = :status AND closes_at <= :until",
                ExpressionAttributeNames={"#status": "status"},
                ExpressionAttributeValues=encode_item({":status": status.value, ":until": until}),
            )
            yield from (item["question_id"]["S"] for item in items)

    def expire(self, question_id: str, now: datetime) -> bool:
        """Store a question as expired. False: it is over already, or an answer may still reach it."""
        values = {
            ":open": QuestionStatus.OPEN.value,
            ":partial": QuestionStatus.PARTIAL.value,
            ":expired": QuestionStatus.EXPIRED.value,
            ":until": key_of_stamp(stamp(now - STORED_WITHIN)),
        }
        return write_if(
            self._dynamodb.update_item,
            TableName=self.table,
            Key=encode_item({"question_id": question_id}),
            UpdateExpression="SET #status = :expired",
            ConditionExpression="#status IN (:open, :partial) AND closes_at <= :until",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues=encode_item(values),
        )

    def of_status(
        self, status: QuestionStatus, after: ListPosition, limit: int, matches: Callable[[Question], bool]
    ) -> QuestionPage:
        """Return at most `limit` questions that match, of those that may show a status."""
        return self._page(BY_STATUS, statuses_to_read(status), after, limit, matches)

    def of_agent(
        self, agent_id: str, after: ListPosition, limit: int, matches: Callable[[Question], bool]
    ) -> QuestionPage:
        """Return at most `limit` of an agent's questions that match."""
        return self._page(BY_AGENT, [agent_id], after, limit, matches)

    def _page(
        self,
        index: _ListIndex,
        partitions: Sequence[str],
        after: ListPosition,
        limit: int,
        matches: Callable[[Question], bool],
    ) -> QuestionPage:
        """Return a page of the questions of several partitions of an index, merged by time."""
        # Each partition is likely to give its share of the page, so one request reads that share and two rows
        # more: one because the division rounds down, and one to see whether the list goes on after the page.
        step = limit // len(partitions) + 2
        key_lists = [self._keys(index, partition, after.get(partition), step) for partition in partitions]
        keys = heapq.merge(*key_lists, key=attrgetter("created_at"), reverse=True)
        if after:  # a question may have moved to another partition since the last page
            oldest = min(after.values())
            keys = (key for key in keys if key.created_at <= oldest[0] and key[1:] != oldest)
        matching: list[Question] = []
        position, read_count, size = dict(after), 0, limit
        while read_count < READ_MAX and (chunk := list(islice(keys, size))):
            questions = self._get([key.question_id for key in chunk])
            for number, key in enumerate(chunk, 1):
                position[key.partition] = key.created_at, key.question_id
                question = questions.get(key.question_id)  # None: deleted since the index was read
                if question and matches(question):
                    matching.append(question)
                if len(matching) == limit:
                    is_last = number == len(chunk) and next(keys, None) is None
                    return QuestionPage(matching, None if is_last else position)
            read_count, size = read_count + len(chunk), READ_AGAIN
        return QuestionPage(matching, position if next(keys, None) else None)

    def _keys(
        self, index: _ListIndex, partition: str, start: tuple[str, str] | None, step: int
    ) -> Iterator[_ListedKey]:
        """Yield a partition's keys, newest first, after `start`; `step` in a request."""
        more: dict[str, Any] = {}
        if start:
            row_before = {index.attribute: partition, "created_at": start[0], "question_id": start[1]}
            more = {"ExclusiveStartKey": encode_item(row_before)}
        items = query_all(
            self._dynamodb,
            TableName=self.table,
            IndexName=index.name,
            KeyConditionExpression="#part = :part",
            ExpressionAttributeNames={"#part": index.attribute},
            ExpressionAttributeValues=encode_item({":part": partition}),
            ScanIndexForward=False,
            Limit=step,
            **more,
        )
        for item in items:
            yield _ListedKey(partition, item["created_at"]["S"], item["question_id"]["S"])

    def _get(self, question_ids: Iterable[str]) -> dict[str, Question]:
        keys = ({"question_id": question_id} for question_id in dict.fromkeys(question_ids))
        questions = (from_item(decode_item(item)) for item in get_all(self._dynamodb, self.table, keys))
        return {question.question_id: question for question in questions}
