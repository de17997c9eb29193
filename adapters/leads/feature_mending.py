"""Items of features that are damaged or gone: made readable, so that a rebuild can go on from them.

What an item says of its group is kept, where it can be read. All else is left out: it follows from events.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeGuard

from adapters import clock
from adapters.leads.feature_store import ID, FeatureStore, feature_item_from
from adapters.platform.items import Item, item, plain, value
from rules.days import stamp, unstamp
from rules.leads.feature_items import FeatureItem
from rules.leads.features import Input

UNREADABLE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
VERSION_MAX = 2**62
MAPS = ("features", "as_of", "inputs")
# Rows of leaves are asked for of an item whose number of changes is above 0. Too high a number costs a query.
REGROUPED = 1


@dataclass(frozen=True, slots=True)
class FeatureMending:
    """Reads items for a rebuild. store: of the same table."""

    dynamodb: Any
    table: str
    store: FeatureStore

    def readable(self, leads: Iterable[str], is_anew: bool = False) -> dict[str, FeatureItem]:
        """Return the leads' items, strongly consistent; what cannot be read is written anew without that.

        A lead that has no item gets one once it is written to. is_anew: no root's item is believed. One that
        another writer changes meanwhile is left out.
        """
        listed = list(dict.fromkeys(leads))
        stored = self.store.stored(listed)
        found = {lead: FeatureItem(lead, regrouped=REGROUPED) for lead in listed if lead not in stored}
        for lead, each in stored.items():
            if is_readable(each) and not (is_anew and "merged_into" not in each):
                found[lead] = feature_item_from(each)
            elif (mended := self._mended(each)) is not None:
                found[lead] = mended
        return found

    def _mended(self, stored: Item) -> FeatureItem | None:
        """Put what can be read of an item in its place; None: somebody was first."""
        kept = kept_of(stored)
        if "pending" in kept:  # only leaves that name this root
            lead, pending = stored[ID]["S"], plain(kept)["pending"]
            kept["pending"] = value(sorted(self.store.members(lead, pending) - {lead}))
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(version)"}
        if "version" in stored:
            condition = {
                "ConditionExpression": "version = :read",
                "ExpressionAttributeValues": {":read": stored["version"]},
            }
        try:
            self.dynamodb.put_item(TableName=self.table, Item=kept, **condition)
        except self.dynamodb.exceptions.ConditionalCheckFailedException:
            return None
        return feature_item_from(kept)


def is_readable(stored: Item) -> bool:
    """Whether all that live processing and readers read of an item is as they write it."""
    try:
        if any("M" not in stored[name] for name in MAPS if name in stored):
            return False
        read = feature_item_from(stored)
        read.state()
        read.waiting()
        moments = [each for each in (read.computed_at, *read.as_of.values()) if each is not None]
        return (
            _is_version(read.version)
            and all(_is_number(each) for each in (read.topology, read.regrouped))
            and all(stamp(unstamp(each)) == each for each in moments)
            and all(isinstance(each, str) for each in (read.inputs or {}).values())
            and all(isinstance(each, str) for each in (read.root, *read.pending))
            and {*read.as_of} <= {*Input}
        )
    except UNREADABLE:
        return False


def kept_of(stored: Item) -> Item:
    """Return what is kept of an unreadable item: its lead, its group, and a version beyond its own."""
    read = plain(stored)
    version, pending, root = read.get("version"), read.get("pending"), read.get("merged_into")
    kept: dict[str, Any] = {ID: read[ID], "regrouped": REGROUPED}
    kept["version"] = max(version + 1 if _is_version(version) else 0, clock.first_version())
    if _is_number(topology := read.get("topology")):
        kept["topology"] = topology
    if isinstance(root, str):
        kept["merged_into"] = root
    if isinstance(pending, list):
        kept["pending"] = [each for each in pending if isinstance(each, str)] or None
    return item(kept)


def _is_version(found: Any) -> TypeGuard[int]:
    return type(found) is int and 0 < found < VERSION_MAX


def _is_number(found: Any) -> bool:
    return type(found) is int and found >= 0
