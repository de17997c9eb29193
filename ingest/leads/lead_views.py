"""A lead's events, memory and features, as the API shows them.

For a lead that was merged into another, they are those of its root.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from adapters.leads.lead_event_store import EventPage
from adapters.leads.memory_store import MemoryStore, TooManyMemories
from adapters.leads.person_events import PersonEvents
from ingest.leads.lead_accept import RESERVED_INTEGRATION
from ingest.web.caller import ApiError, Caller, invalid_field
from ingest.web.paging import page, span_of
from rules.days import EPOCH
from rules.leads.feature_items import FeatureItem, features_at
from rules.leads.features import Input
from rules.leads.lead_events import EVENT_TYPES, FUTURE_MAX, SORT_KEY
from rules.leads.memory import MemoryEntry, confidence_at
from rules.leads.orders import EXPONENTS, rates_in, total_in
from rules.leads.series import decode_series
from rules.leads.settings import currencies, currency_of

# A merged lead points at its root, so one hop is usual. More than five are a loop: two leads point at each
# other for a moment, while a change of identity is being applied.
HOPS_MAX = 5
NO_EVENT, NO_LEAD = "no such event has been stored", "there is no such lead"
# Attributes of an event that callers do not see.
HIDDEN = frozenset({SORT_KEY, "event_type#occurred_at", "raw_payload", "raw_payload_ref", "root_id"})
NAME_BYTES_MAX = 1024  # DynamoDB takes no longer sort key
MEMORY_MAX = 1_000  # entries that one request reads
AHEAD = FUTURE_MAX + timedelta(days=1)  # how far ahead an event may be, with time to spare
NOTHING_COMPUTED: dict[str, Any] = {"features": {}, "money": {}, "money_total": None, "computed_at": None}


@dataclass(frozen=True, slots=True)
class LeadViews:
    """Reads leads, and returns what the API answers."""

    people: PersonEvents
    memories: MemoryStore
    currency: str  # the setting: each organization's own
    rates: Mapping[str, Decimal]  # what each currency is worth in the deployment's
    grace_days: int  # the setting: after so many days an unanswered campaign counts as ignored

    def check_reach(self, lead_id: str, caller: Caller) -> None:
        """Raise 404 unless the caller reaches the lead: 403 would reveal that it exists."""
        organization = self.people.events.organization_of(lead_id)
        if organization is None or not caller.reaches(organization):
            raise ApiError(404, "not_found", NO_LEAD)

    def has_change(self, organization: str, change: str) -> bool:
        """Return whether a change of identity, by its number, has been announced to an organization."""
        return self.people.events.leaf_of(f"{organization}/{RESERVED_INTEGRATION}", change) is not None

    def find(self, source: str, external_event_id: str) -> dict[str, Any]:
        """Return {"lead_id"}: the root that has an integration's event. Raises 404 for an unknown event."""
        leaf = self.people.events.leaf_of(source, external_event_id)
        if leaf is None:
            raise ApiError(404, "not_found", NO_EVENT)
        return {"lead_id": self._root_item(leaf)[0]}

    def events(self, lead_id: str, query: Mapping[str, str], now: datetime) -> dict[str, Any]:
        """Return a page of the events of all the root's leaves, newest first; of one type if `type` says it.

        Raises 404 for no such lead, 400 for no such type.
        """
        event_type = query.get("type")
        if event_type is not None and event_type not in EVENT_TYPES:
            raise ApiError(400, "invalid_parameter", f"type must be one of {', '.join(sorted(EVENT_TYPES))}")
        span, (root, item) = span_of(query, EPOCH, now + AHEAD), self._root_item(lead_id)
        events = EventPage(event_type or "", span.since, span.until, span.limit)
        rows = self.people.newest(item or FeatureItem(root), lead_id, events)
        if not rows and item is None:
            self._check_known(lead_id)
        listing = page("events", rows, span.limit, SORT_KEY)
        return {"lead_id": root, **listing, "events": [event_view(row) for row in rows]}

    def memory(self, lead_id: str, query: Mapping[str, str], now: datetime) -> dict[str, Any]:
        """Return what is remembered: everything, one type, or one entry by type and key.

        Raises 404 for no such lead or no such entry, 400 for a key without a type, 422 over 1,000 entries.
        """
        memory_type, key = query.get("type"), query.get("key")
        if key and not memory_type:
            raise ApiError(400, "invalid_parameter", "key needs a type")
        if len(f"{memory_type}#{key}".encode()) > NAME_BYTES_MAX:
            raise ApiError(400, "invalid_parameter", f"type and key are over {NAME_BYTES_MAX} bytes")
        root, item = self._root_item(lead_id)
        entries = self._entries(root, memory_type, key)
        alive = [entry for entry in entries if entry.evidence and not is_expired(entry, now)]
        if not entries and item is None:
            self._check_known(lead_id)
        if key and not alive:
            raise ApiError(404, "not_found", "nothing of that type and key is remembered")
        return {"lead_id": root, "memory": [memory_view(entry, now) for entry in alive]}

    def features(self, lead_id: str, now: datetime) -> dict[str, Any]:
        """Return features as of now, and when they were last stored: {} and null if they never were."""
        root, item = self._root_item(lead_id)
        if item is None:
            self._check_known(lead_id)
            return {"lead_id": root, **NOTHING_COMPUTED}
        features, as_of = features_at(item, now, self.grace_days)
        currency = self._currency(lead_id)
        money = money_view((item.inputs or {}).get(Input.PURCHASES), currency)
        rates = rates_in(currency, currency_of(self.currency, None), self.rates)
        return {
            "lead_id": root,
            "features": dict(sorted(features.items())),
            "money": money,
            "money_total": total_view(money, currency, rates),
            "computed_at": item.computed_at,
            "as_of": as_of,
        }

    def _currency(self, lead_id: str) -> str:
        """Return the currency of a lead's organization. It reads that only if organizations differ."""
        differ = len(currencies(self.currency)) > 1
        return currency_of(self.currency, self.people.events.organization_of(lead_id) if differ else None)

    def _entries(self, root: str, memory_type: str | None, key: str | None) -> list[MemoryEntry]:
        """Return all entries, those of a type, or the one of a type and key; raises 422."""
        if memory_type and key:
            entry = self.memories.get(root, memory_type, key)
            return [] if entry is None else [entry]
        try:
            if memory_type:
                return self.memories.of_type(root, memory_type, MEMORY_MAX)
            return self.memories.all_of(root, MEMORY_MAX)
        except TooManyMemories:
            reason = f"must be narrower: over {MEMORY_MAX} things are remembered of the lead"
            raise invalid_field("key" if memory_type else "type", reason) from None

    def _root_item(self, lead_id: str) -> tuple[str, FeatureItem | None]:
        """Return the root of a lead, and its item. It costs one read, or two for a merged lead."""
        root, item = lead_id, self.people.features.get(lead_id)
        for _ in range(HOPS_MAX):
            if item is None or not item.merged_into:
                break
            root = item.merged_into
            item = self.people.features.get(root)
        return root, item

    def _check_known(self, lead_id: str) -> None:
        if self.people.events.organization_of(lead_id) is None:
            raise ApiError(404, "not_found", NO_LEAD)


