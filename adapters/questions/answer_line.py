"""Where many answer one question at once: who is refused stands in line, who is first takes the line along.

One counter gives the answers their numbers, so transactions that count one question refuse each other. If
each took one answer, most of a thousand at once would be refused again and again. So whoever is refused puts
the answer in the question's line (the table AnswerLines), and then tries to take as many of the line as a
transaction holds, their own or others'. An answer in line is not accepted yet: it is once its response is
stored, whoever stored it. Taking an answer, rewarding it and removing it from the line is one transaction, so
a process may die anywhere. AnswerLine takes answers; AnswerAwards gives it the event that rewards one.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from adapters.engagement import claims
from adapters.platform.aws import pauses
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import REFUSED, Unprocessed, cancellation_reasons
from adapters.questions.question_store import QuestionStore
from adapters.questions.response_store import AlreadyAnswered, ResponseStore, WaitingAnswers
from rules.engagement import events
from rules.engagement.events import Event, InputRefused
from rules.questions.questions import Question, QuestionStatus, check_open, from_item
from rules.questions.responses import Response, Submission, event_digest

# The events of answers: what a transaction that takes an answer also writes, so that it is rewarded once.


# A transaction's actions for an event.
ACTIONS = 2
# A transaction takes 100 actions: one for the counter; for each answer a response, its place in line, and
# its event.
TAKEN_MAX = 99 // (2 + ACTIONS)
ATTEMPTS_MAX = 40
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.1, 0.6


@dataclass(frozen=True, slots=True)
class AnswerAwards:
    """Writes IdempotencyKeys and BPEvents."""

    claims_table: str
    events_table: str

    def actions(self, event: Event | None, now: datetime) -> Sequence[dict[str, Any]]:
        """Return a transaction's actions: claim the event's key, unless it is held, and store the event."""
        if event is None:
            return ()
        claim = claims.IdempotencyClaim(
            event.user_id, event.idempotency_key, event_digest(event), event.event_id, event.created_at
        )
        claimed = {
            "TableName": self.claims_table,
            "Item": claims.to_item(claim),
            "ConditionExpression": claims.UNCLAIMED,
            "ExpressionAttributeNames": {"#ttl": "ttl"},
            "ExpressionAttributeValues": encode_item({":now": int(now.timestamp())}),
        }
        stored = {"TableName": self.events_table, "Item": encode_item(events.to_item(event))}
        return {"Put": claimed}, {"Put": stored}


def with_answers(question: Question, answers: int, at: str) -> Question:
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
            "Key": encode_item({"question_id": before.question_id}),
            "UpdateExpression": changes,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {"#status": "status"},
            "ExpressionAttributeValues": encode_item(values),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """Takes answers, by themselves or by the lines of their questions."""

    dynamodb: Any
    questions: QuestionStore
    responses: ResponseStore
    awards: AnswerAwards  # of their events
    waiting: WaitingAnswers

    def answer(self, question: Question, submission: Submission, now: datetime) -> tuple[Question, Response]:
        """Store an answer, its event and its count, all or nothing: one request if nobody else answers now.

        The answer's number is the counter's next value, on condition that nobody has counted meanwhile. So
        numbers have no gaps and follow the order of commits, and the last answer closes the question. Returns
        the question as it is afterwards, and the stored answer. Nothing is written if it raises:
        AlreadyAnswered, InputRefused (rules.questions.questions.check_open), or Unprocessed if too many
        answer at once.
        Where the person has other hashes, two requests more look for an answer under these. They come after
        the question was read, so an answer that is stored later moves the counter and this one is refused.
        """
        check_open(question, now)
        response = submission.response
        if stored := self.elsewhere(response):
            raise AlreadyAnswered(stored)
        numbered = replace(response, number=question.current_responses + 1)
        after = with_answers(question, 1, response.created_at)
        actions = [
            count_action(self.questions.table, question, after),
            self.responses.put_action(numbered),
            *self.awards.actions(submission.event, now),
        ]
        refusal = self._write(actions)
        if refusal is None:
            return after, numbered
        if refusal[1].get("Code") == REFUSED:
            raise AlreadyAnswered(self.responses.stored_response(refusal[1], response))
        if refusal[0].get("Item"):
            check_open(from_item(decode_item(refusal[0]["Item"])), now)
        if submission.event and refusal[2].get("Code") == REFUSED:
            # An earlier answer, lost since, has earned. This one is taken without an event.
            return self.answer(self._read(question), replace(submission, event=None), now)
        return self.wait(question, submission, now)

    def _write(self, actions: Sequence[dict[str, Any]]) -> list[dict[str, Any]] | None:
        """Write all; returns None, or the reasons why nothing is written."""
        try:
            self.dynamodb.transact_write_items(TransactItems=actions)
        except self.dynamodb.exceptions.TransactionCanceledException as error:
            return cancellation_reasons(error, len(actions))
        return None

    def _read(self, question: Question) -> Question:
        """Read the question again; one that is gone counts as closed."""
        return self.questions.get(question.question_id) or replace(question, status=QuestionStatus.CLOSED)

    def wait(self, question: Question, submission: Submission, now: datetime) -> tuple[Question, Response]:
        """Stand in line until the answer is taken; returns the question with it, and the stored answer.

        Nothing is written if it raises: AlreadyAnswered, InputRefused (check_open), or Unprocessed.
        """
        response, is_mine = submission.response, self.waiting.put(submission, now)
        for _ in pauses(ATTEMPTS_MAX, PAUSE_SECONDS, PAUSE_SECONDS_MAX):
            if stored := self.responses.get(*response.key, *response.other_hashes):
                if is_mine and (stored.key, stored.created_at) == (response.key, response.created_at):
                    return _as_of(question, stored), stored
                self.waiting.remove(response)
                raise AlreadyAnswered(stored)
            question = self._read(question)
            try:
                check_open(question, now)
            except InputRefused:
                if self.waiting.remove(response) or not self.responses.get(*response.key):
                    raise
                continue
            line = self.waiting.first(question.question_id, TAKEN_MAX, now)
            if _is_my_turn([each.response.fingerprint_hash for each in line], response.fingerprint_hash):
                self._take(question, line, now)
        if self.waiting.remove(response) or not (stored := self.responses.get(*response.key)):
            raise Unprocessed(f"{self.questions.table}: an answer left unstored")
        return _as_of(question, stored), stored

    def _take(self, question: Question, line: Sequence[Submission], now: datetime) -> None:
        """Take a line, and try at once with half of it where others are quicker with their one answer."""
        while line and not self.take(self._read(question), line, now):
            line = line[: len(line) // 2]

    def take(self, question: Question, line: Sequence[Submission], now: datetime) -> int:
        """Take as many answers of a line as fit; returns how many, 0 if somebody else was first.

        The question must be read before: see _first_answers.
        """
        line = self._first_answers(line)[: question.required_responses - question.current_responses]
        if not line:
            return 0
        after = with_answers(question, len(line), max(each.response.created_at for each in line))
        actions = [count_action(self.questions.table, question, after)]
        puts = list[int]()
        for number, each in enumerate(line, question.current_responses + 1):
            puts.append(len(actions))
            actions += [
                self.responses.put_action(replace(each.response, number=number)),
                self.waiting.remove_action(each.response),
                *self.awards.actions(each.event, now),
            ]
        refusal = self._write(actions)
        if refusal is None:
            return len(line)
        refused = {index for index, each in enumerate(refusal) if each.get("Code") == REFUSED}
        for put, each in zip(puts, line, strict=True):
            if put in refused:  # this person has answered by another request
                self.waiting.remove(each.response)
        # As in `answer`; the event's claim is two actions later.
        rewarded = {put for put, each in zip(puts, line, strict=True) if each.event and put + 2 in refused}
        if not rewarded:
            return 0
        rest = [
            replace(each, event=None) if put in rewarded else each
            for put, each in zip(puts, line, strict=True)
        ]
        return self.take(question, rest, now)

    def elsewhere(self, response: Response) -> Response | None:
        """Return the same person's answer under another hash; their place in line there is given up.

        Such a place may be of a process that died before it knew of the newest key.
        """
        question, others = response.question_id, response.other_hashes
        if not others:
            return None
        for each in self.waiting.of_hashes(question, others):
            self.waiting.remove(each)
        return next(iter(self.responses.all_of((question, each) for each in others)), None)

    def _first_answers(self, line: Sequence[Submission]) -> Sequence[Submission]:
        """Leave out who has answered, or stands in this line, under another hash too.

        What others store from here on moves the question's counter, and the transaction is refused.
        """
        others = [(each.response.question_id, other) for each in line for other in each.response.other_hashes]
        if not others:
            return line
        answered = {each.fingerprint_hash for each in self.responses.all_of(others)}
        seen, kept = set[str](), list[Submission]()
        for each in line:
            hashes = {each.response.fingerprint_hash, *each.response.other_hashes}
            if hashes & answered:
                self.waiting.remove(each.response)
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
    return with_answers(before, 1, stored.created_at)
