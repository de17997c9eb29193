"""Reads from the event of a merge which leads are one."""

from dataclasses import dataclass

from rules.leads.lead_events import LeadEvent, MalformedLeadEvent


@dataclass(frozen=True, slots=True)
class Group:
    """Leads that are one, in one organization: lead_organization_ids; the root is one of the leaves."""

    root: str
    leaves: tuple[str, ...]


def groups_of(event: LeadEvent) -> tuple[int, tuple[Group, ...]]:
    """Read a leads_merged or leads_unmerged event: return the change's number, and the groups after it.

    A change tells the whole state of every group that it touched, so a reader drops an older one that comes
    late.
    Raises MalformedLeadEvent.
    """
    try:
        change, listed = event.payload["change"], event.payload["groups"]
        groups = tuple(Group(each["root"], tuple(each["leaves"])) for each in listed)
    except (KeyError, TypeError) as error:
        raise MalformedLeadEvent(f"groups cannot be read: {error!r}") from None
    if type(change) is not int or not groups or any(group.root not in group.leaves for group in groups):
        raise MalformedLeadEvent("groups have no number, are none, or lack their root")
    return change, groups
