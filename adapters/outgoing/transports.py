"""How a notification gets to an endpoint: as a signed webhook, or as an event on an EventBridge bus."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from adapters.leads.hook_store import HookStore, NoHook
from adapters.outgoing.sender import HookSender, SendAnswer
from rules.days import unstamp
from rules.leads.hooks import Hook
from rules.outgoing.notices import BUS, Endpoint, Notification
from rules.outgoing.webhooks import UrlRefused, signed_headers, target_of

SECRETS_KEPT_SECONDS = 60.0
SOURCE = "streakline"  # of events on the bus


@dataclass(frozen=True, slots=True)
class WebhookTransport:
    """Sends webhooks. may_be_private: on a laptop alone."""

    secrets: HookStore
    sender: HookSender
    may_be_private: bool = False
    kept: dict[str, tuple[float, Hook]] = field(default_factory=dict)

    def send(self, endpoint: Endpoint, notification: Notification, now: datetime) -> SendAnswer:
        """Send a notification, signed with every valid secret. Raises what Secrets Manager raises."""
        try:
            target = target_of(endpoint.url, may_be_private=self.may_be_private)
            valid = self._hook(endpoint).valid(now)
        except UrlRefused as refused:
            return SendAnswer(0, f"the URL {refused}")
        except NoHook:
            return SendAnswer(0, "the endpoint has no secret")
        body = notification.body
        return self.sender.post(target, signed_headers(valid, notification.message_id, now, body), body)

    def _hook(self, endpoint: Endpoint) -> Hook:
        """Return an endpoint's secrets as they were at most a minute ago."""
        known = self.kept.get(endpoint.endpoint_id)
        if known is None or time.monotonic() - known[0] > SECRETS_KEPT_SECONDS:
            found = self.secrets.get(endpoint.organization_id, endpoint.endpoint_id)
            known = self.kept[endpoint.endpoint_id] = time.monotonic(), found
        return known[1]


@dataclass(frozen=True, slots=True)
class BusTransport:
    """Puts notifications on an EventBridge bus. events: returns the client."""

    events: Callable[[], Any]

    def send(self, endpoint: Endpoint, notification: Notification) -> SendAnswer:
        """Put a notification on the bus; raises what EventBridge raises."""
        content = notification.content
        entry = {
            "Source": SOURCE,
            "DetailType": content["type"],
            "Detail": json.dumps({"id": notification.message_id, **content["data"]}),
            "EventBusName": endpoint.url,
            "Time": unstamp(notification.at),
        }
        answer = self.events().put_events(Entries=[entry])
        if answer.get("FailedEntryCount"):
            return SendAnswer(0, str(answer["Entries"][0].get("ErrorCode", "refused")))
        return SendAnswer(200)


@dataclass(frozen=True, slots=True)
class Transports:
    """Sends to any endpoint."""

    webhooks: WebhookTransport
    bus: BusTransport

    def send(self, endpoint: Endpoint, notification: Notification, now: datetime) -> SendAnswer:
        """Send a notification to an endpoint; raises what AWS raises."""
        if endpoint.endpoint_id == BUS:
            return self.bus.send(endpoint, notification)
        return self.webhooks.send(endpoint, notification, now)
