"""Leads whose features are not what their events say: rebuilt, where table and lake hold the same events.

The warehouse names them (marts.lead_quality), a hundred a night at most. The deployed processor rebuilds them
from the stored events, on condition that nobody has changed a lead meanwhile. If lake and table hold other
events of a lead, nobody knows which are right: it is told of, and left alone.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any

from adapters.leads.feature_store import FeatureQueue
from adapters.leads.lead_event_store import LeadEventStore
from adapters.platform.items import decode_item, encode_item
from analytics.reconcile.lead_items import LEAD, LeadItems, Row, as_text
from analytics.warehouse.statements import literal, literal_lists
from analytics.warehouse.warehouse import Warehouse
from rules.days import stamp
from rules.engagement.reconciliation import LAKE_LAG
from rules.lake.entities import LEAD_EVENTS, row_of
from rules.leads.lead_events import LeadEvent, to_item

# What features follow from, and what tells two events apart.
COMPARED = (
    *("lead_organization_id", "source", "external_event_id", "event_id", "event_type", "occurred_at"),
    *("amount_minor", "foreign_minor", "sentiment_milli", "order_id", "currency", "campaign_id"),
)
ASTRAY_MAX = 100  # in a night
LEAVES = "SELECT lead_organization_id FROM dimensions.leads WHERE root_id = {lead}"
EVENTS = f"""SELECT {", ".join(COMPARED)} FROM facts.lead_events
WHERE lead_organization_id IN ({{leaves}}) AND unreadable IS NULL AND received_at < {{until}}"""  # noqa: S608 (literals, quoted)
Events = Counter[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class LeadRepair:
    """repair: False asks for nothing. items: None: only what the warehouse names is looked at."""

    warehouse: Warehouse
    events: LeadEventStore
    queue: FeatureQueue
    repair: bool
    items: LeadItems | None = None

    def ask(self, leads: Sequence[Row], now: datetime) -> list[dict[str, Any]]:
        """Ask for these leads' features anew; returns for each `lead`, `features` and the `outcome` in words.

        leads: rows of marts.lead_quality. Those whose items are not as they were written (lead_items.py) come
        to them. Raises StatementFailed, and RefreshUnsent if SQS refuses.
        """
        astray = list(islice(self.items.astray(now), ASTRAY_MAX)) if self.items else []
        doubts = {row[LEAD]: self._doubt(row[LEAD], now) for row in (*leads, *astray)}
        doubts |= {row[LEAD]: row["doubt"] for row in astray if row["doubt"]}
        if self.repair:
            provable = {lead for lead, doubt in doubts.items() if not doubt}
            anew = provable & {row[LEAD] for row in astray}
            self.queue.request_rebuild(sorted(provable - anew))
            self.queue.request_rebuild(sorted(anew), is_anew=True)
            if self.items and len(astray) < ASTRAY_MAX:  # else the others' turn is the next night
                self.items.note(now)
        names = {row[LEAD]: row["different"].split() for row in (*leads, *astray)}
        asked = "asked for anew" if self.repair else "a dry run"
        return [
            {"lead": lead, "features": names[lead], "outcome": doubt or asked}
            for lead, doubt in doubts.items()
        ]

    def _doubt(self, lead: str, now: datetime) -> str:
        """Return how lake and table differ in a lead's events that are older than two hours; "" if not."""
        known = self.warehouse.rows(LEAVES.format(lead=literal(lead)))
        leaves = [str(row["lead_organization_id"]) for row in known] or [lead]
        until = now - LAKE_LAG
        before = literal(until.replace(tzinfo=None))
        asked = [EVENTS.format(leaves=some, until=before) for some in literal_lists(leaves)]
        lake = events_of(chain.from_iterable(map(self.warehouse.rows, asked)))
        found = (each for each in self.events.of_leaves(leaves) if each.received_at < stamp(until))
        rows = (_row(each, now) for each in found)
        table = events_of(row for row in rows if "unreadable" not in row)
        if lake == table:
            return ""
        more, less = (lake - table).total(), (table - lake).total()
        return f"the lake has {more} events that the table lacks, and lacks {less} that the table has"


def events_of(rows: Iterable[Row]) -> Events:
    """Return what identifies each row's event, and what features follow from, as text."""
    return Counter(tuple(as_text(row.get(name)) for name in COMPARED) for row in rows)


def _row(event: LeadEvent, now: datetime) -> Row:
    return row_of(LEAD_EVENTS, decode_item(encode_item(to_item(event))), now)
