"""Who of the leads is erased, and how an erasure begins that a source asks for (docs/rules.md, rule 10)."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from adapters.leads.erasers import IdentityEraser
from adapters.privacy.erasure_jobs import ErasureJobs, begin_erasure
from adapters.privacy.tombstones import ErasureCheck, Tombstones
from rules.leads.identity import Identity
from rules.leads.lead_events import IDENTITY_TYPES, LeadEvent, MalformedLeadEvent, groups_of
from rules.privacy.erasures import Person
from rules.privacy.tombstones import lead_subject


def is_erased(event: LeadEvent, erased: ErasureCheck) -> bool:
    """Return whether an event is of an erased lead. For a change of identity, any lead that it moves counts.

    A malformed change of identity counts as an event of its own lead alone. It is refused when it is read.
    """
    leads = {event.lead_organization_id, event.root_id}
    if event.event_type in IDENTITY_TYPES:
        with suppress(MalformedLeadEvent):
            leads |= {leaf for group in groups_of(event)[1] for leaf in (group.root, *group.leaves)}
    # A device's clock may be ahead. So an event that was received before an erasure was lifted stays refused,
    # even if it claims a later instant.
    happened_at = min(event.occurred_at, event.received_at)
    return any(erased.forbids(lead_subject(lead), happened_at) for lead in leads)


@dataclass(frozen=True, slots=True)
class LeadErasureStarter:
    """Begins the erasure of a lead that an organization names. ErasureFunction continues it."""

    identities: IdentityEraser
    jobs: ErasureJobs
    tombstones: Tombstones

    def begin(
        self, organization: str, identities: Collection[Identity], leaves: Iterable[str], now: datetime
    ) -> str | None:
        """Begin an erasure; returns its id, or None if no lead is found and no customer's id is given.

        identities: as the source names the lead. leaves: leads that the lead's orders have led to. Raises
        ErasureMoved, and the errors of the stores.

        The person is found by the customer's id, else by the address. A phone number is used only if the
        source gives neither: a household shares a number, and nobody else of it may be erased. Tombstones are
        set for the person's stored identities, and for the customer's id even if no lead has it.
        """
        nobody = Person("", organization=organization)  # begin_erasure computes the digests
        ordering_leads = self.identities.person(replace(nobody, leads=tuple(leaves))).leads
        leads = tuple(dict.fromkeys([*ordering_leads, *self._leads_named(nobody, identities)]))
        stored_identities = self.identities.person(replace(nobody, leads=leads)).identities
        customers = _of_channel(identities, "customer")
        all_identities = tuple(dict.fromkeys([*stored_identities, *customers]))
        if not leads and not all_identities:
            return None
        person = replace(nobody, leads=leads, identities=all_identities)
        return begin_erasure(self.jobs, self.tombstones, next(iter(leads), ""), person, now)

    def _leads_named(self, nobody: Person, identities: Collection[Identity]) -> tuple[str, ...]:
        """Return the leads of the first kind of identity that leads to any. nobody: has the organization."""
        customers, emails, phones = (
            _of_channel(identities, channel) for channel in ("customer", "email", "phone")
        )
        for candidates in (customers, emails, () if customers or emails else phones):
            leads = self.identities.person(replace(nobody, identities=candidates)).leads
            if leads:
                return leads
        return ()


def _of_channel(identities: Iterable[Identity], channel: str) -> tuple[tuple[str, str], ...]:
    return tuple((each.channel, each.external_id) for each in identities if each.channel == channel)
