"""Where many answer one question at once: who is refused stands in line, who is first takes the line along.

One counter gives the answers their numbers, so transactions that count one question refuse each other. If
each took one answer, most of a thousand at once would be refused again and again. So whoever is refused puts
the answer in the question's line (an item of Responses that no index has), and then tries to take as many of
the line as a transaction holds, their own or others'. An answer in line is not accepted yet: it is once its
response is stored, whoever stored it. Taking an answer and removing it from the line is one transaction, so
a process may die anywhere.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from adapters.platform.aws import pauses
from adapters.platform.batches import Unprocessed
from adapters.platform.items import item
from adapters.platform.transactions import REFUSED, reasons_of
from adapters.questions.response_store import LINE, AlreadyAnswered, ResponseStore
from rules.engagement.events import InputRefused
from rules.questions.questions import Question, QuestionStatus, check_open
from rules.questions.responses import Response

# A transaction takes 100 actions: one for the counter; a response, and its place in line, for each answer.
TAKEN_MAX = 49
ATTEMPTS_MAX = 40
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.1, 0.6


def counted(question: Question, answers: int, at: str) -> Question:
    """Return the question with so many answers more; the last required one closes it."""
    count = question.current_responses + answers
    if count < question.required_responses:
        return replace(question, current_responses=count)
    return replace(question, current_responses=count, status=QuestionStatus.CLOSED, closed_at=at)


def count_action(table: str, before: Question, after: Question) -> dict[str, Any]:
    """Return a transaction's action: count answers, if nobody has counted since the question was read."""
    changes = "SET current_responses = :after"
    values = {
        ":open": QuestionStatus.OPEN.value,
        ":before": before.current_responses,
        ":after": after.current_responses,
        ":created": before.created_at,
    }
    if after.status is QuestionStatus.CLOSED:
        changes += ", #status = :status, closed_at = :closed"
        values |= {":status": after.status.value, ":closed": after.closed_at}
    condition = "#status = :open AND current_responses = :before AND created_at = :created"
    return {
        "Update": {
            "TableName": table,
            "Key": item({"question_id": before.question_id}),
            "UpdateExpression": changes,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {"#status": "status"},
            "ExpressionAttributeValues": item(values),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """The lines of all questions. table: of the questions; read: returns a question as it is stored now."""

    dynamodb: Any
    table: str
    responses: ResponseStore
    read: Callable[[Question], Question]

    def wait(self, question: Question, response: Response, now: datetime) -> tuple[Question, Response]:
        """Stand in line until the answer is taken; returns the question with it, and the stored answer.

        Nothing is written if it raises: AlreadyAnswered, InputRefused (check_open), or Unprocessed.
        """
        is_mine = self.responses.stand_in_line(response)
        for _ in pauses(ATTEMPTS_MAX, PAUSE_SECONDS, PAUSE_SECONDS_MAX):
            if stored := self.responses.get(*response.key, *response.other_hashes):
                if is_mine and (stored.key, stored.created_at) == (response.key, response.created_at):
                    return _as_of(question, stored), stored
                self.responses.leave_line(response)
                raise AlreadyAnswered(stored)
            question = self.read(question)
            try:
                check_open(question, now)
            except InputRefused:
                if self.responses.leave_line(response) or not self.responses.get(*response.key):
                    raise
                continue
            line = self.responses.line(question.question_id, TAKEN_MAX)
            if _is_my_turn([each.fingerprint_hash for each in line], response.fingerprint_hash):
                self._take(question, line)
        if self.responses.leave_line(response) or not (stored := self.responses.get(*response.key)):
            raise Unprocessed(f"{self.table}: an answer left unstored")
        return _as_of(question, stored), stored

    def _take(self, question: Question, line: Sequence[Response]) -> None:
        """Take a line, and try at once with half of it where others are quicker with their one answer."""
        while line and not self.take(self.read(question), line):
            line = line[: len(line) // 2]

    def take(self, question: Question, line: Sequence[Response]) -> int:
        """Take as many answers of a line as fit; returns how many, 0 if somebody else was first.

        The question must be read before: see _first_answers.
        """
        line = self._first_answers(line)[: question.required_responses - question.current_responses]
        if not line:
            return 0
        first = question.current_responses + 1
        numbered = [replace(each, number=number) for number, each in enumerate(line, first)]
        after = counted(question, len(line), max(each.created_at for each in line))
        actions = [count_action(self.table, question, after)]
        for each in numbered:
            actions += [self.responses.put_action(each), self.responses.leave_action(each)]
        try:
            self.dynamodb.transact_write_items(TransactItems=actions)
        except self.dynamodb.exceptions.TransactionCanceledException as error:
            codes = [each.get("Code") for each in reasons_of(error, len(actions))]
            for each, code in zip(line, codes[1::2], strict=True):
                if code == REFUSED:  # this person has answered by another request
                    self.responses.leave_line(each)
            return 0
        return len(line)

    def elsewhere(self, response: Response) -> Response | None:
        """Return the same person's answer under another hash; their place in line there is given up.

        Such a place may be of a process that died before it knew of the newest key.
        """
        question = response.question_id
        keys = [(each, other) for other in response.other_hashes for each in (question, f"{question}{LINE}")]
        found = self.responses.all_of(keys)
        for each in found:
            if not each.number:
                self.responses.leave_line(each)
        return next((each for each in found if each.number), None)

    def _first_answers(self, line: Sequence[Response]) -> Sequence[Response]:
        """Leave out who has answered, or stands in this line, under another hash too.

        What others store from here on moves the question's counter, and the transaction is refused.
        """
        others = [(each.question_id, other) for each in line for other in each.other_hashes]
        if not others:
            return line
        answered = {each.fingerprint_hash for each in self.responses.all_of(others)}
        seen, kept = set[str](), list[Response]()
        for each in line:
            hashes = {each.fingerprint_hash, *each.other_hashes}
            if hashes & answered:
                self.responses.leave_line(each)
            elif not hashes & seen:
                kept.append(each)
            seen |= hashes
        return kept


def _is_my_turn(line: Sequence[str], person: str) -> bool:
    """Whether to take the line: if all did, all but one would fail.

    The first in line does. The others seldom do, because the process of the first may have died.
    """
    return bool(line) and (line[0] == person or random.random() * len(line) < 1)  # noqa: S311 (no secret)


def _as_of(question: Question, stored: Response) -> Question:
    """Return the question as it was when an answer had been counted."""
    before = replace(question, current_responses=stored.number - 1, status=QuestionStatus.OPEN)
    return counted(before, 1, stored.created_at)
