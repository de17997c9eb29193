"""The transaction that counts answers: stats and marks, all or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.platform.tables import REFUSED, reasons_of
from adapters.questions.response_store import ResponseStore
from adapters.questions.user_stats_store import StoredStats, UserStatsStore
from rules.days import stamp
from rules.questions.answer_stats import Stats
from rules.questions.responses import Response

# A transaction takes 100 actions: one for the stats, and one for each of two older hashes (KEYS_MAX) that
# they move from; a mark for each answer.
RESPONSES_MAX = 97


@dataclass(frozen=True, slots=True)
class CountRefusal:
    """Why nothing was written.

    moved: the stats have changed since they were read (or two transactions met). marked: an answer is counted
    already, or gone.
    """

    moved: bool
    marked: bool


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Writes UserStats and Responses."""

    dynamodb: Any
    stats: UserStatsStore
    responses: ResponseStore

    def count(
        self,
        change: tuple[StoredStats, Stats],
        answers: Sequence[Response],
        now: datetime,
    ) -> CountRefusal | None:
        """Count up to 97 distinct answers of one person; returns why not, or None.

        change: the stats as read, and with these answers.
        One request writes the stats and each answer's mark. So a process that dies leaves all of it or
        nothing.
        """
        at, (before, after) = stamp(now), change
        actions = self.stats.put_actions(before, after, at)
        puts = len(actions)
        actions += [self.responses.mark_action(each, at) for each in answers]
        try:
            self.dynamodb.transact_write_items(TransactItems=actions)
        except self.dynamodb.exceptions.TransactionCanceledException as error:
            codes = [each.get("Code") for each in reasons_of(error, len(actions))]
            return _refusal(codes, puts)
        return None

    def replace(self, before: StoredStats, stats: Stats, now: datetime) -> bool:
        """Put stats that were computed afresh; False if the stored ones have changed since they were read.

        before: as read by one hash, so that nothing is to be moved.
        """
        (action,) = self.stats.put_actions(before, stats, stamp(now))
        try:
            self.dynamodb.put_item(**action["Put"])
        except self.dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True


def _refusal(codes: Sequence[str | None], puts: int) -> CountRefusal:
    """codes: of the stats, and of each answer's mark."""
    moved = REFUSED in codes[:puts] or REFUSED not in codes
    return CountRefusal(moved, REFUSED in codes[puts:])
