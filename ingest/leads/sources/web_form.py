"""A submitted web form.

    {"submission_id", "submitted_at", "form_id"?, "customer_id"?, "device_id"?, "cookie_id"?,
     "fields": {"email"?, "phone"?, "message"?, ...}, "sentiment"?, "objections"?, "preferences"?}

What fields mean, under whatever names and however nested, is in ingest/leads/forms.py. A form must have
somebody: one good address, number or thing. Two different addresses in one field are refused.

Anybody can type anything into a form, so all its identities are claimed.
A browser sends its fields alone, to /v1/hooks (`from_browser`): then the door names the submission, and its
time is when it arrived.
The event holds what we derive from people's words, and not the words: see `derived_from_text`. Who asks to
stop (rules.leads.consent), or whose preferences say {"notifications": "off"}, wants no more messages; that
needs neither an id nor a time.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ingest.leads import forms
from ingest.leads.lead_schemas import WEB_FORM
from ingest.leads.readers import (
    IDENTITIES_MAX,
    DecodeContext,
    DecodedEvent,
    DecodeError,
    SideFields,
    checked,
    derived_from_text,
    moment,
    opt_out_id,
    opt_out_time,
    preferred_opt_out,
    text_id,
    typed_opt_out,
    usable_identities,
)
from rules.leads.identity import Identity
from rules.leads.lead_events import FORM_SUBMITTED

SIGNATURE = None  # a browser cannot keep a secret
# Hidden fields of a page, beside those that people fill in. A customer's id is not among them: anybody could
# write any.
HIDDEN = ("form_id", "device_id", "cookie_id")
SAME_NAME_MAX = 10
NOBODY = (
    "has no usable identity. An e-mail address is read from fields such as email, your-email, E-mail Address,"
    " email[] or fields[email], a telephone number from phone, tel, mobile, phone_number or your-phone;"
    " device_id and cookie_id are read, too"
)


def from_browser(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the payload of a form. fields: as ingest.leads.forms.read_form returns them."""
    typed = {name: each for name, each in fields.items() if name not in (*HIDDEN, "submission_id")}
    hidden = {name: fields[name] for name in HIDDEN if fields.get(name)}
    return {**hidden, "fields": forms.with_plain_names(typed)}


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read the submission."""
    body, side = checked(WEB_FORM, payload), SideFields()
    try:
        fields = forms.flat_fields(body["fields"])
    except forms.NoForm as error:
        raise DecodeError("fields", str(error)) from None
    form = side.read(text_id, body.get("form_id"), "form_id")
    # A form that a browser sent has the door's id, and no time but that of its arrival.
    arrived_at = context.received_at if context.delivery_id else None
    submission_id = body.get("submission_id", context.delivery_id)
    submitted_at = body.get("submitted_at", arrived_at)
    words = [text for texts in forms.of_kind(fields, forms.MESSAGE).values() for text in texts]
    submitter = _submitter(body, fields, context, side)
    opt_out = typed_opt_out("\n".join(words)) | preferred_opt_out(body.get("preferences"))
    if opt_out:
        occurred_at, named_time = opt_out_time(submitted_at, "submitted_at", context, side, moment)
        who = [each.external_id for each in submitter]
        event_id = opt_out_id(submission_id, "submission_id", side, time=named_time, who=who)
    else:
        event_id, occurred_at = text_id(submission_id, "submission_id"), moment(submitted_at, "submitted_at")
    return [
        DecodedEvent(
            external_event_id=event_id,
            event_type=FORM_SUBMITTED,
            occurred_at=occurred_at,
            identities=submitter,
            object_id=form,
            object_id_ref=None if form is None else "form",
            payload=derived_from_text(
                "\n".join(words), body.get("sentiment"), side, body.get("objections"), body.get("preferences")
            )
            | opt_out,
            omissions=side.omissions,
        )
    ]


def _submitter(
    body: Mapping[str, Any], fields: Mapping[str, str], context: DecodeContext, side: SideFields
) -> tuple[Identity, ...]:
    def read(pairs: Iterable[tuple[str, Any]], side: SideFields = side) -> tuple[Identity, ...]:
        return usable_identities(pairs, context, "fields", are_verified=False, side=side)

    submitter = read([("customer", body.get("customer_id"))])
    for values in forms.of_kind(fields, forms.EMAIL).values():
        addresses = read(("email", value) for value in _repeated_values(values))
        if len(addresses) > 1:
            raise DecodeError("fields.email", "holds two different addresses")
        submitter += addresses
    numbers = [number for values in forms.of_kind(fields, forms.PHONE).values() for number in values]
    for number in numbers[:IDENTITIES_MAX]:
        whole = read([("phone", number)], SideFields())  # "650 555 1234, ext. 5" is one number
        submitter += whole or read(("phone", value) for value in _repeated_values([number]))
    submitter += read([("device", body.get("device_id")), ("cookie", body.get("cookie_id"))])
    if not submitter:
        bad = "".join(f" ({omission.field}: {omission.reason})" for omission in side.omissions[:3])
        raise DecodeError("fields", f"{NOBODY}{bad}")
    return tuple(dict.fromkeys(submitter))[:IDENTITIES_MAX]


def _repeated_values(values: list[str]) -> list[str]:
    """Return the values of a name that came several times, at most 10 of each: they are joined by a comma."""
    return [each for value in values for each in value.split(", ", SAME_NAME_MAX)[:SAME_NAME_MAX]]
