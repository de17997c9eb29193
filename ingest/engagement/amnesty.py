"""Declaring, applying and revoking amnesties (rule 17)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from adapters.engagement.amnesty import AmnestyApplier, AmnestyResult, AmnestyStore, NoAmnesty
from ingest.engagement.preferences import known_zone
from ingest.web.caller import ApiError, invalid_field
from ingest.web.paging import instant_in
from rules.days import stamp
from rules.engagement.amnesty import LENGTH_MAX, Amnesty


@dataclass(frozen=True, slots=True)
class AmnestyCommands:
    """What an admin can do."""

    store: AmnestyStore
    forgiver: AmnestyApplier

    def declare(self, body: dict[str, Any], author: str, now: datetime) -> Amnesty:
        """Store what a body of DECLARATION says; raises 422 for what makes no sense."""
        return self.store.declare(amnesty_of_body(body, author, now), now)

    def numbered(self, number: str) -> Amnesty:
        """Return an amnesty; raises 404."""
        try:
            return self.store.numbered(int(number))
        except (NoAmnesty, ValueError):
            raise ApiError(404, "not_found", "there is no such amnesty") from None

    def revoke(self, number: str, now: datetime) -> Amnesty:
        """Revoke an amnesty; raises 404. Accounts lose it when it is applied, or with their next event."""
        return self.store.revoke(self.numbered(number).number, now)

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


def amnesty_view(said: Amnesty) -> dict[str, Any]:
    """Return an amnesty as the API shows it."""
    return {
        "number": said.number,
        "from": stamp(said.since),
        "to": stamp(said.until),
        "zones": sorted(said.zones) or None,
        "listed": said.is_listed,
        "reason": said.reason,
        "author": said.author,
        "declared_at": said.declared_at,
        "revoked_at": said.revoked_at or None,
    }


def applied_view(results: Iterable[AmnestyResult]) -> dict[str, Any]:
    """Return what became of users as the API shows it."""
    return {
        "users": [
            {
                "user_id": each.user_id,
                "changed": each.is_changed,
                "streak_before": each.before,
                "streak_after": each.after,
                "freezes_returned": each.freezes,
            }
            for each in results
        ]
    }
