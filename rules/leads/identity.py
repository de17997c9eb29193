"""Identities, by which leads are recognised.

A plan (`plan_identities`) says whose event it is, and which leads its identities prove to be one person.
`is_worthless` says which values identify nobody.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

_LOCAL_PARTS = """
test tests tester testing test1 test12 test123 none no nobody noone null nil undefined unknown anonymous n.a
fake foo bar example sample asdf asdfasdf asdfgh qwerty qwertz abc abcd abc123 noemail no-email no_email
nomail no-mail noreply no-reply no_reply donotreply do-not-reply do_not_reply name yourname your-name
your.name user username
"""
# Written on both sides of the @: gmail@gmail.com. Of other words there are people: schmidt@schmidt.example.
_TWICE = "gmail mail email e-mail info hotmail yahoo outlook icloud gmx web"
TWICE, TWICE_SHORT = frozenset(_TWICE.split()), 3
_IDS = "null nil none nan undefined unknown n/a na false true guest anonymous test"
LOCAL_PARTS, IDS = frozenset(_LOCAL_PARTS.split()), frozenset({*_IDS.split(), "[object object]"})
ZEROS = re.compile(r"[0-]+")
# The same digit seven times at the end; all digits in order; the numbers of American films (555-01..).
NUMBERS = re.compile(r"\d*(\d)\1{6}|\d{0,3}(0?1234567890?|9876543210?)|1\d{3}55501\d\d")
# Stands for the lead that the plan creates. Stored leads have numbers from 1; an older lead has a lower one.
NEW = 0
# Why a merge is refused.
KEPT_APART = "kept apart"
TOO_MANY = "too many"
# Why an identity leaves a lead: that lead only claimed it, and another one has proven it.
PROVEN_ELSEWHERE = "proven elsewhere"
LEADS_PER_CLAIM = 3  # for which an identity may be claimed; with one lead more it becomes shared


@dataclass(frozen=True, slots=True)
class Channel:
    """A kind of identity."""

    name: str
    is_strong: bool
    max_per_lead: int | None  # how many identities of this channel one lead may have; None: any number
    # Whether the external id begins with its scope, `{organization}/{integration}`; the maximum then counts
    # within a scope. Example: customer 42 of acme's shop is `acme/shop/42`.
    is_scoped: bool


# The channel of highest precedence comes first.
CHANNELS = (
    Channel("customer", is_strong=True, max_per_lead=1, is_scoped=True),
    Channel("email", is_strong=True, max_per_lead=5, is_scoped=False),
    # Meta's business-scoped user ids: DE.13491208655302741918, and DE.ENT.118... for linked businesses.
    # A person who changes their number gets others; those of before stay theirs.
    Channel("whatsapp", is_strong=True, max_per_lead=20, is_scoped=False),
    Channel("phone", is_strong=True, max_per_lead=3, is_scoped=False),
    Channel("device", is_strong=False, max_per_lead=None, is_scoped=True),
    Channel("cookie", is_strong=False, max_per_lead=None, is_scoped=True),
)
RANKS = {channel.name: rank for rank, channel in enumerate(CHANNELS)}
STRONG = tuple(channel.name for channel in CHANNELS if channel.is_strong)


@dataclass(frozen=True, slots=True)
class Identity:
    """One identity, in its one spelling."""

    channel: str
    external_id: str
    # Whether the source proves that it is this person's; if not, somebody claimed it. It is no part of the
    # identity: the same address, claimed once and proven once, is one identity. Example: the sender of a
    # WhatsApp message is verified, an address typed into a form is claimed.
    is_verified: bool = field(default=True, compare=False)

    @property
    def kind(self) -> Channel:
        """The channel's declaration."""
        return CHANNELS[RANKS[self.channel]]

    @property
    def scope(self) -> str:
        """The scope in which the channel's maximum counts; "" if it counts everywhere."""
        return "/".join(self.external_id.split("/", 2)[:2]) if self.kind.is_scoped else ""


def in_order(identities: Iterable[Identity]) -> tuple[Identity, ...]:
    """Return identities by precedence, each once: verified, if it is verified anywhere among them."""
    once: dict[Identity, Identity] = {}
    for identity in identities:
        if identity.is_verified or identity not in once:
            once[identity] = identity
    return tuple(sorted(once.values(), key=lambda identity: (RANKS[identity.channel], identity.external_id)))


@dataclass(frozen=True, slots=True)
class KnownIdentity:
    """An identity that the database has."""

    lead: int  # the lead that has it
    root: int  # the oldest lead of that lead's group
    is_shared: bool = False  # whether several people use it; its lead then stands for that thing alone
    is_verified: bool = True  # whether it is proven to be that lead's
    typed_for: frozenset[int] = frozenset()  # other leads that it was claimed for


@dataclass(frozen=True, slots=True)
class IdentityFacts:
    """What the database knows of an event's identities."""

    known: Mapping[Identity, KnownIdentity] = field(default_factory=dict)
    # The strong identities of the whole group of each root among `known`, each verified or claimed
    identities_of: Mapping[int, Collection[Identity]] = field(default_factory=dict)
    # Pairs of these roots; an operator has parted a lead of one group from a lead of the other
    apart: Collection[frozenset[int]] = ()

    def parts(self, roots: Iterable[int]) -> bool:
        """Return whether an operator has parted any two of these groups."""
        groups = set(roots)
        return any(pair <= groups for pair in self.apart)

    def proven(self, root: int) -> frozenset[Identity]:
        """Return the verified identities of a group: a source has proven that they are one person's."""
        return frozenset(identity for identity in self.identities_of[root] if identity.is_verified)

    def known_among(self, identities: Iterable[Identity]) -> list[KnownIdentity]:
        """Return what is known of those identities that the database has, in their order."""
        return [self.known[identity] for identity in identities if identity in self.known]


