"""The routes by which leads are erased and exported; they are of the function of ingest/privacy_api.py.

Who is who is asked of PostgreSQL. If it sleeps, the first request may take half a minute or end in a 5xx: the
next one finds it awake.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adapters import clock
from adapters.leads.erasers import identity_eraser
from ingest.leads.erased_leads import ErasedLeads
from ingest.leads.lead_schemas import LEAD_ID, LOOKUP
from ingest.leads.lead_views import NO_LEAD
from ingest.leads.spelling import named_identity
from ingest.person_services import (
    ERASURE,
    ERASURE_HELP,
    EXPORT,
    EXPORT_HELP,
    EXPORT_URL_HELP,
    LIFT_RESULT,
    NO_EXPORT,
    PersonRoutes,
    PersonServices,
)
from ingest.web.api import Api
from ingest.web.caller import ApiError, Caller
from ingest.web.json_schema import text
from rules.parts import Part
from rules.privacy.erasures import Person, PersonKind
from rules.privacy.tombstones import identity_subject, lead_subject


@dataclass(frozen=True, slots=True)
class LeadPersons:
    """Leads as persons, for the caller of a route."""

    app: Api
    services: PersonServices

    def caller(self, lead_id: str) -> Caller:
        """Return who calls; raises 400 for a malformed id, and 403."""
        self.app.check_path("lead_id", lead_id)
        caller = self.app.caller()
        caller.check_leads()
        return caller

    def exporter(self, lead_id: str, unknown: str) -> Caller:
        """Return who asks for the export of a lead; raises 403, and 410 or 404 if the lead was erased."""
        caller = self.caller(lead_id)
        self.erased().check(lead_id, caller, unknown)
        return caller

    def erased(self) -> ErasedLeads:
        """Return the erased leads, as they are at this moment."""
        erasures = self.services.erasures
        erasures.tombstones.look()
        return ErasedLeads(erasures.jobs, erasures.tombstones)

    def person(self, lead_id: str, caller: Caller) -> Person:
        """Return whose lead it is; raises 404 if nobody knows it, or the caller does not reach it."""
        lead = Person(self.services.digest(lead_subject(lead_id)), leads=(lead_id,))
        person = identity_eraser(self.services.config.identity_url).person(lead)
        if not person.organization or not caller.reaches(person.organization):
            raise ApiError(404, "not_found", NO_LEAD)
        return person


def add_routes(app: Api, services: Callable[[], PersonServices]) -> None:
    """Add the routes to the function's."""

    @app.route("DELETE /v1/leads/{lead_id}", status=202, answer=ERASURE, more=ERASURE_HELP, part=Part.LEADS)
    def delete_lead(lead_id: str) -> dict[str, Any]:
        """Erase a lead, with all leads that are the same person.

        Addresses, numbers and ids of the person make no lead again, either.
        """
        leads, erasures = LeadPersons(app, services()), services().erasures
        caller = leads.caller(lead_id)
        if erasure_id := leads.erased().erasure_of(lead_id, caller):
            erasure = erasures.view(erasure_id)
        else:
            erasure = erasures.begin(lead_id, leads.person(lead_id, caller), clock.now())
        app.logger.info("erasure", extra={"erasure_id": erasure["erasure_id"]})
        return erasure

    @app.route(
        "POST /v1/leads/{lead_id}/export", status=202, answer=EXPORT, more=EXPORT_HELP, part=Part.LEADS
    )
    def post_lead_export(lead_id: str) -> dict[str, Any]:
        """Ask for everything that is known of a lead, as a ZIP of JSON and CSV."""
        leads = LeadPersons(app, services())
        caller = leads.exporter(lead_id, NO_LEAD)
        organization = leads.person(lead_id, caller).organization
        return services().ask_for_export(caller, PersonKind.LEAD, lead_id, organization)

    @app.route("GET /v1/leads/{lead_id}/export", answer=EXPORT, more=EXPORT_URL_HELP, part=Part.LEADS)
    def get_lead_export(lead_id: str) -> dict[str, Any]:
        """How far the export of a lead is, and where it can be had."""
        caller = LeadPersons(app, services()).exporter(lead_id, NO_EXPORT)
        job = services().exports.get(services().digest(lead_subject(lead_id)), clock.now())
        if job is None or not caller.reaches(job.organization):
            raise ApiError(404, "not_found", NO_EXPORT)
        return services().export_view(job)

    @app.route("POST /v1/leads/lift", body=LOOKUP, answer=LIFT_RESULT, part=Part.LEADS)
    def post_lead_lift() -> dict[str, Any]:
        """Let an erased person's addresses, numbers and ids make a lead anew (admins).

        One of them is named; all that were erased with it are lifted. What happened before is refused for
        good.
        """
        app.admin()
        body = app.body()
        named = named_identity(body, services().config.phone_regions)
        subject = identity_subject(body["organization_id"], named.channel, named.external_id)
        return {"lifted": services().erasures.lift(subject, clock.now())}


ROUTES = PersonRoutes(
    {"identity_url": str, "phone_regions": str}, {"lead_id": text(pattern=LEAD_ID)}, add_routes
)
