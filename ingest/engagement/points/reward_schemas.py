"""What the routes of rewards answer, as JSON Schema."""

from ingest.web.json_schema import COUNT, INSTANT, NEXT_PAGE, TEXT, Schema, closed_object, list_of

_TITLE: Schema = {"type": "string", "description": "what people see in place of the id; plain text"}
_REWARD: dict[str, Schema] = {
    "reward": {"type": "string", "description": "its id"},
    "title?": _TITLE,
    "description?": {"type": "string", "description": "plain text, which may have lines"},
    "image_url?": {"type": "string", "format": "uri", "description": "a picture of it (https)"},
    "price_points": {"type": "integer", "minimum": 1},
    "brand": TEXT,
    "limit_per_user?": {"type": "integer", "minimum": 1},
    "valid_from?": INSTANT,
    "valid_until?": INSTANT,
    "left?": {**COUNT, "description": "about so many; left out: no end of them"},
}
_VERSION: Schema = {"type": "integer", "description": "of the book of rules"}
CATALOGUE = closed_object(
    {"version": _VERSION, "rewards": list_of(closed_object(_REWARD)), "cursor": NEXT_PAGE}
)
_REWARD_FOR_USER = closed_object(
    {
        **_REWARD,
        "affordable": {"type": "boolean", "description": "whether `available` covers the price"},
        "left_for_user?": {**COUNT, "description": "how many more the user may have"},
    }
)
USER_CATALOGUE = closed_object(
    {
        "version": _VERSION,
        "rewards": list_of(_REWARD_FOR_USER),
        "cursor": NEXT_PAGE,
        "user_id": TEXT,
        "available": {**COUNT, "description": "points that can be spent"},
    }
)
REDEMPTION_VIEW = closed_object(
    {
        "entry_id": {"type": "string", "description": "of the ledger entry"},
        "user_id": TEXT,
        "reward": {"type": "string", "description": "its id"},
        "title?": _TITLE | {"description": "what the reward was called when it was redeemed; plain text"},
        "brand": TEXT,
        "price_points": {"type": "integer", "minimum": 1},
        "rules_version": {"type": "integer", "description": "of the book that named the price"},
        "created_at": INSTANT,
        "fulfilment": {"type": "string", "enum": ["requested", "fulfilled", "failed", "reversed"]},
        "changed_at?": {**INSTANT, "description": "when that changed"},
        "duplicate?": {"type": "boolean", "description": "it stood so before"},
    }
)
REDEMPTIONS = closed_object({"redemptions": list_of(REDEMPTION_VIEW), "cursor": NEXT_PAGE})
