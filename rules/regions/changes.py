"""Changes of items on their way from the writer to the standby (rule 23).

They arrive late, twice and in any order. What makes them harmless is told here: a number of each change,
which grows with the changes of an item.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LEDGER = "RewardsLedger"
# Of each table that a standby has: its keys. Boards and Limits are made anew within minutes, and stay out.
KEYS: Mapping[str, tuple[str, ...]] = {
    LEDGER: ("account_id", "created_at"),
    "UserStreaks": ("user_id",),
    "DailyActivity": ("user_id", "activity_date"),
    "BPEvents": ("user_id", "event_id"),
    "IdempotencyKeys": ("user_id", "idempotency_key"),
    "Rewards": ("holder", "place"),
    "RuleBooks": ("book", "version"),
    "Erasures": ("part", "place"),
    "Event": ("lead_organization_id", "occurred_at#id"),
    "Memory": ("lead_organization_id", "memory_type#key"),
    "Feature": ("lead_organization_id",),
    "GroupEvents": ("root_id", "event_type#occurred_at#id"),
    "Questions": ("question_id",),
    "Responses": ("question_id", "response_id"),
    "Subscriptions": ("subscription_id",),
    "UserStats": ("fingerprint_hash",),
    "WebhookEndpoints": ("registry", "endpoint_id"),
    "Notifications": ("holder", "place"),
}
# An attribute of items that came from the writer: the number of the change.
FOLLOWED = "followed"
# Marks of deletions, among the claims: so nothing that comes late brings an item back.
GONE = "gone/"
GONE_KEY = "gone"
Image = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ItemChange:
    """One change of an item. table: its name in the template. at: microseconds of the epoch, as the table
    says.

    key: the item's key as DynamoDB writes it. image: the item after the change; None: it is gone. is_new:
    whether it was not there before.
    """

    table: str
    epoch: int
    at: int
    key: Image
    image: Image | None
    is_new: bool

    @property
    def number(self) -> str:
        """The change's number, as text that sorts: later epochs are later, whatever their clocks say."""
        return number_of(self.epoch, self.at)

    @property
    def owner(self) -> str:
        """The value of the partition key: whose item it is."""
        return str(next(iter(self.key[KEYS[self.table][0]].values())))


def number_of(epoch: int, at: int) -> str:
    """Return a change's number. at: microseconds; 0 stands before every change of the epoch."""
    return f"{epoch:08d}/{at:017d}"
