"""The routes of exports and erasures."""

from ingest.leads.lead_schemas import LEAD_ID, LOOKUP
from ingest.web.json_schema import ANY, USER_ID, closed_object
from ingest.web.routes import TEXT, Route, in_path, matching

PRIVACY_API = "PrivacyApi"
ERASURE_ID = r"^[0-9a-f]{32}$"
USER, LEAD = in_path("user_id", matching(USER_ID)), in_path("lead_id", matching(LEAD_ID))
ERASURE = closed_object(
    ["erasure_id", "status"],
    {
        "erasure_id": matching(ERASURE_ID),
        "status": {"type": "string", "enum": ["open", "finished"]},
        "started_at": {"type": "string"},
        "found": {"type": "object", "additionalProperties": {"type": "integer"}},
        "awaits": {"type": "array", "items": {"type": "string"}},
        "deadline": {"type": "string"},
        "certificate": ANY,
    },
)
LIFTED = closed_object(["lifted"], {"lifted": {"type": "integer", "minimum": 0}})
EXPORT = closed_object(
    ["export_id", "status", "asked_at"],
    {
        "export_id": matching(ERASURE_ID),
        "status": {"type": "string", "enum": ["running", "finished"]},
        **dict.fromkeys(("asked_at", "finished_at", "url", "url_expires_at", "expires_at"), TEXT),
        "bytes": {"type": "integer", "minimum": 1},
    },
)
TELLS = (
    " Everything online is gone within the hour, lake and warehouse in two nights some days apart;"
    " GET /v1/erasures/{erasure_id} shows what is awaited until when, and then the certificate."
    " The id answers 410 until an admin lifts that. Asking again answers the same."
)
ASKED = (
    "It is made meanwhile: GET tells when it is finished, and its URL. Asking again while it is being made"
    " answers the same export, and goes on with one that got stuck. But for admins, a caller may ask some"
    " times a day: 429."
)
FETCHED = (
    "Of the newest export that was asked for. Once it is finished, `url` has it, for an hour; each request"
    " makes a new one, until `expires_at`, a day later."
)

PRIVACY_ROUTES = [
    Route(
        "DeleteUser",
        PRIVACY_API,
        "delete",
        "/v1/users/{user_id}",
        "Erase a user (the user, or an admin)",
        [USER],
        status=202,
        answer=ERASURE,
        description="All that is known of the user is deleted; it cannot be undone." + TELLS,
    ),
    Route(
        "PostUserExport",
        PRIVACY_API,
        "post",
        "/v1/users/{user_id}/export",
        "Ask for everything that is known of a user, as a ZIP of JSON and CSV",
        [USER],
        status=202,
        answer=EXPORT,
        description=ASKED,
    ),
    Route(
        "GetUserExport",
        PRIVACY_API,
        "get",
        "/v1/users/{user_id}/export",
        "How far the export of a user is, and where it can be had",
        [USER],
        answer=EXPORT,
        description=FETCHED,
    ),
    Route(
        "PostUserLift",
        PRIVACY_API,
        "post",
        "/v1/users/{user_id}/lift",
        "Let an erased id be used anew (admins)",
        [USER],
        answer=LIFTED,
        description="What happened before is refused for good.",
    ),
    Route(
        "DeleteLead",
        PRIVACY_API,
        "delete",
        "/v1/leads/{lead_id}",
        "Erase a lead, with all leads that are the same person",
        [LEAD],
        status=202,
        answer=ERASURE,
        description="Addresses, numbers and ids of the person make no lead again, either." + TELLS,
    ),
    Route(
        "PostLeadExport",
        PRIVACY_API,
        "post",
        "/v1/leads/{lead_id}/export",
        "Ask for everything that is known of a lead, as a ZIP of JSON and CSV",
        [LEAD],
        status=202,
        answer=EXPORT,
        description=ASKED,
    ),
    Route(
        "GetLeadExport",
        PRIVACY_API,
        "get",
        "/v1/leads/{lead_id}/export",
        "How far the export of a lead is, and where it can be had",
        [LEAD],
        answer=EXPORT,
        description=FETCHED,
    ),
    Route(
        "PostLeadLift",
        PRIVACY_API,
        "post",
        "/v1/leads/lift",
        "Let an erased person's addresses, numbers and ids make a lead anew (admins)",
        body=LOOKUP,
        answer=LIFTED,
        description="One of them is named; all that were erased with it are lifted. What happened before is"
        " refused for good.",
    ),
    Route(
        "GetErasure",
        PRIVACY_API,
        "get",
        "/v1/erasures/{erasure_id}",
        "How far an erasure is, and at its end the certificate",
        [in_path("erasure_id", matching(ERASURE_ID))],
        answer=ERASURE,
        description="The id is a secret of whoever asked for the erasure; what it leads to names nobody.",
    ),
]
