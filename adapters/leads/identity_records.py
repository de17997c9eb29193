"""What PostgreSQL says of identities and is told of them (sql/identity), as JSON and as our own types."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from rules.leads.identity import Identity, IdentityFacts, IdentityPlan, KnownIdentity
from rules.leads.lead_events import Group


@dataclass(frozen=True, slots=True)
class LeadEventKey:
    """Names an event: `{organization}/{integration}`, and that integration's id of it."""

    source: str
    external_event_id: str


@dataclass(frozen=True, slots=True)
class IdentityChange:
    """A change of who is who that is still to be announced.

    kind: merged or unmerged. groups: all groups that the change touched, as they are after it. told:
    an operator's {"reason", "by"}, else {}.
    """

    number: int
    organization_id: str
    kind: str
    at: datetime
    groups: tuple[Group, ...]
    told: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Resolution:
    """The lead that an event belongs to.

    leaf: the lead_organization_id to keep the event by. root_id: the root of that leaf's group. changes:
    those of this lead's group that are not announced yet, oldest first.
    """

    lead_id: int
    leaf: str
    root_id: str
    changes: tuple[IdentityChange, ...] = ()


def columns_of(ordered: tuple[Identity, ...]) -> list[list[str]]:
    """Return the channels and the external ids."""
    return [[each.channel for each in ordered], [each.external_id for each in ordered]]


def pair_of(each: Identity) -> list[str]:
    """Return channel and external id."""
    return [each.channel, each.external_id]


def seen_of(each: Identity) -> list[Any]:
    """Return an identity as an event has it: channel, external id, whether it proves somebody."""
    return [*pair_of(each), each.is_verified and each.kind.is_strong]


def facts_of(found: Any) -> IdentityFacts:
    """Read what `facts` of sql/identity says."""
    known = {
        Identity(channel, external_id): KnownIdentity(
            lead, root, is_shared, is_verified, frozenset(typed_for)
        )
        for channel, external_id, lead, root, is_shared, is_verified, typed_for in found["known"]
    }
    held: dict[int, set[Identity]] = {each.root: set() for each in known.values()}
    for root, channel, external_id, is_verified in found["held"]:
        held[root].add(Identity(channel, external_id, is_verified))
    return IdentityFacts(known, held, frozenset(frozenset(pair) for pair in found["apart"]))


def plan_of(plan: IdentityPlan) -> dict[str, Any]:
    """Return a plan as `apply` of sql/identity takes it."""
    return {
        "lead": plan.lead,
        "attach": [seen_of(each) for each in plan.attach],
        "merges": [asdict(each) for each in plan.merges],
        "refused": [asdict(each) for each in plan.refused],
        **{
            name: [pair_of(each) for each in listed]
            for name, listed in (
                *(("shares", plan.shares), ("proves", plan.proves)),
                *(("takes", plan.takes), ("typed", plan.typed)),
            )
        },
    }


def resolution_of(found: Any) -> Resolution:
    """Read whose an event is."""
    changes = tuple(change_of(each) for each in found["changes"])
    return Resolution(found["lead_id"], found["leaf"], found["root"], changes)


def change_of(found: Any) -> IdentityChange:
    """Read a change that is still to be announced."""
    organization, at = found["organization"], datetime.fromisoformat(found["at"])
    groups = tuple(
        Group(each["root"], tuple(each["leaves"])) for each in found["announcement"].get(organization, ())
    )
    return IdentityChange(found["number"], organization, found["kind"], at, groups, found["told"])
