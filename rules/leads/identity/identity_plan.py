"""Decides whose event it is, and which leads its identities prove to be one person.

Verified strong identities of one event prove that their leads are one, with two exceptions: together the
leads would have more identities than a channel allows, or an operator has parted two of them. Such evidence
contradicts itself and proves nothing. Claimed identities prove nothing (identity_claims.py); in an event that
has a verified one they are left aside. A weak identity never joins two people. A lead without any strong
identity is anonymous: when its device turns up with a person, that person adopts it, unless an operator has
parted the two.

A lead that holds claims alone is unproven: nobody knows that its people are one, or who they are. Whoever
proves one of its claims adopts it, if nothing contradicts that. Of a lead that somebody else has proven he
takes the claim away.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from rules.leads.identity.identities import RANKS, Identity, in_order
from rules.leads.identity.identity_claims import plan_claims
from rules.leads.identity.identity_facts import (
    KEPT_APART,
    NEW,
    PROVEN_ELSEWHERE,
    TOO_MANY,
    IdentityFacts,
    IdentityPlan,
    MergeRefusal,
)
from rules.leads.identity.identity_merges import adopted, fits_one_lead, has_room, merges_of, things_of
from rules.leads.identity.thing_plan import plan_things


def considered(identities: Iterable[Identity]) -> tuple[Identity, ...]:
    """Return the identities by precedence, without claims beside what is verified."""
    ordered = in_order(identities)
    if not any(each.kind.is_strong and each.is_verified for each in ordered):
        return ordered
    return tuple(each for each in ordered if each.is_verified or not each.kind.is_strong)


def plan_identities(identities: Iterable[Identity], facts: IdentityFacts) -> IdentityPlan:
    """Return the plan for an event's identities; their order does not matter.

    Raises ValueError for an event without any.
    """
    ordered = considered(identities)
    if not ordered:
        raise ValueError("the event has no identity")
    if not ordered[0].kind.is_strong:
        return plan_things(ordered, facts)
    return _of_person(ordered, facts) if ordered[0].is_verified else plan_claims(ordered, facts)


@dataclass(frozen=True, slots=True)
class _Home:
    """Where a person's event belongs. roots: of the groups that are that person, now or after the merges.

    held: the verified identities of these groups.
    """

    lead: int
    roots: tuple[int, ...]
    held: frozenset[Identity]
    refused: tuple[MergeRefusal, ...] = ()


def _of_person(ordered: tuple[Identity, ...], facts: IdentityFacts) -> IdentityPlan:
    strong = [each for each in ordered if each.kind.is_strong]
    home = _home(strong, facts)
    claimants, contested = _claimants(strong, home, facts)
    roots = (*home.roots, *claimants)
    attach, proves, takes = _rooms(ordered, home, roots, facts)
    anonymous, shares = things_of(ordered, roots, facts)
    things, refused = adopted(anonymous, roots, facts)
    roots = (*roots, *things)
    here = [facts.known[each] for each in ordered if each in facts.known]
    via = {home.lead, *(each.lead for each in here if each.root in roots and not each.is_shared)}
    refusals = (*home.refused, *contested, *refused)
    return IdentityPlan(
        home.lead, attach, merges_of(roots, via), refusals, shares, proves=proves, takes=takes
    )


def _home(strong: list[Identity], facts: IdentityFacts) -> _Home:
    """Tell whose event it is from the strong identities alone: that of who has proven them, first of all."""
    known = [each for each in strong if each in facts.known and facts.known[each].is_verified]
    if not known:
        return _unproven_home(strong, facts)
    first = facts.known[known[0]]
    roots = tuple(dict.fromkeys(facts.known[each].root for each in known))
    whole = frozenset(each for root in roots for each in facts.proven(root))
    # The highest identity decides whose event it is, even an unknown one: that lead must have room for it.
    above = [each for each in strong if RANKS[each.channel] < RANKS[known[0].channel]][:1]
    is_parted = facts.parts(roots)
    is_settled = (
        len(roots) == 1 and not above
    )  # perhaps by an operator, who may join more than channels allow
    if is_settled or (fits_one_lead(whole.union(above)) and not is_parted):
        return _Home(first.lead, roots, whole)
    reason = KEPT_APART if is_parted else TOO_MANY
    theirs = facts.proven(first.root)
    if not above or fits_one_lead(theirs.union(above)):
        return _Home(first.lead, (first.root,), theirs, (MergeRefusal(reason, roots),))
    return _Home(NEW, (NEW,), frozenset(), (MergeRefusal(reason, (*roots, NEW)),))


def _unproven_home(strong: list[Identity], facts: IdentityFacts) -> _Home:
    """Return the first unproven lead that claims one of these and contradicts none; else a new one."""
    for each in strong:
        known = facts.known.get(each)
        if known and _may_adopt(known.root, strong, facts) and not known.is_shared:
            return _Home(known.lead, (known.root,), frozenset())
    return _Home(NEW, (NEW,), frozenset())


def _may_adopt(root: int, strong: Iterable[Identity], facts: IdentityFacts) -> bool:
    return not facts.proven(root) and fits_one_lead({*facts.held[root], *strong})


def _claimants(
    strong: list[Identity], home: _Home, facts: IdentityFacts
) -> tuple[tuple[int, ...], tuple[MergeRefusal, ...]]:
    """Return the roots of unproven leads that the person adopts, and who loses what he claimed."""
    roots, refused = home.roots, []
    for each in strong:
        known = facts.known.get(each)
        if known is None or known.is_verified or known.is_shared or known.root in roots:
            continue
        everything = {*strong, *(one for root in roots if root != NEW for one in facts.held[root])}
        if _may_adopt(known.root, everything, facts) and not facts.parts((*roots, known.root)):
            roots = (*roots, known.root)
        else:
            refused.append(MergeRefusal(PROVEN_ELSEWHERE, (home.roots[0], known.root)))
    return roots[len(home.roots) :], tuple(refused)


def _rooms(
    ordered: tuple[Identity, ...], home: _Home, roots: tuple[int, ...], facts: IdentityFacts
) -> tuple[tuple[Identity, ...], ...]:
    """Return what the person gets, as far as there is room: attach, proves, takes of the plan."""
    attach, proves, takes = [], [], []
    held = set(home.held)
    for each in ordered:
        known = facts.known.get(each)
        if (known and (known.is_verified or not each.kind.is_strong)) or not has_room(held, each):
            continue
        held.add(each)
        if known is None:
            attach.append(each)
        elif known.root in roots and not known.is_shared:
            proves.append(each)
        else:
            takes.append(each)
    return tuple(attach), tuple(proves), tuple(takes)