def event_view(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event without internal attributes and without people's own words."""
    visible = {name: value for name, value in row.items() if name not in HIDDEN}
    return {"id": row[SORT_KEY].partition("#")[2], **visible, "payload": json.loads(row["payload"])}


def is_expired(entry: MemoryEntry, now: datetime) -> bool:
    """Return whether the entry has expired. DynamoDB deletes its item only some time later."""
    return entry.expires_at <= now.timestamp()


def memory_view(entry: MemoryEntry, now: datetime) -> dict[str, Any]:
    """Return an entry with its confidence as of now."""
    return {
        "type": entry.memory_type,
        "key": entry.key,
        "value": entry.value,
        "confidence": confidence_at(entry, now),
        "source": entry.source,
        "source_event_ids": list(entry.source_event_ids),
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
        "expires_at": entry.expires_at,
    }


def money_view(purchases: str | None, own: str) -> dict[str, dict[str, Any]]:
    """Return the number of orders and the amount spent in each currency.

    purchases: the stored series. own: the organization's currency.
    """
    if purchases is None:
        return {}
    series = decode_series(purchases)
    totals = {own: (series.priced, series.amount), **series.foreign}
    return {
        currency: {"orders": orders, "spent": Decimal(amount).scaleb(-EXPONENTS.get(currency, 2))}
        for currency, (orders, amount) in sorted(totals.items())
        if orders or amount
    }


def total_view(
    money: Mapping[str, Mapping[str, Any]], own: str, rates: Mapping[str, Decimal]
) -> dict[str, Any] | None:
    """Return the amount spent in all currencies, in the organization's own; None if a rate is missing."""
    spent = {currency: view["spent"] for currency, view in money.items()}
    total = total_in(own, spent, rates, EXPONENTS.get(own, 2))
    return None if total is None else {"currency": own, "spent": total}
