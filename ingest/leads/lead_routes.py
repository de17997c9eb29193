"""The routes of leads."""

from ingest.leads import sources
from ingest.leads.lead_schemas import (
    FEATURES_VIEW,
    LEAD_EVENTS,
    LEAD_ID,
    LOOKUP,
    MERGE,
    ORGANIZATION,
    RECEIPT,
    REVERSAL,
)
from ingest.leads.lead_schemas import SOURCE as SOURCE_NAME
from ingest.web.json_schema import closed_object
from ingest.web.routes import PAGE, PLACE, TEXT, Route, in_path, in_query, matching
from rules.leads.lead_events import EVENT_TYPES

LEADS_API, HOOKS_API, IDENTITY_API = "LeadsApi", "HooksApi", "IdentityApi"
LEAD = in_path("lead_id", matching(LEAD_ID))
CHANGE = in_path("change", {"type": "integer", "minimum": 1})
# The document shows the body as the door validates it, and also lists the names of the sources.
SOURCE = LEAD_EVENTS["properties"]["source"] | {"enum": sources.names()}
WEBHOOK = LEAD_EVENTS | {"properties": LEAD_EVENTS["properties"] | {"source": SOURCE}}

# The database of identities may sleep (docs/decisions/0013).
WHEN_VISIBLE = (
    "202 means that the webhook is kept and will not be lost. Its lead and its events become visible a moment"
    " later; after a pause in which nobody sent anything, this may take half a minute, because the database"
    " of identities has to wake up."
)
HOOK = "/v1/hooks/{organization}/{source}"
OF_HOOK = [in_path("organization", matching(ORGANIZATION)), in_path("source", matching(SOURCE_NAME))]
HOOK_ROUTES = [
    Route(
        "PostHook",
        HOOKS_API,
        "post",
        HOOK,
        "Take a vendor's webhook, or a browser's form",
        OF_HOOK,
        body={"required": [], "description": "what the vendor sends, signed as the vendor signs"},
        answer=closed_object(["accepted"], {"accepted": {"type": "integer", "minimum": 0}}),
        is_open=True,
        description="It needs no token, but the source's signature; 401 for whatever does not fit. 200 means"
        " that it is kept. A delivery that comes again changes nothing. `streakline hook add` makes a hook.",
    ),
    Route(
        "GetHook",
        HOOKS_API,
        "get",
        HOOK,
        "Answer a vendor that asks whether this address is ours",
        OF_HOOK,
        answer={"type": "string", "contentMediaType": "text/plain"},
        is_open=True,
    ),
    Route(
        "OptionsHook",
        HOOKS_API,
        "options",
        HOOK,
        "Let a page of an allowed origin send a form as JSON",
        OF_HOOK,
        status=204,
        is_open=True,
    ),
]
WHEN_ASLEEP = (
    " After a pause the database wakes up first: a 5xx within the first minute means that you try again."
)
LEAD_ROUTES = [
    *HOOK_ROUTES,
    Route(
        "PostLeadEvent",
        LEADS_API,
        "post",
        "/v1/leads/events",
        "Send an integration's webhook",
        body=WEBHOOK,
        status=202,
        answer=RECEIPT,
        description=WHEN_VISIBLE,
    ),
    Route(
        "FindLead",
        LEADS_API,
        "get",
        "/v1/leads",
        "The lead that an integration's event was stored for",
        [
            in_query(name, TEXT, required=True)
            for name in ("organization_id", "integration", "external_event_id")
        ],
    ),
    Route(
        "GetLeadEvents",
        LEADS_API,
        "get",
        "/v1/leads/{lead_id}/events",
        "A lead's events, newest first",
        [LEAD, in_query("type", {"type": "string", "enum": sorted(EVENT_TYPES)}), *PAGE],
        description="With `type`, those of one type: an event appears there a moment after it was stored.",
    ),
    Route(
        "GetLeadMemory",
        LEADS_API,
        "get",
        "/v1/leads/{lead_id}/memory",
        "What is remembered of a lead",
        [LEAD, in_query("type", TEXT), in_query("key", TEXT)],
    ),
    Route(
        "GetLeadFeatures",
        LEADS_API,
        "get",
        "/v1/leads/{lead_id}/features",
        "A lead's features",
        [LEAD],
        answer=FEATURES_VIEW,
    ),
    Route(
        "PostLeadLookup",
        IDENTITY_API,
        "post",
        "/v1/leads/lookup",
        "The lead of an e-mail address, a telephone number or an id of WhatsApp's",
        body=LOOKUP,
        description="The value may be written in any way that a webhook may write it. It is 404 for a value"
        " that nobody has, or that many people gave." + WHEN_ASLEEP,
    ),
    Route(
        "GetLeadChanges",
        IDENTITY_API,
        "get",
        "/v1/leads/{lead_id}/changes",
        "The merges, undoings and refusals that touched a lead",
        [LEAD, *PLACE],
        description="Newest first, each with its evidence: the event that proved it, or who did it and why."
        + WHEN_ASLEEP,
    ),
    Route(
        "PostLeadMerge",
        IDENTITY_API,
        "post",
        "/v1/leads/merges",
        "Merge two leads by hand",
        body=MERGE,
        description="`change` is the number to undo it by, null if the leads were one already. Memory and"
        " features follow a moment later. Leads that an operator has parted are refused unless `unite` is"
        " true; then what that parting kept apart may be one again." + WHEN_ASLEEP,
    ),
    Route(
        "PostLeadReversal",
        LEADS_API,
        "post",
        "/v1/leads/changes/{change}/reversal",
        "Undo a merge of leads",
        [CHANGE],
        body=REVERSAL,
        status=202,
        description="202 means that the command is kept. The merge is undone a moment later; after a pause,"
        " this may take half a minute.",
    ),
]
