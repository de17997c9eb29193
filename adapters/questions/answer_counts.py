"""The transaction that counts answers: stats, marks, and the answers' events, all or nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.engagement import claims
from adapters.platform.items import item
from adapters.platform.transactions import REFUSED, reasons_of
from adapters.questions.response_store import Key, ResponseStore
from adapters.questions.user_stats_store import StoredStats, UserStatsStore
from rules.days import stamp
from rules.engagement import events
from rules.engagement.events import Event
from rules.questions.answer_events import event_digest
from rules.questions.answer_stats import Stats
from rules.questions.responses import Response

# A transaction takes 100 actions: one for the stats, and one for each of two older hashes (KEYS_MAX) that
# they move from; a mark, a claim and an event for each answer.
RESPONSES_MAX = 32


@dataclass(frozen=True, slots=True)
class CountRefusal:
    """Why nothing was written.

    moved: the stats have changed since they were read (or two transactions met). marked: an answer is counted
    already, or gone. taken: answers whose event's idempotency key stands for something else.
    """

    moved: bool
    marked: bool
    taken: frozenset[Key]


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Writes UserStats, Responses, IdempotencyKeys and BPEvents."""

    dynamodb: Any
    stats: UserStatsStore
    responses: ResponseStore
    claims_table: str
    events_table: str

    def count(
        self,
        change: tuple[StoredStats, Stats],
        answers: Sequence[Response],
        events_of: Mapping[Key, Event],
        now: datetime,
    ) -> CountRefusal | None:
        """Count up to 32 distinct answers of one person; returns why not, or None.

        change: the stats as read, and with these answers.
        One request writes all: the stats, and each answer's mark, event and claim of the event. So a process
        that dies leaves all of it or nothing.
        """
        at, (before, after) = stamp(now), change
        actions = self.stats.put_actions(before, after, at)
        puts = len(actions)
        actions += [self.responses.mark_action(each, at) for each in answers]
        named = [each for each in answers if each.key in events_of]
        for each in named:
            actions += self._event_actions(events_of[each.key], now)
        try:
            self.dynamodb.transact_write_items(TransactItems=actions)
        except self.dynamodb.exceptions.TransactionCanceledException as error:
            codes = [each.get("Code") for each in reasons_of(error, len(actions))]
            return _refusal(codes, puts, len(answers), [each.key for each in named])
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

    def _event_actions(self, event: Event, now: datetime) -> list[dict[str, Any]]:
        """Return the actions that claim the event's key, unless it is held, and store the event."""
        claim = claims.IdempotencyClaim(
            event.user_id, event.idempotency_key, event_digest(event), event.event_id, event.created_at
        )
        held = "attribute_not_exists(user_id) OR #ttl <= :now"
        return [
            {
                "Put": {
                    "TableName": self.claims_table,
                    "Item": claims.to_item(claim),
                    "ConditionExpression": held,
                    "ExpressionAttributeNames": {"#ttl": "ttl"},
                    "ExpressionAttributeValues": item({":now": int(now.timestamp())}),
                }
            },
            {
                "Put": {
                    "TableName": self.events_table,
                    "Item": item(events.to_item(event)),
                }
            },
        ]


def _refusal(codes: Sequence[str | None], puts: int, answers: int, named: Sequence[Key]) -> CountRefusal:
    """codes: of the stats; of each answer's mark; then, for each named answer, of its claim and its event."""
    first = puts + answers
    taken = [
        key for place, key in enumerate(named) if REFUSED in codes[first + 2 * place : first + 2 * place + 2]
    ]
    moved = REFUSED in codes[:puts] or REFUSED not in codes
    return CountRefusal(moved, REFUSED in codes[puts:first], frozenset(taken))