@dataclass(frozen=True, slots=True)
class Merge:
    """The group of root `absorbed` joins the group of root `into`, an older one."""

    absorbed: int
    into: int
    via: tuple[int, ...]  # the leads whose identities came together in the event (undoing depends on them)


@dataclass(frozen=True, slots=True)
class MergeRefusal:
    """Groups that the event's identities would join, but that must stay apart."""

    reason: str  # KEPT_APART (an operator parted them), TOO_MANY (a channel's maximum), or PROVEN_ELSEWHERE
    # The groups' roots before the plan's merges, NEW perhaps among them. The database notes the roots that
    # they have after the merges.
    roots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IdentityPlan:
    """What to do about an event's identities."""

    lead: int  # the lead that the event belongs to (NEW: create one)
    # Unknown identities that this lead gets, verified or claimed as they are in the event
    attach: tuple[Identity, ...] = ()
    merges: tuple[Merge, ...] = ()  # to be done in this order
    refused: tuple[MergeRefusal, ...] = ()
    # Identities that become shared, each with a lead of its own from now on
    shares: tuple[Identity, ...] = ()
    proves: tuple[Identity, ...] = ()  # claimed identities that are verified now, where they are
    takes: tuple[Identity, ...] = ()  # those that are verified now and become this lead's
    typed: tuple[Identity, ...] = ()  # claimed identities of others that were typed for this lead

    @property
    def has_changes(self) -> bool:
        """Whether the plan does more than name a lead that the database has."""
        return self != IdentityPlan(self.lead) or self.lead == NEW


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


def fits_one_lead(identities: Iterable[Identity]) -> bool:
    """Return whether one lead may have all of these identities."""
    counts = Counter((identity.kind, identity.scope) for identity in set(identities))
    return all(kind.max_per_lead is None or count <= kind.max_per_lead for (kind, _), count in counts.items())


def has_room(identities: Iterable[Identity], another: Identity) -> bool:
    """Return whether a lead that has these may get another one.

    There always is room for a thing, even if an operator gave the person more than channels allow.
    """
    return another.kind.max_per_lead is None or fits_one_lead({*identities, another})


def merges_of(roots: Iterable[int], via: Iterable[int]) -> tuple[Merge, ...]:
    """Merge all roots into the oldest one, older roots first."""
    into, *others = sorted(roots, key=_age)
    return tuple(Merge(other, into, tuple(sorted(via, key=_age))) for other in others)


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
    root = _root(strong, facts)
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


def _root(strong: list[Identity], facts: IdentityFacts) -> int | None:
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
    anonymous, things = things_of(weak, (root,), facts)
    taken, refused = adopted_roots(anonymous, (root,), facts)
    shares, typed = _claims_elsewhere(strong, lead, root, facts)
    via = {lead, *_unshared_leads((*strong, *weak), (root, *taken), facts)}
    return IdentityPlan(
        lead, tuple(attach), merges_of((root, *taken), via), refused, (*shares, *things), typed=typed
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


@dataclass(frozen=True, slots=True)
class _Home:
    """Where a person's event belongs."""

    lead: int
    roots: tuple[int, ...]  # of the groups that are that person, now or after the merges
    verified: frozenset[Identity]  # the verified identities of these groups
    refused: tuple[MergeRefusal, ...] = ()


def _plan_person(ordered: tuple[Identity, ...], facts: IdentityFacts) -> IdentityPlan:
    """Plan an event that has a verified strong identity, and no other strong ones."""
    strong = [identity for identity in ordered if identity.kind.is_strong]
    home = _home(strong, facts)
    claimants, contested = _claimants(strong, home, facts)
    roots = (*home.roots, *claimants)
    attach, proves, takes = _fitting_identities(ordered, home, roots, facts)
    anonymous, shares = things_of(ordered, roots, facts)
    things, refused = adopted_roots(anonymous, roots, facts)
    roots = (*roots, *things)
    via = {home.lead, *_unshared_leads(ordered, roots, facts)}
    refusals = (*home.refused, *contested, *refused)
    return IdentityPlan(
        home.lead, attach, merges_of(roots, via), refusals, shares, proves=proves, takes=takes
    )


def _unshared_leads(
    identities: Iterable[Identity], roots: tuple[int, ...], facts: IdentityFacts
) -> Iterable[int]:
    """Return the leads of these groups that have one of the identities, without shared ones."""
    known = facts.known_among(identities)
    return (identity.lead for identity in known if identity.root in roots and not identity.is_shared)


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


def is_worthless(channel: str, external_id: str) -> bool:
    """Return whether an identity, in its one spelling, identifies nobody, though it has the right shape.

    external_id: without its scope. Examples, as forms get them from people in a hurry: test@example.com,
    asdf@asdf.com, 1111111111, a cookie `undefined`. The lists are short on purpose: a value that many people
    type without being listed is caught by the cap of claims (`plan_claims`). People who have a domain of
    their own may be mail@ it, or have their name on both sides: that is an address like any other.
    """
    if channel == "email":
        local, _, domain = external_id.partition("@")
        is_repeated = len(local) > 2 and len(set(local)) == 1
        is_twice = local == domain.partition(".")[0] and (local in TWICE or len(local) <= TWICE_SHORT)
        return local in LOCAL_PARTS or is_repeated or is_twice
    if channel == "phone":
        return NUMBERS.fullmatch(external_id.partition(";")[0]) is not None
    return external_id.lower() in IDS or ZEROS.fullmatch(external_id) is not None
