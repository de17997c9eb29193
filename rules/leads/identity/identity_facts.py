"""What is known of an event's identities, and what is planned for them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from rules.leads.identity.identities import Identity

# The lead that the plan creates; all others have numbers from 1, and an older lead has a lower one.
NEW = 0

# Why a merge is refused.
KEPT_APART = "kept apart"
TOO_MANY = "too many"


@dataclass(frozen=True, slots=True)
class KnownIdentity:
    """A known identity. lead: whose it is; root: the oldest lead of that lead's group.

    is_shared: it is a thing of several people, and its lead is of that thing alone.
    """

    lead: int
    root: int
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class IdentityFacts:
    """What is known. held: for each root among `known`, the strong identities of its whole group.

    apart: pairs of these roots whose groups hold leads that an operator has parted.
    """

    known: Mapping[Identity, KnownIdentity] = field(default_factory=dict)
    held: Mapping[int, Collection[Identity]] = field(default_factory=dict)
    apart: Collection[frozenset[int]] = ()

    def parts(self, roots: Iterable[int]) -> bool:
        """Whether an operator has parted any two of these groups."""
        together = set(roots)
        return any(pair <= together for pair in self.apart)


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
    """Groups that the evidence joins and something keeps apart.

    reason: KEPT_APART (by an operator) or TOO_MANY (by a channel's maximum). roots: NEW may be among them;
    named before the merges, and noted by what they are after them.
    """

    reason: str
    roots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IdentityPlan:
    """What an event's identities come to.

    lead: the leaf whose event it is (NEW: one to create). attach: unknown identities that become that
    leaf's. merges: in this order. shares: weak identities that become shared, each with a lead of its own
    from now on.
    """

    lead: int
    attach: tuple[Identity, ...] = ()
    merges: tuple[Merge, ...] = ()
    refused: tuple[MergeRefusal, ...] = ()
    shares: tuple[Identity, ...] = ()
