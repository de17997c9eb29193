"""Things (devices and cookies) in the plan of an event: whose they are, and who adopts anonymous leads."""

from collections.abc import Iterable, Sequence

from rules.leads.identity import KEPT_APART, NEW, Identity, IdentityFacts, IdentityPlan, MergeRefusal


def things_of(
    ordered: Iterable[Identity], roots: tuple[int, ...], facts: IdentityFacts
) -> tuple[tuple[int, ...], tuple[Identity, ...]]:
    """Return the roots of the anonymous leads that the event's things have, and the things to be shared.

    A thing is shared from now on if it belonged to another person so far. roots: the event's own person.
    """
    anonymous: dict[int, None] = {}
    shares = []
    for identity in ordered:
        known = facts.known.get(identity)
        if identity.kind.is_strong or known is None or known.is_shared or known.root in roots:
            continue
        if facts.identities_of[known.root]:
            shares.append(identity)
        else:
            anonymous[known.root] = None
    return tuple(anonymous), tuple(shares)


def adopted_roots(
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


def plan_things(ordered: Sequence[Identity], facts: IdentityFacts) -> IdentityPlan:
    """Plan an event that names nobody: it has things alone, or values that many people typed.

    It belongs to the lead of a known thing that is not shared; else to a new lead, if an identity is unknown;
    else to that of a shared thing.
    """
    unknown = tuple(identity for identity in ordered if identity not in facts.known)
    known = facts.known_among(ordered)
    unshared_leads = [identity.lead for identity in known if not identity.is_shared]
    if unshared_leads:
        return IdentityPlan(unshared_leads[0], unknown)
    return IdentityPlan(NEW, unknown) if unknown else IdentityPlan(known[0].lead)


def unshared_leads(
    identities: Iterable[Identity], roots: tuple[int, ...], facts: IdentityFacts
) -> Iterable[int]:
    """Return the leads of these groups that have one of the identities, without shared ones."""
    known = facts.known_among(identities)
    return (identity.lead for identity in known if identity.root in roots and not identity.is_shared)
