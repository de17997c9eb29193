"""What the routes of rewards answer, as JSON Schema."""

from ingest.web.json_schema import Schema, closed_object

_INSTANT: Schema = {"type": "string", "format": "date-time"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_TITLE: Schema = {"type": "string", "description": "what people see in place of the id; plain text"}
_REWARD: dict[str, Schema] = {
    "reward": {"type": "string", "description": "its id"},
    "title": _TITLE,
    "description": {"type": "string", "description": "plain text, which may have lines"},
    "image_url": {"type": "string", "format": "uri", "description": "a picture of it (https)"},
    "price_points": {"type": "integer", "minimum": 1},
    "brand": {"type": "string"},
    "limit_per_user": {"type": "integer", "minimum": 1},
    "valid_from": _INSTANT,
    "valid_until": _INSTANT,
    "left": {**_COUNT, "description": "about so many; left out: no end of them"},
}
_OF_PAGE: dict[str, Schema] = {
    "version": {"type": "integer", "description": "of the book of rules"},
    "cursor": {"type": ["string", "null"], "description": "null: no more"},
}
CATALOGUE = closed_object(
    ["version", "rewards", "cursor"],
    {
        **_OF_PAGE,
        "rewards": {
            "type": "array",
            "items": closed_object(["reward", "price_points", "brand"], _REWARD),
        },
    },
)
USER_CATALOGUE = closed_object(
    ["version", "rewards", "cursor", "user_id", "available"],
    {
        **_OF_PAGE,
        "user_id": {"type": "string"},
        "available": {**_COUNT, "description": "points that can be spent"},
        "rewards": {
            "type": "array",
            "items": closed_object(
                ["reward", "price_points", "brand", "affordable"],
                {
                    **_REWARD,
                    "affordable": {"type": "boolean", "description": "whether `available` covers the price"},
                    "left_for_user": {**_COUNT, "description": "how many more the user may have"},
                },
            ),
        },
    },
)
REDEMPTION_VIEW = closed_object(
    ["entry_id", "user_id", "reward", "brand", "price_points", "rules_version", "created_at", "fulfilment"],
    {
        "entry_id": {"type": "string", "description": "of the ledger entry"},
        "user_id": {"type": "string"},
        "reward": {"type": "string", "description": "its id"},
        "title": _TITLE | {"description": "what the reward was called when it was redeemed; plain text"},
        "brand": {"type": "string"},
        "price_points": {"type": "integer", "minimum": 1},
        "rules_version": {"type": "integer", "description": "of the book that named the price"},
        "created_at": _INSTANT,
        "fulfilment": {"type": "string", "enum": ["requested", "fulfilled", "failed", "reversed"]},
        "changed_at": {**_INSTANT, "description": "when that changed"},
        "duplicate": {"type": "boolean", "description": "it stood so before"},
    },
)
REDEMPTIONS = closed_object(
    ["redemptions", "cursor"],
    {
        "redemptions": {"type": "array", "items": REDEMPTION_VIEW},
        "cursor": {"type": ["string", "null"], "description": "null: no more"},
    },
)
