"""Whose event it is: what one event's identities prove, decided from what is known of them.

Strong identities of one event prove that their leads are one, unless together they would have more
identities than a channel allows, or an operator has parted two of them: contradictory evidence proves
nothing. A weak identity never joins two people; a lead that nothing strong is known of is adopted by whom
its device turns up with, unless an operator has parted these two.
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
    """Return what an event's identities come to; their order does not matter. Raises ValueError for none."""
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
    """Nothing strong: it belongs to a thing that is not shared, else to a new lead, else to a shared one."""
    unknown = tuple(each for each in ordered if each not in facts.known)
    known = [facts.known[each] for each in ordered if each in facts.known]
    unshared = [each.lead for each in known if not each.is_shared]
    if unshared:
        return IdentityPlan(unshared[0], unknown)
    return IdentityPlan(NEW, unknown) if unknown else IdentityPlan(known[0].lead)


@dataclass(frozen=True, slots=True)
class _Home:
    """Where a person's event belongs. roots: of the groups that are, or become, that person's."""

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
    """All join the oldest, the oldest first."""
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
    # An unknown identity of a higher channel than all known ones decides whose event it is.
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
    """Return the roots of anonymous leads that turned up, and which weak identities become shared."""
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
    """Return which of these roots are adopted, in this order, and what an operator's parting refuses."""
    adopted: list[int] = []
    refused: list[MergeRefusal] = []
    for root in anonymous:
        if facts.parts((*home.roots, *adopted, root)):
            refused.append(MergeRefusal(KEPT_APART, (home.roots[0], root)))
        else:
            adopted.append(root)
    return tuple(adopted), tuple(refused)
