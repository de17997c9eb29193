"""Takes answers to questions, and shows people their own answers and stats (rule 7).

An answer is what a person sends. Stored, with its number and points, it is a response
(rules.questions.responses).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters import clock
from adapters.book_store import BookStore
from adapters.engagement.event_store import ZoneStore
from adapters.platform.keyed_hash import Fingerprints
from adapters.questions.response_store import (
    AlreadyAnswered,
    AnswerPosition,
    AnswerWriter,
    ResponseStore,
)
from adapters.questions.stats_items import OTHERS
from adapters.questions.user_stats_store import UserStatsStore
from ingest.questions.question_schemas import FINGERPRINT_HASH
from ingest.questions.questions import Questions, answer_view, refusal_error
from ingest.web.caller import ApiError, Caller
from ingest.web.paging import cursor_at, cursor_of, cursor_refusal, integer, moment_of
from ingest.web.rate_limit import RateLimit
from rules.book.book import Books
from rules.days import DAY, DayStarts, is_stamp, stamp
from rules.engagement.boards import with_ranks
from rules.engagement.events import Event, InputRefused
from rules.questions.answer_stats import Stats, earned_badges, person_alias, streak_now
from rules.questions.questions import check_answer, check_open, shown_status
from rules.questions.responses import Response, event_of_answer, new_response, points_for, public_id


@dataclass(frozen=True, slots=True)
class Answers:
    """Takes answers.

    An answer makes at most two requests to DynamoDB while nobody else answers the question. The answer of a
    signed-in person makes one more if it names no zone. Relayed answers make one more for every 20. Each
    answer makes one more while several keys are in use.
    """

    questions: Questions
    writer: AnswerWriter
    fingerprints: Fingerprints
    own_limit: RateLimit  # answers a minute of each person who answers for themselves
    relayed_limit: RateLimit  # of each agent who relays answers, for all people together
    books: BookStore
    zones: ZoneStore

    def answer(self, identifier: str, body: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Store an answer, and return its receipt.

        Raises 403, 404, 422, 429, and 409 (already_answered, question_closed, question_expired).
        """
        now = clock.now()
        is_relayed = "fingerprint" in body
        if is_relayed:
            caller.check_agent()
            person = self.fingerprints.of_device(body["fingerprint"])
            self.relayed_limit.check(caller.user_id, 1, now)
        else:
            person = self.fingerprints.of_user(caller.user_id)
            self.own_limit.check(caller.user_id, 1, now)
        question = self.questions.find_visible(identifier, caller)
        if is_relayed and not caller.is_admin and question.agent_id != caller.user_id:
            raise ApiError(403, "forbidden", "only the agent who asked relays answers to this question")
        try:
            check_open(question, now)
            check_answer(question, body)
            books = self.books.books()
            response = new_response(question, body, person, books, now)
            # A relayed answer belongs to no account, so it makes no event.
            event = None if is_relayed else self._event(response, caller.user_id, books)
            question_after, stored = self.writer.store(question, response, event, now)
        except AlreadyAnswered as already:
            raise _already_answered(already.response) from None
        except InputRefused as refused:
            # A closed question refuses a second answer, too. Its sender learns of the first one.
            if refused.field == "question":
                earlier = self.writer.responses.of_one_person(identifier, person.all)
                if earlier:
                    raise _already_answered(earlier) from None
            raise refusal_error(refused) from None
        return {
            "question_id": question.question_id,
            "response_id": public_id(*stored.key),
            "number": stored.number,
            "status": shown_status(question_after, now).value,
            "current_responses": question_after.current_responses,
            "points": stored.points,
            "points_for": points_for(books.at(now).book.answers, stored.confidence, stored.response_time_ms),
            "created_at": stored.created_at,
            "activity_date": stored.activity_date.isoformat(),
            "timezone": stored.zone,
        }

    def _event(self, response: Response, user_id: str, books: Books) -> Event | None:
        """Return the event of an answer, which alone names the user; None if the book has no such type."""
        zone = None if response.timezone else self.zones.chosen([user_id])[user_id]
        # The event's key: without the hash's key it leads to no question.
        key = self.fingerprints.of_text(f"award:{user_id}\x00{response.question_id}")
        return event_of_answer(response, user_id, key, zone, books)


