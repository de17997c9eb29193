"""The Feature table: each lead's features, the state they follow from, and whose leaf it is.

An absorbed leaf's item says `merged_into`; its root's item does not list it. So the root costs the same
whatever the number of leaves. Why no event is lost or counted twice while leads merge or part:

- A leaf moves from root to root in one transaction (adapters/leads/groups/topology.py) that also changes the
  items of both roots: the former one loses its state (`inputs`), so whoever comes next builds it from the
  events of the leaves that it has by then. The new one names the leaf as `pending`: whoever comes next joins
  the leaf's stored events to the state.
- An event goes to the root that its leaf's item names. That item is read after the root's. If the leaf has
  moved in between, the root's item has changed, too; and every write is conditional on the version that was
  read. So an event is added to a root only while its leaf is there.
- An event stored after its leaf's events were joined finds its leaf at that root: it is added there. One
  stored before is in what was joined; `seen` recognises it.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any
from zlib import crc32

from adapters import clock
from adapters.platform.aws import pauses
from adapters.platform.items import Item, item, plain, value
from adapters.platform.tables import get_all
from rules.leads.feature_items import Change, FeatureItem
from rules.leads.features import BY_NAME, DECIMALS, Shown, shown

ATTEMPTS_MAX = 10
HOPS = 3  # a hint that is wrong is put right at once
ID = "lead_organization_id"


class Changed(Exception):
    """The item is no longer what was read."""


class Unsettled(Exception):
    """The items do not agree on which leads are one: a change is being set. It is safe to repeat."""


class FeatureStore:
    """Features of all leads. shards: how many parts the index of active leads has; only writing asks."""

    def __init__(self, dynamodb: Any, table: str, shards: int = 1) -> None:
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def get(self, lead: str) -> FeatureItem | None:
        """Return one item, strongly consistent."""
        found = self._dynamodb.get_item(TableName=self._table, Key=item({ID: lead}), ConsistentRead=True)
        return feature_item_from(found["Item"]) if "Item" in found else None

    def get_many(self, leads: Iterable[str]) -> dict[str, FeatureItem]:
        """Return the items that there are, strongly consistent, at most 100 in a request."""
        return {lead: feature_item_from(each) for lead, each in self.stored(leads).items()}

    def stored(self, leads: Iterable[str]) -> dict[str, Item]:
        """Return the items that there are as they are stored, as get_many() reads them."""
        keys = [{ID: lead} for lead in dict.fromkeys(leads)]
        return {each[ID]["S"]: each for each in get_all(self._dynamodb, self._table, keys)}

    def home(self, leaf: str, hint: str) -> FeatureItem:
        """Return the root's item that a leaf's events belong to; raises Unsettled.

        hint: the root that is supposed. If it is right, this is one read for a lead of one leaf, else two.
        """
        for attempt in pauses(ATTEMPTS_MAX):
            for _ in range(1 if attempt else HOPS):
                item = self.get(hint) or FeatureItem(hint)
                # After the root: a leaf that has left it since has changed the root's item, too.
                own = item if leaf == hint else self.get(leaf) or FeatureItem(leaf)
                root = own.merged_into or leaf
                if root == hint and item.merged_into is None:
                    return item
                hint = root
        raise Unsettled(f"{leaf} says {hint}, which is no root")

    def members(self, root: str, leads: Iterable[str]) -> set[str]:
        """Return those of some leads that are leaves of a root now, itself among them."""
        listed = set(leads)
        found = self.get_many(listed - {root}).values()
        return (listed & {root}) | {each.lead_organization_id for each in found if each.merged_into == root}

    def write(self, read: FeatureItem, change: Change) -> None:
        """Write a change in one UpdateItem; raises Changed if the item is no longer what was read."""
        sets: dict[str, Any] = {"computed_at": change.computed_at}
        if not read.version and read.regrouped:  # an item that was lost: leaves may have come to it
            sets["regrouped"] = read.regrouped
        removes: list[str] = []
        maps: dict[str, Mapping[Any, Any]] = {"features": change.features, "as_of": change.as_of}
        if change.inputs or read.inputs is not None:
            maps["inputs"] = change.inputs
        for name, entries in maps.items():
            if read.inputs is None:
                sets[name] = {key: each for key, each in entries.items() if each is not None}
                continue
            sets |= {f"{name}.{key}": each for key, each in entries.items() if each is not None}
            removes += [f"{name}.{key}" for key, each in entries.items() if each is None]
        if read.pending:
            removes.append("pending")
        if change.active_on is None:
            removes += ["active_on", "active_shard"] if read.active_on else []
        elif change.active_on != read.active_on:
            sets["active_on"] = change.active_on
            sets["active_shard"] = shard_of(read.lead_organization_id, self._shards)
        self._update(read, sets, removes)

    def _update(self, read: FeatureItem, sets: Mapping[str, Any], removes: Iterable[str]) -> None:
        try:
            self._dynamodb.update_item(**update_of(self._table, read, sets, removes))
        except (
            self._dynamodb.exceptions.ConditionalCheckFailedException,
            self._dynamodb.exceptions.TransactionConflictException,
        ):
            raise Changed(read.lead_organization_id) from None


def update_of(
    table: str, read: FeatureItem, sets: Mapping[str, Any], removes: Iterable[str]
) -> dict[str, Any]:
    """Return the UpdateItem that writes paths (names joined by dots), on condition of the version."""
    names: dict[str, str] = {"#version": "version"}
    values = {":next": value(read.version + 1 if read.version else clock.first_version())}
    assigned = ["#version = :next"]
    for place, (path, new) in enumerate(sets.items()):
        values[f":v{place}"] = value(new)
        assigned.append(f"{_path(path, names)} = :v{place}")
    removed = [_path(path, names) for path in removes]
    condition = "attribute_not_exists(#version)"
    if read.version:
        condition, values[":read"] = "#version = :read", value(read.version)
    return {
        "TableName": table,
        "Key": item({ID: read.lead_organization_id}),
        "UpdateExpression": f"SET {', '.join(assigned)}"
        + (f" REMOVE {', '.join(removed)}" if removed else ""),
        "ConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


def shard_of(lead: str, shards: int) -> str:
    """Return the part of the index that a lead is in."""
    return str(crc32(lead.encode()) % shards)


def _path(path: str, names: dict[str, str]) -> str:
    parts = path.split(".")
    names.update({f"#{part}": part for part in parts})
    return ".".join(f"#{part}" for part in parts)


def feature_item_from(stored: Mapping[str, Mapping[str, Any]]) -> FeatureItem:
    """Read an item of the table."""
    read = plain(stored)
    return FeatureItem(
        read[ID],
        read["version"],
        {name: _shown(name, each) for name, each in read.get("features", {}).items()},
        read.get("as_of", {}),
        read.get("computed_at"),
        read.get("inputs"),
        read.get("active_on"),
        read.get("merged_into"),
        read.get("topology", 0),
        read.get("regrouped", 0),
        tuple(read.get("pending", ())),
    )


def _shown(name: str, stored: Any) -> Shown:
    """Read a value with its decimals: 12 of an amount is 12.00. A feature no longer declared stays so."""
    feature = BY_NAME.get(name)
    if feature is None or feature.unit not in DECIMALS:
        return stored  # type: ignore[no-any-return]  # a whole number or a flag
    number = Decimal(stored["N"] if isinstance(stored, Mapping) else stored)
    return shown(feature, int(number.scaleb(DECIMALS[feature.unit])))
