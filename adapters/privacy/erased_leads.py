"""Whether an announced event is of a lead that was erased (rule 10)."""

from contextlib import suppress

from adapters.privacy.tombstones import Erased
from rules.leads.lead_events import IDENTITY_TYPES, LeadEvent, MalformedLeadEvent, groups_of
from rules.privacy.tombstones import lead_subject


def is_erased(event: LeadEvent, erased: Erased) -> bool:
    """Whether an event is of an erased lead; a change of identity is, if any lead that it moves is.
    A change that names no groups is for whoever reads them to refuse.
    """
    leads = {event.lead_organization_id, event.root_id}
    if event.event_type in IDENTITY_TYPES:
        with suppress(MalformedLeadEvent):
            leads |= {each for group in groups_of(event)[1] for each in (group.root, *group.leaves)}
    happened_at = min(event.occurred_at, event.received_at)
    return any(erased.forbids(lead_subject(each), happened_at) for each in leads)
