"""Reads from the event of a merge which leads are one."""

from dataclasses import dataclass

from rules.leads.lead_events import LeadEvent, MalformedLeadEvent


@dataclass(frozen=True, slots=True)
class Group:
    """Leads whose root this is from a change on, in one organization: lead_organization_ids.

    The root is one of the leaves. Those that were there before need not be: so a change costs what it moves.
    """

    root: str
    leaves: tuple[str, ...]


def groups_of(event: LeadEvent) -> tuple[int, tuple[Group, ...]]:
    """Read a leads_merged or leads_unmerged event: return the change's number, and the groups after it.

    Of two changes that name a leaf, the one with the higher number is right; so they may come in any order.
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
