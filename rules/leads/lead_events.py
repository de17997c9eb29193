"""A lead's event as it is stored: doors write this shape, processors and the lake read it.

A *lead* is a person as one organization knows them. `lead_organization_id` is its id, under which its events,
memory and features are stored. An event never moves. If two leads turn out to be one, one of them becomes the
*root* and both are its *leaves*. Each leaf keeps its events, so undoing the merge moves nothing
(docs/decisions/0008-merged-leads-keep-their-events.md).
"""

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from rules.days import key_of_stamp, stamp, unstamp

# A consent of a payload: {"notifications": "off"}
NOTIFICATIONS, OFF, ON = "notifications", "off", "on"
FUTURE_MAX = timedelta(minutes=5)  # how far ahead of ours a sender's clock may be
SENTIMENT_MILLI_MAX = 1000
# The namespace of events' ids. Changing it would give every event another id.
NAMESPACE = uuid.UUID("0d5f3c1e-7b0e-5f0f-8a43-0b1f9a2f6c11")

FORM_SUBMITTED = "form_submitted"
MESSAGE_RECEIVED = "message_received"
PAGE_VIEWED = "page_viewed"
PREFERENCE_STATED = "preference_stated"
OBJECTION_RAISED = "objection_raised"
# The lead has another number, address or id from now on. The event has the former and the new identity.
IDENTITY_REPLACED = "identity_replaced"
PURCHASE_COMPLETED = "purchase_completed"
ORDER_REFUNDED = "order_refunded"
# rules.leads.orders makes these when something changes an order after its first event.
ORDER_CANCELLED = "order_cancelled"
ORDER_CHARGED = "order_charged"
CAMPAIGN_SENT = "campaign_sent"
CAMPAIGN_OPENED = "campaign_opened"
CAMPAIGN_CLICKED = "campaign_clicked"
CAMPAIGN_REPLIED = "campaign_replied"
CAMPAIGN_BOUNCED = "campaign_bounced"
CAMPAIGN_UNSUBSCRIBED = "campaign_unsubscribed"
# The lead consumer stores these when leads become one, or are parted (`groups_of`).
LEADS_MERGED = "leads_merged"
LEADS_UNMERGED = "leads_unmerged"

PURCHASE_TYPES = frozenset({PURCHASE_COMPLETED, ORDER_REFUNDED, ORDER_CANCELLED, ORDER_CHARGED})
# The signs with which each type adds to the number of orders, and its amount to their amount.
ORDER_SIGNS: Mapping[str, tuple[int, int]] = {
    PURCHASE_COMPLETED: (1, 1),
    ORDER_CANCELLED: (-1, -1),
    ORDER_CHARGED: (0, 1),
    ORDER_REFUNDED: (0, -1),
}
CAMPAIGN_REACTION_TYPES = frozenset(
    {CAMPAIGN_OPENED, CAMPAIGN_CLICKED, CAMPAIGN_REPLIED, CAMPAIGN_UNSUBSCRIBED}
)
CAMPAIGN_TYPES = CAMPAIGN_REACTION_TYPES | {CAMPAIGN_SENT, CAMPAIGN_BOUNCED}
SENTIMENT_TYPES = frozenset({FORM_SUBMITTED, MESSAGE_RECEIVED})
IDENTITY_TYPES = frozenset({LEADS_MERGED, LEADS_UNMERGED})
# Types of what the lead did. What others did to it (sent a campaign, refunded an order) is not among them.
ACTIVITY_TYPES = (
    SENTIMENT_TYPES
    | CAMPAIGN_REACTION_TYPES
    | {PAGE_VIEWED, PREFERENCE_STATED, OBJECTION_RAISED, PURCHASE_COMPLETED}
)
EVENT_TYPES = (
    PURCHASE_TYPES | CAMPAIGN_TYPES | SENTIMENT_TYPES | IDENTITY_TYPES | ACTIVITY_TYPES | {IDENTITY_REPLACED}
)
# Attributes of the table that are no Python names: a `#` joins the two parts of a composed key.
SORT_KEY = "occurred_at#id"
TYPE_KEY = "event_type#occurred_at"
OPTIONAL_ATTRIBUTES = ("object_id", "object_id_ref", "raw_payload", "raw_payload_ref")
# The attributes of a stored event that are required texts, besides its payload.
TEXT_ATTRIBUTES = (
    "organization_id",
    "lead_organization_id",
    "root_id",
    "source",
    "source_type",
    "external_event_id",
    "event_type",
    "occurred_at",
    "received_at",
)


class MalformedLeadEvent(ValueError):
    """A stored or announced event lacks an attribute, or has a bad value in one."""


