"""The Feature table: each lead's features, the state that they follow from, and the root of the lead.

FeatureStore reads and writes it, and FeatureRepair repairs damaged items. CountedEvents are notes of events
that are counted. ActiveLeads and FeatureQueue find the leads whose features are to be computed anew.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeGuard
from zlib import crc32

from adapters import clock
from adapters.platform.aws import pauses
from adapters.platform.items import Item, decode_item, encode_item, encode_value
from adapters.platform.tables import chunks, get_all, put_all, query_all
from rules.days import stamp, unstamp
from rules.leads.feature_items import Change, FeatureItem
from rules.leads.features import BY_NAME, DECIMALS, Input, ShownValue, shown_value
from rules.leads.series import Mark
from rules.privacy.tombstones import SafeToLog

ATTEMPTS_MAX = 10
HOPS = 3  # in the first attempt: a wrong hint leads to the right root without a pause
ID = "lead_organization_id"
# What reading a damaged item raises.
UNREADABLE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
VERSION_MAX = 2**62
MAPS = ("features", "as_of", "inputs")
# The group_changes of an item whose own number is lost. Only 0 would be wrong: it lets leaves' events unread.
CHANGES_UNKNOWN = 1
COUNTED_KEY = "counted"
INDEX = "ByActivity"
CALL_MAX = 10  # SendMessageBatch's own limit
LEADS_MAX = 50  # in a message
SEND_ATTEMPTS_MAX = 6


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
        sets: dict[str, Any] = {"computed_at": change.computed_at}
        if not before.version and before.group_changes:  # an item that was lost: leaves may have come to it
            sets["regrouped"] = before.group_changes
        removes: list[str] = []
        maps: dict[str, Mapping[Any, Any]] = {"features": change.features, "as_of": change.as_of}
        if change.inputs or before.inputs is not None:
            maps["inputs"] = change.inputs
        for name, entries in maps.items():
            set_entries = {key: value for key, value in entries.items() if value is not None}
            if before.inputs is None:  # the item has no maps yet, or damaged ones: they are set whole
                sets[name] = set_entries
            else:
                sets |= {f"{name}.{key}": value for key, value in set_entries.items()}
                removes += [f"{name}.{key}" for key in entries if key not in set_entries]
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


@dataclass(frozen=True, slots=True)
class FeatureRepair:
    """Makes items readable that are damaged or gone, so that a rebuild can go on from them.

    What an item says of its group is kept, where it can be read. All else is left out: it follows from
    events.
    """

    dynamodb: Any
    table: str
    store: FeatureStore  # of the same table

    def readable(self, leads: Iterable[str], is_anew: bool = False) -> dict[str, FeatureItem]:
        """Return the leads' items, strongly consistent; writes damaged ones anew, with what can be read.

        is_anew: every root's item counts as damaged. For a lead without an item it returns one that is not
        stored. An item that another writer changes meanwhile is left out.
        """
        ids = list(dict.fromkeys(leads))
        stored = self.store.stored(ids)
        items = {lead: FeatureItem(lead, group_changes=CHANGES_UNKNOWN) for lead in ids if lead not in stored}
        for lead, item in stored.items():
            if is_readable(item) and not (is_anew and "merged_into" not in item):
                items[lead] = feature_item_from(item)
            elif (salvaged := self._put_salvaged(item)) is not None:
                items[lead] = salvaged
        return items

    def _put_salvaged(self, stored: Item) -> FeatureItem | None:
        """Replace an item by what can be read of it, and return that; None: another writer was first."""
        salvaged = salvaged_item(stored)
        if "pending" in salvaged:  # only leaves that name this root
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
    """Return whether an item has only what live processing writes, so that all its readers can read it."""
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
    """Return what stays of an unreadable item: its lead, its group, and a version beyond its own."""
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


class CountedEvents:
    """Notes of events that are counted in features for good, one for each, in the table IdempotencyKeys.

    A lead's state has the marks of its newest events. When a mark leaves the state, a note is written. So for
    an older event its note is looked up, and its lead's events need not be read (ARCHITECTURE.md). A mark has
    the microsecond and 48 bits of the event's id, so no two events share one.

    A note is written only once the state that has its event is stored. Every later state of that lead, or of
    the lead that absorbs it, is made from that state or from all stored events. So a note is true for ever.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def known(self, marks: Collection[Mark]) -> set[Mark]:
        """Return the marks that have a note, strongly consistent. Raises Unprocessed."""
        by_name = {_name(mark): mark for mark in marks}
        notes = get_all(self._dynamodb, self._table, [_key(name) for name in by_name], only="user_id")
        return {by_name[note["user_id"]["S"]] for note in notes}

    def note(self, marks: Collection[Mark]) -> None:
        """Note events as counted; again changes nothing. Raises Unprocessed."""
        put_all(
            self._dynamodb, self._table, [encode_item(_key(_name(mark))) for mark in dict.fromkeys(marks)]
        )


def _name(mark: Mark) -> str:
    return f"lead-counted#{mark[0]:x}.{mark[1]}"


def _key(name: str) -> dict[str, str]:
    return {"user_id": name, "idempotency_key": COUNTED_KEY}


class ActiveLeads:
    """The index of leads with features that time still changes. The daily refresh reads it, and no table."""

    def __init__(self, dynamodb: Any, table: str, shards: int) -> None:
        """shards: the same number as the writer of features has."""
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def ids(self) -> Iterator[str]:
        """Yield lead_organization_ids, at the cost of one query (and its pages) a shard.

        They are all leads of the index, however long ago they were active. A lead leaves the index with its
        last refresh (`listing_date`). So a lead that was active long ago has missed that refresh.
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


class RefreshUnsent(SafeToLog, Exception):
    """Messages that SQS still refused after all attempts; sending all of them again is safe."""


class FeatureQueue:
    """The feature-refresh queue: asks for refreshes or rebuilds of many leads, some of them in a message."""

    def __init__(self, sqs: Any, url: str) -> None:
        self._sqs, self._url = sqs, url

    def request_refresh(self, as_of: str, leads: Iterable[str]) -> tuple[int, int]:
        """Ask for features as of a stamp; returns how many leads and messages. Raises RefreshUnsent."""
        return self._request(leads, lambda chunk: {"refresh": {"as_of": as_of, "leads": chunk}})

    def request_rebuild(self, leads: Iterable[str], is_anew: bool = False) -> tuple[int, int]:
        """Ask for features as the stored events say; returns and raises as request_refresh().

        is_anew: the stored items count as damaged (FeatureRepair).
        """
        flags = {"anew": True} if is_anew else {}
        return self._request(leads, lambda chunk: {"rebuild": {"leads": chunk, **flags}})

    def _request(self, leads: Iterable[str], body: Callable[[list[str]], Any]) -> tuple[int, int]:
        lead_count = message_count = 0
        for groups in chunks(chunks(leads, LEADS_MAX), CALL_MAX):
            self._send([json.dumps(body(group)) for group in groups])
            lead_count += sum(map(len, groups))
            message_count += len(groups)
        return lead_count, message_count

    def _send(self, bodies: list[str]) -> None:
        unsent = [{"Id": str(index), "MessageBody": body} for index, body in enumerate(bodies)]
        for _ in pauses(SEND_ATTEMPTS_MAX):
            answer = self._sqs.send_message_batch(QueueUrl=self._url, Entries=unsent)
            failed = {entry["Id"] for entry in answer.get("Failed", ())}
            unsent = [entry for entry in unsent if entry["Id"] in failed]
            if not unsent:
                return
        raise RefreshUnsent(f"{len(unsent)} messages to {self._url}")
