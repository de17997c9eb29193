"""Whose event it is if nobody has proven its identities: a form that somebody filled in.

Claims never make two leads one. They lead to one lead if nothing contradicts that, and of a proven person
they change nothing. What contradicts: a higher identity of which the lead has another value (another
e-mail address under the same number), more values than one person may have, or two claims that two people
have proven.

A claimed identity that was typed for more than LEADS_PER_CLAIM leads is nobody's: it becomes shared.
Example: five people give their own addresses and the number of one switchboard. The first three are leads of
their own, the number leads to the first of them; with the fourth address it leads to none any more.
"""

from collections.abc import Sequence

from rules.leads.identity.identities import RANKS, Identity
from rules.leads.identity.identity_facts import NEW, IdentityFacts, IdentityPlan
from rules.leads.identity.identity_merges import adopted, fits_one_lead, has_room, merges_of, things_of
from rules.leads.identity.thing_plan import plan_things

LEADS_PER_CLAIM = 3


def plan_claims(ordered: Sequence[Identity], facts: IdentityFacts) -> IdentityPlan:
    """Plan an event whose strong identities, the first ones, are all claimed."""
    strong = [each for each in ordered if each.kind.is_strong and not _is_shared(each, facts)]
    weak = [each for each in ordered if not each.kind.is_strong]
    if not strong:
        return plan_things([*weak, *(each for each in ordered if each.kind.is_strong)], facts)
    root = _root(strong, facts)
    if root is None and all(each in facts.known for each in strong):
        return plan_things(weak, facts) if weak else IdentityPlan(NEW)
    if root is None:
        return _of_unproven(strong, weak, NEW, NEW, facts)
    here = (facts.known[each] for each in strong if each in facts.known)
    lead = next(each.lead for each in here if each.root == root)
    if facts.proven(root):
        shares, typed = _elsewhere(strong, lead, root, facts)
        return IdentityPlan(lead, shares=shares, typed=typed)
    return _of_unproven(strong, weak, lead, root, facts)


def _is_shared(each: Identity, facts: IdentityFacts) -> bool:
    return each in facts.known and facts.known[each].is_shared


def _root(strong: list[Identity], facts: IdentityFacts) -> int | None:
    """Return the group that the claims lead to; None if there is none, or only contradiction.

    What is proven to be somebody's leads there before what is only claimed.
    """
    known = [each for each in strong if each in facts.known]
    proven = {facts.known[each].root for each in known if facts.known[each].is_verified}
    if len(proven) > 1:
        return None
    for each in sorted(known, key=lambda one: not facts.known[one].is_verified):
        root = facts.known[each].root
        if not any(_contradicts(other, each, root, facts) for other in strong):
            return root
    return None


def _contradicts(other: Identity, each: Identity, root: int, facts: IdentityFacts) -> bool:
    held = facts.held[root]
    if other in held:
        return False
    if RANKS[other.channel] < RANKS[each.channel]:
        return any((one.kind, one.scope) == (other.kind, other.scope) for one in held)
    return not facts.proven(root) and not fits_one_lead({*held, other})


def _of_unproven(
    strong: list[Identity], weak: list[Identity], lead: int, root: int, facts: IdentityFacts
) -> IdentityPlan:
    """Plan an event of an unproven lead: it gets what is unknown, and the things of no person."""
    attach, held = [], set(() if root == NEW else facts.held[root])
    for each in (each for each in [*strong, *weak] if each not in facts.known):
        if has_room(held, each):
            attach.append(each)
            held.add(each)
    anonymous, things = things_of(weak, (root,), facts)
    taken, refused = adopted(anonymous, (root,), facts)
    shares, typed = _elsewhere(strong, lead, root, facts)
    here = [facts.known[each] for each in [*strong, *weak] if each in facts.known]
    via = {lead, *(each.lead for each in here if each.root in (root, *taken) and not each.is_shared)}
    return IdentityPlan(
        lead, tuple(attach), merges_of((root, *taken), via), refused, (*shares, *things), typed=typed
    )


def _elsewhere(
    strong: list[Identity], lead: int, root: int, facts: IdentityFacts
) -> tuple[tuple[Identity, ...], tuple[Identity, ...]]:
    """Return the claims of other leads that are now shared, and those that are now typed for this one too."""
    shares: list[Identity] = []
    typed: list[Identity] = []
    for each in strong:
        known = facts.known.get(each)
        if known is None or known.is_verified or known.root == root or lead in known.typed_for:
            continue
        (shares if len(known.typed_for) + 2 > LEADS_PER_CLAIM else typed).append(each)
    return tuple(shares), tuple(typed)
