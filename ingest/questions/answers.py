"""Answers to questions: takes them, shows people their own ones, and shows what they have earned.

An answer is what a person sends. Stored, with its number and points, it is a response
(rules.questions.responses).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters import clock
from adapters.book import BookStore
from adapters.engagement.account_indexes import ZoneStore
from adapters.platform.keyed_hash import Fingerprints
from adapters.questions.answer_writer import AnswerWriter
from adapters.questions.response_store import AlreadyAnswered, ResponseStore
from adapters.questions.stats_attributes import OTHERS
from adapters.questions.user_stats_store import UserStatsStore
from ingest.questions.question_schemas import FINGERPRINT_HASH
from ingest.questions.questions import Questions, refusal_error
from ingest.web.caller import ApiError, Caller
from ingest.web.paging import cursor_at, cursor_of, integer, moment_of
from ingest.web.rate_limit import RateLimit
from rules.book.book import Books
from rules.days import DAY, is_stamp, stamp
from rules.engagement.boards import with_ranks
from rules.engagement.events import InputRefused
from rules.key_ring import PersonHashes
from rules.questions.answer_events import Submission, event_of_answer
from rules.questions.answer_points import points_for
from rules.questions.answer_stats import Stats, earned_badges, person_alias, streak_now
from rules.questions.questions import Question, check_answer, check_open, shown_status
from rules.questions.responses import Response, new_response, public_id

SHOWN_DEFAULT = timedelta(days=30)
LIMIT_DEFAULT, LIMIT_MAX = 20, 100
ME = "me"


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Answers a minute."""

    own: RateLimit  # of those whom people give for themselves, by person
    relayed: RateLimit  # by the agent who relays them, whomever they are of


