"""The Feature table: each lead's features, the state that they follow from, and the root of the lead.

In this order: FeatureStore; how its items are written and read, also damaged ones; ActiveLeads, the index
that the daily refresh reads; Topology, which moves leads between roots.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, TypeGuard
from zlib import crc32

from adapters import clock
from adapters.platform.aws import pauses
from adapters.platform.items import Item, decode_item, encode_item, encode_value
from adapters.platform.tables import (
    Unprocessed,
    chunks,
    get_all,
    get_one,
    query_all,
    transact,
    write_if,
)
from rules.days import stamp, unstamp
from rules.leads.feature_items import Change, FeatureItem
from rules.leads.features import BY_NAME, DECIMALS, Input, ShownValue, shown_value
from rules.leads.lead_events import Group

ATTEMPTS_MAX = 12
LEAVES_MAX = 40  # in a transaction, which takes 100 items: each leaf may bring a former root
# What only a root has: a leaf loses it when it comes to another root.
ROOT_ATTRIBUTES = ("features", "inputs", "as_of", "active_on", "active_shard")
HOPS = 3  # reads of a root in the first attempt: a wrong hint leads to the right root without a pause
ID = "lead_organization_id"
ACTIVE_INDEX = "ByActivity"
# Reading a damaged item raises one of these.
UNREADABLE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
VERSION_MAX = 2**62
MAPS = ("features", "as_of", "inputs")
# The group_changes of an item whose own number is lost. With 0, nobody would read its leaves' events.
CHANGES_UNKNOWN = 1


class FeatureItemChanged(Exception):
    """The item is no longer what was read."""


class FeatureStore:
    """Features of all leads."""

    def __init__(self, dynamodb: Any, table: str, shards: int = 1) -> None:
        """shards: how many parts the index of active leads has; only write() needs it."""
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def get(self, lead: str) -> FeatureItem | None:
        """Return one item, strongly consistent."""
        item = get_one(self._dynamodb, self._table, {ID: lead})
        return feature_item_from(item) if item else None

    def get_many(self, leads: Iterable[str]) -> dict[str, FeatureItem]:
        """Return the leads' items by lead, strongly consistent. A lead without an item is left out."""
        return {lead: feature_item_from(item) for lead, item in self.stored(leads).items()}

    def stored(self, leads: Iterable[str]) -> dict[str, Item]:
        """Return the same items with DynamoDB's typed attributes, which may be damaged."""
        keys = [{ID: lead} for lead in dict.fromkeys(leads)]
        return {item[ID]["S"]: item for item in get_all(self._dynamodb, self._table, keys)}

    def home(self, leaf: str, hint: str) -> FeatureItem:
        """Return the item of the root that a leaf's events belong to; raises Unprocessed.

        hint: the root that the leaf probably has. If it is right, a lead of one leaf costs one read, others
        two.
        """
        for attempt in pauses(ATTEMPTS_MAX):
            for _ in range(1 if attempt else HOPS):
                item = self.get(hint) or FeatureItem(hint)
                # The leaf is read after the root. If it leaves the root later than that, it changes the
                # root's item, too, and a conditional write of that item fails.
                leaf_item = item if leaf == hint else self.get(leaf) or FeatureItem(leaf)
                root = leaf_item.merged_into or leaf
                if root == hint and item.merged_into is None:
                    return item
                hint = root
        raise Unprocessed("a lead names a root that is none, while a change is under way")

    def members(self, root: str, leads: Iterable[str]) -> set[str]:
        """Return which of these leads are leaves of a root now. The root is a leaf of its own."""
        ids = set(leads)
        items = self.get_many(ids - {root})
        return (ids & {root}) | {lead for lead, item in items.items() if item.merged_into == root}

    def write(self, before: FeatureItem, change: Change) -> None:
        """Write a change in one UpdateItem; raises FeatureItemChanged if the item is not what was read."""
        sets, removes = _map_changes(before, change)
        sets["computed_at"] = change.computed_at
        if not before.version and before.group_changes:  # of an item that was lost
            sets["regrouped"] = before.group_changes
        if before.pending:
            removes.append("pending")
        if change.active_on is None:
            removes += ["active_on", "active_shard"] if before.active_on else []
        elif change.active_on != before.active_on:
            sets["active_on"] = change.active_on
            sets["active_shard"] = shard_of(before.lead_organization_id, self._shards)
        try:
            self._dynamodb.update_item(**update_action(self._table, before, sets, removes))
        except (
            self._dynamodb.exceptions.ConditionalCheckFailedException,
            self._dynamodb.exceptions.TransactionConflictException,
        ):
            raise FeatureItemChanged(before.lead_organization_id) from None

    def readable(self, leads: Iterable[str], ignores_stored: bool = False) -> dict[str, FeatureItem]:
        """Return items by lead that a rebuild can start from; replaces the damaged ones in the table.

        A damaged item keeps its group's attributes if they can be read. All else is removed from it, because
        it follows from events. ignores_stored: every root's item counts as damaged. A lead without an item
        gets one that is not stored. An item that another writer changes meanwhile is left out.
        """
        ids = list(dict.fromkeys(leads))
        stored = self.stored(ids)
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
            salvaged["pending"] = encode_value(sorted(self.members(lead, pending) - {lead}))
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(version)"}
        if "version" in stored:
            condition = {
                "ConditionExpression": "version = :read",
                "ExpressionAttributeValues": {":read": stored["version"]},
            }
        is_put = write_if(self._dynamodb.put_item, TableName=self._table, Item=salvaged, **condition)
        return feature_item_from(salvaged) if is_put else None


