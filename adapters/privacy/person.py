"""Whom the erasers and the export look for, in every form that a store may know them by."""

from collections.abc import Iterator
from dataclasses import dataclass

from rules.privacy.tombstones import identity_subject, lead_subject, user_subject


@dataclass(frozen=True, slots=True)
class Person:
    """A user, or a lead with all its leaves.

    digest: the keyed hash of the id that was named. hashes: under which a user's answers are. leads:
    lead_organization_ids. identities: (channel, external id) of these leads, in their organization.
    """

    digest: str

    user_id: str = ""
    hashes: tuple[str, ...] = ()
    organization: str = ""
    leads: tuple[str, ...] = ()
    identities: tuple[tuple[str, str], ...] = ()

    def subjects(self) -> Iterator[str]:
        """Yield what is hashed for tombstones."""
        if self.user_id:
            yield user_subject(self.user_id)
        yield from map(lead_subject, self.leads)
        yield from (identity_subject(self.organization, *each) for each in self.identities)
