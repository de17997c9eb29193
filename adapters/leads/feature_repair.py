"""Repairs items of the Feature table that are damaged or lost."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeGuard

from adapters import clock
from adapters.leads.feature_store import ID, FeatureStore, feature_item_from
from adapters.platform.items import Item, decode_item, encode_item, encode_value
from rules.days import stamp, unstamp
from rules.leads.feature_items import FeatureItem
from rules.leads.features import Input

# Reading a damaged item raises one of these.
UNREADABLE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
VERSION_MAX = 2**62
MAPS = ("features", "as_of", "inputs")
# The group_changes of an item whose own number is lost. With 0, nobody would read its leaves' events.
CHANGES_UNKNOWN = 1


@dataclass(frozen=True, slots=True)
class FeatureRepair:
    """Gives a rebuild items that it can start from.

    A damaged item keeps its group's attributes if they can be read. All else is removed from it, because it
    follows from events.
    """

    dynamodb: Any
    table: str
    store: FeatureStore  # of the same table

    def readable(self, leads: Iterable[str], ignores_stored: bool = False) -> dict[str, FeatureItem]:
        """Return the leads' items by lead, strongly consistent; replaces the damaged ones in the table.

        ignores_stored: every root's item counts as damaged. A lead without an item gets one that is not
        stored. An item that another writer changes meanwhile is left out.
        """
        ids = list(dict.fromkeys(leads))
        stored = self.store.stored(ids)
        items = {lead: FeatureItem(lead, group_changes=CHANGES_UNKNOWN) for lead in ids if lead not in stored}
        for lead, item in stored.items():
            if is_readable(item) and not (ignores_stored and "merged_into" not in item):
                items[lead] = feature_item_from(item)
            elif (salvaged := self._put_salvaged(item)) is not None:
                items[lead] = salvaged
        return items

    def _put_salvaged(self, stored: Item) -> FeatureItem | None:
        """Replace an item by its readable attributes, and return it; None: another writer was first."""
        salvaged = salvaged_item(stored)
        if "pending" in salvaged:  # a damaged list may have any ids: only leaves that name this root stay
            lead, pending = stored[ID]["S"], decode_item(salvaged)["pending"]
            salvaged["pending"] = encode_value(sorted(self.store.members(lead, pending) - {lead}))
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(version)"}
        if "version" in stored:
            condition = {
                "ConditionExpression": "version = :read",
                "ExpressionAttributeValues": {":read": stored["version"]},
            }
        try:
            self.dynamodb.put_item(TableName=self.table, Item=salvaged, **condition)
        except self.dynamodb.exceptions.ConditionalCheckFailedException:
            return None
        return feature_item_from(salvaged)


def is_readable(stored: Item) -> bool:
    """Return whether every reader can read an item: its attributes are as live processing writes them."""
    try:
        if any("M" not in stored[name] for name in MAPS if name in stored):
            return False
        item = feature_item_from(stored)
        item.state()
        item.unanswered_campaigns()
        moments = [moment for moment in (item.computed_at, *item.as_of.values()) if moment is not None]
        texts = (item.root, *item.pending, *(item.inputs or {}).values())
        return (
            _is_version(item.version)
            and _is_number(item.topology)
            and _is_number(item.group_changes)
            and all(stamp(unstamp(moment)) == moment for moment in moments)
            and all(isinstance(text, str) for text in texts)
            and {*item.as_of} <= {*Input}
        )
    except UNREADABLE:
        return False


def salvaged_item(stored: Item) -> Item:
    """Return what an unreadable item keeps: its lead, its group, and a version beyond its own."""
    fields = decode_item(stored)
    version, pending, root = fields.get("version"), fields.get("pending"), fields.get("merged_into")
    salvaged: dict[str, Any] = {ID: fields[ID], "regrouped": CHANGES_UNKNOWN}
    salvaged["version"] = max(version + 1 if _is_version(version) else 0, clock.first_version())
    if _is_number(topology := fields.get("topology")):
        salvaged["topology"] = topology
    if isinstance(root, str):
        salvaged["merged_into"] = root
    if isinstance(pending, list):
        salvaged["pending"] = [leaf for leaf in pending if isinstance(leaf, str)] or None
    return encode_item(salvaged)


def _is_version(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 < value < VERSION_MAX


def _is_number(value: Any) -> bool:
    return type(value) is int and value >= 0
