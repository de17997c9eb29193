"""Whether a lead event, or a record of a table stream, is of an erased person."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from adapters.privacy.tombstones import ErasureCheck
from rules.days import stamp
from rules.leads.lead_events import IDENTITY_TYPES, LeadEvent, MalformedLeadEvent, groups_of
from rules.privacy.tombstones import (
    lead_subject,
    user_subject,
)

# The attributes that name the person of an item. No item names two persons. A holder may also be a stock: no
# user has its name, so it has no tombstone.
USER_KEYS, LEAD_KEY = ("user_id", "account_id", "owner", "holder"), "lead_organization_id"


def is_erased(event: LeadEvent, erased: ErasureCheck) -> bool:
    """Return whether an event is of an erased lead. For a change of identity, any lead that it moves counts.

    A malformed change of identity counts as an event of its own lead alone. It is refused when it is read.
    """
    leads = {event.lead_organization_id, event.root_id}
    if event.event_type in IDENTITY_TYPES:
        with suppress(MalformedLeadEvent):
            leads |= {leaf for group in groups_of(event)[1] for leaf in (group.root, *group.leaves)}
    # A device's clock may be ahead. So an event that was received before an erasure was lifted stays refused,
    # even if it claims a later instant.
    happened_at = min(event.occurred_at, event.received_at)
    return any(erased.forbids(lead_subject(lead), happened_at) for lead in leads)


def is_erased_record(record: Mapping[str, Any], erased: ErasureCheck) -> bool:
    """Return whether a stream's record is of an erased person.

    It is not if it came into the stream after the erasure was lifted.
    """
    change = record["dynamodb"]
    if not (subject := subject_of(change.get("NewImage", {}))):
        return False
    try:
        arrived = datetime.fromtimestamp(float(change["ApproximateCreationDateTime"]), UTC)
    except (KeyError, TypeError, ValueError):
        tombstone = erased.of(subject)
        return tombstone is not None and tombstone.stands
    return erased.forbids(subject, stamp(arrived))


def subject_of(image: Mapping[str, Any]) -> str:
    """Return the subject of the person whose item an image is; "" if the item names nobody."""
    for name in USER_KEYS:
        if user := image.get(name, {}).get("S"):
            return user_subject(user)
    lead = image.get(LEAD_KEY, {}).get("S")
    return lead_subject(lead) if lead else ""
