"""Whom a notification is about: a user, a lead or a question. Each has its own order.

The *holder* of notifications is a user's id, or `lead/` or `question/` and an id: no user id has a slash.
"""

from collections.abc import Mapping
from typing import Any

LEAD, QUESTION = "lead/", "question/"
_NAMES = {LEAD: "lead_id", QUESTION: "question_id"}


def lead_holder(lead_organization_id: str) -> str:
    """Return the holder of a lead's notifications."""
    return LEAD + lead_organization_id


def question_holder(question_id: str) -> str:
    """Return the holder of a question's notifications."""
    return QUESTION + question_id


def is_user(holder: str) -> bool:
    """Whether a holder is a user; the holder of an endpoint's test messages counts as one."""
    return not holder.startswith(tuple(_NAMES))


def named(holder: str) -> dict[str, str]:
    """Return whom a holder is, as messages say it: {"lead_id": ...}."""
    for prefix, name in _NAMES.items():
        if holder.startswith(prefix):
            return {name: holder.removeprefix(prefix)}
    return {"user_id": holder}


def holder_of(asked: Mapping[str, Any]) -> str:
    """Return the holder that has been named like that; raises KeyError."""
    for prefix, name in _NAMES.items():
        if name in asked:
            return prefix + str(asked[name])
    return str(asked["user_id"])
