"""POST and DELETE /v1/subscriptions: people register phones to be told of questions, and remove them."""

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters import clock
from adapters.platform.limits import OwnerQuota
from adapters.questions.push import SnsPush
from adapters.questions.subscription_store import SubscriptionStore, subscription_counter, subscription_slot
from ingest.questions.question_schemas import TAGS_MAX, UUID
from ingest.web.caller import AUDIENCE, ApiError, Caller, invalid_field
from rules.book.reminders import clock as clock_of
from rules.days import UnknownZone
from rules.questions.notifications import Subscription, quiet_hours
from rules.zone_names import find_zone

# Subscription ids are computed from it: another value would register every phone twice.
NAMESPACE = uuid.UUID("5f2d3b0c-8c0e-5d0c-9b57-2f6d3e1a4c90")
INTERVAL_DEFAULT, ZONE_DEFAULT = 60, "UTC"
ATTEMPTS_MAX = 4


def subscription_id(owner: str, fcm_token: str) -> str:
    """Return the id of a person's subscription for a phone. Registering the phone again gives the same id."""
    return str(uuid.uuid5(NAMESPACE, f"{owner}\x00{fcm_token}"))


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """Registers and removes phones."""

    store: SubscriptionStore
    push: Callable[[], SnsPush]  # called when needed, because a client takes long to make
    quota: OwnerQuota
    owned_max: int  # phones of a person

    def subscribe(self, caller: Caller, body: Mapping[str, Any], now: datetime) -> tuple[int, dict[str, Any]]:
        """Register a phone, or replace its subscription; returns 201 or 200 and what is stored.

        A field that the body leaves out gets its default. Raises 403, 409, 422.
        """
        wanted = _subscription_of(caller, body)

        def are_there(identifiers: Iterable[str]) -> dict[str, bool]:
            stored = self.store.get_many(identifiers)
            return {each.subscription_id: each.owner == wanted.owner and each.is_active for each in stored}

        slot = subscription_slot(wanted.owner, wanted.subscription_id, now)
        if not self.quota.take(slot, self.owned_max, now, are_there):
            raise ApiError(409, "subscriptions_max", f"{self.owned_max} phones are registered already")
        stored, is_new = self.store.register(wanted, now)
        return 201 if is_new else 200, subscription_view(stored)

    def remove(self, caller: Caller, identifier: str) -> None:
        """Remove a phone's endpoint, then its subscription; raises 404 for none, or another person's.

        If the second step fails, no harm is done: the next message to the phone makes its endpoint again.
        """
        for _ in range(ATTEMPTS_MAX):
            subscription = self.store.get(identifier) if re.fullmatch(UUID, identifier) else None
            if subscription is None or not (caller.is_admin or subscription.owner == caller.user_id):
                raise ApiError(404, "not_found", "there is no such subscription")
            if subscription.endpoint_arn:
                self.push().forget(subscription.endpoint_arn)
            if self.store.remove(subscription):
                self.quota.give_back(subscription_counter(subscription.owner), identifier, clock.now())
                return
        raise ApiError(503, "unavailable", "the subscription kept changing", headers={"Retry-After": "1"})


def _tags(caller: Caller, body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tags to hear of, by default the token's; raises 403 for one that the token does not have."""
    if not body.get("audience"):
        return tuple(sorted(caller.tags)[:TAGS_MAX])
    if not caller.is_admin and (missing := sorted(set(body["audience"]) - caller.tags)):
        raise ApiError(403, "forbidden", f"audience {missing[0]} needs {AUDIENCE}{missing[0]}")
    return tuple(sorted(body["audience"]))


def _subscription_of(caller: Caller, body: Mapping[str, Any]) -> Subscription:
    owner, token, quiet = caller.user_id, body["fcm_token"], body.get("quiet_hours")
    try:
        zone = find_zone(body.get("timezone", ZONE_DEFAULT))
    except UnknownZone as error:
        raise invalid_field("timezone", str(error)) from None
    try:
        hours = quiet_hours(quiet["from"], quiet["to"]) if quiet else None
    except ValueError as error:
        raise invalid_field("quiet_hours", str(error)) from None
    return Subscription(
        subscription_id=subscription_id(owner, token),
        owner=owner,
        fcm_token=token,
        tags=_tags(caller, body),
        min_interval_minutes=int(body.get("min_interval_minutes", INTERVAL_DEFAULT)),
        timezone=zone,
        quiet_hours=hours,
        streak_reminders=body.get("streak_reminders", False),
        reminders_at=clock_of(at) if (at := body.get("reminders_at")) else None,
        language=body.get("language") or "",
        created_at="",  # the store writes both
        updated_at="",
    )


def subscription_view(subscription: Subscription) -> dict[str, Any]:
    """Return what the owner sees: everything they asked for, without the phone's token."""
    quiet = subscription.quiet_hours
    return {
        "subscription_id": subscription.subscription_id,
        "audience": list(subscription.tags),
        "min_interval_minutes": subscription.min_interval_minutes,
        "timezone": subscription.timezone,
        "quiet_hours": quiet and {"from": f"{quiet.since:%H:%M}", "to": f"{quiet.until:%H:%M}"},
        "streak_reminders": subscription.streak_reminders,
        "reminders_at": f"{at:%H:%M}" if (at := subscription.reminders_at) is not None else None,
        "language": subscription.language or None,
        "created_at": subscription.created_at,
        "updated_at": subscription.updated_at,
    }
