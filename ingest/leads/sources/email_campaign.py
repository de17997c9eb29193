"""E-mail campaigns, in the format of SendGrid's Event Webhook: a list of events, each of one recipient.

https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event
An event needs its id, kind, time, recipient and campaign; nothing else refuses it. Who unsubscribes, or
calls a mail spam, needs only the kind and the recipient: without an id, the kind, the time, the recipient and
the mail's id name it.

- The campaign's id is the first of marketing_campaign_id, singlesend_id, campaign_id (a unique argument) and
  the categories that is one.
- `delivered` counts as sent, because nobody can ignore a mail that never came. `reply` is our extension.
- Left out are an `open` with sg_machine_open, because a mail program fetched the mail, and perhaps nobody
  read it; a kind of event that is no act of the lead (`deferred`), or that is new; and, where it is signed,
  what belongs to no campaign, such as the mail that resets a password.
- `unsubscribe` refuses all mail, and so does `spamreport`: who sends one wants no more messages, whichever
  mail it was (docs/rules.md, "Who wants no more messages"). `group_unsubscribe` of a campaign's mail is a
  reaction to that campaign alone; of any other mail it refuses all messages, because we know no groups.
  `group_resubscribe` is no event: it brings one kind of mail back, and not all messages.
- A mail is `dropped` where its recipient has unsubscribed from all mail, or reported spam, before: so the
  reason says, and it is an opt-out, too. A "Bounced Address" does not work, and nobody has decided anything.
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
    opt_out_id,
    opt_out_time,
    text_id,
)
from rules.leads import lead_events
from rules.leads.lead_events import NOTIFICATIONS, OFF
from rules.leads.webhook_signatures import Algorithm, Signature, SignedPart

# https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features
SIGNATURE = Signature(
    "x-twilio-email-event-webhook-signature",
    message=(SignedPart.TIMESTAMP, SignedPart.BODY),
    timestamp_header="x-twilio-email-event-webhook-timestamp",
    algorithm=Algorithm.ECDSA_SHA256,
)

DROPPED = "dropped"
TYPES = {
    "delivered": lead_events.CAMPAIGN_SENT,
    "open": lead_events.CAMPAIGN_OPENED,
    "click": lead_events.CAMPAIGN_CLICKED,
    "reply": lead_events.CAMPAIGN_REPLIED,
    "bounce": lead_events.CAMPAIGN_BOUNCED,
    "blocked": lead_events.CAMPAIGN_BOUNCED,
    DROPPED: lead_events.CAMPAIGN_BOUNCED,
}
OF_ONE_KIND = "group_unsubscribe"
OPT_OUTS = ("unsubscribe", "spamreport", OF_ONE_KIND)
# https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event#dropped
REASONS_OF_OPT_OUTS = ("unsubscribed address", "spam reporting address")
CAMPAIGN = ("marketing_campaign_id", "singlesend_id", "campaign_id")


def parts(payload: Any) -> Iterator[PayloadPart]:
    """Split a batch into its events; one event is a batch, too."""
    events = [payload] if isinstance(payload, Mapping) else payload
    if not isinstance(events, list):
        raise DecodeError("", "must be an event, or a list of events")
    return (PayloadPart(each, str(index)) for index, each in enumerate(events))


def join(payloads: list[Any]) -> list[Any]:
    """Make a batch of events."""
    return payloads


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
        kinds = ", ".join((*TYPES, *OPT_OUTS))
        raise DecodeError("event", f"must be text, such as {kinds}" if kind else "is missing")
    if (word := kind.strip().lower()) in OPT_OUTS or (word == DROPPED and _is_dropped_by_opt_out(event)):
        return _opt_out(event, word, context)
    is_by_machine = str(event.get("sg_machine_open")).casefold() in ("true", "1")
    if kind not in TYPES or (kind == "open" and is_by_machine):
        return None
    event_id, candidates = text_id(event.get("sg_event_id"), "sg_event_id"), _campaign_candidates(event)
    if context.is_signed and not candidates:
        return None
    occurred_at = epoch(event.get("timestamp"), "timestamp")
    recipient = identities([("email", event.get("email"))], context, "email", are_verified=True)
    side = SideFields()
    campaign_id = _first_id(candidates, side)
    if campaign_id is None:
        campaign_id = text_id(next(iter(candidates), None), "campaign_id")
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


def _opt_out(event: Mapping[str, Any], kind: str, context: DecodeContext) -> DecodedEvent:
    """Read who unsubscribes, or has done so. Only the recipient is needed; the rest is read if it can be."""
    side = SideFields()
    recipient = identities([("email", event.get("email"))], context, "email", are_verified=True)
    occurred_at, named_time = opt_out_time(event.get("timestamp"), "timestamp", context, side)
    event_id = opt_out_id(
        event.get("sg_event_id"),
        "sg_event_id",
        side,
        kind=kind,
        time=named_time,
        email=recipient[0].external_id,
        message=side.read(text_id, event.get("sg_message_id"), "sg_message_id"),
    )
    campaign_id = _first_id(_campaign_candidates(event), side)
    is_of_campaign = campaign_id and kind == OF_ONE_KIND
    consent = {} if is_of_campaign else {"consent": {NOTIFICATIONS: OFF}}
    if campaign_id is None:
        preference = lead_events.PREFERENCE_STATED
        return DecodedEvent(
            event_id, preference, occurred_at, recipient, payload=consent, omissions=side.omissions
        )
    return DecodedEvent(
        external_event_id=event_id,
        event_type=TYPES.get(kind, lead_events.CAMPAIGN_UNSUBSCRIBED),
        occurred_at=occurred_at,
        identities=recipient,
        object_id=campaign_id,
        object_id_ref="campaign",
        payload={"campaign_id": campaign_id, **consent},
        omissions=side.omissions,
    )


def _is_dropped_by_opt_out(event: Mapping[str, Any]) -> bool:
    reason = " ".join(str(event.get("reason")).lower().split())
    return reason.startswith(REASONS_OF_OPT_OUTS)


def _campaign_candidates(event: Mapping[str, Any]) -> list[Any]:
    """Return what may be the campaign's id, the likeliest first."""
    category = event.get("category")
    values = [*map(event.get, CAMPAIGN), *(category if isinstance(category, list) else [category])]
    return [value.strip() if isinstance(value, str) else value for value in values if value]


def _first_id(candidates: list[Any], side: SideFields) -> str | None:
    """Return the first candidate that is an id; None if none is."""
    for candidate in candidates:
        if campaign_id := side.read(text_id, candidate, "campaign_id"):
            return campaign_id
    return None
