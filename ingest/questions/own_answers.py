"""GET /v1/users/{user_id}/answers: what a person has answered, newest first."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters.platform.keyed_hash import Fingerprints
from adapters.questions.response_store import ResponseStore
from adapters.questions.user_stats_store import UserStatsStore
from ingest.web.caller import ApiError, Caller
from ingest.web.paging import cursor_of, integer, moment_of
from rules.days import DAY, is_stamp, stamp
from rules.questions.responses import Response, public_id

SHOWN_DEFAULT = timedelta(days=30)
LIMIT_DEFAULT, LIMIT_MAX = 20, 100


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
        after = _place_of(cursor_of(query))
        if after and after[0] < span[0]:
            return {"answers": [], "cursor": None}  # since the page before, the span has moved on
        if after and after[0] > span[1]:
            after = None
        rows = self.responses.recent(self._hashes(user_id), span, after, limit)
        cursor = f"{rows[-1].created_at}#{rows[-1].question_id}" if len(rows) == limit else None
        return {"answers": [own_answer_view(each) for each in rows], "cursor": cursor and _as_cursor(cursor)}

    def _hashes(self, user_id: str) -> set[str]:
        """Return all hashes that the person has had, also of keys that are retired."""
        person = self.fingerprints.of_user(user_id)
        if not person.is_rotated and not person.upcoming:
            return {person.own}
        return {*person.all, *self.stats.of(person.own, person.older).hashes}


def _place_of(cursor: str | None) -> tuple[str, str] | None:
    """Return created_at and question_id of a page's last answer; raises 400 for another page's cursor."""
    if cursor is None:
        return None
    created_at, _, question_id = cursor.partition("#")
    if not is_stamp(created_at) or not question_id:
        raise ApiError(400, "invalid_parameter", "cursor is not one that a page returned")
    return created_at, question_id


def _as_cursor(place: str) -> str:
    return base64.urlsafe_b64encode(json.dumps({"before": place}).encode()).decode()
