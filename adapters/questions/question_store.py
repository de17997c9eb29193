"""The Questions table, and the one transaction that takes an answer."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from adapters.platform.aws import pauses
from adapters.platform.batches import Unprocessed
from adapters.platform.items import item, plain
from adapters.platform.transactions import REFUSED, reasons_of
from adapters.questions.response_store import AlreadyAnswered, ResponseStore
from rules.questions.question_lists import listed_item, status_shard
from rules.questions.questions import Question, QuestionStatus, check_open, from_item
from rules.questions.responses import Response

# If many people answer one question at once, each commit refuses the others. They pause, and so spread.
ATTEMPTS_MAX = 40
PAUSE_SECONDS_MAX = 1.0


class QuestionStore:
    """Questions of all agents. responses: the store that answers go to."""

    def __init__(self, dynamodb: Any, table: str, responses: ResponseStore) -> None:
        self._dynamodb, self._table, self._responses = dynamodb, table, responses

    def create(self, question: Question, now: datetime) -> Question:
        """Put a question unless its id is taken; returns the one that is stored."""
        try:
            self._dynamodb.put_item(
                TableName=self._table,
                Item=item(listed_item(question)),
                ConditionExpression="attribute_not_exists(question_id) OR expires_at <= :now",
                ExpressionAttributeValues={":now": {"N": str(int(now.timestamp()))}},
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return self.get(question.question_id) or question
        return question

    def get(self, question_id: str) -> Question | None:
        """Return one question, strongly consistent: one request."""
        key = item({"question_id": question_id})
        answer = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        return from_item(plain(answer["Item"])) if "Item" in answer else None

    def answer(self, question: Question, response: Response, now: datetime) -> tuple[Question, Response]:
        """Store an answer and count it, both or neither: one request if nobody else answers at the same time.

        The answer's number is the counter's next value, on condition that nobody has counted meanwhile. So
        numbers have no gaps and follow the order of commits, and the last answer closes the question. Returns
        the question as it is afterwards, and the stored answer. Nothing is written if it raises:
        AlreadyAnswered, InputRefused (rules.questions.questions.check_open), or Unprocessed if too many
        answer at once.
        """
        for attempt in pauses(ATTEMPTS_MAX, base_seconds=0.05, longest_seconds=PAUSE_SECONDS_MAX):
            if attempt:  # The question that was read before the pause is stale.
                question = self._now(question)
            check_open(question, now)
            numbered = replace(response, number=question.current_responses + 1)
            counted = _counted(question, response.created_at)
            refusal = self._try(question, counted, numbered)
            if refusal is None:
                return counted, numbered
            if refusal[1].get("Code") == REFUSED:
                raise AlreadyAnswered(self._responses.stored_response(refusal[1], response))
            if refusal[0].get("Item"):
                check_open(from_item(plain(refusal[0]["Item"])), now)
        raise Unprocessed(f"{self._table}: an answer left unstored")

    def _try(self, before: Question, after: Question, response: Response) -> list[dict[str, Any]] | None:
        """Write both; returns None, or the reasons why not."""
        actions = [self._count_action(before, after), self._responses.put_action(response)]
        try:
            self._dynamodb.transact_write_items(TransactItems=actions)
        except self._dynamodb.exceptions.TransactionCanceledException as error:
            return reasons_of(error, len(actions))
        return None

    def _count_action(self, before: Question, after: Question) -> dict[str, Any]:
        changes = "SET current_responses = :after, answers_count = :after"
        values = {
            ":open": QuestionStatus.OPEN.value,
            ":before": before.current_responses,
            ":after": after.current_responses,
            ":created": before.created_at,
        }
        if after.status is QuestionStatus.CLOSED:
            changes += ", #status = :status, status_shard = :shard, closed_at = :closed REMOVE closing_shard"
            shard = status_shard(after.status, after.question_id)
            values |= {":status": after.status.value, ":shard": shard, ":closed": after.closed_at}
        # The version before knows only answers_count: both count by it while they run side by side.
        condition = "#status = :open AND answers_count = :before AND created_at = :created"
        return {
            "Update": {
                "TableName": self._table,
                "Key": item({"question_id": before.question_id}),
                "UpdateExpression": changes,
                "ConditionExpression": condition,
                "ExpressionAttributeNames": {"#status": "status"},
                "ExpressionAttributeValues": item(values),
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        }

    def _now(self, known: Question) -> Question:
        """Read the question again; one that is gone counts as closed."""
        return self.get(known.question_id) or replace(known, status=QuestionStatus.CLOSED)


def _counted(question: Question, at: str) -> Question:
    """Return the question with one answer more; the last required one closes it."""
    count = question.current_responses + 1
    if count < question.required_responses:
        return replace(question, current_responses=count)
    return replace(question, current_responses=count, status=QuestionStatus.CLOSED, closed_at=at)
