"""Who is who: leads, their identities and how they merge, in PostgreSQL (sql/identity).

The everyday event takes one statement: its identities are all known and agree, or none is known. All other
events take one transaction: read under locks, decide (rules/leads/identity/identity_plan.py), apply.
Statements suit the driver and the Data API (adapters/postgresql/sql.py).
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from adapters.leads.identity_calls import ask, ask_for_many
from adapters.postgresql.sql import Database, PostgresRefused, PostgresUnavailable
from rules.leads.identity.identities import STRONG, Identity
from rules.leads.identity.identity_facts import IdentityFacts, IdentityPlan, KnownIdentity
from rules.leads.identity.identity_plan import considered, plan_identities
from rules.leads.lead_groups import Group

IdentityUnavailable = PostgresUnavailable
# An attempt is lost only when another change to the same group goes through.
ATTEMPTS = 20
# What sql/identity raises for a change that cannot be undone: no_data_found and
# object_not_in_prerequisite_state.
CANNOT_MEND = ("P0002", "55000")


class CannotMend(ValueError):
    """A merge that cannot be undone, or leads that cannot be merged; the text says why."""


@dataclass(frozen=True, slots=True)
class LeadEventKey:
    """Names an event: `{organization}/{integration}`, and that integration's id of it."""

    source: str
    external_event_id: str


@dataclass(frozen=True, slots=True)
class IdentityChange:
    """A change of who is who that is still to be announced.

    kind: merged or unmerged (joined: a merge of earlier versions, told to one more organization). groups: all
    groups that the change touched, as they are after it. told: an operator's {"reason", "by"}, else {}.
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


class IdentityStore:
    """Identities of all leads. Methods raise IdentityUnavailable if a later attempt may succeed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def resolve(
        self, organization_id: str, identities: Iterable[Identity], evidence: LeadEventKey, now: datetime
    ) -> Resolution:
        """Find or create the lead of an event, and merge leads that it proves to be one.

        Safe to repeat and to run concurrently. Raises ValueError for an event without an identity.
        """
        ordered = considered(identities)
        # The statement relies on this: one lead may have all these identities.
        if plan_identities(ordered, IdentityFacts()).attach == ordered:
            found = self._database.run(lambda each: _resolve(each, organization_id, ordered, now))
            if found is not None:
                return _resolution(found)
        kept = {**asdict(evidence), "identities": [_seen(each) for each in ordered]}
        return _resolution(
            self._database.run(
                lambda each: _decide(each, organization_id, ordered, kept, now), attempts=ATTEMPTS
            )
        )

    def note_announced(self, changes: Collection[IdentityChange]) -> None:
        """Note that their organizations have been told of these changes."""
        values = [[each.organization_id for each in changes], [each.number for each in changes]]
        self._call("announced(%s::text[], %s::bigint[])", values)

    def pending(self, limit: int = 100) -> tuple[IdentityChange, ...]:
        """Return the oldest changes that are not announced yet, of all leads."""
        return tuple(_change(each) for each in self._call("pending(%s::int)", [limit]))

    def unmerge(
        self, organization_id: str | None, change_number: int, reason: str, by: str, now: datetime
    ) -> tuple[IdentityChange, ...]:
        """Undo a merge exactly; returns the changes to be announced of its leads.

        organization_id: whose merge it is; None if an admin did not say, which does if the number tells.
        The two groups that it leaves are kept apart from now on: no event joins a lead of one with a lead of
        the other again. Raises CannotMend: it is no merge, has been undone, or a later merge builds on it.
        If the answer is lost, unmerge does not repeat the call; asking again raises CannotMend, if it was
        undone.
        """
        told = json.dumps({"reason": reason, "by": by})
        call = "unmerge(%s::text, %s::bigint, %s::jsonb, %s::timestamptz)"
        found = self._mend(call, [organization_id, change_number, told, now], attempts=1)
        return tuple(_change(each) for each in found)

    def merge_by_hand(
        self,
        organization_id: str,
        leads: tuple[str, str],
        told: Mapping[str, str],
        *,
        unite: bool,
        now: datetime,
    ) -> tuple[int | None, tuple[IdentityChange, ...]]:
        """Merge two leads; returns the change's number, and the changes to be announced. Safe to repeat.

        leads: lead_organization_ids. told: {"reason", "by"}. unite: also if an operator has parted them,
        which then is no longer so. The number is None if they were one already. Raises CannotMend.
        """
        call = "merge_by_hand(%s::text, %s::text, %s::text, %s::jsonb, %s::boolean, %s::timestamptz)"
        found = self._mend(call, [organization_id, *leads, json.dumps(told), unite, now], ATTEMPTS)
        return found["number"], tuple(_change(each) for each in found["changes"])

    def lookup(self, organization_id: str, identity: Identity) -> dict[str, Any] | None:
        """Return {lead, root, is_verified} of who has an identity; None if nobody has it, or many do."""
        values = [organization_id, identity.channel, identity.external_id]
        found: dict[str, Any] | None = self._call("lookup(%s::text, %s::text, %s::text)", values)
        return found

    def history(self, organization_id: str, lead_organization_id: str) -> list[dict[str, Any]] | None:
        """Return all changes that touched a lead, oldest first; None if the organization has no such lead.

        Each {number, kind, at, leads, evidence, announced_at, reversed_by}.
        """
        found: list[dict[str, Any]] | None = self._call(
            "history(%s::text, %s::text)", [organization_id, lead_organization_id]
        )
        return found

    def forget(self, organization_id: str) -> int:
        """Delete the leads that a smoke test's organization alone knows; returns how many leads it still has.

        The database refuses any other organization.
        """
        return int(self._database.run(lambda each: ask(each, "forget(%s::text)", [organization_id])))

    def _mend(self, call: str, values: list[Any], attempts: int) -> Any:
        try:
            return self._call(call, values, attempts)
        except PostgresRefused as refused:
            if refused.sqlstate in CANNOT_MEND:
                raise CannotMend(refused.text) from None
            raise

    def _call(self, call: str, values: list[Any], attempts: int = 2) -> Any:
        return self._database.run(lambda each: ask_for_many(each, call, values), attempts)


