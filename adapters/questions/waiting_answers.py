"""The AnswerLines table: answers that wait to be taken (adapters/questions/answer_line.py).

What it takes to reward an answer is with it here, the user's id too, and nowhere else. The transaction that
takes the answer removes both. What a process leaves behind that dies while it waits ends after an hour.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters.platform.items import item, plain
from adapters.platform.tables import get_all
from rules.engagement import events
from rules.questions.responses import Response, Submission, from_item, to_item

KEPT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class WaitingAnswers:
    """The lines of all questions: each has its answers in the order of their hashes."""

    dynamodb: Any
    table: str

    def put(self, submission: Submission, now: datetime) -> bool:
        """Put an answer in its question's line; False: this person stands there already."""
        waiting = _key(submission.response) | {
            "answer": to_item(submission.response),
            "event": submission.event and events.to_item(submission.event),
            "expires_at": int((now + KEPT).timestamp()),
        }
        try:
            self.dynamodb.put_item(
                TableName=self.table,
                Item=item(waiting),
                ConditionExpression="attribute_not_exists(question_id) OR expires_at <= :now",
                ExpressionAttributeValues=item({":now": int(now.timestamp())}),
            )
        except self.dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def first(self, question_id: str, limit: int, now: datetime) -> list[Submission]:
        """Return answers that stand in a question's line, strongly consistent.

        One request, but where many processes have died: what has expired stays until DynamoDB deletes it.
        """
        pages = self.dynamodb.get_paginator("query").paginate(
            TableName=self.table,
            KeyConditionExpression="question_id = :question",
            FilterExpression="expires_at > :now",
            ExpressionAttributeValues=item({":question": question_id, ":now": int(now.timestamp())}),
            ConsistentRead=True,
            PaginationConfig={"PageSize": limit, "MaxItems": limit},
        )
        return [_submission(plain(each)) for page in pages for each in page["Items"]]

    def of_hashes(self, question_id: str, hashes: Iterable[str]) -> list[Response]:
        """Return what stands in a question's line under these hashes, strongly consistent."""
        keys = [{"question_id": question_id, "response_id": each} for each in hashes]
        return [_submission(plain(each)).response for each in get_all(self.dynamodb, self.table, keys)]

    def remove(self, response: Response) -> bool:
        """Remove an answer from the line; False: it is not there, or no longer."""
        try:
            self.dynamodb.delete_item(**self.remove_action(response)["Delete"])
        except self.dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def remove_action(self, response: Response) -> dict[str, Any]:
        """Return a transaction's action: remove an answer from the line, where it must be."""
        return {
            "Delete": {
                "TableName": self.table,
                "Key": item(_key(response)),
                "ConditionExpression": "attribute_exists(question_id)",
            }
        }


def _submission(stored: Mapping[str, Any]) -> Submission:
    event = stored.get("event")
    return Submission(from_item(stored["answer"]), event and events.from_item(event))


def _key(response: Response) -> dict[str, Any]:
    return {"question_id": response.question_id, "response_id": response.fingerprint_hash}
