"""Registers endpoints, rotates their secrets, ends them. A secret is shown once, when it is made."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters.leads.hook_store import HookStore
from adapters.outgoing.endpoint_store import EndpointStore
from adapters.outgoing.notification_store import TrialMessages, Waker, share_of
from ingest.web.caller import ApiError, invalid_field
from rules.days import stamp
from rules.leads.hooks import Hook, HookSecret, rotate_hook
from rules.outgoing.notices import ENDPOINTS_MAX, Endpoint
from rules.outgoing.webhooks import UrlRefused, secret_of, target_of

SECRET_BYTES = 32
ID_LETTERS, ID_LENGTH = "abcdefghijklmnopqrstuvwxyz0123456789", 26


@dataclass(frozen=True, slots=True)
class Managing:
    """Changes endpoints. may_be_private: on a laptop; is_on: whether the deployment sends webhooks at all."""

    endpoints: EndpointStore
    secrets: HookStore
    tests: TrialMessages
    waker: Waker
    may_be_private: bool
    is_on: bool

    def register(self, body: Mapping[str, Any], now: datetime) -> tuple[Endpoint, str]:
        """Return a new endpoint and its secret; raises ApiError."""
        self._check_on()
        try:
            target_of(body["url"], may_be_private=self.may_be_private)
        except UrlRefused as refused:
            raise invalid_field("url", str(refused)) from None
        if len(self.endpoints.all()) >= ENDPOINTS_MAX:
            raise ApiError(409, "endpoints_max", f"there are {ENDPOINTS_MAX} endpoints already")
        made = Endpoint(
            "".join(secrets.choice(ID_LETTERS) for _ in range(ID_LENGTH)),
            body["organization_id"],
            body["url"],
            frozenset(body.get("types", ())),
            body.get("filters", {}),
            body.get("description", ""),
            stamp(now),
            agents=frozenset(body.get("agents", ())),
        )
        secret = _new_secret()
        self.secrets.create(Hook(made.organization_id, made.endpoint_id, (HookSecret(secret),)))
        self.endpoints.put(made)
        return made, secret

    def rotate(self, endpoint_id: str, overlap: timedelta, now: datetime) -> dict[str, str]:
        """Return a new secret, and until when the former one signs too; raises NoEndpoint and NoHook."""
        found = self.endpoints.get(endpoint_id)
        secret = _new_secret()
        hook = self.secrets.get(found.organization_id, endpoint_id)
        self.secrets.replace(rotate_hook(hook, secret, now, overlap))
        return {"secret": secret, "former_until": stamp(now + overlap)}

    def test(self, endpoint_id: str, now: datetime) -> str:
        """Let a test message be sent; returns its id. Raises NoEndpoint and ApiError."""
        self._check_on()
        found = self.endpoints.get(endpoint_id)
        message = self.tests.put(found, now)
        self.waker.wake([share_of(endpoint_id, message.holder)])
        return message.message_id

    def end(self, endpoint_id: str) -> None:
        """End an endpoint; raises NoEndpoint. What waits for it is forgotten within a month."""
        found = self.endpoints.get(endpoint_id)
        self.endpoints.remove(endpoint_id)
        self.secrets.remove(found.organization_id, endpoint_id)

    def _check_on(self) -> None:
        if not self.is_on:
            raise ApiError(409, "outgoing_off", "the stack was deployed with OutgoingWebhooks=false")


def _new_secret() -> str:
    return secret_of(secrets.token_bytes(SECRET_BYTES))


def endpoint_view(endpoint: Endpoint) -> dict[str, Any]:
    """Return what is told of an endpoint."""
    return {
        "endpoint_id": endpoint.endpoint_id,
        "organization_id": endpoint.organization_id,
        "url": endpoint.url,
        "types": sorted(endpoint.types),
        "filters": endpoint.filters,
        "agents": sorted(endpoint.agents),
        "description": endpoint.description,
        "created_at": endpoint.created_at,
        "disabled": endpoint.disabled,
    }
