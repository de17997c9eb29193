"""Finds items of leads that contradict their newest rows in the lake.

The warehouse cannot see an item that is deleted, or set back to an earlier version, because it leaves no
newer row. So each night the items of one of 28 slices of all leads are compared with their rows. A version
never changes once it is written: an item with the version of the newest row must have its values, and none
may have a lower version.

Leads of one person are a group: one is the root, the others are its leaves, and their items name it in
`merged_into`. Changes of identity are events that say which groups there are. They are numbered, and an item
has in `topology` the number of the change that moved it last.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from adapters.leads.feature_store import FeatureStore, feature_item_from, is_readable
from adapters.leads.lead_event_store import LeadEventStore
from adapters.platform.items import Item, decode_item
from adapters.platform.objects import NoObject, Objects
from adapters.platform.tables import READ_MAX, chunks
from analytics.lake.layout import LEADS_COMPARED
from analytics.warehouse.statements import literal
from analytics.warehouse.warehouse import Warehouse
from rules.days import DAY, stamp
from rules.engagement.reconciliation import LAKE_LAG
from rules.lake.entities import row_of
from rules.leads.features import Input
from rules.leads.lake_entities import LEAD_FEATURES, state_column
from rules.turns import slices_due, turn_digits

LEAD = "lead_organization_id"
Row = Mapping[str, Any]
# A row's columns are compared one by one, but for the states: the inputs of features, which are long texts.
STATES = tuple(state_column(input_) for input_ in Input)
COMPARED_COLUMNS = tuple(
    field.name for field in LEAD_FEATURES.fields if field.name not in (LEAD, "changed_at", "leaves", *STATES)
)
# These columns say which leads are one person. That does not follow from a lead's events.
IDENTITY_COLUMNS = {"merged_into", "topology"}
# The names of attributes that stand for more than one column
ITEM, INPUTS = "item", "inputs"  # all attributes; STATES
# Reasons not to compute an item again
GROUPS_DIFFER = "table and lake do not agree on whose leaf it is"
NO_CHANGE = "no change of identity says whose leaf it is"

# The parts of ROWS. The warehouse sends one digest of a row's states.
STATES_TEXT = " || '|' || ".join(f"COALESCE(live.{state}, '')" for state in STATES)
OLDEST_CHANGE = "(SELECT MIN(change_number) FROM staging.lead_events)"
NEWEST_CHANGE = "(SELECT MAX(change_number) FROM staging.lead_events)"
# The number of the change that moved a lead last. Earlier rows are read, too: an item that was lost and
# computed again has no topology.
LAST_MOVES = f"""SELECT {LEAD}, MAX(topology) AS number FROM lake.lead_features
    WHERE topology <= {NEWEST_CHANGE} GROUP BY {LEAD}"""  # noqa: S608 (declared names)
# change_groups of a change is a JSON list of groups, each with its root first:
# [["root-1", "leaf-2"], ["root-3", "leaf-4"]]. GROUP is the group of the lead's root, up to its bracket.
QUOTED_LEAD = f"""'"' || live.{LEAD} || '"'"""
GROUP_START = f"""'["' || COALESCE(live.merged_into, live.{LEAD}) || '"'"""
GROUP = f"""SPLIT_PART(SUBSTRING(changes.change_groups, STRPOS(
    changes.change_groups, {GROUP_START})), ']', 1)"""
# The newest rows of the leads of some slices. is_in_group: 1 if the change that moved the lead last has it in
# the group of its root; 0 if not; NULL if the lake lacks that change.
ROWS = f"""SELECT live.{LEAD}, {", ".join(f"live.{column}" for column in COMPARED_COLUMNS)}, live.changed_at,
    MD5({STATES_TEXT}) AS states, {OLDEST_CHANGE} AS oldest_change, {NEWEST_CHANGE} AS newest_change,
    CASE WHEN changes.change_number IS NULL THEN NULL
        WHEN STRPOS(changes.change_groups, {GROUP_START}) > 0
            AND STRPOS({GROUP}, {QUOTED_LEAD}) > 0 THEN 1 ELSE 0 END AS is_in_group
FROM staging.lead_features AS live
LEFT JOIN ({LAST_MOVES}) AS moved ON moved.{LEAD} = live.{LEAD}
LEFT JOIN staging.lead_events AS changes
    ON changes.change_number = moved.number AND STRPOS(changes.change_groups, {QUOTED_LEAD}) > 0
WHERE SUBSTRING(MD5(live.{LEAD}), 4, 3) IN ({{digits}})"""  # noqa: S608 (declared names, and digits)


@dataclass(frozen=True, slots=True)
class WrongItem:
    """An item that contradicts its newest row."""

    lead: str
    attributes: list[str]  # the names of those that differ: columns, ITEM, INPUTS or "pending"
    doubt: str  # why it must not be computed again, in words; "": it may be


@dataclass(frozen=True, slots=True)
class LeadItems:
    """Compares the items of the leads whose turn it is."""

    objects: Objects
    warehouse: Warehouse
    store: FeatureStore
    events: LeadEventStore

    def wrong_items(self, now: datetime) -> Iterator[WrongItem]:
        """Yield the wrong items of the slices that are due; none if these were compared today already.

        An item that is newer than the lake's row is not compared. Raises StatementFailed.
        """
        due = slices_due(self._last_compared_on(now.date()), now.date())
        if not due:
            return
        digits = ", ".join(map(literal, turn_digits(due)))
        for rows in chunks(self.warehouse.rows(ROWS.format(digits=digits)), READ_MAX):
            items = self.store.stored(str(row[LEAD]) for row in rows)
            for row in rows:
                lead = str(row[LEAD])
                if attributes := self._wrong_attributes(row, items.get(lead)):
                    is_about_groups = bool(IDENTITY_COLUMNS & {*attributes}) or row["merged_into"] is not None
                    yield WrongItem(lead, attributes, GROUPS_DIFFER if is_about_groups else "")
                elif not _may_be_in_group(row, now):
                    yield WrongItem(lead, ["merged_into"], NO_CHANGE)

    def note_compared(self, now: datetime) -> None:
        """Note that all leads whose turn it was were compared."""
        self.objects.put(LEADS_COMPARED, json.dumps({"compared_on": now.date().isoformat()}).encode())

    def _last_compared_on(self, today: date) -> date:
        """Return the date of the last comparison; yesterday if there was none, so that one slice is due."""
        try:
            return date.fromisoformat(json.loads(self.objects.get(LEADS_COMPARED))["compared_on"])
        except NoObject:
            return today - DAY

    def _wrong_attributes(self, row: Row, item: Item | None) -> list[str]:
        """Return the names of the attributes in which an item differs from its row (see WrongItem)."""
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
        return _wrong_columns(row, item)


def _wrong_columns(row: Row, item: Item) -> list[str]:
    """Return the names of the columns in which an item differs from its row; INPUTS for the states."""
    item_row = row_of(LEAD_FEATURES, decode_item(item), datetime.now(UTC))
    wrong = [name for name in COMPARED_COLUMNS if as_text(item_row.get(name)) != as_text(row[name])]
    if "version" in wrong:  # the row is of another version, so its other values may differ
        return [name for name in wrong if name in ("version", *IDENTITY_COLUMNS)]
    states = "|".join(item_row.get(state, "") for state in STATES)
    has_same_states = hashlib.md5(states.encode(), usedforsecurity=False).hexdigest() == row["states"]
    return wrong if has_same_states else [*wrong, INPUTS]


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
