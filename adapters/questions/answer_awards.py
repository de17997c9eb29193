"""The events of answers: what a transaction that takes an answer also writes, so that it is rewarded once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.engagement import claims
from adapters.platform.items import item
from rules.engagement import events
from rules.engagement.events import Event
from rules.questions.responses import event_digest

# A transaction's actions for an event.
ACTIONS = 2


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
            "ExpressionAttributeValues": item({":now": int(now.timestamp())}),
        }
        stored = {"TableName": self.events_table, "Item": item(events.to_item(event))}
        return {"Put": claimed}, {"Put": stored}
