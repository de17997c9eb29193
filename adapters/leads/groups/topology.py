"""Which leads are one: moves leaves from root to root, in the table Feature.

A move is one transaction over the leaf and both of its roots, so nobody ever sees half of it, and a process
that dies leaves nothing to mend (adapters/leads/feature_store.py says what the roots' items are good for).
Each leaf has the number of the change that moved it last. An older change that comes late is not for it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from adapters.leads.feature_store import FeatureStore, Unsettled, update_of
from adapters.platform.aws import THROTTLES, pauses
from adapters.platform.tables import chunks
from rules.leads.feature_items import FeatureItem
from rules.leads.lead_events import Group

ATTEMPTS_MAX = 12
LEAVES_MAX = 40  # in a transaction, which takes 100 items: each leaf may bring a former root
REFUSED = "ConditionalCheckFailed"
# What an absorbed leaf has no more.
OF_ROOTS = ("features", "inputs", "as_of", "active_on", "active_shard")
Written = tuple[dict[str, Any], tuple[str, ...]]


class Topology:
    """Sets changes of identity. features: the items of the same table."""

    def __init__(self, dynamodb: Any, table: str, features: FeatureStore) -> None:
        self._dynamodb, self._table, self._features = dynamodb, table, features

    def set(self, number: int, groups: Iterable[Group]) -> None:
        """Move leaves to the roots that a change names, unless a later change has moved them. Idempotent.

        Raises Unsettled if others were first in every attempt.
        """
        for group in groups:
            for some in chunks(dict.fromkeys(group.leaves), LEAVES_MAX):
                self._move(some, group.root, number)

    def _move(self, leaves: list[str], root: str, number: int) -> None:
        for _ in pauses(ATTEMPTS_MAX):
            request = self._request(leaves, root, number)
            if not request or self._is_done(request):
                return
        raise Unsettled(f"{root} was changed in every attempt")

    def _request(self, leaves: list[str], root: str, number: int) -> list[dict[str, Any]]:
        """Return the updates that move leaves, each item in one of them; none if there is nothing to do."""
        items = self._read({*leaves, root})
        late = {each for each in leaves if items[each].topology < number}
        coming = {each for each in late if items[each].root != root}
        former = {items[each].root for each in coming} - coming
        items |= self._read(former - items.keys())
        updates = [
            self._update(items[each], _rest(items[each], coming), ("inputs",)) for each in sorted(former)
        ]
        for each in sorted(late - {root}):
            sets, removes = _as_leaf(items[each], root, coming) if each in coming else ({}, ())
            updates.append(self._update(items[each], {**sets, "topology": number}, removes))
        if root in late or coming:
            sets, removes = _as_root(items[root], coming)
            told = {"topology": number} if root in late else {}
            updates.append(self._update(items[root], {**sets, **told}, removes))
        return updates

    def _update(
        self, read: FeatureItem, sets: Mapping[str, Any], removes: Iterable[str] = ()
    ) -> dict[str, Any]:
        counted = {**sets, "regrouped": read.regrouped + 1}
        return {"Update": update_of(self._table, read, counted, removes)}

    def _read(self, leads: Iterable[str]) -> dict[str, FeatureItem]:
        listed = sorted(leads)
        found = self._features.get_many(listed)
        return {each: found.get(each, FeatureItem(each)) for each in listed}

    def _is_done(self, request: list[dict[str, Any]]) -> bool:
        """Write all or nothing; whether that is done, or somebody else was first."""
        try:
            self._dynamodb.transact_write_items(TransactItems=request)
        except self._dynamodb.exceptions.TransactionCanceledException as error:
            codes = {each.get("Code") for each in error.response.get("CancellationReasons", [])}
            if REFUSED in codes or THROTTLES & codes:
                return False
            raise
        return True


def _as_leaf(read: FeatureItem, root: str, coming: set[str]) -> Written:
    """Return what is set of a leaf that comes to a root, and what is taken away."""
    return {"merged_into": root, **(_rest(read, coming) if read.pending else {})}, OF_ROOTS


def _as_root(read: FeatureItem, coming: set[str]) -> Written:
    """Return the same of the root that they come to, perhaps itself. A state that is not of today goes."""
    if not coming:
        return {}, ()
    sets = {"pending": sorted({*read.pending, *coming} - {read.lead_organization_id})}
    if read.lead_organization_id in coming:
        return sets, ("merged_into", "inputs")
    return sets, () if read.has_state else ("inputs",)


def _rest(read: FeatureItem, coming: set[str]) -> dict[str, Any]:
    """Return the pending leaves that stay at a root that leaves have left."""
    return {"pending": sorted({*read.pending} - coming)}
