"""Which leads are one. Topology moves leaves from root to root, in the table Feature. GroupEvents says which
events a root has besides its own.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from adapters.leads.feature_store import FeatureStore, GroupUnsettled, update_action
from adapters.leads.lead_event_store import EventPage
from adapters.platform.aws import pauses
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import cancellation_reasons, chunks, put_all, query_all
from rules.leads.feature_items import FeatureItem
from rules.leads.lead_events import SORT_KEY, Group, LeadEvent

ATTEMPTS_MAX = 12
LEAVES_MAX = 40  # in a transaction, which takes 100 items: each leaf may bring a former root
# What only a root has: a leaf loses it when it comes to another root.
ROOT_ATTRIBUTES = ("features", "inputs", "as_of", "active_on", "active_shard")
ItemUpdate = tuple[dict[str, Any], tuple[str, ...]]  # attributes to set, and names to remove
EventKey = Mapping[str, str]  # of the table Event
ROOT, LEAF = "root_id", "lead_organization_id"
# Of two rows for each event: the event's sort key behind a `#`, and behind its type for pages of one type.
ROW_KEY = "event_type#occurred_at#id"


class Topology:
    """Moves leaves to the roots that a change of identity names."""

    def __init__(self, dynamodb: Any, table: str, features: FeatureStore) -> None:
        """table: Feature. features: the items of the same table."""
        self._dynamodb, self._table, self._features = dynamodb, table, features

    def set(self, number: int, groups: Iterable[Group]) -> None:
        """Move leaves to the roots that a change names, unless a later change has moved them. Idempotent.

        Raises GroupUnsettled if others were first in every attempt.
        """
        for group in groups:
            for leaves in chunks(dict.fromkeys(group.leaves), LEAVES_MAX):
                self._move(leaves, group.root, number)

    def _move(self, leaves: list[str], root: str, number: int) -> None:
        for _ in pauses(ATTEMPTS_MAX):
            updates = self._updates(leaves, root, number)
            if not updates or self._write(updates):
                return
        raise GroupUnsettled(f"{root} was changed in every attempt")

    def _updates(self, leaves: list[str], root: str, number: int) -> list[dict[str, Any]]:
        """Return the updates that move leaves, each item in one of them; none if there is nothing to do."""
        items = self._read({*leaves, root})
        outdated = {leaf for leaf in leaves if items[leaf].topology < number}
        coming = {leaf for leaf in outdated if items[leaf].root != root}
        former_roots = {items[leaf].root for leaf in coming} - coming
        items |= self._read(former_roots - items.keys())
        updates = [
            self._update(items[former], _pending_update(items[former], coming), ("inputs",))
            for former in sorted(former_roots)
        ]
        for leaf in sorted(outdated - {root}):
            sets, removes = _leaf_update(items[leaf], root, coming) if leaf in coming else ({}, ())
            updates.append(self._update(items[leaf], {**sets, "topology": number}, removes))
        if root in outdated or coming:
            sets, removes = _root_update(items[root], coming)
            if root in outdated:
                sets = {**sets, "topology": number}
            updates.append(self._update(items[root], sets, removes))
        return updates

    def _update(
        self, before: FeatureItem, sets: Mapping[str, Any], removes: Iterable[str] = ()
    ) -> dict[str, Any]:
        sets = {**sets, "regrouped": before.group_changes + 1}
        return {"Update": update_action(self._table, before, sets, removes)}

    def _read(self, leads: Iterable[str]) -> dict[str, FeatureItem]:
        ids = sorted(leads)
        items = self._features.get_many(ids)
        return {lead: items.get(lead, FeatureItem(lead)) for lead in ids}

    def _write(self, updates: list[dict[str, Any]]) -> bool:
        """Write all or nothing; returns False if somebody else was first."""
        try:
            self._dynamodb.transact_write_items(TransactItems=updates)
        except self._dynamodb.exceptions.TransactionCanceledException as error:
            cancellation_reasons(error, len(updates))  # raises what no other attempt would help
            return False
        return True


class GroupEvents:
    """The table GroupEvents: which events a root has besides its own, so that a page of them is one query.

    A row names a root, and an event of a leaf that it has absorbed. An event gets its rows before it is
    announced (processors/leads/lead_events.py); older events get theirs when their leaf comes to the root
    (adapters/leads/person_events.py). So what is counted of an absorbed leaf always has rows, except for
    leaves that are still `pending` at the root.

    Rows are never changed or deleted. The item of a leaf in the table Feature says where the leaf is, and a
    reader asks there. So rows may be written again, late, or for a root that the leaf has left.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def note(self, events: Iterable[tuple[str, LeadEvent]]) -> None:
        """Note events, each with its leaf's root. Noting again changes nothing. Raises Unprocessed.

        An event of the root itself gets no row.
        """
        rows = {}
        for root, event in events:
            if root == event.lead_organization_id:
                continue
            for sort_key in (f"#{event.sort_key}", f"{event.event_type}#{event.sort_key}"):
                row = {ROOT: root, ROW_KEY: sort_key, LEAF: event.lead_organization_id}
                rows[root, sort_key] = row
        put_all(self._dynamodb, self._table, [encode_item(row) for row in rows.values()])

    def newest(self, root: str, page: EventPage) -> Iterator[EventKey]:
        """Yield the keys of a root's events in the table Event, newest first, strongly consistent.

        Each request reads as many as the page's limit.
        """
        first, last = f"{page.event_type}#{page.since}", f"{page.event_type}#{page.until}"
        rows = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="root_id = :root AND #key BETWEEN :first AND :last",
            ExpressionAttributeNames={"#key": ROW_KEY},
            ExpressionAttributeValues=encode_item({":root": root, ":first": first, ":last": last}),
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=page.limit,
        )
        for row in map(decode_item, rows):
            if row[ROW_KEY] != last:  # until is not among them, and BETWEEN has both ends
                yield {LEAF: row[LEAF], SORT_KEY: row[ROW_KEY].partition("#")[2]}


def _leaf_update(item: FeatureItem, root: str, coming: set[str]) -> ItemUpdate:
    """Return the update of a leaf that comes to a root."""
    pending = _pending_update(item, coming) if item.pending else {}
    return {"merged_into": root, **pending}, ROOT_ATTRIBUTES


def _root_update(item: FeatureItem, coming: set[str]) -> ItemUpdate:
    """Return the update of the root that leaves come to, maybe itself. An outdated state is removed."""
    if not coming:
        return {}, ()
    sets = {"pending": sorted({*item.pending, *coming} - {item.lead_organization_id})}
    if item.lead_organization_id in coming:
        return sets, ("merged_into", "inputs")
    return sets, () if item.has_state else ("inputs",)


def _pending_update(item: FeatureItem, coming: set[str]) -> dict[str, Any]:
    """Return the update of a root that leaves leave: those are no longer pending there."""
    return {"pending": sorted({*item.pending} - coming)}
