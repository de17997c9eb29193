"""Amnesties at the API (docs/rules.md, rule 17): their bodies, what is wrong with them, and their views.

users_api.py has the routes, and adapters/engagement/amnesty_store.py stores amnesties and applies them.
`streakline amnesty` (local/amnesty_command.py) declares them by the same checks.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from adapters.engagement.amnesty_store import AmnestyResult, AmnestyStore, NoAmnesty
from ingest.engagement.preferences import known_zone
from ingest.web.caller import ApiError, invalid_field
from ingest.web.json_schema import (
    FLAG,
    INSTANT,
    TEXT,
    Schema,
    closed_object,
    flag,
    list_of,
    text,
    text_or_null,
    user_id,
    whole,
)
from ingest.web.paging import instant_in
from rules.days import stamp
from rules.engagement.account_state import Amnesty

# A longer outage is declared in parts: nobody makes a year neutral by a slip of a digit.
LENGTH_MAX = timedelta(days=14)
_INSTANT: Schema = INSTANT | {"maxLength": 40}
DECLARATION = closed_object(
    {
        "from": {**_INSTANT, "description": "when the outage began"},
        "to": {**_INSTANT, "description": "when it was over"},
        "zones?": list_of(
            text(maxLength=64),
            minItems=1,
            maxItems=600,
            description="whom it concerns, by zone; left out: everybody",
        ),
        "listed?": flag("only for those to whom it is applied by name"),
        "reason": text(minLength=1, maxLength=500),
    }
)


def amnesty_of_body(body: dict[str, Any], author: str, now: datetime) -> Amnesty:
    """Return the amnesty that a body declares, without a number; raises 422 for what makes no sense."""
    since, until = instant_in(body, "from"), instant_in(body, "to")
    if until <= since:
        raise invalid_field("to", "must be after from")
    if until > now:
        raise invalid_field("to", "is in the future: declare it when the outage is over")
    if until - since > LENGTH_MAX:
        raise invalid_field("to", f"is more than {LENGTH_MAX.days} days after from")
    return Amnesty(
        number=0,
        since=since,
        until=until,
        zones=frozenset(known_zone(zone, "zones") for zone in body.get("zones", ())),
        is_listed=body.get("listed", False),
        reason=body["reason"],
        author=author,
    )


def find_amnesty(store: AmnestyStore, number: str) -> Amnesty:
    """Return the amnesty that a path names; raises 404."""
    try:
        return store.get(int(number))
    except (NoAmnesty, ValueError):
        raise ApiError(404, "not_found", "there is no such amnesty") from None


AMNESTY: Schema = {
    "type": "object",
    "properties": {
        "number": whole(),
        "from": _INSTANT,
        "to": _INSTANT,
        "zones": {"type": ["array", "null"], "items": TEXT},
        "listed": FLAG,
        "reason": TEXT,
        "author": TEXT,
        "declared_at": _INSTANT,
        "revoked_at": text_or_null(),
    },
}
AMNESTIES: Schema = {"type": "object", "properties": {"amnesties": list_of(AMNESTY)}}


def amnesty_view(amnesty: Amnesty) -> dict[str, Any]:
    """Return an amnesty as the API shows it."""
    return {
        "number": amnesty.number,
        "from": stamp(amnesty.since),
        "to": stamp(amnesty.until),
        "zones": sorted(amnesty.zones) or None,
        "listed": amnesty.is_listed,
        "reason": amnesty.reason,
        "author": amnesty.author,
        "declared_at": amnesty.declared_at,
        "revoked_at": amnesty.revoked_at or None,
    }


APPLICATION = closed_object(
    {
        "users": list_of(user_id(), minItems=1, maxItems=100),
        "dry_run?": flag("only say what would become of them"),
    }
)
_APPLIED: Schema = {
    "type": "object",
    "properties": {
        "user_id": TEXT,
        "changed": FLAG,
        "streak_before": whole(),
        "streak_after": whole(),
        "freezes_returned": whole(),
    },
}
APPLICATION_RESULT: Schema = {"type": "object", "properties": {"users": list_of(_APPLIED)}}


def applied_view(results: Iterable[AmnestyResult]) -> dict[str, Any]:
    """Return what became of users as the API shows it."""
    return {
        "users": [
            {
                "user_id": result.user_id,
                "changed": result.is_changed,
                "streak_before": result.streak_before,
                "streak_after": result.streak_after,
                "freezes_returned": result.freezes_returned,
            }
            for result in results
        ]
    }
