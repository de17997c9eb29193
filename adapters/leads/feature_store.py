"""The Feature table: each lead's features, the state they follow from, and which leads are one.

An absorbed leaf's item says `merged_into`, its root's says `leaves`; `topology` is the number of the
change that said so. Why no event is lost or counted twice while leads merge or part:

- Setting a change takes the state (`inputs`) away, so whoever comes next builds it from the stored events
  of the leaves that the item names. Absorbed leaves are set before roots. If leaves only come to a root, it
  keeps its state and names them as `pending`: whoever comes next joins their stored events to it.
- An event goes to the root that its leaf's item names, provided that the root's item names the leaf; if
  they do not agree, a change is being set, and the event waits (`Unsettled`).
- Every write is conditional on the version that was read. So an event is added to a root only while the
  root names the event's leaf, and setting a change undoes whatever was added before it.
- An event stored after a root's state was built finds its leaf set already: it is added there. One stored
  before is in what was built; `seen` recognises it.
"""

# Long: features and topology are written on condition of the same version.

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any
from zlib import crc32

from adapters import clock
from adapters.platform.aws import pauses
from adapters.platform.batches import get_all
from adapters.platform.items import item, plain, value
from rules.leads.feature_items import Change, FeatureItem
from rules.leads.features import BY_NAME, DECIMALS, Shown, shown
from rules.leads.lead_groups import Group

ATTEMPTS_MAX = 10
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
        return _item(found["Item"]) if "Item" in found else None

    def get_many(self, leads: Iterable[str]) -> dict[str, FeatureItem]:
        """Return the items that there are, strongly consistent, at most 100 in a request."""
        keys = [{ID: lead} for lead in dict.fromkeys(leads)]
        found = map(_item, get_all(self._dynamodb, self._table, keys))
        return {each.lead_organization_id: each for each in found}

    def home(self, leaf: str, hint: str) -> FeatureItem:
        """Return the root's item that a leaf's events belong to; raises Unsettled.

        hint: the root that is supposed. If it is right, this is one request.
        """
        for _ in pauses(ATTEMPTS_MAX):
            found = self._some(leaf, hint)
            root = found.get(leaf, FeatureItem(leaf)).merged_into or leaf
            if root not in found and root != leaf:
                found |= self._some(root, root)
            home = found.get(root, FeatureItem(root))
            if home.merged_into is None and leaf in home.group:
                return home
            hint = root
        raise Unsettled(f"{leaf} says {root}, which does not name it")

    def _some(self, one: str, other: str) -> dict[str, FeatureItem]:
        if one != other:
            return self.get_many((one, other))
        found = self.get(one)
        return {} if found is None else {one: found}

    def write(self, read: FeatureItem, change: Change) -> None:
        """Write a change in one UpdateItem; raises Changed if the item is no longer what was read."""
        sets: dict[str, Any] = {"computed_at": change.computed_at}
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

    def set_topology(self, number: int, groups: Iterable[Group]) -> None:
        """Set which leads are one, as of a change; on items that a later one has set, nothing. Idempotent.

        Absorbed leaves come first: once a root's state can be joined or built, their events go to it. Leaves
        that the root's item names already are not touched, so a change costs what it adds, and not the group.
        """
        listed = list(groups)
        roots = self.get_many(group.root for group in listed)
        listed = [each for each in listed if roots.get(each.root, FeatureItem("")).topology < number]
        for group in listed:
            for leaf in set(group.leaves) - set(roots.get(group.root, FeatureItem(group.root)).group):
                self._set(leaf, number, group)
        for group in listed:
            self._set(group.root, number, group)

    def _set(self, lead: str, number: int, group: Group) -> None:
        for _ in pauses(ATTEMPTS_MAX):
            read = self.get(lead) or FeatureItem(lead)
            if read.topology >= number or self._is_overtaken(read, number):
                return
            sets, removes = _as_root(read, group) if lead == group.root else _as_leaf(group)
            try:
                self._update(read, {**sets, "topology": number}, removes)
                return
            except Changed:
                continue
        raise Unsettled(f"{lead} was changed in every attempt")

    def _is_overtaken(self, read: FeatureItem, number: int) -> bool:
        """Whether a later change has left the lead where it was: then its root alone has that number."""
        root = self.get(read.merged_into) if read.merged_into else None
        return root is not None and root.topology >= number and read.lead_organization_id in root.leaves

    def _update(self, read: FeatureItem, sets: Mapping[str, Any], removes: Iterable[str]) -> None:
        """Write paths (names joined by dots), on condition of the version."""
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
        try:
            self._dynamodb.update_item(
                TableName=self._table,
                Key=item({ID: read.lead_organization_id}),
                UpdateExpression=f"SET {', '.join(assigned)}"
                + (f" REMOVE {', '.join(removed)}" if removed else ""),
                ConditionExpression=condition,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            raise Changed(read.lead_organization_id) from None


def _as_leaf(group: Group) -> tuple[dict[str, Any], list[str]]:
    """Return what is set of an absorbed leaf, and what is taken away."""
    gone = ["features", "leaves", "added", "pending", "inputs", "as_of", "active_on", "active_shard"]
    return {"merged_into": group.root}, gone


def _as_root(read: FeatureItem, group: Group) -> tuple[dict[str, Any], list[str]]:
    """Return the same of a root. If leaves only came, it keeps its state, and names these."""
    sets: dict[str, Any] = {"leaves": sorted(group.leaves)} if len(group.leaves) > 1 else {}
    removes = [name for name in ("merged_into", "leaves", "added", "pending", "inputs") if name not in sets]
    added = sorted(set(group.leaves) - set(read.group))
    if read.merged_into is None and added and set(read.group) <= set(group.leaves):
        sets["added"] = added
        removes.remove("added")
        if read.has_state:
            sets["pending"] = sorted({*read.pending, *added})
            removes = [each for each in removes if each not in ("pending", "inputs")]
    return sets, removes


def shard_of(lead: str, shards: int) -> str:
    """Return the part of the index that a lead is in."""
    return str(crc32(lead.encode()) % shards)


def _path(path: str, names: dict[str, str]) -> str:
    parts = path.split(".")
    names.update({f"#{part}": part for part in parts})
    return ".".join(f"#{part}" for part in parts)


def _item(stored: Mapping[str, Mapping[str, Any]]) -> FeatureItem:
    read = plain(stored)
    return FeatureItem(
        read[ID],
        read["version"],
        {name: _shown(name, each) for name, each in read.get("features", {}).items()},
        read.get("as_of", {}),
        read.get("computed_at"),
        read.get("inputs"),
        read.get("active_on"),
        tuple(read.get("leaves", ())),
        read.get("merged_into"),
        read.get("topology", 0),
        tuple(read.get("added", ())),
        tuple(read.get("pending", ())),
    )


def _shown(name: str, stored: Any) -> Shown:
    """Read a value with its decimals: 12 of an amount is 12.00. A feature no longer declared stays so."""
    feature = BY_NAME.get(name)
    if feature is None or feature.unit not in DECIMALS:
        return stored  # type: ignore[no-any-return]  # a whole number or a flag
    number = Decimal(stored["N"] if isinstance(stored, Mapping) else stored)
    return shown(feature, int(number.scaleb(DECIMALS[feature.unit])))
