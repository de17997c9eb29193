"""Repairs leads whose features do not follow from their events.

Two sources name such leads, each at most a hundred a night:
1. The warehouse's list (marts.lead_quality).
2. The compared items: lead_items.py finds those that contradict the lake.

The deployed processor rebuilds their features from the stored events, on condition that nobody has changed a
lead meanwhile. A *doubt* is why a lead is not repaired, in words. For example, if lake and table have
different events of it, nobody knows which are right. Then the report names the lead with the doubt.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any

from adapters.bootstrap import ClientOf
from adapters.leads.feature_requests import FeatureQueue
from adapters.leads.feature_store import FeatureStore
from adapters.leads.lead_event_store import LeadEventStore
from adapters.platform.items import decode_item, encode_item
from adapters.platform.objects import Objects
from analytics.leads.lead_items import LEAD, LeadItems, Row, WrongItem, as_text
from analytics.reconcile.part_findings import Find, PartFindings
from analytics.reconcile.part_night import ReportTable
from analytics.warehouse.statements import literal, literal_lists
from analytics.warehouse.warehouse import Warehouse
from rules.days import stamp
from rules.engagement.reconciliation import LAKE_LAG
from rules.lake.entities import row_of
from rules.leads.lake_entities import LEAD_EVENTS
from rules.leads.lead_events import LeadEvent, to_item
from rules.parts import Part

WRONG_ITEMS_MAX, LEADS_MAX = 100, 100  # in a night
MODEL = "marts.lead_quality"
LEADS = f"""SELECT lead_organization_id, different FROM {MODEL}
WHERE is_settled AND different_features > 0 ORDER BY lead_organization_id LIMIT {LEADS_MAX}"""  # noqa: S608 (our own)
EventCounts = Counter[tuple[str, ...]]  # how many events have these values of EVENT_COLUMNS


@dataclass(frozen=True, slots=True)
class Candidate:
    """A lead that a source names."""

    lead: str
    features: list[str]  # the names of what is wrong
    doubt: str  # why it is not repaired; "": it is
    has_wrong_item: bool


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

        leads: rows of marts.lead_quality. Leads with wrong items are added.
        Raises StatementFailed, and Unprocessed if SQS refuses.
        """
        wrong_items = list(islice(self.items.wrong_items(now), WRONG_ITEMS_MAX)) if self.items else []
        candidates = self._candidates(leads, wrong_items, now)
        if self.may_repair:
            # Of a wrong item only the attributes of its group are taken over (FeatureStore.readable).
            for is_wrong in (False, True):
                chosen = [each for each in candidates if not each.doubt and each.has_wrong_item == is_wrong]
                self.queue.request_rebuild(sorted(each.lead for each in chosen), ignores_stored=is_wrong)
            if self.items and len(wrong_items) < WRONG_ITEMS_MAX:  # else the next night compares the others
                self.items.note_compared(now)
        outcome = "asked for anew" if self.may_repair else "a dry run"
        return [
            {"lead": each.lead, "features": each.features, "outcome": each.doubt or outcome}
            for each in candidates
        ]

    def _candidates(
        self, leads: Sequence[Row], wrong_items: Sequence[WrongItem], now: datetime
    ) -> list[Candidate]:
        """Return each lead once. If both sources name it, the wrong item says what is wrong."""
        item_by_lead = {item.lead: item for item in wrong_items}
        features = {row[LEAD]: row["different"].split() for row in leads}
        features |= {lead: item.attributes for lead, item in item_by_lead.items()}
        candidates = []
        for lead, names in features.items():
            item = item_by_lead.get(lead)
            doubt = (item.doubt if item else "") or self._doubt_of_events(lead, now)
            candidates.append(Candidate(lead, names, doubt, has_wrong_item=item is not None))
        return candidates

    def _doubt_of_events(self, lead: str, now: datetime) -> str:
        """Return how lake and table differ in a lead's events that are older than two hours; "" if not."""
        leaf_rows = self.warehouse.rows(LEAVES.format(lead=literal(lead)))
        leaves = [str(row[LEAD]) for row in leaf_rows] or [lead]
        until = now - LAKE_LAG
        in_lake, in_table = self._lake_events(leaves, until), self._table_events(leaves, until, now)
        if in_lake == in_table:
            return ""
        only_lake, only_table = (in_lake - in_table).total(), (in_table - in_lake).total()
        return (
            f"the lake has {only_lake} events that the table lacks, and lacks {only_table} that the table has"
        )

    def _lake_events(self, leaves: Sequence[str], until: datetime) -> EventCounts:
        until_text = literal(until.replace(tzinfo=None))  # the warehouse's timestamps have no zone
        statements = [EVENTS.format(leaves=ids, until=until_text) for ids in literal_lists(leaves)]
        return event_counts(chain.from_iterable(map(self.warehouse.rows, statements)))

    def _table_events(self, leaves: Sequence[str], until: datetime, now: datetime) -> EventCounts:
        stored = (event for event in self.events.of_leaves(leaves) if event.received_at < stamp(until))
        rows = (_lake_row(event, now) for event in stored)
        return event_counts(row for row in rows if "unreadable" not in row)


# The leaves of a lead. The warehouse has none of a lead that is too new: then it is its only leaf.
LEAVES = "SELECT lead_organization_id FROM dimensions.leads WHERE root_id = {lead}"
# The columns that features depend on, and those that identify an event.
EVENT_COLUMNS = (
    "lead_organization_id",
    "source",
    "external_event_id",
    "event_id",
    "event_type",
    "occurred_at",
    "amount_minor",
    "foreign_minor",
    "sentiment_milli",
    "order_id",
    "currency",
    "campaign_id",
)
_OF_LEAVES = "WHERE lead_organization_id IN ({leaves}) AND unreadable IS NULL AND received_at < {until}"
EVENTS = f"SELECT {', '.join(EVENT_COLUMNS)} FROM facts.lead_events\n{_OF_LEAVES}"  # noqa: S608 (literals, quoted)


def event_counts(rows: Iterable[Row]) -> EventCounts:
    """Return how many rows of events have the same values, as texts."""
    return Counter(tuple(as_text(row.get(name)) for name in EVENT_COLUMNS) for row in rows)


def _lake_row(event: LeadEvent, now: datetime) -> Row:
    """Return the row of the lake that a stored event has led to."""
    return row_of(LEAD_EVENTS, decode_item(encode_item(to_item(event))), now)


def find_of(config: Any, client: ClientOf, objects: Objects, warehouse: Warehouse) -> Find:
    """Return what repairs leads in the night (PartFindings.find_of)."""
    events = LeadEventStore(client("dynamodb"), config.event_table)
    items = LeadItems(objects, warehouse, FeatureStore(client("dynamodb"), config.feature_table), events)
    queue = FeatureQueue(client("sqs"), config.feature_queue_url)

    def find(may_repair: bool, now: datetime) -> list[dict[str, Any]]:
        return LeadRepair(warehouse, events, queue, may_repair, items).ask(warehouse.rows(LEADS), now)

    return find


def report_table(found: Sequence[Row]) -> ReportTable:
    """Return the report's table of what LeadRepair.ask has returned."""
    rows = [(each["lead"], ", ".join(each["features"]), each["outcome"]) for each in found]
    return "Leads whose features are not what their events say", ("lead", "features", "what"), rows


FINDINGS = PartFindings(
    Part.LEADS,
    "leads",
    MODEL,
    dict.fromkeys(("event_table", "feature_table", "feature_queue_url"), str),
    find_of,
    report_table,
)
