"""Identities, by which leads are recognised: what is known of them, and what a plan may say.

A *thing* is a weak identity: a device or a cookie. Leads that were found to be one make a group; its oldest
lead is the *root*. A group is a *person* if it has a verified strong identity. It is *unproven* if its strong
identities are all claimed, and *anonymous* if it has none.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

# Stands for the lead that the plan creates. Stored leads have numbers from 1; an older lead has a lower one.
NEW = 0
# Why a merge is refused.
KEPT_APART = "kept apart"
TOO_MANY = "too many"
# Why an identity leaves a lead: that lead only claimed it, and another one has proven it.
PROVEN_ELSEWHERE = "proven elsewhere"


@dataclass(frozen=True, slots=True)
class Channel:
    """A kind of identity."""

    name: str
    is_strong: bool
    max_per_lead: int | None  # how many identities of this channel one lead may have; None: any number
    # Whether the external id begins with its scope, `{organization}/{integration}`; the maximum then counts
    # within a scope. Example: customer 42 of acme's shop is `acme/shop/42`.
    is_scoped: bool


CUSTOMER = "customer"
# The channel of highest precedence comes first.
CHANNELS = (
    Channel(CUSTOMER, is_strong=True, max_per_lead=1, is_scoped=True),
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

    def identities(self, root: int) -> frozenset[Identity]:
        """Return the strong identities of a group; a lead that is still to be created has none."""
        return frozenset(() if root == NEW else self.identities_of[root])

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


def fits_one_lead(identities: Iterable[Identity], joined: Iterable[Collection[Identity]] = ()) -> bool:
    """Return whether one lead may have all of these identities.

    joined: those of groups which are one lead already. One of them may have more than channels allow, because
    an operator or a shop has joined them. Then the lead may have as many as that group.
    """
    allowed = Counter[tuple[Channel, str]]()
    for group in joined:
        allowed |= _counts(group)
    return all(
        kind.max_per_lead is None or count <= max(kind.max_per_lead, allowed[kind, scope])
        for (kind, scope), count in _counts(identities).items()
    )


def _counts(identities: Iterable[Identity]) -> Counter[tuple[Channel, str]]:
    return Counter((identity.kind, identity.scope) for identity in set(identities))
