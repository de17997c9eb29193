"""Repairs leads whose features do not follow from their events.

The warehouse names these leads (marts.lead_quality), at most a hundred a night. The deployed processor
rebuilds their features from the stored events, on condition that nobody has changed a lead meanwhile. If
lake and table have different events of a lead, nobody knows which are right. Then the report names the lead,
and nothing is changed.

The warehouse cannot see an item that is deleted, or set back to an earlier version, because it leaves no
newer row. So items are compared with their newest rows, too. A version never changes once it is written: an
item with the version of the newest row must have its values, and none may have a lower version.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import chain, islice
from typing import Any

from adapters.leads.feature_requests import FeatureQueue
from adapters.leads.feature_store import FeatureStore, feature_item_from, is_readable
from adapters.leads.lead_event_store import LeadEventStore
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.objects import NoObject, Objects
from adapters.platform.tables import READ_MAX, chunks
from analytics.lake.layout import LEADS_COMPARED
from analytics.warehouse.statements import literal, literal_lists
from analytics.warehouse.warehouse import Warehouse
from rules.days import DAY, stamp
from rules.engagement.reconciliation import LAKE_LAG
from rules.lake.entities import LEAD_EVENTS, LEAD_FEATURES, row_of
from rules.lake.lead_entities import state_column
from rules.leads.features import Input
from rules.leads.lead_events import LeadEvent, to_item
from rules.turns import slices_due, turn_digits

LEAD = "lead_organization_id"
Row = Mapping[str, Any]

# Comparing items with their rows (LeadItems).
STATES = tuple(state_column(input_) for input_ in Input)  # the inputs of features
# The states are compared as one digest (of STATES_TEXT), so that the warehouse does not send long texts.
COMPARED_COLUMNS = tuple(
    field.name for field in LEAD_FEATURES.fields if field.name not in (LEAD, "changed_at", "leaves", *STATES)
)
STATES_TEXT = " || '|' || ".join(f"COALESCE(live.{state}, '')" for state in STATES)
OLDEST_CHANGE = "(SELECT MIN(change_number) FROM staging.lead_events)"
NEWEST_CHANGE = "(SELECT MAX(change_number) FROM staging.lead_events)"
# change_groups is a JSON list of groups, each with its root first:
# [["root-1", "leaf-2"], ["root-3", "leaf-4"]].
ROOT = f"COALESCE(live.merged_into, live.{LEAD})"
GROUP_START = f"""'["' || {ROOT} || '"'"""  # the text that the group of the lead's root begins with
GROUP = f"""SPLIT_PART(SUBSTRING(changes.change_groups, STRPOS(
    changes.change_groups, {GROUP_START})), ']', 1)"""  # that group, up to its bracket
QUOTED_LEAD = f"""'"' || live.{LEAD} || '"'"""
# ROWS has the newest rows of the leads of some slices. is_in_group: 1 if the newest change of identity that
# moved the lead has it in the group of its root; 0 if not; NULL if the lake lacks that change. The number of
# the change is the column topology. An item that was lost and computed again has no topology, so the number
# is read from earlier rows.
ROWS = f"""SELECT live.{LEAD}, {", ".join(f"live.{column}" for column in COMPARED_COLUMNS)}, live.changed_at,
    MD5({STATES_TEXT}) AS states, {OLDEST_CHANGE} AS oldest_change, {NEWEST_CHANGE} AS newest_change,
    CASE WHEN changes.change_number IS NULL THEN NULL
        WHEN STRPOS(changes.change_groups, {GROUP_START}) > 0
            AND STRPOS({GROUP}, {QUOTED_LEAD}) > 0 THEN 1 ELSE 0 END AS is_in_group
FROM staging.lead_features AS live
LEFT JOIN (
    SELECT {LEAD}, MAX(topology) AS number FROM lake.lead_features
    WHERE topology <= {NEWEST_CHANGE} GROUP BY {LEAD}
) AS moved ON moved.{LEAD} = live.{LEAD}
LEFT JOIN staging.lead_events AS changes
    ON changes.change_number = moved.number AND STRPOS(changes.change_groups, {QUOTED_LEAD}) > 0
