"""Claims in the plan of an event: strong identities that somebody typed, and no source has proven."""

from collections.abc import Sequence

from rules.leads.identity import (
    NEW,
    RANKS,
    Identity,
    IdentityFacts,
    IdentityPlan,
    fits_one_lead,
    has_room,
    merges_of,
)
from rules.leads.identity_things import adopted_roots, plan_things, things_of, unshared_leads

LEADS_PER_CLAIM = 3  # for which an identity may be claimed; with one lead more it becomes shared


def plan_claims(ordered: Sequence[Identity], facts: IdentityFacts) -> IdentityPlan:
    """Plan an event whose strong identities, the first ones, are all claimed: a form that somebody filled in.

    Claims never make two leads one. They lead to one lead if nothing contradicts that, and change nothing of
    a proven person. These contradict: a higher identity of which the lead has another value (another e-mail
    address under the same number), more values than one person may have, or two claims that two people have
    proven.

    A claimed identity that was typed for more than LEADS_PER_CLAIM leads is nobody's: it becomes shared.
    Example: five people give their own addresses and the number of one switchboard. The first three are leads
    of their own, and the number leads to the first of them. With the fourth address it leads to none.
    """
    strong = [identity for identity in ordered if identity.kind.is_strong and not _is_shared(identity, facts)]
    weak = [identity for identity in ordered if not identity.kind.is_strong]
    if not strong:
        return plan_things([*weak, *(identity for identity in ordered if identity.kind.is_strong)], facts)
    root = _group_claimed_by(strong, facts)
    if root is None and all(identity in facts.known for identity in strong):
        return plan_things(weak, facts) if weak else IdentityPlan(NEW)
    if root is None:
        return _plan_unproven(strong, weak, NEW, NEW, facts)
    lead = next(identity.lead for identity in facts.known_among(strong) if identity.root == root)
    if facts.proven(root):
        shares, typed = _claims_elsewhere(strong, lead, root, facts)
        return IdentityPlan(lead, shares=shares, typed=typed)
    return _plan_unproven(strong, weak, lead, root, facts)


def _is_shared(identity: Identity, facts: IdentityFacts) -> bool:
    return identity in facts.known and facts.known[identity].is_shared


def _group_claimed_by(strong: list[Identity], facts: IdentityFacts) -> int | None:
    """Return the root of the group that the claims lead to; None if each group contradicts them.

    Identities that are proven to be somebody's are tried before those that are only claimed.
    """
    known = [identity for identity in strong if identity in facts.known]
    proven = {identity.root for identity in facts.known_among(strong) if identity.is_verified}
    if len(proven) > 1:
        return None
    for identity in sorted(known, key=lambda candidate: not facts.known[candidate].is_verified):
        root = facts.known[identity].root
        if not any(_contradicts(other, identity, root, facts) for other in strong):
            return root
    return None


def _contradicts(other: Identity, identity: Identity, root: int, facts: IdentityFacts) -> bool:
    """Return whether another identity of the event forbids that this one leads to its group."""
    group = facts.identities_of[root]
    if other in group:
        return False
    if RANKS[other.channel] < RANKS[identity.channel]:
        return any((member.kind, member.scope) == (other.kind, other.scope) for member in group)
    return not facts.proven(root) and not fits_one_lead({*group, other})


def _plan_unproven(
    strong: list[Identity], weak: list[Identity], lead: int, root: int, facts: IdentityFacts
) -> IdentityPlan:
    """Plan an event of an unproven lead: it gets what is unknown, and the things of no person."""
    attach, identities = [], set(() if root == NEW else facts.identities_of[root])
    for identity in (*strong, *weak):
        if identity not in facts.known and has_room(identities, identity):
            attach.append(identity)
            identities.add(identity)
    anonymous, shared_things = things_of(weak, (root,), facts)
    taken, refused = adopted_roots(anonymous, (root,), facts)
    shares, typed = _claims_elsewhere(strong, lead, root, facts)
    via = {lead, *unshared_leads((*strong, *weak), (root, *taken), facts)}
    return IdentityPlan(
        lead, tuple(attach), merges_of((root, *taken), via), refused, (*shares, *shared_things), typed=typed
    )


def _claims_elsewhere(
    strong: list[Identity], lead: int, root: int, facts: IdentityFacts
) -> tuple[tuple[Identity, ...], tuple[Identity, ...]]:
    """Return the claims of other leads that are now shared, and those that are now typed for this one too."""
    shares: list[Identity] = []
    typed: list[Identity] = []
    for identity in strong:
        known = facts.known.get(identity)
        if known is None or known.is_verified or known.root == root or lead in known.typed_for:
            continue
        leads = len(known.typed_for) + 2  # its own lead, those that it was typed for, and this one
        (shares if leads > LEADS_PER_CLAIM else typed).append(identity)
    return tuple(shares), tuple(typed)
