"""The transaction that counts answers: it writes a person's stats and the marks of the counted responses."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.platform.tables import REFUSED, cancellation_reasons
from adapters.questions.response_store import ResponseStore
from adapters.questions.user_stats_store import StoredStats, UserStatsStore
from rules.days import stamp
from rules.questions.answer_stats import Stats
from rules.questions.responses import Response

# A transaction takes 100 actions. One is for the stats, two are for older hashes from which the stats move
# (KEYS_MAX), and one is for the mark of each answer.
RESPONSES_MAX = 97


@dataclass(frozen=True, slots=True)
class CountRefusal:
    """Why a transaction that counts answers wrote nothing."""

    has_moved: bool  # the stats have changed since they were read, or another transaction was under way
    is_marked: bool  # an answer is counted already, or was deleted


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Writes UserStats and the marks of Responses."""

    dynamodb: Any
    stats: UserStatsStore
    responses: ResponseStore

    def count(
        self,
        change: tuple[StoredStats, Stats],
        answers: Sequence[Response],
        now: datetime,
    ) -> CountRefusal | None:
        """Count up to RESPONSES_MAX distinct answers of one person; returns a refusal, or None.

        change: the stats as they were read, and the stats with these answers. One transaction writes the
        stats and each answer's mark, so that a process that dies leaves all of it or nothing.
        """
        at, (before, after) = stamp(now), change
        actions = self.stats.put_actions(before, after, at)
        puts = len(actions)
        actions += [self.responses.mark_action(answer, at) for answer in answers]
        try:
            self.dynamodb.transact_write_items(TransactItems=actions)
        except self.dynamodb.exceptions.TransactionCanceledException as error:
            codes = [reason.get("Code") for reason in cancellation_reasons(error, len(actions))]
            return _refusal(codes, puts)
        return None

    def replace(self, before: StoredStats, stats: Stats, now: datetime) -> bool:
        """Put stats that were made from all responses. False: the stored ones have changed since they were
        read.

        before: the stats as they were read by one hash, so that there are no hashes to redirect.
        """
        (action,) = self.stats.put_actions(before, stats, stamp(now))
        try:
            self.dynamodb.put_item(**action["Put"])
        except self.dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True


def _refusal(codes: Sequence[str | None], puts: int) -> CountRefusal:
    """Return why a transaction was refused. codes: one for each action. puts: how many are for the stats."""
    # Without a failed condition, the transaction met another one: then the stats are read again, too.
    has_moved = REFUSED in codes[:puts] or REFUSED not in codes
    return CountRefusal(has_moved, REFUSED in codes[puts:])
