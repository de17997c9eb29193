"""Who is who: leads, their identities and how they merge, in PostgreSQL (sql/identity).

- lead: a person as one organization knows it
- leaf: the lead that an event's own identities name
- group: leads that were found to be one
- root: a group's oldest lead

The schema's functions take and return JSON. An event that changes nothing takes one statement, `facts`. An
event that changes something also takes `apply`.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from adapters.postgresql.sql import (
    Database,
    PostgresRefused,
    PostgresUnavailable,
    call_function,
)
from rules.leads.identity import STRONG, Identity, IdentityFacts, IdentityPlan, KnownIdentity
from rules.leads.identity_plan import considered_identities, plan_identities
from rules.leads.lead_events import Group

# An attempt is lost only when another change to the same identities goes through.
ATTEMPTS_MAX = 20
LOST_RACE = "40001"  # the SQLSTATE serialization_failure
# The SQLSTATEs by which sql/identity refuses a repair.
UNKNOWN = "P0002"  # no_data_found
NOT_NOW = "55000"  # object_not_in_prerequisite_state
ALREADY_UNDONE = "55UND"  # a code of our own in that class
APPLY = (
    "apply(%s::text, %s::text[], %s::text[], %s::text[], %s::jsonb, %s::jsonb, %s::jsonb, %s::timestamptz)"
)


@dataclass(frozen=True, slots=True)
class IdentityChange:
    """A change of identity that is still to be announced."""

    number: int
    organization_id: str
    kind: str  # merged or unmerged
    at: datetime
    groups: tuple[Group, ...]  # all groups that the change touched, as they are after it
    note: Mapping[str, str]  # an operator's {"reason", "by"}, else {}


@dataclass(frozen=True, slots=True)
class Resolution:
    """The lead that an event belongs to."""

    lead_id: int
    leaf: str  # the lead_organization_id under which the event is stored
    root_id: str  # the lead_organization_id of the root of that leaf's group
    # Those of this lead's group that are not announced yet, oldest first
    changes: tuple[IdentityChange, ...] = ()


class CannotRepair(ValueError):
    """A merge that cannot be undone, or leads that cannot be merged; the text says why.

    is_unknown: there is no such merge, or no such leads.
    """

    def __init__(self, text: str, *, is_unknown: bool = False) -> None:
        super().__init__(text)
        self.is_unknown = is_unknown


class AlreadyUndone(CannotRepair):
    """The merge to undo has been undone before."""


class IdentityStore:
    """Identities of all leads. Methods raise PostgresUnavailable if a later attempt may succeed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def resolve(
        self,
        organization_id: str,
        identities: Iterable[Identity],
        origin: Mapping[str, str],
        now: datetime,
        *,
        replaces: bool = False,
    ) -> Resolution:
        """Find or create the lead of an event, and merge leads that it proves to be one.

        origin: the event's {"source", "external_event_id"}. replaces: as in plan_identities. Safe to repeat
        and to run concurrently. Raises ValueError for an event without an identity.
        """
        ordered = considered_identities(identities)
        facts_values = [organization_id, *columns_of(ordered), list(STRONG)]
        evidence = json.dumps({**origin, "identities": [identity_json(each) for each in ordered]})
        answer = self._call("facts(%s::text, %s::text[], %s::text[], %s::text[])", facts_values)
        for _ in range(ATTEMPTS_MAX):
            plan = plan_identities(ordered, read_facts(answer["facts"]), replaces=replaces)
            resolution = None if plan.has_changes else answer["resolutions"].get(str(plan.lead))
            if resolution is None:
                # The database applies the plan if these facts are still its facts, and answers a resolution.
                # Otherwise it answers new facts and resolutions, as `facts` does: then there is a new plan.
                facts_and_plan = (json.dumps(answer["facts"]), json.dumps(plan_json(plan)))
                values = [*facts_values, *facts_and_plan, evidence, now]
                answer = self._call(APPLY, values, ATTEMPTS_MAX)
                resolution = answer.get("resolution")
            if resolution is not None:
                return read_resolution(resolution)
        raise PostgresUnavailable(f"other changes were first in {ATTEMPTS_MAX} attempts", LOST_RACE)

    def note_announced(self, changes: Collection[IdentityChange]) -> None:
        """Note that these changes have been announced to their organizations."""
        values = [[change.organization_id for change in changes], [change.number for change in changes]]
        self._call("announced(%s::text[], %s::bigint[])", values)

    def pending(self, limit: int = 100) -> tuple[IdentityChange, ...]:
        """Return the oldest changes that are not announced yet, of all leads."""
        return tuple(read_change(each) for each in self._call("pending(%s::int)", [limit]))

    def unmerge(
        self, organization_id: str | None, change_number: int, reason: str, by: str, now: datetime
    ) -> tuple[IdentityChange, ...]:
        """Undo a merge exactly; returns the changes to be announced of its leads.

        organization_id: whose merge it is; None if an admin has left it out. No event joins a lead of one of
        the two groups with one of the other again. Raises CannotRepair if it is no merge or if a later one
        builds on it, and AlreadyUndone. A call whose answer is lost is not repeated: the caller may.
        """
        note = json.dumps({"reason": reason, "by": by})
        call = "unmerge(%s::text, %s::bigint, %s::jsonb, %s::timestamptz)"
        changes = self._repair(call, [organization_id, change_number, note, now], attempts=1)
        return tuple(read_change(change) for change in changes)

    def merge_by_hand(
        self,
        organizations: list[str] | None,
        leads: tuple[str, str],
        note: Mapping[str, str],
        *,
        unite: bool,
        now: datetime,
    ) -> tuple[int | None, tuple[IdentityChange, ...]]:
        """Merge two leads; returns the change's number, and the changes to be announced. Safe to repeat.

        organizations: those that the caller reaches, None: all. note: {"reason", "by"}. unite: also if an
        operator has parted them. The number is None if they were one already. Raises CannotRepair.
        """
        call = "merge_by_hand(%s::text[], %s::text, %s::text, %s::jsonb, %s::boolean, %s::timestamptz)"
        answer = self._repair(call, [organizations, *leads, json.dumps(note), unite, now], ATTEMPTS_MAX)
        return answer["number"], tuple(read_change(each) for each in answer["changes"])

    def lookup(self, organization_id: str, identity: Identity) -> dict[str, Any] | None:
        """Return {lead, root, is_verified} of an identity's lead; None if nobody has it, or many do."""
        values = [organization_id, identity.channel, identity.external_id]
        owner: dict[str, Any] | None = self._call("lookup(%s::text, %s::text, %s::text)", values)
        return owner

    def history(
        self, organizations: list[str] | None, lead: str, before: int | None, most: int
    ) -> list[dict[str, Any]] | None:
        """Return changes that touched a lead, newest first; None if these organizations have no such lead.

        organizations: None: all. before: the number of a change; None: from the newest on. Each
        {number, kind, at, leads, evidence, announced_at, reversed_by}.
        """
        call = "history(%s::text[], %s::text, %s::bigint, %s::int)"
        values = [organizations, lead, before, most]
        changes: list[dict[str, Any]] | None = self._call(call, values)
        return changes

    def forget(self, organization_id: str) -> int:
        """Delete the leads that a smoke test's organization alone knows; returns how many leads it still has.

        The database refuses any other organization.
        """
        return int(self._call("forget(%s::text)", [organization_id]))

    def _repair(self, call: str, values: list[Any], attempts: int) -> Any:
        try:
            return self._call(call, values, attempts)
        except PostgresRefused as refused:
            if refused.sqlstate == ALREADY_UNDONE:
                raise AlreadyUndone(refused.text) from None
            if refused.sqlstate in (UNKNOWN, NOT_NOW):
                raise CannotRepair(refused.text, is_unknown=refused.sqlstate == UNKNOWN) from None
            raise

    def _call(self, call: str, values: list[Any], attempts: int = 2) -> Any:
        return self._database.run(lambda connection: call_function(connection, call, values), attempts)


