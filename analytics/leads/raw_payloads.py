"""Removes raw payloads of integrations from the table Event when they are old (rule 22)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.platform.item_tables import AgedItems
from analytics.retention import ItemRow, PartRetention, RemovalCounts, RetentionRule, in_threads
from rules.days import key_of_stamp, stamp
from rules.leads.lead_events import SORT_KEY

RAW_PAYLOAD = "raw_payload"  # the attribute of Event


@dataclass(frozen=True, slots=True)
class RawPayloads(RetentionRule):
    """Removes raw payloads of integrations from items of Event. The values read from a payload stay."""

    setting = "PayloadRetentionDays"
    name, entity, age = "raw_payloads", "lead_events", "received_at"

    def remove(self, rows: Sequence[ItemRow]) -> RemovalCounts:
        """Remove the attribute from the items that have it."""
        return in_threads(self._remove, rows)

    def _remove(self, rows: Sequence[ItemRow]) -> RemovalCounts:
        items = [item for item in self.items.read(map(_key, rows)) if RAW_PAYLOAD in item]
        changed = self.items.remove(items, RAW_PAYLOAD)
        return RemovalCounts(len(items) - changed, changed)


def _key(row: ItemRow) -> dict[str, str]:
    sort_key = f"{key_of_stamp(stamp(row['occurred_at']))}#{row['event_id']}"
    return {"lead_organization_id": row["lead_organization_id"], SORT_KEY: sort_key}


def rules(config: Any, dynamodb: Any) -> Iterator[RetentionRule]:
    """Yield the rule, unless the deployment leaves leads out."""
    if config.event_table:
        leads = AgedItems(dynamodb, config.event_table, ("lead_organization_id", SORT_KEY))
        yield RawPayloads(leads, config.payload_retention_days)


RETENTION = PartRetention({"event_table": str, "payload_retention_days": int}, rules)