WHERE SUBSTRING(MD5(live.{LEAD}), 4, 3) IN ({{digits}})"""  # noqa: S608 (declared names, and digits)
ITEM = "item"  # stands for all attributes
# These columns say which leads are one person. That does not follow from a lead's events.
IDENTITY_COLUMNS = {"merged_into", "topology"}
GROUPS_DIFFER = "table and lake do not agree on whose leaf it is"
NO_CHANGE = "no change of identity says whose leaf it is"

# Comparing events of lake and table (LeadRepair).
WRONG_ITEMS_MAX = 100  # in a night
LEAVES = "SELECT lead_organization_id FROM dimensions.leads WHERE root_id = {lead}"
# The columns that features depend on, and those that identify an event.
EVENT_COLUMNS = (
    *("lead_organization_id", "source", "external_event_id", "event_id", "event_type", "occurred_at"),
    *("amount_minor", "foreign_minor", "sentiment_milli", "order_id", "currency", "campaign_id"),
)
EVENTS = f"""SELECT {", ".join(EVENT_COLUMNS)} FROM facts.lead_events
WHERE lead_organization_id IN ({{leaves}}) AND unreadable IS NULL AND received_at < {{until}}"""  # noqa: S608 (literals, quoted)
Events = Counter[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class LeadItems:
    """Compares the items of one of 28 slices of all leads each night."""

    objects: Objects
    warehouse: Warehouse
    store: FeatureStore
    events: LeadEventStore

    def wrong_items(self, now: datetime) -> Iterator[dict[str, Any]]:
        """Yield the leads whose turn it is and whose items differ from the row of the same version.

        Each has `lead_organization_id`; `different`, the names of the differing attributes, separated by
        blanks; and `doubt`, why the item must not be computed again, or "". An item that is newer than the
        lake's row is not compared. Raises StatementFailed.
        """
        due = slices_due(self._last_compared_on(now.date()), now.date())
        if not due:  # today's leads were compared already
            return
        digits = ", ".join(map(literal, turn_digits(due)))
        for rows in chunks(self.warehouse.rows(ROWS.format(digits=digits)), READ_MAX):
            items = self.store.stored(str(row[LEAD]) for row in rows)
            for row in rows:
                lead = str(row[LEAD])
                if different := self._different_attributes(row, items.get(lead)):
                    is_about_groups = bool(IDENTITY_COLUMNS & {*different}) or row["merged_into"] is not None
                    doubt = GROUPS_DIFFER if is_about_groups else ""
                    yield {LEAD: lead, "different": " ".join(different), "doubt": doubt}
                elif not _may_be_in_group(row, now):
                    yield {LEAD: lead, "different": "merged_into", "doubt": NO_CHANGE}

    def note_compared(self, now: datetime) -> None:
        """Note that all leads whose turn it was were compared."""
        self.objects.put(LEADS_COMPARED, json.dumps({"compared_on": now.date().isoformat()}).encode())

    def _different_attributes(self, row: Row, item: Item | None) -> list[str]:
        """Return the names of the attributes of an item that differ from its row; ITEM stands for all."""
        if item is None:  # that is right if the lead was erased: then the table has no events of it, either
            has_events = any(True for _ in self.events.of_leaves([str(row[LEAD])]))
            return [ITEM] if has_events else []
        if not is_readable(item):
            return [ITEM]
        features = feature_item_from(item)
        if set(features.pending) - self.store.members(features.lead_organization_id, features.pending):
            return ["pending"]
        if features.version > row["version"]:  # the lake does not have its row yet
            return []
        return _different_values(row, item)

    def _last_compared_on(self, today: date) -> date:
        """Return the date of the last comparison; yesterday if there was none, so that one slice is due."""
        try:
            return date.fromisoformat(json.loads(self.objects.get(LEADS_COMPARED))["compared_on"])
        except NoObject:
            return today - DAY


def _different_values(row: Row, item: Item) -> list[str]:
    """Return the names of the columns in which an item differs from its row; "inputs" stands for STATES."""
    item_row = row_of(LEAD_FEATURES, decode_item(item), datetime.now(UTC))
    different = [name for name in COMPARED_COLUMNS if as_text(item_row.get(name)) != as_text(row[name])]
    if "version" in different:  # the row is of another version, so its other values may differ
        return [name for name in different if name in ("version", *IDENTITY_COLUMNS)]
    states = "|".join(item_row.get(state, "") for state in STATES)
    is_same = hashlib.md5(states.encode(), usedforsecurity=False).hexdigest() == row["states"]
    return different + ([] if is_same else ["inputs"])


def _may_be_in_group(row: Row, now: datetime) -> bool:
    """Whether the lead may be in the group that its item names: the lake shows it, or cannot tell.

    The lake cannot tell in three cases. Changes and items reach it by two streams, so the change may come
    later than the item. Old events may have left the lake. And the changes of an erased person are gone, with
    those that have parted other leads from this person's leads.
    """
    topology, oldest, newest = row["topology"] or 0, row["oldest_change"], row["newest_change"]
    is_ahead = newest is not None and topology > newest
    if row["is_in_group"] is not None and not is_ahead:
        return bool(row["is_in_group"])
    is_in_flight = as_text(row["changed_at"]) >= stamp(now - LAKE_LAG)
    has_left_lake = topology > 0 and (oldest is None or topology < oldest)
    may_be_of_erased = row["merged_into"] is None and not is_ahead
    return is_in_flight or has_left_lake or may_be_of_erased


def as_text(value: Any) -> str:
    """Return a column's value as text. An instant without a zone, as the warehouse has it, is in UTC."""
    if isinstance(value, datetime):
        return stamp(value if value.tzinfo else value.replace(tzinfo=UTC))
    return "" if value is None else str(value)


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

        leads: rows of marts.lead_quality. Leads whose items differ from their rows are added.
        Raises StatementFailed, and Unprocessed if SQS refuses.
        """
        wrong_items = list(islice(self.items.wrong_items(now), WRONG_ITEMS_MAX)) if self.items else []
        doubts = {row[LEAD]: self._doubt(row[LEAD], now) for row in (*leads, *wrong_items)}
        doubts |= {row[LEAD]: row["doubt"] for row in wrong_items if row["doubt"]}
        if self.may_repair:
            leads_to_rebuild = {lead for lead, doubt in doubts.items() if not doubt}
            # What is stored of these is wrong, so the rebuild keeps only the attributes of the group.
            rebuilt_without_stored = leads_to_rebuild & {row[LEAD] for row in wrong_items}
            self.queue.request_rebuild(sorted(leads_to_rebuild - rebuilt_without_stored))
            self.queue.request_rebuild(sorted(rebuilt_without_stored), ignores_stored=True)
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
    """Return the values of EVENT_COLUMNS of each row, as texts."""
    return Counter(tuple(as_text(row.get(name)) for name in EVENT_COLUMNS) for row in rows)


def _row(event: LeadEvent, now: datetime) -> Row:
    return row_of(LEAD_EVENTS, decode_item(encode_item(to_item(event))), now)
