"""What the routes of leads answer for a lead that was erased (docs/rules.md, rule 10).

Whoever reached the lead gets 410. All others get what they get for an unknown lead, which is 404. Otherwise
an id would tell another organization that a lead was erased.
"""

from dataclasses import dataclass

from adapters.privacy.erasure_jobs import ErasureJobs
from adapters.privacy.tombstones import Tombstones
from ingest.leads.lead_views import NO_LEAD
from ingest.web.api import ERASED_REASON
from ingest.web.caller import ApiError, Caller
from rules.privacy.tombstones import lead_subject, organization_subject


@dataclass(frozen=True, slots=True)
class ErasedLeads:
    """The tombstones of leads, and whose leads they were."""

    jobs: ErasureJobs
    tombstones: Tombstones

    def check(self, lead_id: str, caller: Caller, unknown: str = NO_LEAD) -> None:
        """Raise 410 if a lead was erased that the caller reached, 404 if it was another's.

        unknown: what the route says of a lead that it does not know.
        """
        tombstone = self.tombstones.of(lead_subject(lead_id))
        if tombstone is None or not tombstone.stands:
            return
        if self._reaches(caller, tombstone.erasure_id):
            raise ApiError(410, "erased", f"the lead {ERASED_REASON}")
        raise ApiError(404, "not_found", unknown)

    def erasure_of(self, lead_id: str, caller: Caller) -> str | None:
        """Return the erasure whose tombstone stands over a lead, if the caller reached the lead."""
        tombstone = self.tombstones.of(lead_subject(lead_id))
        is_own = tombstone and tombstone.stands and self._reaches(caller, tombstone.erasure_id)
        return tombstone.erasure_id if tombstone and is_own else None

    def _reaches(self, caller: Caller, erasure_id: str) -> bool:
        if erasure := self.jobs.get(erasure_id):
            return caller.reaches(erasure.organization)
        organization = self.jobs.organization_digest(erasure_id)
        return caller.is_admin or organization in {
            self.tombstones.digest(organization_subject(erasure_id, each)) for each in caller.organizations
        }
