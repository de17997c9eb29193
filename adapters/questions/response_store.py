"""The Responses table: one answer of a person to a question, kept for good.

AnswerWriter stores an answer, counts it in its question, and stores the event that it earns points by.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from adapters.engagement.claims import IdempotencyClaim, claim_request
from adapters.platform.aws import pauses
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import REFUSED, Action, Unprocessed, get_all, get_one, query_all, transact
from adapters.questions.question_store import QuestionStore
from rules.days import key_of_stamp
from rules.engagement import events
from rules.engagement.events import Event
from rules.questions.questions import Question, QuestionStatus, check_open, open_status
from rules.questions.responses import Response, event_digest, from_item, to_item

# The mark of a response that UserStats has counted; written in the transaction that counts it.
COUNTED = "counted_at"
# When several people answer one question at once, the transaction of only one succeeds, and the others try
# again. With these pauses, a request tries for ten seconds.
ATTEMPTS_MAX = 24
PAUSE_SECONDS = 0.05
Key = tuple[str, str]  # question_id, response_id: the person's hash at the time of the answer


class AnswerPosition(NamedTuple):
    """The place of an answer in a person's list, newest first."""

    created_at: str
    question_id: str


class AlreadyAnswered(Exception):
    """This person has answered this question before."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.question_id)
        self.response = response  # the answer that is stored


class ResponseStore:
    """Responses of all questions."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def of_one_person(self, question_id: str, hashes: Sequence[str]) -> Response | None:
        """Return a person's answer to a question, strongly consistent. hashes: all that they may have."""
        if len(hashes) > 1:
            return next(iter(self.all_of((question_id, person) for person in hashes)), None)
        item = get_one(self._dynamodb, self._table, _key((question_id, hashes[0])))
        return from_item(decode_item(item)) if item else None

    def all_of(self, keys: Iterable[Key]) -> list[Response]:
        """Return the answers of these keys that exist, strongly consistent."""
        items = get_all(self._dynamodb, self._table, map(_key, sorted(set(keys))))
        return [from_item(decode_item(item)) for item in items]

    def of_question(self, question_id: str) -> Iterator[Response]:
        """Yield a question's answers, strongly consistent."""
        items = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="question_id = :question",
            ExpressionAttributeValues=encode_item({":question": question_id}),
            ConsistentRead=True,
        )
        return (from_item(decode_item(item)) for item in items)

    def has_any(self, question_id: str) -> bool:
        """Whether a question has answers; eventually consistent, so one without answers costs half a unit."""
        answer = self._dynamodb.query(
            TableName=self._table,
            KeyConditionExpression="question_id = :question",
            ExpressionAttributeValues=encode_item({":question": question_id}),
            Limit=1,
        )
        return bool(answer["Items"])

    def of_person(self, hashes: Iterable[str]) -> list[Item]:
        """Return a person's answers as stored items. Those in the stats have the attribute COUNTED.

        The index follows the table, so an answer of the last moments may be missing.
        """
        keys: list[dict[str, str]] = []
        for person in hashes:
            index_items = query_all(
                self._dynamodb,
                TableName=self._table,
                IndexName="ByFingerprint",
                KeyConditionExpression="fingerprint_hash = :person",
                ExpressionAttributeValues=encode_item({":person": person}),
                ProjectionExpression="question_id, response_id",
            )
            keys += map(decode_item, index_items)
        return get_all(self._dynamodb, self._table, keys)

    def recent(
        self, hashes: Iterable[str], since: str, until: str, after: AnswerPosition | None, limit: int
    ) -> list[Response]:
        """Return at most `limit` of a person's answers between two stamps, both included, newest first.

        after: the place of the last one that is known already.
        """
        rows: list[tuple[str, Key]] = []  # created_at, as the index has it, and key
        span = {":since": key_of_stamp(since), ":until": key_of_stamp(until)}
        for person in hashes:
            start: dict[str, Any] = {}
            if after:
                row = {"created_at": key_of_stamp(after.created_at), **_key((after.question_id, person))}
                start = {"ExclusiveStartKey": encode_item({"fingerprint_hash": person, **row})}
            answer = self._dynamodb.query(
                TableName=self._table,
                IndexName="ByFingerprint",
                KeyConditionExpression="fingerprint_hash = :person AND created_at BETWEEN :since AND :until",
                ExpressionAttributeValues=encode_item({":person": person, **span}),
                ScanIndexForward=False,
                Limit=limit,
                **start,
            )
            rows += (
                (row["created_at"], (row["question_id"], row["response_id"]))
                for row in map(decode_item, answer["Items"])
            )
        newest = sorted(rows, reverse=True)[:limit]
        responses = self.all_of(key for _, key in newest)
        return sorted(
            responses, key=lambda response: (response.created_at, response.question_id), reverse=True
        )

    def uncounted(self, keys: Iterable[Key]) -> set[Key]:
        """Return the keys whose responses are still there and not in the stats yet."""
        items = get_all(self._dynamodb, self._table, map(_key, sorted(set(keys))))
        return {(item["question_id"]["S"], item["response_id"]["S"]) for item in items if COUNTED not in item}

    def put_action(self, response: Response) -> dict[str, Any]:
        """Return a transaction's action: put an answer unless the person has answered."""
        return {
            "Put": {
                "TableName": self._table,
                "Item": encode_item(to_item(response)),
                "ConditionExpression": "attribute_not_exists(question_id)",
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        }

    def mark_action(self, response: Response, at: str) -> dict[str, Any]:
        """Return a transaction's action: note that an answer is in the stats, unless it is noted."""
        return {
            "Update": {
                "TableName": self._table,
                "Key": encode_item(_key(response.key)),
                "UpdateExpression": f"SET {COUNTED} = :at",
                "ConditionExpression": f"attribute_exists(question_id) AND attribute_not_exists({COUNTED})",
                "ExpressionAttributeValues": encode_item({":at": at}),
            }
        }


def _key(key: Key) -> dict[str, str]:
    question_id, response_id = key
    return {"question_id": question_id, "response_id": response_id}


@dataclass(frozen=True, slots=True)
class AnswerWriter:
    """Writes Responses, Questions, IdempotencyKeys and BPEvents."""

    dynamodb: Any
    questions: QuestionStore
    responses: ResponseStore
    claims_table: str
    events_table: str

    def store(
        self, question: Question, answer: Response, event: Event | None, now: datetime
    ) -> tuple[Question, Response]:
        """Store an answer; returns the question with this answer counted, and the response.

        The answer's number is the counter's next value, on condition that nobody has counted meanwhile. So
        numbers have no gaps and follow the order of commits, and the last answer closes the question.

        Raises AlreadyAnswered, InputRefused (check_open), or Unprocessed if too many people answer at once.
        """
        for attempt in pauses(ATTEMPTS_MAX, PAUSE_SECONDS):
            if attempt:
                current = self.questions.get(question.question_id)
                # A question that was deleted counts as closed.
                question = current or replace(question, status=QuestionStatus.CLOSED)
            check_open(question, now)
            response = replace(answer, number=question.current_responses + 1)
            # The person may have answered under another hash. If that is stored after this look, it has
            # changed the counter, and the transaction below fails.
            earlier = self.responses.all_of((question.question_id, each) for each in response.other_hashes)
            if earlier:
                raise AlreadyAnswered(earlier[0])
            after = _with_answer(question, response.created_at)
            actions = [
                _count_action(self.questions.table, question, after),
                self.responses.put_action(response),
                *(self._event_actions(event, now) if event else ()),
            ]
            reasons = transact(self.dynamodb, actions)
            if not reasons:
                return after, response
            _, put_refusal, *event_refusals = reasons
            if put_refusal.get("Code") == REFUSED:
                raise AlreadyAnswered(from_item(decode_item(put_refusal["Item"])))
            if event_refusals and event_refusals[0].get("Code") == REFUSED:
                # The key is claimed: an earlier answer, which was lost since, has its event. So this answer
                # is stored without one.
                event = None
        raise Unprocessed(f"{self.questions.table}: an answer left unstored")

    def _event_actions(self, event: Event, now: datetime) -> Sequence[Action]:
        """Return the actions that claim an event's key, and store the event."""
        claim = IdempotencyClaim(
            event.user_id, event.idempotency_key, event_digest(event), event.event_id, event.created_at
        )
        put_event = {"TableName": self.events_table, "Item": encode_item(events.to_item(event))}
        return {"Put": claim_request(self.claims_table, claim, now)}, {"Put": put_event}


def _with_answer(question: Question, at: str) -> Question:
    """Return the question with one answer more; the last required one closes it. at: the answer's stamp."""
    count = question.current_responses + 1
    if count < question.required_responses:
        return replace(question, current_responses=count, status=open_status(count))
    return replace(question, current_responses=count, status=QuestionStatus.CLOSED, closed_at=at)


def _count_action(table: str, before: Question, after: Question) -> Action:
    """Return the action that counts an answer, if nobody has counted since the question was read."""
    changes = "SET current_responses = :after, #status = :status"
    values: dict[str, Any] = {
        ":was": before.status.value,
        ":status": after.status.value,
        ":before": before.current_responses,
        ":after": after.current_responses,
        ":created": key_of_stamp(before.created_at),
    }
    if after.status is QuestionStatus.CLOSED:
        changes += ", closed_at = :closed"
        values[":closed"] = after.closed_at
    condition = "#status = :was AND current_responses = :before AND created_at = :created"
    return {
        "Update": {
            "TableName": table,
            "Key": encode_item({"question_id": before.question_id}),
            "UpdateExpression": changes,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {"#status": "status"},
            "ExpressionAttributeValues": encode_item(values),
        }
    }
