"""What the bodies of all routes share: the type of a JSON Schema, common patterns, the error body, and
every code that a refusal may have.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from rules.parts import VALUES_OF_PARTS, said
from rules.user_ids import LENGTH_MAX, USER_ID

# Every code that a refusal may have, and its meaning, as the OpenAPI document lists them. A test fails for a
# code that is used and not listed, and for one that is listed and not used.
CODES = {
    "already_reversed": "the redemption has been reversed before",
    "blocked": "one of the two users has blocked the other",
    "blocked_max": "the user has blocked as many others as are allowed",
    "backfill_forbidden": "the event is over 72 hours old: that needs a receipt, or permission to backfill",
    "boards_left": "the user has left the boards; the message says how to come back",
    "conflict": "the key was used with another body; or somebody else was first, as the message says",
    "contract_broken": "the properties are not as the event type's data contract says",
    "endpoint_ended": "the endpoint has ended, and can only be deleted",
    "endpoints_max": "there are as many endpoints as are allowed",
    "erased": "the person was erased; an admin may lift that for somebody who comes anew",
    "erasure_open": "the erasure is not finished yet",
    "changes_max": "groups and the switch of boards have changed too often; leaving is always possible",
    "forbidden": "the caller may not do this, or not for this user",
    "freezes_held_max": "the user holds as many freezes as are allowed",
    "in_the_future": "the event is more than 5 minutes ahead",
    "friends_max": "one of the two users has as many friends as the book of rules allows",
    "friends_not_offered": "the book of rules has no friends",
    "hold_ended": "the hold was captured, released or has lapsed",
    "holds_max": "too many holds are open already",
    "insufficient_balance": "the balance does not cover the points",
    "invalid_field": "a field is missing or wrong; details name it",
    "invalid_json": "the body is no JSON",
    "invalid_parameter": "a part of the path or of the query is wrong",
    "not_found": "there is no such thing",
    "not_repairable": "no run of the user can be repaired; details.reason says why",
    "not_reversible": "only a redemption can be reversed",
    "pauses_max": "the user has as many pauses as are allowed",
    "outgoing_off": "the stack was deployed without outgoing webhooks",
    "price_changed": "it has another price than the user was shown; details say which",
    "price_forbidden": "a user names a reward, and never points: its price is in the book",
    "rate_limited": "too many requests in this minute, or of a dear kind today; see Retry-After",
    "redemption_ended": "what became of the redemption is settled; details say how",
    "receipt_refused": "the time receipt proves nothing: it is forged, foreign, used, out of order, expired",
    "requests_max": "too many requests to be a friend wait for an answer",
    "rest_days_kept": "rest days may be changed once in 28 days; details say when again",
    "rest_days_not_offered": "the book of rules lets nobody choose rest days",
    "reward_limit": "the user has as many of this reward as one user may have",
    "reward_not_valid": "the reward is not offered now",
    "sold_out": "nothing is left of the reward",
    "too_large": "the body is too large",
    "too_old": "the event is older than events may be",
    "too_many_entries": "the answer follows from more ledger entries than one request reads; see the message",
    "unauthorized": "there is no valid token",
    "under_review": "an admin has yet to look at the account; its points can be spent afterwards",
    "unavailable": "try again",
    "unknown_reward": "the book of rules in force has no such reward",
    "unknown_type": "no version of the book of rules has this event type",
    "unsupported_media_type": "the body is compressed, or of a type that is not taken here",
}

# Codes of parts that a deployment may leave out.
PART_OF_CODE: dict[str, str] = {}
for _part, _codes in said("codes"):
    CODES |= _codes
    PART_OF_CODE |= dict.fromkeys(_codes, _part.value)

Schema = dict[str, Any]

PRINTABLE = r"^[ -~]{1,128}$"
SHORT = r"^[ -~]{1,64}$"
# It leaves out `/` and `#`, because composed keys use both as separators: `acme/shop#order:7`.
ORGANIZATION = r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,63}$"
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
KEY: Schema = {"type": "string", "pattern": PRINTABLE, "description": "scope: the user; kept for 90 days"}
ANY: Schema = {"type": "object"}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
INSTANT: Schema = {"type": "string", "format": "date-time"}
NEXT_PAGE: Schema = {"type": ["string", "null"], "description": "null: no more"}


def text(description: str = "", **keywords: Any) -> Schema:
    """Return the schema of a text. keywords: further keywords of JSON Schema, here and below."""
    return _described("string", description, keywords)


def text_or_null(description: str = "", **keywords: Any) -> Schema:
    """Return the schema of a text that may be null."""
    return _described(["string", "null"], description, keywords)


def user_id(description: str = "") -> Schema:
    """Return the schema of a user's id."""
    return text(description, pattern=USER_ID, maxLength=LENGTH_MAX)


def flag(description: str) -> Schema:
    """Return the schema of what is true or false."""
    return _described("boolean", description, {})


def whole(description: str = "", least: int | None = None, most: int | None = None) -> Schema:
    """Return the schema of a whole number between two bounds, both included."""
    bounds = {"minimum": least, "maximum": most}
    return _described(
        "integer", description, {name: each for name, each in bounds.items() if each is not None}
    )


def one_of(values: Iterable[str], description: str = "") -> Schema:
    """Return the schema of a text that is one of these, such as the members of a StrEnum."""
    return _described("string", description, {"enum": list(map(str, values))})


def _described(kind: str | list[str], description: str, keywords: Mapping[str, Any]) -> Schema:
    return {"type": kind, **keywords} | ({"description": description} if description else {})


def list_of(items: Schema, **more: Any) -> Schema:
    """Return the schema of a list. more: further schema keywords."""
    return {"type": "array", "items": items} | more


def open_object(fields: Mapping[str, Schema], **more: Any) -> Schema:
    """Return the schema of an object that has these fields, and may have others.

    fields: by name; one whose name ends in ? may be left out. more: further schema keywords.
    """
    required = [name for name in fields if not name.endswith("?")]
    properties = {name.removesuffix("?"): each for name, each in fields.items()}
    return {"type": "object", "required": required, "properties": properties} | more


def closed_object(fields: Mapping[str, Schema], **more: Any) -> Schema:
    """Return the schema of an object that may have only these fields; as open_object."""
    return open_object(fields, additionalProperties=False, **more)


ERROR = closed_object(
    {
        "error": closed_object(
            {
                "code": {
                    "type": "string",
                    "enum": sorted(CODES),
                    VALUES_OF_PARTS: PART_OF_CODE,
                    "description": "; ".join(f"{code}: {meaning}" for code, meaning in sorted(CODES.items())),
                },
                "message": {"type": "string"},
                "details?": {},
            }
        )
    }
)
