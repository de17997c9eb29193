"""Fills the table Event again, and the claims of leads' events (rule 21).

The lake does not have an integration's own words, nor digests of bodies, so these are lost. Memory, features
and notes at roots follow from the events, which are announced as new ones.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from adapters.leads.erasures import is_erased
from adapters.leads.lead_event_store import CLAIM_KEY
from adapters.platform.item_tables import ItemTable
from adapters.platform.items import Item, encode_item
from adapters.platform.tables import chunks
from adapters.privacy.tombstones import ErasureCheck
from analytics.restore.restored_users import KEYS
from analytics.restore.restorer import RestoreReport
from analytics.restore.user_rows import LakeBefore, Row
from rules.days import key_of_stamp, stamp
from rules.leads.lead_events import SORT_KEY, TYPE_KEY, LeadEvent

AT_ONCE = 1_000  # rows that are written together
# Attributes of an event that are the same in the lake's row and in the table's item.
COMMON_ATTRIBUTES = (
    "lead_organization_id",
    "organization_id",
    "root_id",
    "source",
    "source_type",
    "external_event_id",
    "event_type",
    "payload",
    "object_id",
    "object_id_ref",
    "raw_payload_ref",
)
LEAD_EVENTS = "Event"


@dataclass(frozen=True, slots=True)
class LeadEventsRestorer:
    """Restores Event and the claims of leads' events.

    Stored items stay. Rows have fewer attributes than items, so no table is replaced by them.
    """

    lake: LakeBefore
    tables: Mapping[str, ItemTable]  # Event and IdempotencyKeys, by name
    erased: ErasureCheck
    keep: Collection[str] = ()  # names of the tables that are not written

    def run(self, report: RestoreReport) -> None:
        """Restore leads' events with their claims, except for those of erased leads. It is safe to repeat."""
        if LEAD_EVENTS in self.keep:
            return
        for batch in chunks(self.lake.lead_events(), AT_ONCE):
            rows = [row for row in batch if not is_erased(lead_event_of(row), self.erased)]
            report.lead_events += len(rows)
            report.erased_events += len(batch) - len(rows)
            # The event comes first. If a restore ended between the two, with only the claim written, the
            # event would be refused as a duplicate when it is sent again.
            report.changes[LEAD_EVENTS] += self.tables[LEAD_EVENTS].put_missing(map(lead_event_item, rows))
            if KEYS not in self.keep:
                report.changes[KEYS] += self.tables[KEYS].put_missing(map(lead_claim_item, rows))


def lead_event_item(row: Row) -> Item:
    """Return a lead's event as the table Event has it, without its raw payload.

    The payload is not parsed. So an event that the live path could not read is restored unchanged.
    """
    occurred_at = stamp(row["occurred_at"])
    fields = {name: row[name] for name in COMMON_ATTRIBUTES}
    at = key_of_stamp(occurred_at)
    keys = {SORT_KEY: f"{at}#{row['event_id']}", TYPE_KEY: f"{row['event_type']}#{at}"}
    return encode_item(
        {**fields, **keys, "occurred_at": occurred_at, "received_at": stamp(row["received_at"])}
    )


def lead_claim_item(row: Row) -> Item:
    """Return the claim of an event's external id. It has no digest, so an event under that id is a duplicate.

    An order's claim does not have the order's state, so a webhook of that order is kept as a conflict.
    """
    return encode_item(
        {
            "user_id": f"{row['source']}#{row['external_event_id']}",
            "idempotency_key": CLAIM_KEY,
            "target": f"{row['lead_organization_id']}#{stamp(row['occurred_at'])}#{row['event_id']}",
            "created_at": stamp(row["received_at"]),
        }
    )


def lead_event_of(row: Row) -> LeadEvent:
    """Return the event of a row, to look for its tombstones. A payload that cannot be read is {}."""
    try:
        payload = json.loads(row["payload"])
    except ValueError:
        payload = {}
    texts = {name: row[name] for name in COMMON_ATTRIBUTES if name != "payload"}
    instants = {name: stamp(row[name]) for name in ("occurred_at", "received_at")}
    return LeadEvent(**texts, **instants, payload=payload if isinstance(payload, dict) else {})
