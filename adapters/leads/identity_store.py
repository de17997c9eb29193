"""Who is who: leads, their identities and how they merge, in PostgreSQL (sql/identity).

The everyday event takes one statement: its identities are all known and agree, or none is known, or what is
new are things of a known person (`resolve` in sql/identity/0001_identity.sql). All other events take two:
the first one reads, then we decide (rules/leads/identity.py), and the second one applies
that, if all still is as it was read (`apply_to_facts`). Where others keep changing the same people, it is a
transaction that reads under locks.
Statements suit the driver and the Data API (adapters/postgresql/sql.py).
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

from adapters.leads.identity_records import (
    IdentityChange,
    LeadEventKey,
    Resolution,
    change_of,
    columns_of,
    facts_of,
    plan_of,
    resolution_of,
    seen_of,
)
from adapters.postgresql.sql import Database, PostgresRefused, ask, ask_for_many
from rules.leads.identity import STRONG, Identity, IdentityFacts, considered_identities, plan_identities

# An attempt is lost only when another change to the same group goes through.
ATTEMPTS = 20
# So often we decide without a lock. Each time somebody else's change went through.
PLANS = 3
# What sql/identity raises for a change that cannot be undone: no_data_found and
# object_not_in_prerequisite_state.
UNKNOWN = "P0002"
CANNOT_MEND = (UNKNOWN, "55000")


class CannotMend(ValueError):
    """A merge that cannot be undone, or leads that cannot be merged; the text says why.

    is_unknown: there is no such merge, or no such leads.
    """

    def __init__(self, text: str, *, is_unknown: bool = False) -> None:
        super().__init__(text)
        self.is_unknown = is_unknown


class IdentityStore:
    """Identities of all leads. Methods raise PostgresUnavailable if a later attempt may succeed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def resolve(
        self, organization_id: str, identities: Iterable[Identity], evidence: LeadEventKey, now: datetime
    ) -> Resolution:
        """Find or create the lead of an event, and merge leads that it proves to be one.

        Safe to repeat and to run concurrently. Raises ValueError for an event without an identity.
        """
        ordered = considered_identities(identities)
        # What `resolve` of sql/identity relies on: one lead may have all these identities.
        may_resolve = plan_identities(ordered, IdentityFacts()).attach == ordered
        found = self._database.run(lambda each: _ask(each, organization_id, ordered, may_resolve, now))
        kept = {**asdict(evidence), "identities": [seen_of(each) for each in ordered]}
        for _ in range(PLANS):
            if "resolution" in found:
                return resolution_of(found["resolution"])
            work = partial(_apply, organization_id=organization_id, ordered=ordered, facts=found["facts"])
            found = self._database.run(partial(work, evidence=kept, now=now), attempts=ATTEMPTS)
        if "resolution" in found:
            return resolution_of(found["resolution"])
        decide = partial(_decide, organization_id=organization_id, ordered=ordered, evidence=kept, now=now)
        return resolution_of(self._database.run(decide, attempts=ATTEMPTS))

    def note_announced(self, changes: Collection[IdentityChange]) -> None:
        """Note that their organizations have been told of these changes."""
        values = [[each.organization_id for each in changes], [each.number for each in changes]]
        self._call("announced(%s::text[], %s::bigint[])", values)

    def pending(self, limit: int = 100) -> tuple[IdentityChange, ...]:
        """Return the oldest changes that are not announced yet, of all leads."""
        return tuple(change_of(each) for each in self._call("pending(%s::int)", [limit]))

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
        return tuple(change_of(each) for each in found)

    def merge_by_hand(
        self,
        organizations: list[str] | None,
        leads: tuple[str, str],
        told: Mapping[str, str],
        *,
        unite: bool,
        now: datetime,
    ) -> tuple[int | None, tuple[IdentityChange, ...]]:
        """Merge two leads; returns the change's number, and the changes to be announced. Safe to repeat.

        organizations: those that the caller reaches, None: all. leads: lead_organization_ids. told:
        {"reason", "by"}. unite: also if an operator has parted them, which then is no longer so. The
        number is None if they were one already. Raises CannotMend.
        """
        call = "merge_by_hand(%s::text[], %s::text, %s::text, %s::jsonb, %s::boolean, %s::timestamptz)"
        found = self._mend(call, [organizations, *leads, json.dumps(told), unite, now], ATTEMPTS)
        return found["number"], tuple(change_of(each) for each in found["changes"])

    def lookup(self, organization_id: str, identity: Identity) -> dict[str, Any] | None:
        """Return {lead, root, is_verified} of who has an identity; None if nobody has it, or many do."""
        values = [organization_id, identity.channel, identity.external_id]
        found: dict[str, Any] | None = self._call("lookup(%s::text, %s::text, %s::text)", values)
        return found

    def history(
        self, organizations: list[str] | None, lead: str, before: int | None, most: int
    ) -> list[dict[str, Any]] | None:
        """Return changes that touched a lead, newest first; None if nobody of these organizations has it.

        organizations: None: all. before: the number of a change; None: from the newest on. Each
        {number, kind, at, leads, evidence, announced_at, reversed_by}.
        """
        call = "history(%s::text[], %s::text, %s::bigint, %s::int)"
        values = [organizations, lead, before, most]
        found: list[dict[str, Any]] | None = self._call(call, values)
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
                raise CannotMend(refused.text, is_unknown=refused.sqlstate == UNKNOWN) from None
            raise

    def _call(self, call: str, values: list[Any], attempts: int = 2) -> Any:
        return self._database.run(lambda each: ask_for_many(each, call, values), attempts)


def _ask(
    connection: Any, organization_id: str, ordered: tuple[Identity, ...], may_resolve: bool, now: datetime
) -> Any:
    """Return {"resolution"}; or {"facts"}, if a decision is needed."""
    strong = sum(each.kind.is_strong for each in ordered)
    values = [organization_id, *columns_of(ordered), strong, ordered[0].is_verified, may_resolve]
    call = "resolve_or_facts(%s::text, %s::text[], %s::text[], %s::int, %s::boolean, %s::boolean, %s::text[],"
    return ask(connection, f"{call} %s::timestamptz)", [*values, list(STRONG), now])


def _apply(  # noqa: PLR0913 (what the statement takes)
    connection: Any,
    organization_id: str,
    ordered: tuple[Identity, ...],
    *,
    facts: Any,
    evidence: Any,
    now: datetime,
) -> Any:
    """Decide on facts; returns {"resolution"}, or {"facts"} if they have changed meanwhile."""
    plan = json.dumps(plan_of(plan_identities(ordered, facts_of(facts))))
    values = [organization_id, *columns_of(ordered), list(STRONG), json.dumps(facts), plan]
    call = "apply_to_facts(%s::text, %s::text[], %s::text[], %s::text[], %s::jsonb, %s::jsonb, %s::jsonb,"
    return ask(connection, f"{call} %s::timestamptz)", [*values, json.dumps(evidence), now])


def _decide(
    connection: Any, organization_id: str, ordered: tuple[Identity, ...], evidence: Any, now: datetime
) -> Any:
    with connection.transaction():
        read = "facts(%s::text, %s::text[], %s::text[], %s::text[])"
        facts = ask(connection, read, [organization_id, *columns_of(ordered), list(STRONG)])
        plan = plan_identities(ordered, facts_of(facts))
        apply = "apply(%s::text, %s::jsonb, %s::jsonb, %s::timestamptz)"
        values = [organization_id, json.dumps(plan_of(plan)), json.dumps(evidence), now]
        return ask(connection, apply, values)
