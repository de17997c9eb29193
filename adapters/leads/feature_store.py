"""The Feature table: each lead's features, the state they follow from, and whose leaf the lead is
(FeatureStore).

Around it: notes of events that are counted (CountedEvents), the repair of damaged items (FeatureRepair),
and how leads are computed anew, by the index of recent activity (ActiveLeads) and by a queue
(FeatureQueue).
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
HOPS = 3  # a hint that is wrong is put right at once
ID = "lead_organization_id"
UNREADABLE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
VERSION_MAX = 2**62
MAPS = ("features", "as_of", "inputs")
# Rows of leaves are asked for of an item whose number of changes is above 0. Too high a number costs a query.
REGROUPED = 1
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
        return {lead: feature_item_from(each) for lead, each in self.stored(leads).items()}

    def stored(self, leads: Iterable[str]) -> dict[str, Item]:
        """Return the items that there are as they are stored, as get_many() reads them."""
        keys = [{ID: lead} for lead in dict.fromkeys(leads)]
        return {each[ID]["S"]: each for each in get_all(self._dynamodb, self._table, keys)}

    def home(self, leaf: str, hint: str) -> FeatureItem:
        """Return the root's item that a leaf's events belong to; raises GroupUnsettled.

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
        raise GroupUnsettled(f"{leaf} says {hint}, which is no root")

    def members(self, root: str, leads: Iterable[str]) -> set[str]:
        """Return those of some leads that are leaves of a root now, itself among them."""
        ids = set(leads)
        items = self.get_many(ids - {root})
        return (ids & {root}) | {lead for lead, item in items.items() if item.merged_into == root}

    def write(self, before: FeatureItem, change: Change) -> None:
        """Write a change in one UpdateItem; raises FeatureItemChanged if the item is not what was read."""
        sets: dict[str, Any] = {"computed_at": change.computed_at}
        if not before.version and before.regrouped:  # an item that was lost: leaves may have come to it
            sets["regrouped"] = before.regrouped
        removes: list[str] = []
        maps: dict[str, Mapping[Any, Any]] = {"features": change.features, "as_of": change.as_of}
        if change.inputs or before.inputs is not None:
            maps["inputs"] = change.inputs
        for name, entries in maps.items():
            if before.inputs is None:
                sets[name] = {key: each for key, each in entries.items() if each is not None}
                continue
            sets |= {f"{name}.{key}": each for key, each in entries.items() if each is not None}
            removes += [f"{name}.{key}" for key, each in entries.items() if each is None]
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
        {name: _feature_value(name, each) for name, each in fields.get("features", {}).items()},
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
    """Read a value with its decimals: 12 of an amount is 12.00. A feature no longer declared stays so."""
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
        """Return the leads' items, strongly consistent; what cannot be read is written anew without that.

        A lead that has no item gets one once it is written to. is_anew: no root's item is believed. One that
        another writer changes meanwhile is left out.
        """
        ids = list(dict.fromkeys(leads))
        stored = self.store.stored(ids)
        items = {lead: FeatureItem(lead, regrouped=REGROUPED) for lead in ids if lead not in stored}
        for lead, each in stored.items():
            if is_readable(each) and not (is_anew and "merged_into" not in each):
                items[lead] = feature_item_from(each)
            elif (salvaged := self._put_salvaged(each)) is not None:
                items[lead] = salvaged
        return items

    def _put_salvaged(self, stored: Item) -> FeatureItem | None:
        """Put what can be read of an item in its place; None: somebody was first."""
        kept = salvaged_item(stored)
        if "pending" in kept:  # only leaves that name this root
            lead, pending = stored[ID]["S"], decode_item(kept)["pending"]
            kept["pending"] = encode_value(sorted(self.store.members(lead, pending) - {lead}))
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
        item = feature_item_from(stored)
        item.state()
        item.unanswered_campaigns()
        moments = [each for each in (item.computed_at, *item.as_of.values()) if each is not None]
        return (
            _is_version(item.version)
            and all(_is_number(each) for each in (item.topology, item.regrouped))
            and all(stamp(unstamp(each)) == each for each in moments)
            and all(isinstance(each, str) for each in (item.inputs or {}).values())
            and all(isinstance(each, str) for each in (item.root, *item.pending))
            and {*item.as_of} <= {*Input}
        )
    except UNREADABLE:
        return False


