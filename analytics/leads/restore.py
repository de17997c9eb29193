"""Fills the table Event again, and the claims of leads' events (rule 21).

The lake does not have an integration's own words, nor digests of bodies, so these are lost. Memory, features
and notes at roots follow from the events, which are announced as new ones.
"""

import json
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime

from adapters.leads.erasures import is_erased
from adapters.leads.lead_event_store import CLAIM_KEY
from adapters.platform.item_tables import ItemTable
from adapters.platform.items import Item, encode_item
from adapters.platform.tables import chunks
from adapters.privacy.tombstones import ErasureCheck
from analytics.restore.part_restore import PartRestore, RestoreInput
from analytics.restore.restored_users import KEYS
from analytics.restore.restorer import RestoreReport
from analytics.restore.user_rows import LakeBefore, Row, smoke_condition
from rules.days import key_of_stamp, stamp
from rules.lake.table_items import TABLES
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
LEAD_EVENTS, EVENT_KEY = "Event", ("lead_organization_id", SORT_KEY)


def event_rows(lake: LakeBefore) -> Generator[Row]:
    """Yield the rows of all events of leads."""
    # An event that came twice is one event: its external id is unique in its source.
    sql = f"""SELECT * FROM lead_events
        WHERE received_at < $until AND NOT {smoke_condition("organization_id")}
        QUALIFY row_number() OVER (PARTITION BY source, external_event_id ORDER BY received_at) = 1"""  # noqa: S608 (our own)
    return lake.rows(sql, "lead_events")


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
        for batch in chunks(event_rows(self.lake), AT_ONCE):
            rows = [row for row in batch if not is_erased(lead_event_of(row), self.erased)]
            report.others["lead_events"] += len(rows)
            report.others["erased_lead_events"] += len(batch) - len(rows)
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


def restore(given: RestoreInput, report: RestoreReport, _now: datetime) -> None:
    """Restore events and claims, unless the deployment leaves leads out."""
    if LEAD_EVENTS in given.tables:
        keys = {LEAD_EVENTS: EVENT_KEY, KEYS: TABLES[KEYS].key}
        tables = {name: ItemTable(given.dynamodb, given.tables[name], key) for name, key in keys.items()}
        LeadEventsRestorer(given.lake, tables, given.erased, given.keep).run(report)


RESTORE = PartRestore(
    entities=("lead_events",),
    replaceable=(),
    filled=(LEAD_EVENTS,),
    keys={LEAD_EVENTS: EVENT_KEY},
    not_in_the_lake={
        LEAD_EVENTS: "the integrations' own words of leads' events; the bucket still has large ones",
        "Memory": "nothing; it follows from Event",
        "Feature": "nothing; it follows from Event, and `streakline features rebuild` makes sure",
        "GroupEvents": "nothing; it follows from Event",
        "PostgreSQL": "which lead has which addresses, numbers and ids; restore its own backup, because"
        " whoever sends from an address that is missing becomes another lead",
    },
    counted={"lead_events": "events of leads", "erased_lead_events": "more are of erased ones"},
    run=restore,
)