def columns_of(identities: tuple[Identity, ...]) -> list[list[str]]:
    """Return the channels and the external ids, each as a list of its own."""
    return [[identity.channel for identity in identities], [identity.external_id for identity in identities]]


def identity_json(identity: Identity) -> list[Any]:
    """Return an identity as an event has it: channel, external id, whether it proves somebody."""
    return [identity.channel, identity.external_id, identity.is_verified and identity.kind.is_strong]


def read_facts(answer: Any) -> IdentityFacts:
    """Read the `facts` that sql/identity answers."""
    identities = {
        Identity(channel, external_id): KnownIdentity(
            lead, root, is_shared, is_verified, frozenset(typed_for)
        )
        for channel, external_id, lead, root, is_shared, is_verified, typed_for in answer["known"]
    }
    by_root: dict[int, set[Identity]] = {identity.root: set() for identity in identities.values()}
    for root, channel, external_id, is_verified in answer["strong"]:
        by_root[root].add(Identity(channel, external_id, is_verified))
    return IdentityFacts(identities, by_root, frozenset(frozenset(pair) for pair in answer["apart"]))


def plan_json(plan: IdentityPlan) -> dict[str, Any]:
    """Return a plan as `apply` of sql/identity takes it."""
    lists = {
        "attach": plan.attach,
        "shares": plan.shares,
        "proves": plan.proves,
        "takes": plan.takes,
        "typed": plan.typed,
    }
    return {
        "lead": plan.lead,
        "merges": [asdict(merge) for merge in plan.merges],
        "refused": [asdict(each) for each in plan.refused],
        **{name: [identity_json(each) for each in listed] for name, listed in lists.items()},
    }


def read_resolution(answer: Any) -> Resolution:
    """Read the lead of an event."""
    changes = tuple(read_change(each) for each in answer["changes"])
    return Resolution(answer["lead_id"], answer["leaf"], answer["root"], changes)


def read_change(answer: Any) -> IdentityChange:
    """Read a change that is still to be announced."""
    organization, at = answer["organization"], datetime.fromisoformat(answer["at"])
    groups = tuple(
        Group(each["root"], tuple(each["leaves"])) for each in answer["announcement"].get(organization, ())
    )
    return IdentityChange(answer["number"], organization, answer["kind"], at, groups, answer["note"])
