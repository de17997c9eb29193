"""The Feature table: each lead's features, the state that they follow from, and the root of the lead.

feature_repair.py repairs damaged items.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any
from zlib import crc32

from adapters import clock
from adapters.platform.aws import pauses
from adapters.platform.items import Item, decode_item, encode_item, encode_value
from adapters.platform.tables import get_all, query_all
from rules.leads.feature_items import Change, FeatureItem
from rules.leads.features import BY_NAME, DECIMALS, ShownValue, shown_value

ATTEMPTS_MAX = 10
HOPS = 3  # in the first attempt: a wrong hint leads to the right root without a pause
ID = "lead_organization_id"
INDEX = "ByActivity"


class FeatureItemChanged(Exception):
    """The item is no longer what was read."""


class GroupUnsettled(Exception):
    """The items do not agree on which leads are one: a change is being set. It is safe to repeat."""


class FeatureStore:
    """Features of all leads."""

    def __init__(self, dynamodb: Any, table: str, shards: int = 1) -> None:
        """shards: how many parts the index of active leads has; only `write` needs it."""
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def get(self, lead: str) -> FeatureItem | None:
        """Return one item, strongly consistent."""
        answer = self._dynamodb.get_item(
            TableName=self._table, Key=encode_item({ID: lead}), ConsistentRead=True
        )
        return feature_item_from(answer["Item"]) if "Item" in answer else None

    def get_many(self, leads: Iterable[str]) -> dict[str, FeatureItem]:
        """Return the items that there are, strongly consistent, at most 100 in a request."""
        return {lead: feature_item_from(item) for lead, item in self.stored(leads).items()}

    def stored(self, leads: Iterable[str]) -> dict[str, Item]:
        """Return the items that there are as they are stored, as get_many() reads them."""
        keys = [{ID: lead} for lead in dict.fromkeys(leads)]
        return {item[ID]["S"]: item for item in get_all(self._dynamodb, self._table, keys)}

    def home(self, leaf: str, hint: str) -> FeatureItem:
        """Return the item of the root that a leaf's events belong to; raises GroupUnsettled.

        hint: the root that the leaf probably has. If it has, a lead of one leaf costs one read, others two.
        """
        for attempt in pauses(ATTEMPTS_MAX):
            for _ in range(1 if attempt else HOPS):
                item = self.get(hint) or FeatureItem(hint)
                # After the root: a leaf that has left it since has changed the root's item, too.
                leaf_item = item if leaf == hint else self.get(leaf) or FeatureItem(leaf)
                root = leaf_item.merged_into or leaf
                if root == hint and item.merged_into is None:
                    return item
                hint = root
        raise GroupUnsettled(f"{leaf} says {hint}, which is no root")

    def members(self, root: str, leads: Iterable[str]) -> set[str]:
        """Return those of some leads that are leaves of a root now, itself among them."""
        ids = set(leads)
        items = self.get_many(ids - {root})
        return (ids & {root}) | {lead for lead, item in items.items() if item.merged_into == root}

    def write(self, before: FeatureItem, change: Change) -> None:
        """Write a change in one UpdateItem; raises FeatureItemChanged if the item is not what was read."""
        sets, removes = _map_changes(before, change)
        sets["computed_at"] = change.computed_at
        if not before.version and before.group_changes:  # an item that was lost: leaves may have come to it
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
                IndexName=INDEX,
                KeyConditionExpression="active_shard = :shard",
                ExpressionAttributeValues=encode_item({":shard": str(shard)}),
                ProjectionExpression="lead_organization_id",
            )
            yield from (row["lead_organization_id"]["S"] for row in rows)


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


def shard_of(lead: str, shards: int) -> str:
    """Return the part of the index that a lead is in."""
    return str(crc32(lead.encode()) % shards)


def _path(path: str, names: dict[str, str]) -> str:
    parts = path.split(".")
    names.update({f"#{part}": part for part in parts})
    return ".".join(f"#{part}" for part in parts)


def feature_item_from(stored: Mapping[str, Mapping[str, Any]]) -> FeatureItem:
    """Read an item of the table."""
    fields = decode_item(stored)
    return FeatureItem(
        fields[ID],
        fields["version"],
        {name: _feature_value(name, value) for name, value in fields.get("features", {}).items()},
        fields.get("as_of", {}),
        fields.get("computed_at"),
        fields.get("inputs"),
        fields.get("active_on"),
        fields.get("merged_into"),
        fields.get("topology", 0),
        fields.get("regrouped", 0),
        tuple(fields.get("pending", ())),
    )


def _feature_value(name: str, stored: Any) -> ShownValue:
    """Read a value with its decimals: 12 of an amount is 12.00. One of an unknown feature stays as it is."""
    feature = BY_NAME.get(name)
    if feature is None or feature.unit not in DECIMALS:
        return stored  # type: ignore[no-any-return]  # a whole number or a flag
    number = Decimal(stored["N"] if isinstance(stored, Mapping) else stored)
    return shown_value(feature, int(number.scaleb(DECIMALS[feature.unit])))
