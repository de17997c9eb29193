"""Begins the erasure of a lead by what its organization knows it by, as a source asks for it (rule 10)."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from adapters.privacy.erasure_jobs import ErasureJobs, begin_erasure
from adapters.privacy.people_erasers import IdentityEraser
from adapters.privacy.person import Person
from adapters.privacy.tombstones import Tombstones
from rules.leads.identity import Identity


@dataclass(frozen=True, slots=True)
class LeadErasing:
    """Finds whose a source's identities and orders are. The function ErasureFunction goes on with it."""

    identities: IdentityEraser
    jobs: ErasureJobs
    tombstones: Tombstones

    def begin(
        self, organization: str, named: Collection[Identity], leaves: Iterable[str], now: datetime
    ) -> str | None:
        """Begin an erasure; returns its id, or None if nobody is known and no customer is named.

        organization: whose identities are looked up. leaves: leads of it that are known by their orders.
        The best of the named identities that leads to somebody says who it is: the customer's id, else the
        address, and a number only if nothing else is named. A household shares a number, and nobody else of
        it may be erased. Nor do the others come under a tombstone: only the person's own identities do, and
        the customer's id, also if nobody is known by it. Raises ErasureMoved, and what the stores raise.
        """
        customers, emails, phones = (
            tuple((each.channel, each.external_id) for each in named if each.channel == channel)
            for channel in ("customer", "email", "phone")
        )
        leads = self._lead(organization, leaves=tuple(leaves)).leads
        for some in (customers, emails, () if customers or emails else phones):
            if known := self._lead(organization, identities=some).leads:
                leads = tuple(dict.fromkeys([*leads, *known]))
                break
        own = self._lead(organization, leaves=leads).identities
        person = Person(
            "",
            organization=organization,
            leads=leads,
            identities=tuple(dict.fromkeys([*own, *customers])),
        )
        if not person.leads and not person.identities:
            return None
        subject = next(iter(leads), "")
        return begin_erasure(self.jobs, self.tombstones, subject, person, now)

    def _lead(
        self,
        organization: str,
        leaves: tuple[str, ...] = (),
        identities: tuple[tuple[str, str], ...] = (),
    ) -> Person:
        return self.identities.person(
            Person("", organization=organization, leads=leaves, identities=identities)
        )
