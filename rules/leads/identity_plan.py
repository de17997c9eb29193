"""The plan for an event: whose it is, and which leads its identities prove to be one person.

adapters/leads/identity_store.py reads the facts from the database, calls plan_identities, and applies the
plan. In this order: an event of a person whom a source has verified; an event with claims alone; an event
that names nobody. The words person, unproven, anonymous, thing, group and root: see rules/leads/identity.py.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from rules.leads.identity import (
    CUSTOMER,
    KEPT_APART,
    NEW,
    PROVEN_ELSEWHERE,
    RANKS,
    TOO_MANY,
    Identity,
    IdentityFacts,
    IdentityPlan,
    Merge,
    MergeRefusal,
    fits_one_lead,
    in_order,
)

LEADS_PER_CLAIM = 3  # for which an identity may be claimed; with one lead more it becomes shared


def considered_identities(identities: Iterable[Identity]) -> tuple[Identity, ...]:
    """Return the identities by precedence, without claims beside what is verified."""
    ordered = in_order(identities)
    if not any(identity.kind.is_strong and identity.is_verified for identity in ordered):
        return ordered
    return tuple(identity for identity in ordered if identity.is_verified or not identity.kind.is_strong)


def plan_identities(
    identities: Iterable[Identity], facts: IdentityFacts, *, replaces: bool = False
) -> IdentityPlan:
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

    replaces: whether the event says that its identities replace each other (IDENTITY_REPLACED). Then several
    customers of one integration are one person, because the integration has joined them.

    Raises ValueError for an event without any identity.
    """
    ordered = considered_identities(identities)
    if not ordered:
        raise ValueError("the event has no identity")
    if not ordered[0].kind.is_strong:
        return _plan_things(ordered, facts)
    if not ordered[0].is_verified:
        return _plan_claims(ordered, facts)
    customers = (identity for identity in ordered if identity.channel == CUSTOMER)
    return _plan_person(ordered, facts, frozenset(customers if replaces else ()))


@dataclass(frozen=True, slots=True)
class _Home:
    """Where a person's event belongs."""

    lead: int
    roots: tuple[int, ...]  # of the groups that are that person, now or after the merges
    verified: frozenset[Identity]  # the verified identities of these groups
    refused: tuple[MergeRefusal, ...] = ()


@dataclass(frozen=True, slots=True)
class _Adoption:
    """The leads that a person adopts."""

    roots: tuple[int, ...] = ()  # of their groups
    refused: tuple[MergeRefusal, ...] = ()  # for the leads that the person may not adopt
    shares: tuple[Identity, ...] = ()  # things of other people


def _plan_person(
    ordered: tuple[Identity, ...], facts: IdentityFacts, are_one: frozenset[Identity]
) -> IdentityPlan:
    """Plan an event whose strong identities are all verified: claims beside them were left aside.

    are_one: customers of one integration, of which the event says that they are one person. So it is below.
    """
    strong = [identity for identity in ordered if identity.kind.is_strong]
    home = _home(strong, facts, are_one)
    unproven = _adopt_unproven(strong, home, facts, are_one)
    roots = (*home.roots, *unproven.roots)
    things = _adopt_things(ordered, roots, facts)
    return replace(
        _plan_additions(ordered, home, roots, facts, are_one),
        merges=_merges(home.lead, ordered, (*roots, *things.roots), facts),
        refused=(*home.refused, *unproven.refused, *things.refused),
        shares=things.shares,
    )


def _joined(
    groups: Iterable[Collection[Identity]], are_one: frozenset[Identity]
) -> list[frozenset[Identity]]:
    """Return what is one lead already, for fits_one_lead: these groups, and all customers if some are one."""
    joined = [frozenset(group) for group in groups]
    if are_one:
        joined.append(frozenset(each for each in are_one.union(*joined) if each.channel == CUSTOMER))
    return joined


