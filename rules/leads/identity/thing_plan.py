"""Whose event it is that names things alone, which people may share."""

from collections.abc import Sequence

from rules.leads.identity.identities import Identity
from rules.leads.identity.identity_facts import NEW, IdentityFacts, IdentityPlan


def plan_things(ordered: Sequence[Identity], facts: IdentityFacts) -> IdentityPlan:
    """Plan an event that names nobody: of things, or of values that many people typed.

    It belongs to a known thing that is not shared; else to a new lead, if an identity is unknown; else to a
    shared thing.
    """
    unknown = tuple(each for each in ordered if each not in facts.known)
    known = [facts.known[each] for each in ordered if each in facts.known]
    unshared = [each.lead for each in known if not each.is_shared]
    if unshared:
        return IdentityPlan(unshared[0], unknown)
    return IdentityPlan(NEW, unknown) if unknown else IdentityPlan(known[0].lead)