def salvaged_item(stored: Item) -> Item:
    """Return what is kept of an unreadable item: its lead, its group, and a version beyond its own."""
    fields = decode_item(stored)
    version, pending, root = fields.get("version"), fields.get("pending"), fields.get("merged_into")
    kept: dict[str, Any] = {ID: fields[ID], "regrouped": REGROUPED}
    kept["version"] = max(version + 1 if _is_version(version) else 0, clock.first_version())
    if _is_number(topology := fields.get("topology")):
        kept["topology"] = topology
    if isinstance(root, str):
        kept["merged_into"] = root
    if isinstance(pending, list):
        kept["pending"] = [each for each in pending if isinstance(each, str)] or None
    return encode_item(kept)


def _is_version(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 < value < VERSION_MAX


def _is_number(value: Any) -> bool:
    return type(value) is int and value >= 0


class CountedEvents:
    """Notes of events that are counted in features for good, one for each, in the table IdempotencyKeys.

    A lead's state knows some of its events by their marks. When a mark leaves the state, a note stays behind.
    So an event as old as that is looked up, instead of all events being read (ARCHITECTURE.md). A mark has
    the microsecond and 48 bits of the event's id, so it is one event's.

    A note is written only once the state that has its event is stored. Every later state of that lead, or of
    the lead that absorbs it, is made from that state or from all stored events. So a note is true for ever.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def known(self, marks: Collection[Mark]) -> set[Mark]:
        """Return those of some marks that have a note, strongly consistent. Raises Unprocessed."""
        named = {_name(each): each for each in marks}
        notes = get_all(self._dynamodb, self._table, [_key(each) for each in named], only="user_id")
        return {named[each["user_id"]["S"]] for each in notes}

    def note(self, marks: Collection[Mark]) -> None:
        """Note events as counted; again changes nothing. Raises Unprocessed."""
        put_all(
            self._dynamodb, self._table, [encode_item(_key(_name(each))) for each in dict.fromkeys(marks)]
        )


def _name(mark: Mark) -> str:
    return f"lead-counted#{mark[0]:x}.{mark[1]}"


def _key(name: str) -> dict[str, str]:
    return {"user_id": name, "idempotency_key": COUNTED_KEY}


class ActiveLeads:
    """The index of leads with features that time still changes: the daily refresh computes these.

    No scan of the table is needed.
    """

    def __init__(self, dynamodb: Any, table: str, shards: int) -> None:
        """shards: the same number as the writer of features has."""
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def ids(self) -> Iterator[str]:
        """Yield lead_organization_ids, at the cost of one query (and its pages) a shard.

        It yields all listed leads, however long ago they were active. A lead leaves the index with its last
        refresh (`listing_date`). So a lead that is still listed has missed that refresh, and needs it.
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
            yield from (each["lead_organization_id"]["S"] for each in rows)


class RefreshUnsent(SafeToLog, Exception):
    """Messages that SQS still refused after all attempts; sending all of them again is safe."""


class FeatureQueue:
    """The feature-refresh queue: asks for refreshes or rebuilds of many leads, some of them in a message."""

    def __init__(self, sqs: Any, url: str) -> None:
        self._sqs, self._url = sqs, url

    def request_refresh(self, as_of: str, leads: Iterable[str]) -> tuple[int, int]:
        """Ask for features as of a stamp; returns how many leads and messages. Raises RefreshUnsent."""
        return self._request(leads, lambda some: {"refresh": {"as_of": as_of, "leads": some}})

    def request_rebuild(self, leads: Iterable[str], is_anew: bool = False) -> tuple[int, int]:
        """Ask for features as the stored events say; returns and raises as request_refresh().

        is_anew: what is stored of them is not believed, not even its version.
        """
        more = {"anew": True} if is_anew else {}
        return self._request(leads, lambda some: {"rebuild": {"leads": some, **more}})

    def _request(self, leads: Iterable[str], body: Callable[[list[str]], Any]) -> tuple[int, int]:
        asked = messages = 0
        groups = chunks(leads, LEADS_MAX)
        for call in chunks(groups, CALL_MAX):
            self._send([json.dumps(body(each)) for each in call])
            asked, messages = asked + sum(map(len, call)), messages + len(call)
        return asked, messages

    def _send(self, bodies: list[str]) -> None:
        left = [{"Id": str(index), "MessageBody": body} for index, body in enumerate(bodies)]
        for _ in pauses(SEND_ATTEMPTS_MAX):
            answer = self._sqs.send_message_batch(QueueUrl=self._url, Entries=left)
            failed = {each["Id"] for each in answer.get("Failed", ())}
            left = [each for each in left if each["Id"] in failed]
            if not left:
                return
        raise RefreshUnsent(f"{len(left)} messages to {self._url}")
