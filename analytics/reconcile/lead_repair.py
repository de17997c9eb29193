"""Repairs leads whose features do not follow from their events.

The warehouse names these leads (marts.lead_quality), at most a hundred a night. The deployed processor
rebuilds their features from the stored events, on condition that nobody has changed a lead meanwhile. If
lake and table have different events of a lead, nobody knows which are right. Then the report names the lead,
and nothing is changed.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any

from adapters.leads.feature_requests import FeatureQueue
from adapters.leads.lead_event_store import LeadEventStore
from adapters.platform.items import decode_item, encode_item
from analytics.reconcile.lead_items import LEAD, LeadItems, Row, as_text
from analytics.warehouse.statements import literal, literal_lists
from analytics.warehouse.warehouse import Warehouse
from rules.days import stamp
from rules.engagement.reconciliation import LAKE_LAG
from rules.lake.entities import LEAD_EVENTS, row_of
from rules.leads.lead_events import LeadEvent, to_item

# The columns that features depend on, and those that identify an event.
COMPARED = (
    *("lead_organization_id", "source", "external_event_id", "event_id", "event_type", "occurred_at"),
    *("amount_minor", "foreign_minor", "sentiment_milli", "order_id", "currency", "campaign_id"),
)
WRONG_ITEMS_MAX = 100  # in a night
LEAVES = "SELECT lead_organization_id FROM dimensions.leads WHERE root_id = {lead}"
EVENTS = f"""SELECT {", ".join(COMPARED)} FROM facts.lead_events
WHERE lead_organization_id IN ({{leaves}}) AND unreadable IS NULL AND received_at < {{until}}"""  # noqa: S608 (literals, quoted)
Events = Counter[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class LeadRepair:
    """Asks the deployed processor to rebuild leads."""

    warehouse: Warehouse
    events: LeadEventStore
    queue: FeatureQueue
    may_repair: bool  # False: a dry run, which asks for no rebuild
    items: LeadItems | None = None  # None: only the leads that the warehouse names are repaired

    def ask(self, leads: Sequence[Row], now: datetime) -> list[dict[str, Any]]:
        """Ask for rebuilds of leads; returns `lead`, `features` and the `outcome` in words, for each lead.

        leads: rows of marts.lead_quality. Leads whose items were changed by hand (lead_items.py) are added.
        Raises StatementFailed, and RefreshUnsent if SQS refuses.
        """
        wrong_items = list(islice(self.items.wrong_items(now), WRONG_ITEMS_MAX)) if self.items else []
        doubts = {row[LEAD]: self._doubt(row[LEAD], now) for row in (*leads, *wrong_items)}
        doubts |= {row[LEAD]: row["doubt"] for row in wrong_items if row["doubt"]}
        if self.may_repair:
            undoubted = {lead for lead, doubt in doubts.items() if not doubt}
            with_wrong_items = undoubted & {row[LEAD] for row in wrong_items}
            self.queue.request_rebuild(sorted(undoubted - with_wrong_items))
            self.queue.request_rebuild(sorted(with_wrong_items), ignores_stored=True)
            if self.items and len(wrong_items) < WRONG_ITEMS_MAX:  # else the next night compares the others
                self.items.note_compared(now)
        features = {row[LEAD]: row["different"].split() for row in (*leads, *wrong_items)}
        outcome = "asked for anew" if self.may_repair else "a dry run"
        return [
            {"lead": lead, "features": features[lead], "outcome": doubt or outcome}
            for lead, doubt in doubts.items()
        ]

    def _doubt(self, lead: str, now: datetime) -> str:
        """Return how lake and table differ in a lead's events that are older than two hours; "" if not."""
        leaf_rows = self.warehouse.rows(LEAVES.format(lead=literal(lead)))
        leaves = [str(row[LEAD]) for row in leaf_rows] or [lead]
        until = now - LAKE_LAG
        until_text = literal(until.replace(tzinfo=None))
        statements = [EVENTS.format(leaves=ids, until=until_text) for ids in literal_lists(leaves)]
        lake = events_of(chain.from_iterable(map(self.warehouse.rows, statements)))
        stored = (event for event in self.events.of_leaves(leaves) if event.received_at < stamp(until))
        rows = (_row(event, now) for event in stored)
        table = events_of(row for row in rows if "unreadable" not in row)
        if lake == table:
            return ""
        only_lake, only_table = (lake - table).total(), (table - lake).total()
        return (
            f"the lake has {only_lake} events that the table lacks, and lacks {only_table} that the table has"
        )


def events_of(rows: Iterable[Row]) -> Events:
    """Return the values of COMPARED of each row, as texts."""
    return Counter(tuple(as_text(row.get(name)) for name in COMPARED) for row in rows)


def _row(event: LeadEvent, now: datetime) -> Row:
    return row_of(LEAD_EVENTS, decode_item(encode_item(to_item(event))), now)