def _map_changes(before: FeatureItem, change: Change) -> tuple[dict[str, Any], list[str]]:
    """Return what to set and what to remove in the item's maps, by path, such as `features.visits_7d`.

    An entry that has become None is removed. An item without maps, or with damaged ones, gets whole maps:
    DynamoDB sets no path within a map that is not there.
    """
    maps: dict[str, Mapping[Any, Any]] = {"features": change.features, "as_of": change.as_of}
    if change.inputs or before.inputs is not None:
        maps["inputs"] = change.inputs
    sets: dict[str, Any] = {}
    removes: list[str] = []
    for name, entries in maps.items():
        present = {key: value for key, value in entries.items() if value is not None}
        if before.inputs is None:
            sets[name] = present
        else:
            sets |= {f"{name}.{key}": value for key, value in present.items()}
            removes += [f"{name}.{key}" for key in entries if key not in present]
    return sets, removes


def update_action(
    table: str, before: FeatureItem, sets: Mapping[str, Any], removes: Iterable[str]
) -> dict[str, Any]:
    """Return the UpdateItem that writes paths (names joined by dots), on condition of the version."""
    names: dict[str, str] = {"#version": "version"}
    values = {":next": encode_value(before.version + 1 if before.version else clock.first_version())}
    assigned = ["#version = :next"]
    for index, (path, new) in enumerate(sets.items()):
        values[f":v{index}"] = encode_value(new)
        assigned.append(f"{_path(path, names)} = :v{index}")
    removed = [_path(path, names) for path in removes]
    condition = "attribute_not_exists(#version)"
    if before.version:
        condition, values[":read"] = "#version = :read", encode_value(before.version)
    return {
        "TableName": table,
        "Key": encode_item({ID: before.lead_organization_id}),
        "UpdateExpression": f"SET {', '.join(assigned)}"
        + (f" REMOVE {', '.join(removed)}" if removed else ""),
        "ConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


def _path(path: str, names: dict[str, str]) -> str:
    """Return a path as an expression has it, and add its names to those that the expression explains."""
    parts = path.split(".")
    names.update({f"#{part}": part for part in parts})
    return ".".join(f"#{part}" for part in parts)


def shard_of(lead: str, shards: int) -> str:
    """Return the part of the index that a lead is in."""
    return str(crc32(lead.encode()) % shards)


def feature_item_from(stored: Mapping[str, Mapping[str, Any]]) -> FeatureItem:
    """Read an item of the table; a damaged one raises one of UNREADABLE."""
    fields = decode_item(stored)
    return FeatureItem(
        lead_organization_id=fields[ID],
        version=fields["version"],
        features={name: _feature_value(name, value) for name, value in fields.get("features", {}).items()},
        as_of=fields.get("as_of", {}),
        computed_at=fields.get("computed_at"),
        inputs=fields.get("inputs"),
        active_on=fields.get("active_on"),
        merged_into=fields.get("merged_into"),
        topology=fields.get("topology", 0),
        group_changes=fields.get("regrouped", 0),
        pending=tuple(fields.get("pending", ())),
    )


def _feature_value(name: str, stored: Any) -> ShownValue:
    """Read a value with its decimals: an amount of 12 becomes 12.00. An unknown feature's value stays."""
    feature = BY_NAME.get(name)
    if feature is None or feature.unit not in DECIMALS:
        return stored  # type: ignore[no-any-return]  # a whole number or a flag
    number = Decimal(stored["N"] if isinstance(stored, Mapping) else stored)
    return shown_value(feature, int(number.scaleb(DECIMALS[feature.unit])))


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


class ActiveLeads:
    """The index of leads with features that time still changes. The daily refresh reads it, and no table."""

    def __init__(self, dynamodb: Any, table: str, shards: int) -> None:
        """shards: as many as the FeatureStore has that writes the table."""
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def ids(self) -> Iterator[str]:
        """Yield lead_organization_ids, at the cost of one query (and its pages) a shard.

        A lead leaves the index at the last refresh that can change its features (`listing_date`). So a lead
        that is still listed long after its last activity has missed a refresh, and needs it.
        """
        for shard in range(self._shards):
            rows = query_all(
                self._dynamodb,
                TableName=self._table,
                IndexName=ACTIVE_INDEX,
                KeyConditionExpression="active_shard = :shard",
                ExpressionAttributeValues=encode_item({":shard": str(shard)}),
                ProjectionExpression="lead_organization_id",
            )
            yield from (row["lead_organization_id"]["S"] for row in rows)


class Topology:
    """Moves leaves to the roots that a change of identity names."""

    def __init__(self, dynamodb: Any, table: str, features: FeatureStore) -> None:
        """table: Feature. features: the items of the same table."""
        self._dynamodb, self._table, self._features = dynamodb, table, features

    def set(self, number: int, groups: Iterable[Group]) -> None:
        """Move leaves to the roots that a change names, unless a later change has moved them. Idempotent.

        Raises Unprocessed if others were first in every attempt.
        """
        for group in groups:
            for leaves in chunks(dict.fromkeys(group.leaves), LEAVES_MAX):
                self._move(leaves, group.root, number)

    def _move(self, leaves: list[str], root: str, number: int) -> None:
        for _ in pauses(ATTEMPTS_MAX):
            updates = self._updates(leaves, root, number)
            if not updates or not transact(self._dynamodb, updates):
                return
        raise Unprocessed("a group of leads kept changing")

    def _updates(self, leaves: list[str], root: str, number: int) -> list[dict[str, Any]]:
        """Return the updates that move leaves, each item in one of them; none if there is nothing to do."""
        items = self._read({*leaves, root})
        outdated = {leaf for leaf in leaves if items[leaf].topology < number}
        coming = {leaf for leaf in outdated if items[leaf].root != root}
        former_roots = {items[leaf].root for leaf in coming} - coming
        items |= self._read(former_roots - items.keys())

        def update(lead: str, sets: Mapping[str, Any], removes: Iterable[str]) -> dict[str, Any]:
            sets = {**sets, "regrouped": items[lead].group_changes + 1}
            return {"Update": update_action(self._table, items[lead], sets, removes)}

        def pending_without_coming(lead: str) -> list[str]:
            return sorted({*items[lead].pending} - coming)

        updates = [
            update(former, {"pending": pending_without_coming(former)}, ("inputs",))
            for former in sorted(former_roots)
        ]
        for leaf in sorted(outdated - {root}):
            sets: dict[str, Any] = {}
            removes: tuple[str, ...] = ()
            if leaf in coming:
                sets["merged_into"], removes = root, ROOT_ATTRIBUTES
                if items[leaf].pending:
                    sets["pending"] = pending_without_coming(leaf)
            updates.append(update(leaf, {**sets, "topology": number}, removes))
        if root in outdated or coming:
            sets, removes = _root_update(items[root], coming) if coming else ({}, ())
            if root in outdated:
                sets["topology"] = number
            updates.append(update(root, sets, removes))
        return updates

    def _read(self, leads: Iterable[str]) -> dict[str, FeatureItem]:
        ids = sorted(leads)
        items = self._features.get_many(ids)
        return {lead: items.get(lead, FeatureItem(lead)) for lead in ids}


def _root_update(item: FeatureItem, coming: set[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what to set and what to remove in the root that leaves come to, maybe itself."""
    sets = {"pending": sorted({*item.pending, *coming} - {item.lead_organization_id})}
    if item.lead_organization_id in coming:
        return sets, ("merged_into", "inputs")
    return sets, () if item.has_state else ("inputs",)  # an outdated state is removed