@dataclass(frozen=True, slots=True)
class LeadEvent:
    """One stored event of a lead.

    Its payload is small. The event type says which fields it has:

    | event type | payload |
    |---|---|
    | purchase_completed, order_refunded, order_cancelled, order_charged | order_id; currency; amount_minor
      (0 or more), or foreign_minor if the currency is not the organization's own; products?: [{product_id,
      quantity}]. What each adds to count and amount: ORDER_SIGNS |
    | message_received, form_submitted | sentiment_milli? (-1000 to 1000), objections?: [topic],
      preferences?: {name: value}, consent?: {"notifications": on or off} |
    | page_viewed | category?, product_id? |
    | preference_stated | preferences?, consent?, as above; consent_channel? if it is about one channel |
    | objection_raised | objections: [topic] |
    | identity_replaced | nothing |
    | campaign_* | campaign_id; campaign_unsubscribed and campaign_bounced also consent?, as above |
    | leads_merged, leads_unmerged | change: int; groups: [{root, leaves: [lead_organization_id]}]: the leads
      that the change moved, and their root, which is among the leaves |
    """

    organization_id: str
    lead_organization_id: str  # the leaf that the event belongs to
    # That leaf's root when the event was stored. The leaf may have moved since: readers follow `merged_into`
    root_id: str
    source: str  # `{organization}/{integration}`, the scope of external_event_id
    source_type: str  # names the module of ingest.leads.sources that decoded the event
    external_event_id: str
    event_type: str
    occurred_at: str  # a stamp (rules.days)
    received_at: str  # a stamp
    payload: Mapping[str, Any] = field(default_factory=dict)
    object_id: str | None = None  # the order, message or campaign that the event is about
    object_id_ref: str | None = None  # the kind of that object, such as `order`
    raw_payload: str | None = None  # what the integration sent, JSON text
    raw_payload_ref: str | None = None  # the s3:// URL of a payload that is too large for an item

    @property
    def id(self) -> str:
        """A uuid made of source and external_event_id: every resend of the event has the same one."""
        return str(uuid.uuid5(NAMESPACE, f"{self.source}\x00{self.external_event_id}"))

    @property
    def sort_key(self) -> str:
        """The event's sort key in the table: by time, then by id."""
        return f"{key_of_stamp(self.occurred_at)}#{self.id}"

    @property
    def occurred(self) -> datetime:
        """When it happened."""
        return unstamp(self.occurred_at)


def to_item(event: LeadEvent) -> dict[str, Any]:
    """Return the event as table attributes. Some may be None: encode_item() leaves these out."""
    return {
        SORT_KEY: event.sort_key,
        TYPE_KEY: f"{event.event_type}#{key_of_stamp(event.occurred_at)}",
        "payload": json.dumps(event.payload, sort_keys=True, separators=(",", ":")),
        **{name: getattr(event, name) for name in (*TEXT_ATTRIBUTES, *OPTIONAL_ATTRIBUTES)},
    }


def from_item(item: Mapping[str, Any]) -> LeadEvent:
    """Read a stored or announced event; raises MalformedLeadEvent, with the attribute and the reason."""
    try:
        texts = {name: _text(item, name) for name in TEXT_ATTRIBUTES}
        payload = json.loads(_text(item, "payload"))
        for name in ("occurred_at", "received_at"):
            if stamp(unstamp(texts[name])) != texts[name]:
                raise MalformedLeadEvent(f"{name} is no stamp: {texts[name]}")
    except MalformedLeadEvent:
        raise
    except (ValueError, OverflowError, RecursionError) as error:
        raise MalformedLeadEvent(f"the stored event cannot be read: {error}") from None
    if not isinstance(payload, dict):
        raise MalformedLeadEvent("payload is no object")
    optional: dict[str, Any] = {name: item.get(name) for name in OPTIONAL_ATTRIBUTES}
    return LeadEvent(**texts, payload=payload, **optional)


def sentiment_of(event: LeadEvent) -> int | None:
    """Return an event's sentiment in thousandths, None if it has none; raises MalformedLeadEvent."""
    milli = event.payload.get("sentiment_milli")
    if milli is not None and (type(milli) is not int or abs(milli) > SENTIMENT_MILLI_MAX):
        raise MalformedLeadEvent("sentiment_milli is no whole number from -1000 to 1000")
    return milli


def campaign_of(event: LeadEvent) -> str:
    """Return the id of the campaign that an event is about; raises MalformedLeadEvent."""
    campaign = event.payload.get("campaign_id")
    if not isinstance(campaign, str) or not campaign:
        raise MalformedLeadEvent("campaign_id is no text")
    return campaign


def announcement(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a stored event that subscribers get: all but the raw payload (rule 10)."""
    return {name: value for name, value in item.items() if name != "raw_payload"}


def body_hash(body: Mapping[str, Any]) -> str:
    """Return a digest of a payload. It shows whether two payloads with one external id are the same."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Group:
    """A root after a change, and the leaves that the change has moved to it.

    The root is among the leaves. Leaves that it had before need not be, so a change costs what it moves.
    """

    root: str  # root, leaves: lead_organization_ids of one organization
    leaves: tuple[str, ...]


def groups_of(event: LeadEvent) -> tuple[int, tuple[Group, ...]]:
    """Read a leads_merged or leads_unmerged event: return the change's number, and the groups after it.

    Of two changes that name a leaf, the one with the higher number is right. So they may come in any order.
    Raises MalformedLeadEvent.
    """
    try:
        change, listed = event.payload["change"], event.payload["groups"]
        groups = tuple(Group(fields["root"], tuple(fields["leaves"])) for fields in listed)
    except (KeyError, TypeError) as error:
        raise MalformedLeadEvent(f"groups cannot be read: {error!r}") from None
    if type(change) is not int:
        raise MalformedLeadEvent("change is no whole number")
    if not groups or any(group.root not in group.leaves for group in groups):
        raise MalformedLeadEvent("groups are missing, or one of them lacks its root")
    return change, groups


def _text(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name)
    if not isinstance(value, str) or not value:
        raise MalformedLeadEvent(f"{name} is no text")
    return value
