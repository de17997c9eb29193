"""The feature-refresh queue's messages: requests for refreshes and rebuilds of many leads."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from adapters.platform.aws import pauses
from adapters.platform.tables import Unprocessed, chunks

CALL_MAX = 10  # messages in a call: SendMessageBatch's own limit
LEADS_MAX = 50  # in a message
SEND_ATTEMPTS_MAX = 6


class FeatureQueue:
    """Puts requests on the queue, each for up to 50 leads."""

    def __init__(self, sqs: Any, url: str) -> None:
        self._sqs, self._url = sqs, url

    def request_refresh(self, as_of: str, leads: Iterable[str]) -> tuple[int, int]:
        """Ask for features as of a stamp; returns (number of leads, number of messages).

        Raises Unprocessed.
        """
        return self._request(leads, lambda chunk: {"refresh": {"as_of": as_of, "leads": chunk}})

    def request_rebuild(self, leads: Iterable[str], ignores_stored: bool = False) -> tuple[int, int]:
        """Ask for features as the stored events say; returns and raises as request_refresh().

        ignores_stored: items that can be read are rebuilt like damaged ones (FeatureStore.readable).
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
        raise Unprocessed(f"{len(unsent)} messages to {self._url}")
