"""Stores an answer: the response with its number, the question's new count, and the event of the answer.

One transaction writes all of it or nothing, so a process may die anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from adapters.engagement.claims import IdempotencyClaim, put_unclaimed
from adapters.platform.aws import pauses
from adapters.platform.items import encode_item
from adapters.platform.tables import REFUSED, Unprocessed, cancellation_reasons
from adapters.questions.question_store import QuestionStore
from adapters.questions.response_store import AlreadyAnswered, ResponseStore
from rules.engagement import events
from rules.engagement.events import Event
from rules.questions.answer_events import Submission, event_digest
from rules.questions.questions import Question, QuestionStatus, check_open
from rules.questions.responses import Response

# Of several transactions that count one question at the same time, only one succeeds. With these pauses, a
# request tries for ten seconds.
ATTEMPTS_MAX = 24
PAUSE_SECONDS = 0.05

Action = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AnswerWriter:
    """Writes Responses, Questions, IdempotencyKeys and BPEvents."""

    dynamodb: Any
    questions: QuestionStore
    responses: ResponseStore
    claims_table: str
    events_table: str

    def store(self, question: Question, submission: Submission, now: datetime) -> tuple[Question, Response]:
        """Store an answer; returns the question with this answer counted, and the response.

        The answer's number is the counter's next value, on condition that nobody has counted meanwhile. So
        numbers have no gaps and follow the order of commits, and the last answer closes the question. It
        takes one request if nobody else answers now, and one more if the person has other hashes.

        Raises AlreadyAnswered, InputRefused (rules.questions.questions.check_open), or Unprocessed if too
        many people answer at once. Then nothing is written.
        """
        for attempt in pauses(ATTEMPTS_MAX, PAUSE_SECONDS):
            if attempt:
                question = self._question_now(question)
            check_open(question, now)
            response = replace(submission.response, number=question.current_responses + 1)
            if earlier := self._answer_under_other_hash(response):
                raise AlreadyAnswered(earlier)
            after = with_answer(question, response.created_at)
            actions = [
                count_action(self.questions.table, question, after),
                self.responses.put_action(response),
                *self._event_actions(submission.event, now),
            ]
            try:
                self.dynamodb.transact_write_items(TransactItems=actions)
            except self.dynamodb.exceptions.TransactionCanceledException as error:
                _, put_refusal, *event_refusals = cancellation_reasons(error, len(actions))
            else:
                return after, response
            if put_refusal.get("Code") == REFUSED:
                raise AlreadyAnswered(self.responses.stored_response(put_refusal, response))
            if event_refusals and event_refusals[0].get("Code") == REFUSED:
                # The key is claimed: an earlier answer, which was lost since, has its event. So this answer
                # is stored without one.
                submission = replace(submission, event=None)
        raise Unprocessed(f"{self.questions.table}: an answer left unstored")

    def _answer_under_other_hash(self, response: Response) -> Response | None:
        """Return the same person's answer under another of their hashes; None if there is none.

        It is read after the question. An answer that is stored between this read and the transaction changes
        the counter, so the transaction is refused.
        """
        keys = [(response.question_id, person) for person in response.other_hashes]
        return next(iter(self.responses.all_of(keys)), None) if keys else None

    def _question_now(self, question: Question) -> Question:
        """Read a question again. A question that was deleted counts as closed."""
        return self.questions.get(question.question_id) or replace(question, status=QuestionStatus.CLOSED)

    def _event_actions(self, event: Event | None, now: datetime) -> Sequence[Action]:
        """Return the actions that claim an event's key, unless it is claimed, and store the event."""
        if event is None:
            return ()
        claim = IdempotencyClaim(
            event.user_id, event.idempotency_key, event_digest(event), event.event_id, event.created_at
        )
        put_event = {"TableName": self.events_table, "Item": encode_item(events.to_item(event))}
        return {"Put": put_unclaimed(self.claims_table, claim, now)}, {"Put": put_event}


def with_answer(question: Question, at: str) -> Question:
    """Return the question with one answer more; the last required one closes it. at: the answer's stamp."""
    count = question.current_responses + 1
    if count < question.required_responses:
        return replace(question, current_responses=count)
    return replace(question, current_responses=count, status=QuestionStatus.CLOSED, closed_at=at)


def count_action(table: str, before: Question, after: Question) -> Action:
    """Return the action that counts an answer, if nobody has counted since the question was read."""
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
            "Key": encode_item({"question_id": before.question_id}),
            "UpdateExpression": changes,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {"#status": "status"},
            "ExpressionAttributeValues": encode_item(values),
        }
    }