def _home(strong: list[Identity], facts: IdentityFacts, are_one: frozenset[Identity]) -> _Home:
    """Return where the strong identities alone lead: first of all to the person who has proven them."""
    proven = [
        identity for identity in strong if identity in facts.known and facts.known[identity].is_verified
    ]
    if not proven:
        return _unproven_home(strong, facts, are_one)
    first = facts.known[proven[0]]
    roots = tuple(dict.fromkeys(facts.known[identity].root for identity in proven))
    verified = frozenset(identity for root in roots for identity in facts.proven(root))
    # The highest identity decides whose event it is, although nobody has proven it yet: that lead must have
    # room for it.
    higher = [identity for identity in strong if RANKS[identity.channel] < RANKS[proven[0].channel]][:1]
    is_parted = facts.parts(roots)
    # One group already, perhaps because an operator joined more than channels allow.
    is_one_group = len(roots) == 1 and not higher
    joined = _joined(map(facts.proven, roots), are_one)
    if is_one_group or (fits_one_lead(verified.union(higher), joined) and not is_parted):
        return _Home(first.lead, roots, verified)
    # The groups stay apart: the event belongs to the first one, or if that has no room, to a new lead.
    reason = KEPT_APART if is_parted else TOO_MANY
    first_verified = facts.proven(first.root)
    if not higher or fits_one_lead(first_verified.union(higher), _joined([first_verified], are_one)):
        return _Home(first.lead, (first.root,), first_verified, (MergeRefusal(reason, roots),))
    return _Home(NEW, (NEW,), frozenset(), (MergeRefusal(reason, (*roots, NEW)),))


def _unproven_home(strong: list[Identity], facts: IdentityFacts, are_one: frozenset[Identity]) -> _Home:
    """Return the first unproven lead that claims one of these and contradicts none; else a new one."""
    for identity in strong:
        known = facts.known.get(identity)
        if known and _may_adopt(known.root, strong, [], facts, are_one) and not known.is_shared:
            return _Home(known.lead, (known.root,), frozenset())
    return _Home(NEW, (NEW,), frozenset())


def _may_adopt(
    root: int,
    strong: Iterable[Identity],
    roots: Sequence[int],
    facts: IdentityFacts,
    are_one: frozenset[Identity],
) -> bool:
    """Return whether a person may adopt a group: it is unproven, and there is room.

    strong: what the person's event has. roots: of the person's groups.
    """
    groups = [facts.identities(each) for each in (root, *roots)]
    return not facts.proven(root) and fits_one_lead(
        frozenset(strong).union(*groups), _joined(groups, are_one)
    )


def _adopt_unproven(
    strong: list[Identity], home: _Home, facts: IdentityFacts, are_one: frozenset[Identity]
) -> _Adoption:
    """Adopt the unproven leads that claim what the person proves. Other leads lose these claims."""
    roots, refused = home.roots, list[MergeRefusal]()
    for identity in strong:
        known = facts.known.get(identity)
        if known is None or known.is_verified or known.is_shared or known.root in roots:
            continue
        if _may_adopt(known.root, strong, roots, facts, are_one) and not facts.parts((*roots, known.root)):
            roots = (*roots, known.root)
        else:
            refused.append(MergeRefusal(PROVEN_ELSEWHERE, (home.roots[0], known.root)))
    return _Adoption(roots[len(home.roots) :], tuple(refused))


def _plan_additions(
    ordered: tuple[Identity, ...],
    home: _Home,
    roots: tuple[int, ...],
    facts: IdentityFacts,
    are_one: frozenset[Identity],
) -> IdentityPlan:
    """Return a plan with what the person gets, as far as there is room: `attach`, `proves` and `takes`."""
    attach, proves, takes = [], [], []
    identities = set(home.verified)
    for identity in ordered:
        known = facts.known.get(identity)
        if known and (known.is_verified or not identity.kind.is_strong):
            continue  # a person's own already, or a thing, which _adopt_things is for
        if not _has_room(identities, identity, are_one):
            continue
        identities.add(identity)
        if known is None:
            attach.append(identity)
        elif known.root in roots and not known.is_shared:
            proves.append(identity)
        else:
            takes.append(identity)
    return IdentityPlan(home.lead, tuple(attach), proves=tuple(proves), takes=tuple(takes))


def _has_room(
    identities: Collection[Identity], another: Identity, are_one: frozenset[Identity] = frozenset()
) -> bool:
    """Return whether a lead that has these may get another one.

    There always is room for a thing, even if an operator gave the person more than channels allow.
    """
    joined = _joined([identities], are_one)
    return another.kind.max_per_lead is None or fits_one_lead({*identities, another}, joined)


def _adopt_things(ordered: Iterable[Identity], roots: tuple[int, ...], facts: IdentityFacts) -> _Adoption:
    """Adopt the anonymous leads of the event's things. A thing of another person is shared from now on.

    roots: of the event's own person, or of its unproven lead.
    """
    anonymous: dict[int, None] = {}
    shares = []
    for identity in ordered:
        known = facts.known.get(identity)
        if identity.kind.is_strong or known is None or known.is_shared or known.root in roots:
            continue
        if facts.identities(known.root):
            shares.append(identity)
        else:
            anonymous[known.root] = None
    adopted: list[int] = []
    refused: list[MergeRefusal] = []
    for root in anonymous:
        if facts.parts((*roots, *adopted, root)):
            refused.append(MergeRefusal(KEPT_APART, (roots[0], root)))
        else:
            adopted.append(root)
    return _Adoption(tuple(adopted), tuple(refused), tuple(shares))


