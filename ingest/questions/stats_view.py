"""What a person's answers have earned, and the leaderboard by points."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.platform.keyed_hash import Fingerprints
from adapters.questions.user_stats_store import OTHERS, UserStatsStore
from ingest.questions.question_schemas import FINGERPRINT_HASH
from ingest.web.caller import ApiError, Caller
from rules.engagement.boards import with_ranks
from rules.questions.answer_stats import Stats, alias, earned_badges, streak_now

ME = "me"


def stats_view(person: str, stats: Stats, now: datetime) -> dict[str, Any]:
    """Return stats as the API shows them, the streak as of now."""
    streak, earned = streak_now(stats, now), earned_badges(stats)
    by_category = {name: each.answers for name, each in sorted(stats.categories.items())}
    return {
        "fingerprint": person,
        "alias": alias(person),
        "total_points": stats.total_points,
        "total_answers": stats.total_answers,
        "streak_days": streak.current,
        "longest_streak_days": streak.longest,
        "streak_status": streak.status.value,
        "streak_last_date": streak.last.isoformat() if streak.last else None,
        "timezone": stats.newest[1],
        "created_at": stats.created_at or None,
        "badges": [each.badge.name for each in earned],
        "badges_earned": [
            {"badge": each.badge.name, "title": each.badge.title, "earned_on": each.earned_on.isoformat()}
            for each in earned
        ],
        "answers_by_category": by_category | ({OTHERS: stats.others} if stats.others else {}),
    }


@dataclass(frozen=True, slots=True)
class AnswerStats:
    """Reads UserStats."""

    store: UserStatsStore
    fingerprints: Fingerprints

    def view_of(self, asked: str, caller: Caller, now: datetime) -> dict[str, Any]:
        """Return a person's stats. asked: "me", the caller's own hash, or for an admin anybody's.

        Raises 403, or 404 if nobody of this hash has answered.
        """
        own = self.fingerprints.of_user(caller.user_id)
        is_own = asked == ME or asked in own.all
        if not is_own:
            if not re.fullmatch(FINGERPRINT_HASH, asked, re.ASCII):
                raise ApiError(404, "not_found", "a fingerprint is 32 hexadecimal digits")
            caller.check_admin()
        kept = self.store.of(own.own, own.older) if is_own else self.store.of(asked)
        if not is_own and kept.version == 0:
            raise ApiError(404, "not_found", "nobody of this fingerprint has answered")
        return stats_view(kept.stored_under, kept.stats, now)

    def leaders(self, limit: int, caller: Caller) -> dict[str, Any]:
        """Return the best by points; ties share a rank (1, 2, 2, 4)."""
        own = self.fingerprints.of_user(caller.user_id).all
        rows = self.store.top(limit)
        ranks = with_ranks([(person, points) for person, points, _ in rows])
        return {
            "entries": [
                {
                    "rank": rank["rank"],
                    "alias": alias(person),
                    "points": points,
                    "total_answers": answers,
                    "is_me": person in own,
                }
                for rank, (person, points, answers) in zip(ranks, rows, strict=True)
            ]
        }
