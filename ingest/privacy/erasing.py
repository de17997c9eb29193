"""Begins erasures, tells how far they are, and lifts tombstones (rule 10)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.privacy.erasure_jobs import ErasureJobs, Person, begin_erasure
from adapters.privacy.tombstones import Tombstones
from ingest.web.caller import ApiError, Caller
from rules.days import stamp
from rules.privacy.tombstones import lead_subject, lifts, organization_subject


@dataclass(frozen=True, slots=True)
class Erasing:
    """Erasures as their callers see them."""

    jobs: ErasureJobs
    tombstones: Tombstones

    def begin(self, subject: str, person: Person, now: datetime) -> dict[str, Any]:
        """Write tombstones and erasure; returns what `view` does. One that is under way or done is answered.

        subject: the id that was named.
        """
        return self.view(begin_erasure(self.jobs, self.tombstones, subject, person, now))

    def of(self, subject: str) -> dict[str, Any] | None:
        """Return the erasure whose tombstone stands over a subject now, or None."""
        erasure_id = self._standing(subject)
        return self.view(erasure_id) if erasure_id else None

    def of_lead(self, lead_id: str, caller: Caller) -> dict[str, Any] | None:
        """Return what `of` does, to whom the lead's organization was in reach; None to anybody else."""
        erasure_id = self._standing(lead_subject(lead_id))
        return self.view(erasure_id) if erasure_id and self._reaches(caller, erasure_id) else None

    def _standing(self, subject: str) -> str | None:
        found = self.tombstones.look().get(self.tombstones.digest(subject))
        return found.erasure_id if found and found.stands else None

    def _reaches(self, caller: Caller, erasure_id: str) -> bool:
        if erasure := self.jobs.get(erasure_id):
            return caller.reaches(erasure.organization)
        known = self.jobs.organization_digest(erasure_id)
        return caller.is_admin or known in {
            self.tombstones.digest(organization_subject(erasure_id, each)) for each in caller.organizations
        }

    def view(self, erasure_id: str) -> dict[str, Any]:
        """Return how far an erasure is; raises 404."""
        certificate = self.jobs.certificate(erasure_id)
        if certificate:
            return {"erasure_id": erasure_id, "status": "finished", "certificate": certificate}
        erasure = self.jobs.get(erasure_id)
        if erasure is None:
            raise ApiError(404, "not_found", "there is no such erasure")
        about = {
            "started_at": erasure.started_at,
            "found": dict(erasure.found),
            "awaits": list(erasure.awaits),
            "deadline": erasure.deadline,
        }
        return {"erasure_id": erasure_id, "status": "open", **about}

    def lift(self, subject: str, now: datetime) -> int:
        """Lift the tombstone of a subject, with those of the same person; returns how many.

        Raises 409 while the erasure is under way. Safe to repeat.
        """
        known = self.tombstones.look()
        entries = list(lifts(known, self.tombstones.digest(subject), stamp(now)))
        if entries and self.jobs.get(entries[0].erasure_id):
            raise ApiError(409, "erasure_open", "the erasure is not finished yet")
        self.jobs.note(entries)
        return len(entries)

    def stands(self, subject: str) -> bool:
        """Whether a tombstone stands over a subject, at this moment."""
        found = self.tombstones.look().get(self.tombstones.digest(subject))
        return found is not None and found.stands
