"""Decides whose event it is, and which leads its identities prove to be one person.

Strong identities of one event prove that their leads are one, with two exceptions: together the leads would
have more identities than a channel allows, or an operator has parted two of them. Such evidence contradicts
itself and proves nothing. A weak identity never joins two people. A lead without any strong identity is
anonymous: when its device turns up with a person, that person adopts it, unless an operator has parted the
two.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rules.leads.identity.identities import RANKS, Identity, in_order
from rules.leads.identity.identity_facts import (
    KEPT_APART,
    NEW,
    TOO_MANY,
    IdentityFacts,
    IdentityPlan,
    Merge,
    MergeRefusal,
)


def plan_identities(identities: Iterable[Identity], facts: IdentityFacts) -> IdentityPlan:
    """Return the plan for an event's identities; their order does not matter.

    Raises ValueError for an event without any.
    """
    ordered = in_order(identities)
    if not ordered:
        raise ValueError("the event has no identity")
    if ordered[0].kind.is_strong:
        return _of_person(ordered, facts)
    return _of_things(ordered, facts)


def fits_one_lead(identities: Iterable[Identity]) -> bool:
    """Whether one lead may have all of these (different) identities."""
    counts = Counter((each.kind, each.scope) for each in set(identities))
    return all(kind.max_per_lead is None or count <= kind.max_per_lead for (kind, _), count in counts.items())


def _of_things(ordered: tuple[Identity, ...], facts: IdentityFacts) -> IdentityPlan:
    """Plan an event without a strong identity.

    It belongs to a known thing that is not shared; else to a new lead, if an identity is unknown; else to a
    shared thing.
    """
    unknown = tuple(each for each in ordered if each not in facts.known)
    known = [facts.known[each] for each in ordered if each in facts.known]
    unshared = [each.lead for each in known if not each.is_shared]
    if unshared:
        return IdentityPlan(unshared[0], unknown)
    return IdentityPlan(NEW, unknown) if unknown else IdentityPlan(known[0].lead)


@dataclass(frozen=True, slots=True)
class _Home:
    """Where a person's event belongs. roots: of the groups that are that person, now or after the merges."""

    lead: int
    roots: tuple[int, ...]
    held: frozenset[Identity]
    refused: tuple[MergeRefusal, ...] = ()


def _of_person(ordered: tuple[Identity, ...], facts: IdentityFacts) -> IdentityPlan:
    home = _home([each for each in ordered if each.kind.is_strong], facts)
    attach, held = [], set(home.held)
    for each in (each for each in ordered if each not in facts.known):
        if fits_one_lead({*held, each}):
            attach.append(each)
            held.add(each)
    anonymous, shares = _things(ordered, home, facts)
    adopted, refused = _adopted(anonymous, home, facts)
    roots = (*home.roots, *adopted)
    here = [facts.known[each] for each in ordered if each in facts.known]
    via = {home.lead, *(each.lead for each in here if each.root in roots and not each.is_shared)}
    return IdentityPlan(home.lead, tuple(attach), _merges(roots, via), (*home.refused, *refused), shares)


def _merges(roots: Iterable[int], via: Iterable[int]) -> tuple[Merge, ...]:
    """Merge all roots into the oldest one, older roots first."""
    into, *others = sorted(roots, key=_age)
    return tuple(Merge(each, into, tuple(sorted(via, key=_age))) for each in others)


def _age(lead: int) -> tuple[bool, int]:
    return lead == NEW, lead


def _home(strong: list[Identity], facts: IdentityFacts) -> _Home:
    """Tell whose event it is from the strong identities alone."""
    known = [each for each in strong if each in facts.known]
    if not known:
        return _Home(NEW, (NEW,), frozenset())
    first = facts.known[known[0]]
    roots = tuple(dict.fromkeys(facts.known[each].root for each in known))
    whole = frozenset(each for root in roots for each in facts.held[root])
    # The highest identity decides whose event it is, even an unknown one: that lead must have room for it.
    above = [each for each in strong if RANKS[each.channel] < RANKS[known[0].channel]][:1]
    is_parted = facts.parts(roots)
    if fits_one_lead(whole.union(above)) and not is_parted:
        return _Home(first.lead, roots, whole)
    reason = KEPT_APART if is_parted else TOO_MANY
    theirs = frozenset(facts.held[first.root])
    if fits_one_lead(theirs.union(above)):
        return _Home(first.lead, (first.root,), theirs, (MergeRefusal(reason, roots),))
    return _Home(NEW, (NEW,), frozenset(), (MergeRefusal(reason, (*roots, NEW)),))


def _things(
    ordered: tuple[Identity, ...], home: _Home, facts: IdentityFacts
) -> tuple[tuple[int, ...], tuple[Identity, ...]]:
    """Return the roots of the anonymous leads that the event's things have, and the things to be shared.

    A thing is shared from now on if it belonged to another person so far.
    """
    anonymous: dict[int, None] = {}
    shares = []
    for each in ordered:
        known = facts.known.get(each)
        if each.kind.is_strong or known is None or known.is_shared or known.root in home.roots:
            continue
        if facts.held[known.root]:
            shares.append(each)
        else:
            anonymous[known.root] = None
    return tuple(anonymous), tuple(shares)


def _adopted(
    anonymous: Iterable[int], home: _Home, facts: IdentityFacts
) -> tuple[tuple[int, ...], tuple[MergeRefusal, ...]]:
    """Return the roots of anonymous leads that the person adopts, and those that an operator has parted."""
    adopted: list[int] = []
    refused: list[MergeRefusal] = []
    for root in anonymous:
        if facts.parts((*home.roots, *adopted, root)):
            refused.append(MergeRefusal(KEPT_APART, (home.roots[0], root)))
        else:
            adopted.append(root)
    return tuple(adopted), tuple(refused)