@dataclass(frozen=True, slots=True)
class Answers:
    """Takes answers: at most two requests to DynamoDB where nobody else answers just now.

    Those of signed-in people take one more if they name no zone, relayed ones one more for every 20, and each
    one more while there are several keys.
    """

    questions: Questions
    writer: AnswerWriter
    responses: ResponseStore
    fingerprints: Fingerprints
    limits: AnswerLimits
    books: BookStore
    zones: ZoneStore

    def answer(self, identifier: str, body: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Store an answer.

        Raises 403, 404, 422, 429, and 409: already_answered, question_closed, question_expired.
        """
        now = clock.now()
        person, user_id = self._person(body, caller)
        if user_id is None:
            self.limits.relayed.check(caller.user_id, 1, now)
        else:
            self.limits.own.check(user_id, 1, now)
        question = self.questions.visible(identifier, caller)
        if user_id is None and not caller.is_admin and question.agent_id != caller.user_id:
            raise ApiError(403, "forbidden", "only the agent who asked relays answers to this question")
        try:
            check_open(question, now)
            check_answer(question, body)
            books = self.books.books()
            response = new_response(question, body, person, books, now)
            after, stored = self.writer.store(question, self._submission(response, user_id, books), now)
        except AlreadyAnswered as already:
            raise _already_answered(already.response) from None
        except InputRefused as refused:
            if refused.field == "question" and (earlier := self.responses.get(identifier, *person.all)):
                raise _already_answered(earlier) from None
            raise refusal_error(refused) from None
        reasons = points_for(books.at(now).book.answers, stored.confidence, stored.response_time_ms)
        return _answer_receipt(after, stored, reasons, now)

    def _submission(self, response: Response, user_id: str | None, books: Books) -> Submission:
        """Return the answer with the event that it is. Nothing else says whose the answer is."""
        if user_id is None:
            return Submission(response, None)
        zone = None if response.timezone else self.zones.chosen([user_id])[user_id]
        key = self.fingerprints.answer_key(user_id, response.question_id)
        return Submission(response, event_of_answer(response, user_id, key, zone, books))

    def _person(self, body: Mapping[str, Any], caller: Caller) -> tuple[PersonHashes, str | None]:
        """Return the person's hashes, and the user_id of somebody who answers for themselves."""
        if "fingerprint" not in body:
            return self.fingerprints.of_user(caller.user_id), caller.user_id
        caller.check_agent()
        return self.fingerprints.of_device(body["fingerprint"]), None


def _already_answered(response: Response) -> ApiError:
    details = {"response_id": public_id(*response.key), "created_at": response.created_at}
    return ApiError(409, "already_answered", "this person has answered this question", details)


def _answer_receipt(
    question: Question, response: Response, reasons: Mapping[str, int], now: datetime
) -> dict[str, Any]:
    return {
        "question_id": question.question_id,
        "response_id": public_id(*response.key),
        "number": response.number,
        "status": shown_status(question, now).value,
        "current_responses": question.current_responses,
        "points": response.points,
        "points_for": dict(reasons),
        "created_at": response.created_at,
        "activity_date": response.activity_date.isoformat(),
        "timezone": response.zone,
    }


def own_answer_view(response: Response) -> dict[str, Any]:
    """Return an answer as the person who gave it sees it."""
    view = {
        "question_id": response.question_id,
        "response_id": public_id(*response.key),
        "type": response.type.value,
        "category": response.category,
        "selected_option": response.selected_option,
        "answer": response.answer,
        "confidence": response.confidence,
        "response_time_ms": response.response_time_ms,
        "points": response.points,
        "created_at": response.created_at,
        "activity_date": response.activity_date.isoformat(),
        "timezone": response.zone,
    }
    return {name: value for name, value in view.items() if value is not None}


@dataclass(frozen=True, slots=True)
class OwnAnswers:
    """Reads the answers of signed-in people. Those that agents relayed belong to nobody's account."""

    responses: ResponseStore
    stats: UserStatsStore
    fingerprints: Fingerprints

    def recent(self, user_id: str, query: Mapping[str, str], caller: Caller, now: datetime) -> dict[str, Any]:
        """Return a page of a user's answers, by default of 30 days; raises 400, 403, 422."""
        caller.check(user_id)
        since = moment_of(query, "from", timedelta()) or now - SHOWN_DEFAULT
        until = moment_of(query, "to", DAY) or now + DAY
        limit = integer(query, "limit", LIMIT_DEFAULT, LIMIT_MAX)
        span = (stamp(since), max(stamp(since), stamp(until)))
        after = _position_of(cursor_of(query))
        if after:
            last_created_at, _ = after
            if last_created_at < span[0]:
                return {"answers": [], "cursor": None}  # since the page before, the span has moved on
            if last_created_at > span[1]:
                after = None
        rows = self.responses.recent(self._hashes(user_id), span, after, limit)
        position = f"{rows[-1].created_at}#{rows[-1].question_id}" if len(rows) == limit else None
        return {"answers": [own_answer_view(row) for row in rows], "cursor": position and cursor_at(position)}

    def _hashes(self, user_id: str) -> set[str]:
        """Return all hashes that the person has had, also of keys that are retired."""
        person = self.fingerprints.of_user(user_id)
        if not person.is_rotated and not person.upcoming:
            return {person.own}
        return {*person.all, *self.stats.of(person.own, person.older).hashes}


def _position_of(cursor: str | None) -> tuple[str, str] | None:
    """Return created_at and question_id of a page's last answer; raises 400 for another page's cursor."""
    if cursor is None:
        return None
    created_at, _, question_id = cursor.partition("#")
    if not is_stamp(created_at) or not question_id:
        raise ApiError(400, "invalid_parameter", "cursor is not one that a page returned")
    return created_at, question_id


def stats_view(person: str, stats: Stats, now: datetime) -> dict[str, Any]:
    """Return stats as the API shows them, the streak as of now."""
    streak, badges = streak_now(stats, now), earned_badges(stats)
    by_category = {name: category.answers for name, category in sorted(stats.categories.items())}
    return {
        "fingerprint": person,
        "alias": person_alias(person),
        "total_points": stats.total_points,
        "total_answers": stats.total_answers,
        "streak_days": streak.current,
        "longest_streak_days": streak.longest,
        "streak_status": streak.status.value,
        "streak_last_date": streak.last.isoformat() if streak.last else None,
        "timezone": stats.newest[1],
        "created_at": stats.created_at or None,
        "badges": [earned.badge.name for earned in badges],
        "badges_earned": [
            {
                "badge": earned.badge.name,
                "title": earned.badge.title,
                "earned_on": earned.earned_on.isoformat(),
            }
            for earned in badges
        ],
        "answers_by_category": by_category | ({OTHERS: stats.others} if stats.others else {}),
    }


@dataclass(frozen=True, slots=True)
class AnswerStats:
    """Reads UserStats."""

    store: UserStatsStore
    fingerprints: Fingerprints

    def view_of(self, fingerprint: str, caller: Caller, now: datetime) -> dict[str, Any]:
        """Return a person's stats. fingerprint: "me", the caller's own hash, or for an admin anybody's.

        Raises 403, or 404 if nobody of this hash has answered.
        """
        hashes = self.fingerprints.of_user(caller.user_id)
        if fingerprint == ME or fingerprint in hashes.all:
            stored = self.store.of(hashes.own, hashes.older)
        else:
            if not re.fullmatch(FINGERPRINT_HASH, fingerprint, re.ASCII):
                raise ApiError(404, "not_found", "a fingerprint is 32 hexadecimal digits")
            caller.check_admin()
            stored = self.store.of(fingerprint)
            if stored.version == 0:
                raise ApiError(404, "not_found", "nobody of this fingerprint has answered")
        return stats_view(stored.stored_under, stored.stats, now)

    def leaders(self, limit: int, caller: Caller) -> dict[str, Any]:
        """Return the best by points; ties share a rank (1, 2, 2, 4)."""
        own_hashes = self.fingerprints.of_user(caller.user_id).all
        rows = self.store.top(limit)
        ranks = with_ranks([(person, points) for person, points, _ in rows])
        return {
            "entries": [
                {
                    "rank": rank["rank"],
                    "alias": person_alias(person),
                    "points": points,
                    "total_answers": answers,
                    "is_me": person in own_hashes,
                }
                for rank, (person, points, answers) in zip(ranks, rows, strict=True)
            ]
        }
