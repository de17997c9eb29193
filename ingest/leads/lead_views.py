"""What is known of a lead, as the API shows it.

A lead that was merged into another answers with the data of its root.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from adapters.leads.lead_event_store import EventPage
from adapters.leads.memory_store import MemoryStore, TooManyMemories
from adapters.leads.persons import PersonEvents
from adapters.settings.choices import currencies, currency_of
from ingest.leads.lead_accept import RESERVED
from ingest.web.caller import ApiError, Caller, invalid_field
from ingest.web.paging import page, span_of
from rules.days import EPOCH
from rules.leads.feature_items import FeatureItem, features_at
from rules.leads.features import Input
from rules.leads.lead_events import EVENT_TYPES, FUTURE_MAX, SORT_KEY
from rules.leads.memory import MemoryEntry, confidence_at
from rules.leads.orders import EXPONENTS, rates_in, total_in
from rules.leads.series import decode_series

# A merged lead points at its root, so one hop is usual. More than five are a loop: two leads point at each
# other for a moment, while a change of identity is being applied.
HOPS_MAX = 5
NO_EVENT, NO_LEAD = "no such event has been stored", "there is no such lead"
HIDDEN = frozenset({SORT_KEY, "event_type#occurred_at", "raw_payload", "raw_payload_ref", "root_id"})
# DynamoDB takes no longer sort key.
NAME_BYTES_MAX = 1024
MEMORY_MAX = 1_000  # entries that one request reads
AHEAD = FUTURE_MAX + timedelta(days=1)
NOTHING_COMPUTED: dict[str, Any] = {"features": {}, "money": {}, "money_total": None, "computed_at": None}


@dataclass(frozen=True, slots=True)
class Lead:
    """A lead that was asked about."""

    root: str
    leaf: str  # the lead itself
    item: FeatureItem | None  # the root's item in the table Feature; None if there is none


@dataclass(frozen=True, slots=True)
class LeadViews:
    """Reads leads."""

    people: PersonEvents
    memories: MemoryStore
    currency: str  # the setting: each organization's own
    rates: Mapping[str, Decimal]  # what each currency is worth in the deployment's
    grace_days: int  # the setting: when an unanswered campaign counts as ignored

    def check_reach(self, lead_id: str, caller: Caller) -> None:
        """Raise 404 unless the caller reaches the lead: 403 would reveal that it exists."""
        organization = self.people.events.organization_of(lead_id)
        if organization is None or not caller.reaches(organization):
            raise ApiError(404, "not_found", NO_LEAD)

    def has_change(self, organization: str, change: str) -> bool:
        """Whether a change of who is who, by its number, has been announced to an organization."""
        return self.people.events.leaf_of(f"{organization}/{RESERVED}", change) is not None

    def find(self, source: str, external_event_id: str) -> dict[str, Any]:
        """Return the root of the lead that an integration's event was stored for; raises 404 if none was."""
        leaf = self.people.events.leaf_of(source, external_event_id)
        if leaf is None:
            raise ApiError(404, "not_found", NO_EVENT)
        return {"lead_id": self._lead(leaf).root}

    def events(self, lead_id: str, query: Mapping[str, str], now: datetime) -> dict[str, Any]:
        """Return a page of the events of all the root's leaves, newest first; all, or those of one `type`.

        Raises 404 for no such lead, 400 for no such type.
        """
        kind = query.get("type")
        if kind is not None and kind not in EVENT_TYPES:
            raise ApiError(400, "invalid_parameter", f"type must be one of {', '.join(sorted(EVENT_TYPES))}")
        span, lead = span_of(query, EPOCH, now + AHEAD), self._lead(lead_id)
        wanted = EventPage(kind or "", span.since, span.until, span.limit)
        rows = self.people.newest(lead.item or FeatureItem(lead.root), lead.leaf, wanted)
        if not rows and lead.item is None:
            self._check_known(lead)
        listing = page("events", rows, span.limit, SORT_KEY)
        return {"lead_id": lead.root, **listing, "events": [event_view(row) for row in rows]}

    def memory(self, lead_id: str, query: Mapping[str, str], now: datetime) -> dict[str, Any]:
        """Return what is remembered: everything, one type, or one entry by type and key.

        Raises 404 for no such lead or no such entry, 400 for a key without a type, 422 over 1,000 entries.
        """
        kind, key = query.get("type"), query.get("key")
        if key and not kind:
            raise ApiError(400, "invalid_parameter", "key needs a type")
        if len(f"{kind}#{key}".encode()) > NAME_BYTES_MAX:
            raise ApiError(400, "invalid_parameter", f"type and key are over {NAME_BYTES_MAX} bytes")
        lead = self._lead(lead_id)
        entries = self._entries(lead.root, kind, key)
        alive = [entry for entry in entries if entry.evidence and not is_expired(entry, now)]
        if not entries and lead.item is None:
            self._check_known(lead)
        if key and not alive:
            raise ApiError(404, "not_found", "nothing of that type and key is remembered")
        return {"lead_id": lead.root, "memory": [memory_view(entry, now) for entry in alive]}

    def features(self, lead_id: str, now: datetime) -> dict[str, Any]:
        """Return features as of now, and when they were stored last: {} and null before the first time."""
        lead = self._lead(lead_id)
        if lead.item is None:
            self._check_known(lead)
            return {"lead_id": lead.root, **NOTHING_COMPUTED}
        features, as_of = features_at(lead.item, now, self.grace_days)
        own = self._currency(lead_id)
        money = money_view((lead.item.inputs or {}).get(Input.PURCHASES), own)
        rates = rates_in(own, currency_of(self.currency, None), self.rates)
        return {
            "lead_id": lead.root,
            "features": dict(sorted(features.items())),
            "money": money,
            "money_total": total_view(money, own, rates),
            "computed_at": lead.item.computed_at,
            "as_of": as_of,
        }

    def _currency(self, lead_id: str) -> str:
        """Return the own currency of a lead's organization; asks for that only where organizations differ."""
        differ = len(currencies(self.currency)) > 1
        return currency_of(self.currency, self.people.events.organization_of(lead_id) if differ else None)

    def _entries(self, root: str, kind: str | None, key: str | None) -> list[MemoryEntry]:
        if kind and key:
            entry = self.memories.get(root, kind, key)
            return [] if entry is None else [entry]
        try:
            if kind:
                return self.memories.of_type(root, kind, MEMORY_MAX)
            return self.memories.all_of(root, MEMORY_MAX)
        except TooManyMemories:
            reason = f"must be narrower: over {MEMORY_MAX} things are remembered of the lead"
            raise invalid_field("key" if kind else "type", reason) from None

    def _lead(self, lead_id: str) -> Lead:
        """Find the root of a lead. This costs one read, or two for a lead that was merged into another."""
        root, item = lead_id, self.people.features.get(lead_id)
        for _ in range(HOPS_MAX):
            if item is None or not item.merged_into:
                break
            root = item.merged_into
            item = self.people.features.get(root)
        return Lead(root, lead_id, item)

    def _check_known(self, lead: Lead) -> None:
        if not self.people.events.newest({lead.root, lead.leaf}, EventPage("", "0", "~", 1)):
            raise ApiError(404, "not_found", NO_LEAD)


def event_view(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event without internal attributes and without people's own words."""
    visible = {name: value for name, value in row.items() if name not in HIDDEN}
    return {"id": row[SORT_KEY].partition("#")[2], **visible, "payload": json.loads(row["payload"])}


def is_expired(entry: MemoryEntry, now: datetime) -> bool:
    """Whether the entry has expired. DynamoDB may still hold its item for a while."""
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
    """Return orders and what was spent by currency; nobody adds these up. purchases: the stored series."""
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
    """Return what was spent in all, in the organization's own currency; None where a rate is missing."""
    spent = {currency: each["spent"] for currency, each in money.items()}
    total = total_in(own, spent, rates, EXPONENTS.get(own, 2))
    return None if total is None else {"currency": own, "spent": total}
