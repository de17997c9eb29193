"""Every code that a refusal may have, and its meaning. The OpenAPI document lists them.

A test fails for a code that is used and not listed here, and for one that is listed and not used.
"""

CODES = {
    "already_answered": "this person has answered the question; the body has the first answer",
    "already_reversed": "the redemption has been reversed before",
    "backfill_forbidden": "the event is older than 72 hours: that needs the permission to backfill",
    "conflict": "the key was used with another body; or somebody else has just published a version",
    "contract_broken": "the properties are not as the event type's data contract says",
    "forbidden": "the caller may not do this, or not for this user",
    "freezes_held_max": "the user holds as many freezes as are allowed",
    "in_the_future": "the event is more than 5 minutes ahead",
    "insufficient_balance": "the balance does not cover the points",
    "invalid_field": "a field is missing or wrong; details name it",
    "invalid_json": "the body is no JSON",
    "invalid_parameter": "a part of the path or of the query is wrong",
    "kept_apart": "an operator has parted these leads; `unite` says that they belong together after all",
    "not_found": "there is no such thing",
    "not_reversible": "only a redemption can be reversed",
    "open_questions_max": "the agent has as many open questions as are allowed",
    "pauses_max": "the user has as many pauses as are allowed",
    "question_closed": "the question has all the answers it asked for",
    "question_expired": "the question's time is over",
    "rate_limited": "too many requests in this minute",
    "subscriptions_max": "the owner has as many subscriptions as are allowed",
    "too_large": "the body is too large",
    "too_old": "the event is older than events may be",
    "too_many_polls": "the agent has as many polls waiting as are allowed",
    "unauthorized": "there is no valid token",
    "under_review": "an admin has yet to look at the account; its points can be spent afterwards",
    "unavailable": "try again",
    "unknown_type": "no version of the book of rules has this event type",
    "unsupported_media_type": "the body is compressed, or of a type that is not taken here",
}
