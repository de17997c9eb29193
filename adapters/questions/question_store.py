"""The Questions table, and the one transaction that takes an answer."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from adapters.platform.items import item, plain
from adapters.platform.transactions import REFUSED, reasons_of
from adapters.questions.answer_line import AnswerLine, count_action, counted
from adapters.questions.response_store import AlreadyAnswered, ResponseStore
from rules.questions.questions import Question, QuestionStatus, check_open, from_item, to_item
from rules.questions.responses import Response


class QuestionStore:
    """Questions of all agents. responses: the store that answers go to."""

    def __init__(self, dynamodb: Any, table: str, responses: ResponseStore) -> None:
        self._dynamodb, self._table, self._responses = dynamodb, table, responses
        self.line = AnswerLine(dynamodb, table, responses, self._now)

    def create(self, question: Question, now: datetime) -> Question:
        """Put a question unless its id is taken; returns the one that is stored."""
        try:
            self._dynamodb.put_item(
                TableName=self._table,
                Item=item(to_item(question)),
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
        Where the person has other hashes, one request more looks for an answer under these. It comes after
        the question was read, so an answer that is stored later moves the counter and this one is refused.
        """
        check_open(question, now)
        if stored := self.line.elsewhere(response):
            raise AlreadyAnswered(stored)
        numbered = replace(response, number=question.current_responses + 1)
        after = counted(question, 1, response.created_at)
        refusal = self._try(question, after, numbered)
        if refusal is None:
            return after, numbered
        if refusal[1].get("Code") == REFUSED:
            raise AlreadyAnswered(self._responses.stored_response(refusal[1], response))
        if refusal[0].get("Item"):
            check_open(from_item(plain(refusal[0]["Item"])), now)
        return self.line.wait(question, response, now)

    def _try(self, before: Question, after: Question, response: Response) -> list[dict[str, Any]] | None:
        """Write both; returns None, or the reasons why not."""
        actions = [count_action(self._table, before, after), self._responses.put_action(response)]
        try:
            self._dynamodb.transact_write_items(TransactItems=actions)
        except self._dynamodb.exceptions.TransactionCanceledException as error:
            return reasons_of(error, len(actions))
        return None

    def _now(self, known: Question) -> Question:
        """Read the question again; one that is gone counts as closed."""
        return self.get(known.question_id) or replace(known, status=QuestionStatus.CLOSED)
