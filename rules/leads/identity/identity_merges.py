"""What one lead may hold, which groups become one, and whose the things of an event are."""

from collections import Counter
from collections.abc import Iterable

from rules.leads.identity.identities import Identity
from rules.leads.identity.identity_facts import KEPT_APART, NEW, IdentityFacts, Merge, MergeRefusal


def fits_one_lead(identities: Iterable[Identity]) -> bool:
    """Whether one lead may have all of these (different) identities."""
    counts = Counter((each.kind, each.scope) for each in set(identities))
    return all(kind.max_per_lead is None or count <= kind.max_per_lead for (kind, _), count in counts.items())


def has_room(held: Iterable[Identity], each: Identity) -> bool:
    """Whether a lead that holds these may get one more.

    For a thing there always is room, also with a person whom an operator gave more than channels allow.
    """
    return each.kind.max_per_lead is None or fits_one_lead({*held, each})


def merges_of(roots: Iterable[int], via: Iterable[int]) -> tuple[Merge, ...]:
    """Merge all roots into the oldest one, older roots first."""
    into, *others = sorted(roots, key=_age)
    return tuple(Merge(each, into, tuple(sorted(via, key=_age))) for each in others)


def _age(lead: int) -> tuple[bool, int]:
    return lead == NEW, lead


def things_of(
    ordered: Iterable[Identity], roots: tuple[int, ...], facts: IdentityFacts
) -> tuple[tuple[int, ...], tuple[Identity, ...]]:
    """Return the roots of the anonymous leads that the event's things have, and the things to be shared.

    A thing is shared from now on if it belonged to another person so far. roots: the event's own person.
    """
    anonymous: dict[int, None] = {}
    shares = []
    for each in ordered:
        known = facts.known.get(each)
        if each.kind.is_strong or known is None or known.is_shared or known.root in roots:
            continue
        if facts.held[known.root]:
            shares.append(each)
        else:
            anonymous[known.root] = None
    return tuple(anonymous), tuple(shares)


def adopted(
    anonymous: Iterable[int], roots: tuple[int, ...], facts: IdentityFacts
) -> tuple[tuple[int, ...], tuple[MergeRefusal, ...]]:
    """Return the roots of anonymous leads that the person adopts, and those that an operator has parted."""
    taken: list[int] = []
    refused: list[MergeRefusal] = []
    for root in anonymous:
        if facts.parts((*roots, *taken, root)):
            refused.append(MergeRefusal(KEPT_APART, (roots[0], root)))
        else:
            taken.append(root)
    return tuple(taken), tuple(refused)
