"""E-mail campaigns, in the format of SendGrid's Event Webhook: a list of events, each of one recipient.

https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event
An event needs its id, kind, time, recipient and campaign; nothing else refuses it. The campaign's id is the
first of marketing_campaign_id, singlesend_id, campaign_id (a unique argument) and the categories that is one.
`delivered` counts as sent, because nobody can ignore a mail that never came. An `open` with sg_machine_open
is left out: a mail program fetched the mail, and perhaps nobody read it. So is a kind of event that is no act
of the lead (`deferred`), or that is new, and, where it is signed, what belongs to no campaign, such as the
mail that resets a password. But who unsubscribes by such a mail, or calls it spam, wants no more messages:
that is a stated preference (docs/rules.md, "Who wants no more messages"). `reply` is our extension. The
recipient is verified: the mail provider knows whose mailbox did this.
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
    name = event.get("event")
    if not isinstance(name, str) or not name:
        raise DecodeError("event", f"must be text, such as {', '.join(TYPES)}" if name else "is missing")
    if name not in TYPES or (
        name == "open" and str(event.get("sg_machine_open")).casefold() in ("true", "1")
    ):
        return None
    own_id, campaigns = text_id(event.get("sg_event_id"), "sg_event_id"), _campaigns(event)
    is_opt_out = TYPES[name] == lead_events.CAMPAIGN_UNSUBSCRIBED
    if context.is_signed and not campaigns and not is_opt_out:
        return None
    at = epoch(event.get("timestamp"), "timestamp")
    who = identities([("email", event.get("email"))], context, "email", are_verified=True)
    if context.is_signed and not campaigns:
        said = {"consent": {NOTIFICATIONS: OFF}}
        return DecodedEvent(own_id, lead_events.PREFERENCE_STATED, at, who, payload=said)
    side = SideFields()
    campaign = _campaign(campaigns, side)
    return DecodedEvent(
        external_event_id=own_id,
        event_type=TYPES[name],
        occurred_at=at,
        identities=who,
        object_id=campaign,
        object_id_ref="campaign",
        payload={"campaign_id": campaign},
        omissions=side.omissions,
    )


def _campaigns(event: Mapping[str, Any]) -> list[Any]:
    category = event.get("category")
    given = [*map(event.get, CAMPAIGN), *(category if isinstance(category, list) else [category])]
    return [each.strip() if isinstance(each, str) else each for each in given if each]


def _campaign(campaigns: list[Any], side: SideFields) -> str:
    """Return the first that is an id; raises DecodeError for the first, if none is."""
    for campaign in campaigns:
        if found := side.read(text_id, campaign, "campaign_id"):
            return found
    return text_id(next(iter(campaigns), None), "campaign_id")
