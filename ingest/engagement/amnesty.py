"""Declaring, applying and revoking amnesties (docs/rules.md, rule 17)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from adapters.engagement.amnesty import AmnestyApplier, AmnestyResult, AmnestyStore, NoAmnesty
from ingest.engagement.preferences import known_zone
from ingest.web.caller import ApiError, invalid_field
from ingest.web.json_schema import (
    FLAG,
    INSTANT,
    TEXT,
    USER_ID,
    Schema,
    closed_object,
    flag,
    list_of,
    text,
    text_or_null,
    whole,
)
from ingest.web.paging import instant_in
from rules.days import stamp
from rules.engagement.account_state import Amnesty

USERS_MAX, ZONES_MAX, REASON_MAX = 100, 600, 500
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
            maxItems=ZONES_MAX,
            description="whom it concerns, by zone; left out: everybody",
        ),
        "listed?": flag("only for those to whom it is applied by name"),
        "reason": text(minLength=1, maxLength=REASON_MAX),
    }
)
APPLICATION = closed_object(
    {
        "users": list_of(text(pattern=USER_ID), minItems=1, maxItems=USERS_MAX),
        "dry_run?": flag("only say what would become of them"),
    }
)
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


@dataclass(frozen=True, slots=True)
class AmnestyCommands:
    """What an admin can do."""

    store: AmnestyStore
    forgiver: AmnestyApplier

    def numbered(self, number: str) -> Amnesty:
        """Return an amnesty; raises 404."""
        try:
            return self.store.get(int(number))
        except (NoAmnesty, ValueError):
            raise ApiError(404, "not_found", "there is no such amnesty") from None

    def apply(
        self, number: str, users: Iterable[str], now: datetime, *, is_dry: bool = False
    ) -> list[AmnestyResult]:
        """Give some users what an amnesty comes to, or take off one that was revoked. Raises 404."""
        named = frozenset({self.numbered(number).number})
        amnesties = replace(self.store.look(), named=named)
        return [self.forgiver.forgive(user, amnesties, now, is_dry=is_dry) for user in users]


def amnesty_of_body(body: dict[str, Any], author: str, now: datetime) -> Amnesty:
    """Return the amnesty of a body, without a number; raises 422 for what makes no sense."""
    since, until = instant_in(body, "from"), instant_in(body, "to")
    if until <= since:
        raise invalid_field("to", "must be after from")
    if until > now:
        raise invalid_field("to", "is in the future: declare it when the outage is over")
    if until - since > LENGTH_MAX:
        raise invalid_field("to", f"is more than {LENGTH_MAX.days} days after from")
    zones = frozenset(known_zone(each) for each in body.get("zones", ()))
    return Amnesty(0, since, until, zones, body.get("listed", False), body["reason"], author)


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


def applied_view(results: Iterable[AmnestyResult]) -> dict[str, Any]:
    """Return what became of users as the API shows it."""
    return {
        "users": [
            {
                "user_id": result.user_id,
                "changed": result.is_changed,
                "streak_before": result.before,
                "streak_after": result.after,
                "freezes_returned": result.freezes,
            }
            for result in results
        ]
    }