def _already_answered(response: Response) -> ApiError:
    details = {"response_id": public_id(*response.key), "created_at": response.created_at}
    return ApiError(409, "already_answered", "this person has answered this question", details)


SPAN_DEFAULT = timedelta(days=30)
LIMIT_DEFAULT, LIMIT_MAX = 20, 100
ME = "me"
# What the person who answered sees of an answer, beside what the agent sees.
OWN_ATTRIBUTES = ("question_id", "type", "category", "points", "activity_date")


@dataclass(frozen=True, slots=True)
class OwnAnswers:
    """Reads the answers that signed-in people gave. Answers that agents relayed belong to no account."""

    responses: ResponseStore
    stats: UserStatsStore
    fingerprints: Fingerprints

    def recent(self, user_id: str, query: Mapping[str, str], caller: Caller, now: datetime) -> dict[str, Any]:
        """Return a page of a user's answers, by default of 30 days; raises 400, 403, 422."""
        caller.check(user_id)
        since = moment_of(query, "from", timedelta()) or now - SPAN_DEFAULT
        until = moment_of(query, "to", DAY) or now + DAY
        limit = integer(query, "limit", LIMIT_DEFAULT, LIMIT_MAX)
        span_start = stamp(since)
        span_end = max(span_start, stamp(until))
        after = _position_of(cursor_of(query))
        if after and after.created_at < span_start:
            # The default span has moved on since the page before.
            return {"answers": [], "cursor": None}
        if after and after.created_at > span_end:
            after = None
        rows = self.responses.recent(self._hashes(user_id), span_start, span_end, after, limit)
        cursor = None
        if len(rows) == limit:
            cursor = cursor_at(f"{rows[-1].created_at}#{rows[-1].question_id}")
        answers = [answer_view(row, *OWN_ATTRIBUTES) | {"timezone": row.zone} for row in rows]
        return {"answers": answers, "cursor": cursor}

    def _hashes(self, user_id: str) -> set[str]:
        """Return the hashes that a user's answers may be stored under: one per key, while keys rotate."""
        person = self.fingerprints.of_user(user_id)
        if not person.is_rotated and not person.upcoming:
            return {person.own}
        return {*person.all, *self.stats.of(person.own, person.older).hashes}


@dataclass(frozen=True, slots=True)
class AnswerStats:
    """Reads the stats of people who answer, from the table UserStats."""

    store: UserStatsStore
    fingerprints: Fingerprints
    books: BookStore  # when dates begin

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
        return _stats_view(stored.shown_hash, stored.stats, now, self.books.books().day_starts)

    def leaders(self, limit: int, caller: Caller) -> dict[str, Any]:
        """Return {"entries"}: the `limit` people with the most points. Ties share a rank (1, 2, 2, 4)."""
        own_hashes = self.fingerprints.of_user(caller.user_id).all
        rows = self.store.top(limit)
        ranks = with_ranks([(row.fingerprint_hash, row.points) for row in rows])
        entries = [
            {
                "rank": rank["rank"],
                "alias": person_alias(row.fingerprint_hash),
                "points": row.points,
                "total_answers": row.answers,
                "is_me": row.fingerprint_hash in own_hashes,
            }
            for rank, row in zip(ranks, rows, strict=True)
        ]
        return {"entries": entries}


def _position_of(cursor: str | None) -> AnswerPosition | None:
    """Return the position that a cursor names; raises 400 for a cursor of another list."""
    if cursor is None:
        return None
    created_at, _, question_id = cursor.partition("#")
    if not is_stamp(created_at) or not question_id:
        raise cursor_refusal()
    return AnswerPosition(created_at, question_id)


def _stats_view(person: str, stats: Stats, now: datetime, starts: DayStarts) -> dict[str, Any]:
    streak, badges = streak_now(stats, now, starts), earned_badges(stats)
    by_category = {name: category.answers for name, category in sorted(stats.categories.items())}
    if stats.others:
        by_category[OTHERS] = stats.others
    earned_views = [
        {"badge": earned.badge.name, "title": earned.badge.title, "earned_on": earned.earned_on.isoformat()}
        for earned in badges
    ]
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
        "badges_earned": earned_views,
        "answers_by_category": by_category,
    }
