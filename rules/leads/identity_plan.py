"""The plan for an event: whose it is, and which leads its identities prove to be one person."""

from collections.abc import Iterable
from dataclasses import dataclass

from rules.leads.identity import (
    KEPT_APART,
    NEW,
    PROVEN_ELSEWHERE,
    RANKS,
    TOO_MANY,
    Identity,
    IdentityFacts,
    IdentityPlan,
    MergeRefusal,
    fits_one_lead,
    has_room,
    in_order,
    merges_of,
)
from rules.leads.identity_claims import plan_claims
from rules.leads.identity_things import adopted_roots, plan_things, things_of, unshared_leads


def considered_identities(identities: Iterable[Identity]) -> tuple[Identity, ...]:
    """Return the identities by precedence, without claims beside what is verified."""
    ordered = in_order(identities)
    if not any(identity.kind.is_strong and identity.is_verified for identity in ordered):
        return ordered
    return tuple(identity for identity in ordered if identity.is_verified or not identity.kind.is_strong)


def plan_identities(identities: Iterable[Identity], facts: IdentityFacts) -> IdentityPlan:
    """Return the plan for an event's identities; their order does not matter.

    Verified strong identities of one event prove that their leads are one, with two exceptions: together the
    leads would have more identities than a channel allows, or an operator has parted two of them. Such
    evidence contradicts itself and proves nothing. Claimed identities prove nothing; in an event that has a
    verified one they are left aside. A weak identity never joins two people. A lead without any strong
    identity is anonymous: when its device turns up with a person, that person adopts it, unless an operator
    has parted the two.

    A lead that has claims alone is unproven: nobody knows that its people are one, or who they are. A person
    who proves one of its claims adopts it, if nothing contradicts that. A claim is taken away from a lead
    that somebody else has proven.

    Raises ValueError for an event without any identity.
    """
    ordered = considered_identities(identities)
    if not ordered:
        raise ValueError("the event has no identity")
    if not ordered[0].kind.is_strong:
        return plan_things(ordered, facts)
    return _plan_person(ordered, facts) if ordered[0].is_verified else plan_claims(ordered, facts)


@dataclass(frozen=True, slots=True)
class _Home:
    """Where a person's event belongs."""

    lead: int
    roots: tuple[int, ...]  # of the groups that are that person, now or after the merges
    verified: frozenset[Identity]  # the verified identities of these groups
    refused: tuple[MergeRefusal, ...] = ()


def _plan_person(ordered: tuple[Identity, ...], facts: IdentityFacts) -> IdentityPlan:
    """Plan an event whose strong identities are all verified: claims beside them were left aside."""
    strong = [identity for identity in ordered if identity.kind.is_strong]
    home = _home(strong, facts)
    claimants, contested = _claimants(strong, home, facts)
    roots = (*home.roots, *claimants)
    attach, proves, takes = _fitting_identities(ordered, home, roots, facts)
    anonymous, shares = things_of(ordered, roots, facts)
    adopted, refused = adopted_roots(anonymous, roots, facts)
    roots = (*roots, *adopted)
    via = {home.lead, *unshared_leads(ordered, roots, facts)}
    refusals = (*home.refused, *contested, *refused)
    return IdentityPlan(
        home.lead, attach, merges_of(roots, via), refusals, shares, proves=proves, takes=takes
    )


def _home(strong: list[Identity], facts: IdentityFacts) -> _Home:
    """Return where the strong identities alone lead: first of all to the person who has proven them."""
    known = [identity for identity in strong if identity in facts.known and facts.known[identity].is_verified]
    if not known:
        return _unproven_home(strong, facts)
    first = facts.known[known[0]]
    roots = tuple(dict.fromkeys(facts.known[identity].root for identity in known))
    verified = frozenset(identity for root in roots for identity in facts.proven(root))
    # The highest identity decides whose event it is, even an unknown one: that lead must have room for it.
    above = [identity for identity in strong if RANKS[identity.channel] < RANKS[known[0].channel]][:1]
    is_parted = facts.parts(roots)
    # One group already, perhaps because an operator joined more than channels allow.
    is_one_group = len(roots) == 1 and not above
    if is_one_group or (fits_one_lead(verified.union(above)) and not is_parted):
        return _Home(first.lead, roots, verified)
    reason = KEPT_APART if is_parted else TOO_MANY
    first_verified = facts.proven(first.root)
    if not above or fits_one_lead(first_verified.union(above)):
        return _Home(first.lead, (first.root,), first_verified, (MergeRefusal(reason, roots),))
    return _Home(NEW, (NEW,), frozenset(), (MergeRefusal(reason, (*roots, NEW)),))


def _unproven_home(strong: list[Identity], facts: IdentityFacts) -> _Home:
    """Return the first unproven lead that claims one of these and contradicts none; else a new one."""
    for identity in strong:
        known = facts.known.get(identity)
        if known and _may_adopt(known.root, strong, facts) and not known.is_shared:
            return _Home(known.lead, (known.root,), frozenset())
    return _Home(NEW, (NEW,), frozenset())


def _may_adopt(root: int, strong: Iterable[Identity], facts: IdentityFacts) -> bool:
    """Return whether a person who has these identities may adopt a group: nobody has proven it."""
    return not facts.proven(root) and fits_one_lead({*facts.identities_of[root], *strong})


def _claimants(
    strong: list[Identity], home: _Home, facts: IdentityFacts
) -> tuple[tuple[int, ...], tuple[MergeRefusal, ...]]:
    """Return the roots of unproven leads that the person adopts, and refusals for what others lose."""
    roots, refused = home.roots, []
    for identity in strong:
        known = facts.known.get(identity)
        if known is None or known.is_verified or known.is_shared or known.root in roots:
            continue
        identities = set(strong)
        for root in roots:
            identities |= set(() if root == NEW else facts.identities_of[root])
        if _may_adopt(known.root, identities, facts) and not facts.parts((*roots, known.root)):
            roots = (*roots, known.root)
        else:
            refused.append(MergeRefusal(PROVEN_ELSEWHERE, (home.roots[0], known.root)))
    return roots[len(home.roots) :], tuple(refused)


def _fitting_identities(
    ordered: tuple[Identity, ...], home: _Home, roots: tuple[int, ...], facts: IdentityFacts
) -> tuple[tuple[Identity, ...], ...]:
    """Return what the person gets, as far as there is room: attach, proves, takes of the plan."""
    attach, proves, takes = [], [], []
    identities = set(home.verified)
    for identity in ordered:
        known = facts.known.get(identity)
        if known and (known.is_verified or not identity.kind.is_strong):
            continue
        if not has_room(identities, identity):
            continue
        identities.add(identity)
        if known is None:
            attach.append(identity)
        elif known.root in roots and not known.is_shared:
            proves.append(identity)
        else:
            takes.append(identity)
    return tuple(attach), tuple(proves), tuple(takes)
