"""E-mail campaigns, in the format of SendGrid's Event Webhook: a list of events, each of one recipient.

https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event
An event needs its id, kind, time, recipient and campaign; nothing else refuses it.

- The campaign's id is the first of marketing_campaign_id, singlesend_id, campaign_id (a unique argument) and
  the categories that is one.
- `delivered` counts as sent, because nobody can ignore a mail that never came. `reply` is our extension.
- Left out are an `open` with sg_machine_open, because a mail program fetched the mail, and perhaps nobody
  read it; a kind of event that is no act of the lead (`deferred`), or that is new; and, where it is signed,
  what belongs to no campaign, such as the mail that resets a password.
- But who unsubscribes by such a mail, or calls it spam, wants no more messages: that is a stated preference
  (docs/rules.md, "Who wants no more messages").
- The recipient is verified: the mail provider knows whose mailbox did this.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ingest.leads.readers import (
    DecodeContext,
    DecodedEvent,
    DecodeError,
    PayloadPart,
    SideFields,
    epoch,
    identities,
    text_id,
)
from rules.leads import lead_events
from rules.leads.consent import NOTIFICATIONS, OFF
from rules.leads.hooks import Algorithm, Part, Signature

# https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features
SIGNATURE = Signature(
    "x-twilio-email-event-webhook-signature",
    message=(Part.TIMESTAMP, Part.BODY),
    timestamp_header="x-twilio-email-event-webhook-timestamp",
    algorithm=Algorithm.ECDSA_SHA256,
)

TYPES = {
    "delivered": lead_events.CAMPAIGN_SENT,
    "open": lead_events.CAMPAIGN_OPENED,
    "click": lead_events.CAMPAIGN_CLICKED,
    "reply": lead_events.CAMPAIGN_REPLIED,
    "bounce": lead_events.CAMPAIGN_BOUNCED,
    "blocked": lead_events.CAMPAIGN_BOUNCED,
    "dropped": lead_events.CAMPAIGN_BOUNCED,
    "unsubscribe": lead_events.CAMPAIGN_UNSUBSCRIBED,
    "group_unsubscribe": lead_events.CAMPAIGN_UNSUBSCRIBED,
    "spamreport": lead_events.CAMPAIGN_UNSUBSCRIBED,
}
CAMPAIGN = ("marketing_campaign_id", "singlesend_id", "campaign_id")


def parts(payload: Any) -> Iterator[PayloadPart]:
    """Split a batch into its events; one event is a batch, too."""
    events = [payload] if isinstance(payload, Mapping) else payload
    if not isinstance(events, list):
        raise DecodeError("", "must be an event, or a list of events")
    return (PayloadPart(each, str(index)) for index, each in enumerate(events))


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read an event, or all events of a batch."""
    if isinstance(payload, list):
        return [event for each in payload for event in decode(each, context)]
    if not isinstance(payload, Mapping):
        raise DecodeError("", "must be an event: an object")
    event = _event(payload, context)
    return [event] if event else []


def _event(event: Mapping[str, Any], context: DecodeContext) -> DecodedEvent | None:
    kind = event.get("event")
    if not isinstance(kind, str) or not kind:
        raise DecodeError("event", f"must be text, such as {', '.join(TYPES)}" if kind else "is missing")
    is_by_machine = str(event.get("sg_machine_open")).casefold() in ("true", "1")
    if kind not in TYPES or (kind == "open" and is_by_machine):
        return None
    event_id, candidates = text_id(event.get("sg_event_id"), "sg_event_id"), _campaign_candidates(event)
    has_no_campaign = context.is_signed and not candidates
    if has_no_campaign and TYPES[kind] != lead_events.CAMPAIGN_UNSUBSCRIBED:
        return None
    occurred_at = epoch(event.get("timestamp"), "timestamp")
    recipient = identities([("email", event.get("email"))], context, "email", are_verified=True)
    if has_no_campaign:
        opt_out = {"consent": {NOTIFICATIONS: OFF}}
        return DecodedEvent(event_id, lead_events.PREFERENCE_STATED, occurred_at, recipient, payload=opt_out)
    side = SideFields()
    campaign_id = _first_id(candidates, side)
    return DecodedEvent(
        external_event_id=event_id,
        event_type=TYPES[kind],
        occurred_at=occurred_at,
        identities=recipient,
        object_id=campaign_id,
        object_id_ref="campaign",
        payload={"campaign_id": campaign_id},
        omissions=side.omissions,
    )


def _campaign_candidates(event: Mapping[str, Any]) -> list[Any]:
    """Return what may be the campaign's id, the likeliest first."""
    category = event.get("category")
    values = [*map(event.get, CAMPAIGN), *(category if isinstance(category, list) else [category])]
    return [value.strip() if isinstance(value, str) else value for value in values if value]


def _first_id(candidates: list[Any], side: SideFields) -> str:
    """Return the first candidate that is an id; raises DecodeError for the first, if none is."""
    for candidate in candidates:
        if campaign_id := side.read(text_id, candidate, "campaign_id"):
            return campaign_id
    return text_id(next(iter(candidates), None), "campaign_id")
