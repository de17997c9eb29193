"""What an operator asks and does about who is who: find a lead, see its changes, merge by hand.

These routes speak to PostgreSQL themselves, so that the operator hears at once what is refused. If the
database sleeps, the first request may take half a minute or end in a 5xx: the next one finds it awake.
"""

import re
from dataclasses import dataclass
from typing import Any

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.leads.identity_store import CannotRepair, IdentityStore
from adapters.leads.lead_queue import LeadPayloads, LeadQueue
from adapters.postgresql.postgres import database
from adapters.postgresql.sql import PostgresUnavailable
from adapters.privacy.erasure_jobs import ErasureJobs
from adapters.privacy.tombstones import tombstones_of
from ingest.leads.erased_leads import ErasedLeads
from ingest.leads.lead_schemas import ANNOUNCE_COMMAND, LEAD_ID, LOOKUP, MERGE
from ingest.leads.lead_views import NO_LEAD
from ingest.leads.spelling import named_identity
from ingest.web.api import Allowance, Api
from ingest.web.caller import ApiError, Caller
from ingest.web.json_schema import text
from ingest.web.paging import LIMIT_DEFAULT, LIMIT_MAX, cursor_of, cursor_refusal, integer, page
from ingest.web.routes import POSITION
from rules.parts import Part

NO_PAIR = "there are no such two leads of one organization"  # as merge_by_hand says
NUMBER = re.compile(r"\d{1,18}", re.ASCII)  # of a change, a bigint
# The database of identities may sleep (docs/decisions/0013).
WHEN_ASLEEP = (
    "After a pause the database wakes up first: a 5xx within the first minute means that you try again."
)

app = Api("IdentityApi", {"lead_id": text(pattern=LEAD_ID)}, PostgresUnavailable, part=Part.LEADS)
logger, handler = app.logger, app.handler


@dataclass(frozen=True, slots=True)
class IdentityApiSettings(Allowance):
    """Settings of this function."""

    identity_url: str  # as in LeadsSettings
    lead_queue_url: str
    phone_regions: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class _Parts:
    identities: IdentityStore
    erased: ErasedLeads
    queue: LeadQueue
    phone_regions: str


@bootstrap(IdentityApiSettings)
def _parts(config: IdentityApiSettings, client: ClientOf) -> _Parts:
    # The only message is ANNOUNCE_COMMAND. It has no payload, so the queue needs no bucket.
    payloads = LeadPayloads(lambda: None, "")
    queue = LeadQueue(client("sqs"), config.lead_queue_url, payloads)
    jobs = ErasureJobs(client("dynamodb"), config.erasures_table)
    erased = ErasedLeads(jobs, tombstones_of(config, client))
    return _Parts(IdentityStore(database(config.identity_url)), erased, queue, config.phone_regions)


@app.route("POST /v1/leads/lookup", body=LOOKUP, more=WHEN_ASLEEP)
def post_lead_lookup() -> dict[str, Any]:
    """The lead of an e-mail address, a telephone number or an id of WhatsApp's.

    The value may be written in any way that a webhook may write it. It is 404 for a value that nobody has, or
    that many people gave.
    """
    caller, body = _caller(), app.body()
    wanted = named_identity(body, _parts().phone_regions)
    organization = body["organization_id"]
    found = _parts().identities.lookup(organization, wanted) if caller.reaches(organization) else None
    if found is None:
        raise ApiError(404, "not_found", NO_LEAD)
    return {"lead_id": found["root"], "is_verified": found["is_verified"]}


@app.route("GET /v1/leads/{lead_id}/changes", POSITION, more=WHEN_ASLEEP)
def get_lead_changes(lead_id: str) -> dict[str, Any]:
    """The merges, undoings and refusals that touched a lead.

    Newest first, each with its evidence: the event that proved it, or who did it and why.
    """
    caller = _caller()
    app.check_path("lead_id", lead_id)
    _parts().erased.check(lead_id, caller)
    limit, before = integer(app.query, "limit", LIMIT_DEFAULT, LIMIT_MAX), cursor_of(app.query)
    if before and not NUMBER.fullmatch(before):
        raise cursor_refusal()
    number = int(before) if before else None
    changes = _parts().identities.history(_reach(caller), lead_id, number, limit)
    if changes is None:
        raise ApiError(404, "not_found", NO_LEAD)
    columns = ("number", "kind", "at", "evidence", "reversed_by")
    rows = [{name: change[name] for name in columns} for change in changes]
    return {"lead_id": lead_id, **page("changes", rows, limit, "number")}


@app.route("POST /v1/leads/merges", body=MERGE, more=WHEN_ASLEEP)
def post_lead_merge() -> dict[str, Any]:
    """Merge two leads by hand.

    `change` is the number to undo it by, null if the leads were one already. Memory and features follow a
    moment later. An operator may have parted two leads. They are merged only if `unite` is true. Then all
    leads that only this parting kept apart may be one again.
    """
    caller, body = _caller(), app.body()
    one, other = body["leads"]
    for lead in (one, other):
        _parts().erased.check(lead, caller, NO_PAIR)
    note = {"reason": body["reason"], "by": caller.user_id}
    try:
        number, changes = _parts().identities.merge_by_hand(
            _reach(caller), (one, other), note, unite=body.get("unite", False), now=clock.now()
        )
    except CannotRepair as reason:
        if reason.is_unknown:
            raise ApiError(404, "not_found", str(reason)) from None
        raise ApiError(409, "kept_apart", str(reason)) from None
    if changes:
        _parts().queue.put({"command": ANNOUNCE_COMMAND})
    logger.info("merged by hand", extra={"change": number, "by": note["by"]})
    return {"change": number}


def _caller() -> Caller:
    caller = app.caller()
    caller.check_leads()
    return caller


def _reach(caller: Caller) -> list[str] | None:
    return None if caller.is_admin else sorted(caller.organizations)
