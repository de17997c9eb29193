"""Which leads are one: Topology moves leaves from root to root, in the table Feature; GroupEvents says which
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
# What an absorbed leaf has no more.
ROOT_ATTRIBUTES = ("features", "inputs", "as_of", "active_on", "active_shard")
ItemUpdate = tuple[dict[str, Any], tuple[str, ...]]
EventKey = Mapping[str, str]
ROOT, LEAF = "root_id", "lead_organization_id"
# The event's sort key behind a `#`; and once more behind its type, for pages of one type.
PLACE = "event_type#occurred_at#id"


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
            for some in chunks(dict.fromkeys(group.leaves), LEAVES_MAX):
                self._move(some, group.root, number)

    def _move(self, leaves: list[str], root: str, number: int) -> None:
        for _ in pauses(ATTEMPTS_MAX):
            request = self._request(leaves, root, number)
            if not request or self._is_done(request):
                return
        raise GroupUnsettled(f"{root} was changed in every attempt")

    def _request(self, leaves: list[str], root: str, number: int) -> list[dict[str, Any]]:
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
            more = {"topology": number} if root in outdated else {}
            updates.append(self._update(items[root], {**sets, **more}, removes))
        return updates

    def _update(
        self, before: FeatureItem, sets: Mapping[str, Any], removes: Iterable[str] = ()
    ) -> dict[str, Any]:
        counted = {**sets, "regrouped": before.regrouped + 1}
        return {"Update": update_action(self._table, before, counted, removes)}

    def _read(self, leads: Iterable[str]) -> dict[str, FeatureItem]:
        ids = sorted(leads)
        items = self._features.get_many(ids)
        return {lead: items.get(lead, FeatureItem(lead)) for lead in ids}

    def _is_done(self, request: list[dict[str, Any]]) -> bool:
        """Write all or nothing; returns False if somebody else was first."""
        try:
            self._dynamodb.transact_write_items(TransactItems=request)
        except self._dynamodb.exceptions.TransactionCanceledException as error:
            cancellation_reasons(error, len(request))
            return False
        return True


def _leaf_update(item: FeatureItem, root: str, coming: set[str]) -> ItemUpdate:
    """Return the attributes to set of a leaf that comes to a root, and those to remove."""
    return {"merged_into": root, **(_pending_update(item, coming) if item.pending else {})}, ROOT_ATTRIBUTES


def _root_update(item: FeatureItem, coming: set[str]) -> ItemUpdate:
    """Return the same for the root that leaves come to, maybe itself. An outdated state is removed."""
    if not coming:
        return {}, ()
    sets = {"pending": sorted({*item.pending, *coming} - {item.lead_organization_id})}
    if item.lead_organization_id in coming:
        return sets, ("merged_into", "inputs")
    return sets, () if item.has_state else ("inputs",)


def _pending_update(item: FeatureItem, coming: set[str]) -> dict[str, Any]:
    """Return the pending leaves that stay at a root that leaves have left."""
    return {"pending": sorted({*item.pending} - coming)}


class GroupEvents:
    """The table GroupEvents: which events a root has besides its own, so that a page of them is one query.

    A row names a root, and an event of a leaf that it has absorbed. An event gets its rows before it is
    announced (processors/leads/lead_events.py); older events get theirs when their leaf comes to the root
    (adapters/leads/persons.py). So what is counted of an absorbed leaf always has rows, except for leaves
    that are still `pending` at the root.

    Rows are never changed or deleted. The item of a leaf in the table Feature says where the leaf is, and a
    reader asks there. So rows may be written again, late, or for a root that the leaf has left.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def note(self, events: Iterable[tuple[str, LeadEvent]]) -> None:
        """Note events, each with its leaf's root; again changes nothing. Raises Unprocessed.

        What a leaf that is its own root did needs no row, and gets none.
        """
        rows = {
            (root, place): {ROOT: root, PLACE: place, LEAF: each.lead_organization_id}
            for root, each in events
            if root != each.lead_organization_id
            for place in (f"#{each.place}", f"{each.event_type}#{each.place}")
        }
        put_all(self._dynamodb, self._table, [encode_item(each) for each in rows.values()])

    def newest(self, root: str, page: EventPage) -> Iterator[EventKey]:
        """Yield keys in the table Event, newest first, strongly consistent, a page's limit in a request."""
        first, last = f"{page.event_type}#{page.since}", f"{page.event_type}#{page.until}"
        rows = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="root_id = :root AND #place BETWEEN :first AND :last",
            ExpressionAttributeNames={"#place": PLACE},
            ExpressionAttributeValues=encode_item({":root": root, ":first": first, ":last": last}),
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=page.limit,
        )
        for row in map(decode_item, rows):
            if row[PLACE] != last:
                yield {LEAF: row[LEAF], SORT_KEY: row[PLACE].partition("#")[2]}