def _resolve(connection: Any, organization_id: str, ordered: tuple[Identity, ...], now: datetime) -> Any:
    strong = sum(each.kind.is_strong for each in ordered)
    values = [organization_id, *_columns(ordered), strong, ordered[0].is_verified, now]
    call = "resolve(%s::text, %s::text[], %s::text[], %s::int, %s::boolean, %s::timestamptz)"
    return ask(connection, call, values)


def _decide(
    connection: Any, organization_id: str, ordered: tuple[Identity, ...], evidence: Any, now: datetime
) -> Any:
    with connection.transaction():
        read = "facts(%s::text, %s::text[], %s::text[], %s::text[])"
        facts = ask(connection, read, [organization_id, *_columns(ordered), list(STRONG)])
        plan = plan_identities(ordered, _facts(facts))
        apply = "apply(%s::text, %s::jsonb, %s::jsonb, %s::timestamptz)"
        values = [organization_id, json.dumps(_plan(plan)), json.dumps(evidence), now]
        return ask(connection, apply, values)


def _columns(ordered: tuple[Identity, ...]) -> list[list[str]]:
    return [[each.channel for each in ordered], [each.external_id for each in ordered]]


def _pair(each: Identity) -> list[str]:
    return [each.channel, each.external_id]


def _seen(each: Identity) -> list[Any]:
    """Return an identity as an event has it: channel, external id, whether it proves somebody."""
    return [*_pair(each), each.is_verified and each.kind.is_strong]


def _facts(found: Any) -> IdentityFacts:
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


def _plan(plan: IdentityPlan) -> dict[str, Any]:
    return {
        "lead": plan.lead,
        "attach": [_seen(each) for each in plan.attach],
        "merges": [asdict(each) for each in plan.merges],
        "refused": [asdict(each) for each in plan.refused],
        **{
            name: [_pair(each) for each in listed]
            for name, listed in (
                *(("shares", plan.shares), ("proves", plan.proves)),
                *(("takes", plan.takes), ("typed", plan.typed)),
            )
        },
    }


def _resolution(found: Any) -> Resolution:
    changes = tuple(_change(each) for each in found["changes"])
    return Resolution(found["lead_id"], found["leaf"], found["root"], changes)


def _change(found: Any) -> IdentityChange:
    organization, at = found["organization"], datetime.fromisoformat(found["at"])
    groups = tuple(
        Group(each["root"], tuple(each["leaves"])) for each in found["announcement"].get(organization, ())
    )
    return IdentityChange(found["number"], organization, found["kind"], at, groups, found["told"])
