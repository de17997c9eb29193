"""What the database knows of an event's identities, and what is planned for them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from rules.leads.identity.identities import Identity

# Stands for the lead that the plan creates. Stored leads have numbers from 1; an older lead has a lower one.
NEW = 0

# Why a merge is refused.
KEPT_APART = "kept apart"
TOO_MANY = "too many"
# Why an identity leaves a lead: that lead only claimed it, and another one has proven it.
PROVEN_ELSEWHERE = "proven elsewhere"


@dataclass(frozen=True, slots=True)
class KnownIdentity:
    """An identity that the database has.

    lead: the lead that has it. root: the oldest lead of that lead's group. is_shared: whether several people
    use it; its lead then stands for that thing alone. is_verified: whether it is proven to be that lead's.
    typed_for: other leads that it was claimed for.
    """

    lead: int
    root: int
    is_shared: bool = False
    is_verified: bool = True
    typed_for: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class IdentityFacts:
    """What the database knows of an event's identities.

    held: for each root among `known`, the strong identities of its whole group, each as it is held:
    verified or claimed. apart: pairs of these roots; an operator has parted a lead of one group from a
    lead of the other.
    """

    known: Mapping[Identity, KnownIdentity] = field(default_factory=dict)
    held: Mapping[int, Collection[Identity]] = field(default_factory=dict)
    apart: Collection[frozenset[int]] = ()

    def parts(self, roots: Iterable[int]) -> bool:
        """Whether an operator has parted any two of these groups."""
        together = set(roots)
        return any(pair <= together for pair in self.apart)

    def proven(self, root: int) -> frozenset[Identity]:
        """Return the verified identities of a group: those of somebody whom a source has proven."""
        return frozenset(each for each in self.held[root] if each.is_verified)


@dataclass(frozen=True, slots=True)
class Merge:
    """The group of root `absorbed` joins the group of root `into`, an older one.

    via: the leads whose identities came together in the event (undoing depends on them).
    """

    absorbed: int
    into: int
    via: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MergeRefusal:
    """Groups that the event's identities would join, but that must stay apart.

    reason: KEPT_APART (an operator parted them), TOO_MANY (a channel's maximum), or PROVEN_ELSEWHERE. roots:
    the groups' roots before the plan's merges, NEW perhaps among them. The database notes the roots that they
    have after the merges.
    """

    reason: str
    roots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IdentityPlan:
    """What to do about an event's identities.

    lead: the lead that the event belongs to (NEW: create one). attach: unknown identities that this lead
    gets, verified or claimed as they are in the event. merges: to be done in this order. shares:
    identities that become shared, each with a lead of its own from now on. proves: claimed identities that
    are verified now, where they are. takes: those that are verified now and become this lead's. typed:
    claimed identities of others that were typed for this lead.
    """

    lead: int
    attach: tuple[Identity, ...] = ()
    merges: tuple[Merge, ...] = ()
    refused: tuple[MergeRefusal, ...] = ()
    shares: tuple[Identity, ...] = ()
    proves: tuple[Identity, ...] = ()
    takes: tuple[Identity, ...] = ()
    typed: tuple[Identity, ...] = ()
