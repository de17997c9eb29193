"""The feature-refresh queue's messages: requests for refreshes and rebuilds of many leads."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from adapters.platform.aws import pauses
from adapters.platform.queues import PoisonMessage
from adapters.platform.tables import chunks
from rules.days import stamp, unstamp
from rules.leads.feature_changes import AHEAD_MAX
from rules.privacy.tombstones import SafeToLog

CALL_MAX = 10  # messages in a call: SendMessageBatch's own limit
LEADS_MAX = 50  # in a message
SEND_ATTEMPTS_MAX = 6


class RefreshUnsent(SafeToLog, Exception):
    """Messages that SQS still refused after all attempts; sending all of them again is safe."""


class FeatureQueue:
    """Puts requests on the queue, each for up to 50 leads."""

    def __init__(self, sqs: Any, url: str) -> None:
        self._sqs, self._url = sqs, url

    def request_refresh(self, as_of: str, leads: Iterable[str]) -> tuple[int, int]:
        """Ask for features as of a stamp; returns (number of leads, number of messages).

        Raises RefreshUnsent.
        """
        return self._request(leads, lambda chunk: {"refresh": {"as_of": as_of, "leads": chunk}})

    def request_rebuild(self, leads: Iterable[str], ignores_stored: bool = False) -> tuple[int, int]:
        """Ask for features as the stored events say; returns and raises as request_refresh().

        ignores_stored: items that can be read are rebuilt like damaged ones (FeatureRepair).
        """
        flags = {"anew": True} if ignores_stored else {}
        return self._request(leads, lambda chunk: {"rebuild": {"leads": chunk, **flags}})

    def _request(self, leads: Iterable[str], body: Callable[[list[str]], Any]) -> tuple[int, int]:
        lead_count = message_count = 0
        for leads_by_message in chunks(chunks(leads, LEADS_MAX), CALL_MAX):
            self._send([json.dumps(body(message_leads)) for message_leads in leads_by_message])
            lead_count += sum(map(len, leads_by_message))
            message_count += len(leads_by_message)
        return lead_count, message_count

    def _send(self, bodies: list[str]) -> None:
        unsent = [{"Id": str(index), "MessageBody": body} for index, body in enumerate(bodies)]
        for _ in pauses(SEND_ATTEMPTS_MAX):
            answer = self._sqs.send_message_batch(QueueUrl=self._url, Entries=unsent)
            failed = {entry["Id"] for entry in answer.get("Failed", ())}
            unsent = [entry for entry in unsent if entry["Id"] in failed]
            if not unsent:
                return
        raise RefreshUnsent(f"{len(unsent)} messages to {self._url}")


def check_instant(as_of: datetime, now: datetime) -> None:
    """Raise ValueError for an instant that no clock of ours can be at: features only go forward.

    Example: once computed as of 2062, a lead would be in no window, and in no list, until then.
    """
    if as_of > now + AHEAD_MAX:
        raise ValueError(f"as_of {stamp(as_of)} is more than a day ahead of {stamp(now)}")


def refresh_of(request: Any, now: datetime) -> tuple[datetime, list[str]]:
    """Read {"as_of": stamp, "leads": [id]}; raises PoisonMessage, with the field and the reason."""
    leads = _leads(request, "refresh")
    try:
        as_of = unstamp(request["as_of"])
        if stamp(as_of) != request["as_of"]:
            raise ValueError(request["as_of"])
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        raise PoisonMessage(f"refresh.as_of is no stamp: {error!r}") from None
    try:
        check_instant(as_of, now)
    except ValueError as error:
        raise PoisonMessage(f"refresh.{error}") from None
    return as_of, leads


def rebuild_of(request: Any) -> tuple[list[str], bool]:
    """Read {"leads": [id], "anew"?}; raises PoisonMessage, with the field and the reason.

    anew: stored items are ignored, also those that can be read.
    """
    return _leads(request, "rebuild"), request.get("anew") is True


def _leads(request: Any, name: str) -> list[str]:
    if not isinstance(request, Mapping):
        raise PoisonMessage(f"{name} is no object")
    leads = request.get("leads")
    if (
        not isinstance(leads, list)
        or len(leads) > LEADS_MAX
        or not all(isinstance(lead, str) for lead in leads)
    ):
        raise PoisonMessage(f"{name}.leads is no list of at most {LEADS_MAX} ids")
    return leads
