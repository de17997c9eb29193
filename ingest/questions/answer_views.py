"""What people see of their own answers: a list of them, and the stats that they make (rule 7)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters.platform.keyed_hash import Fingerprints
from adapters.questions.response_store import ResponseStore
from adapters.questions.stats_attributes import OTHERS
from adapters.questions.user_stats_store import UserStatsStore
from ingest.questions.question_schemas import FINGERPRINT_HASH
from ingest.web.caller import ApiError, Caller
from ingest.web.paging import cursor_at, cursor_of, integer, moment_of
from rules.days import DAY, is_stamp, stamp
from rules.engagement.boards import with_ranks
from rules.questions.answer_stats import Stats, earned_badges, person_alias, streak_now
from rules.questions.responses import Response, public_id

SPAN_DEFAULT = timedelta(days=30)
LIMIT_DEFAULT, LIMIT_MAX = 20, 100
ME = "me"


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
        if after:
            last_created_at, _ = after
            if last_created_at < span_start:
                # The default span has moved on since the page before.
                return {"answers": [], "cursor": None}
            if last_created_at > span_end:
                after = None
        rows = self.responses.recent(self._hashes(user_id), (span_start, span_end), after, limit)
        cursor = None
        if len(rows) == limit:
            cursor = cursor_at(f"{rows[-1].created_at}#{rows[-1].question_id}")
        return {"answers": [_own_answer_view(row) for row in rows], "cursor": cursor}

    def _hashes(self, user_id: str) -> set[str]:
        """Return all hashes that the person has had, also by retired keys."""
        person = self.fingerprints.of_user(user_id)
        if not person.is_rotated and not person.upcoming:
            return {person.own}
        return {*person.all, *self.stats.of(person.own, person.older).hashes}


@dataclass(frozen=True, slots=True)
class AnswerStats:
    """Reads the stats of people who answer, from the table UserStats."""

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
        return _stats_view(stored.stored_under, stored.stats, now)

    def leaders(self, limit: int, caller: Caller) -> dict[str, Any]:
        """Return {"entries"}: the `limit` people with the most points. Ties share a rank (1, 2, 2, 4)."""
        own_hashes = self.fingerprints.of_user(caller.user_id).all
        rows = self.store.top(limit)
        ranks = with_ranks([(person, points) for person, points, _ in rows])
        entries = [
            {
                "rank": rank["rank"],
                "alias": person_alias(person),
                "points": points,
                "total_answers": answers,
                "is_me": person in own_hashes,
            }
            for rank, (person, points, answers) in zip(ranks, rows, strict=True)
        ]
        return {"entries": entries}


def _own_answer_view(response: Response) -> dict[str, Any]:
    """Return an answer as the person who gave it sees it. Absent values are left out."""
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


def _position_of(cursor: str | None) -> tuple[str, str] | None:
    """Return (created_at, question_id) of a page's last answer; raises 400 for a cursor of another list."""
    if cursor is None:
        return None
    created_at, _, question_id = cursor.partition("#")
    if not is_stamp(created_at) or not question_id:
        raise ApiError(400, "invalid_parameter", "cursor is not one that a page returned")
    return created_at, question_id


def _stats_view(person: str, stats: Stats, now: datetime) -> dict[str, Any]:
    """Return stats as the API shows them, the streak as of now."""
    streak, badges = streak_now(stats, now), earned_badges(stats)
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