def _merges(
    lead: int, identities: Iterable[Identity], roots: Iterable[int], facts: IdentityFacts
) -> tuple[Merge, ...]:
    """Merge groups into the oldest one, older ones first. lead: the event's, which is in one of them."""
    oldest, *others = groups = sorted(roots, key=_age)
    known = facts.known_among(identities)
    via = {lead, *(each.lead for each in known if each.root in groups and not each.is_shared)}
    return tuple(Merge(other, oldest, tuple(sorted(via, key=_age))) for other in others)


def _age(lead: int) -> tuple[bool, int]:
    """Return what sorts leads by age, the oldest first. The lead that the plan creates is the youngest."""
    return lead == NEW, lead


def _plan_claims(ordered: Sequence[Identity], facts: IdentityFacts) -> IdentityPlan:
    """Plan an event whose strong identities, the first ones, are all claimed: a form that somebody filled in.

    Claims never make two leads one. They lead to one lead if nothing contradicts that, and change nothing of
    a proven person. These contradict: a higher identity of which the lead has another value (another e-mail
    address under the same number), more values than one person may have, or two claims that two people have
    proven.

    A claimed identity that was typed for more than LEADS_PER_CLAIM leads is nobody's: it becomes shared.
    Example: five people give their own addresses and the number of one switchboard. The first three are leads
    of their own, and the number leads to the first of them. With the fourth address it leads to none.
    """
    claims = [identity for identity in ordered if identity.kind.is_strong]
    weak = [identity for identity in ordered if not identity.kind.is_strong]
    strong = [claim for claim in claims if claim not in facts.known or not facts.known[claim].is_shared]
    if not strong:
        return _plan_things([*weak, *claims], facts)
    root = _group_claimed_by(strong, facts)
    if root is None and all(identity in facts.known for identity in strong):
        return _plan_things(weak, facts) if weak else IdentityPlan(NEW)
    if root is None:
        return _plan_unproven(strong, weak, NEW, NEW, facts)
    lead = next(identity.lead for identity in facts.known_among(strong) if identity.root == root)
    if facts.proven(root):
        return _plan_claims_elsewhere(strong, lead, root, facts)
    return _plan_unproven(strong, weak, lead, root, facts)


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
    """Return whether another claim of the event contradicts the group that one of its claims leads to."""
    group = facts.identities(root)
    if other in group:
        return False
    if RANKS[other.channel] < RANKS[identity.channel]:
        return any((member.kind, member.scope) == (other.kind, other.scope) for member in group)
    return not facts.proven(root) and not fits_one_lead({*group, other}, [group])


def _plan_unproven(
    strong: list[Identity], weak: list[Identity], lead: int, root: int, facts: IdentityFacts
) -> IdentityPlan:
    """Plan an event of an unproven lead: it gets what is unknown, and the things of no person."""
    attach, identities = [], set(facts.identities(root))
    for identity in (*strong, *weak):
        if identity not in facts.known and _has_room(identities, identity):
            attach.append(identity)
            identities.add(identity)
    things = _adopt_things(weak, (root,), facts)
    plan = _plan_claims_elsewhere(strong, lead, root, facts)
    return replace(
        plan,
        attach=tuple(attach),
        merges=_merges(lead, (*strong, *weak), (root, *things.roots), facts),
        refused=things.refused,
        shares=(*plan.shares, *things.shares),
    )


def _plan_claims_elsewhere(
    strong: list[Identity], lead: int, root: int, facts: IdentityFacts
) -> IdentityPlan:
    """Plan what becomes of other leads' claims: some are shared now, others are typed for this lead, too."""
    shares: list[Identity] = []
    typed: list[Identity] = []
    for identity in strong:
        known = facts.known.get(identity)
        if known is None or known.is_verified or known.root == root or lead in known.typed_for:
            continue
        leads = len(known.typed_for) + 2  # its own lead, those that it was typed for, and this one
        (shares if leads > LEADS_PER_CLAIM else typed).append(identity)
    return IdentityPlan(lead, shares=tuple(shares), typed=tuple(typed))


def _plan_things(ordered: Sequence[Identity], facts: IdentityFacts) -> IdentityPlan:
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
