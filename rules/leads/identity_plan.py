"""The plan for an event: whose it is, and which leads its identities prove to be one person."""

from collections.abc import Iterable, Sequence
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

LEADS_PER_CLAIM = 3  # for which an identity may be claimed; with one lead more it becomes shared


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
