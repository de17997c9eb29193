"""The feature-refresh queue: the schedule asks for refreshes there, others for rebuilds."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from adapters.platform.aws import pauses
from adapters.platform.tables import chunks
from rules.privacy.tombstones import TellsNobody

CALL_MAX = 10  # SendMessageBatch's own limit
LEADS_MAX = 50  # in a message
ATTEMPTS_MAX = 6


class RefreshUnsent(TellsNobody, Exception):
    """Messages that SQS still refused after all attempts; sending all of them again is safe."""


class FeatureQueue:
    """Asks for features of many leads, some of them in a message."""

    def __init__(self, sqs: Any, url: str) -> None:
        self._sqs, self._url = sqs, url

    def request_refresh(self, as_of: str, leads: Iterable[str]) -> tuple[int, int]:
        """Ask for features as of a stamp; returns how many leads and messages. Raises RefreshUnsent."""
        return self._request(leads, lambda some: {"refresh": {"as_of": as_of, "leads": some}})

    def request_rebuild(self, leads: Iterable[str], is_anew: bool = False) -> tuple[int, int]:
        """Ask for features as the stored events say; returns and raises as request_refresh().

        is_anew: what is stored of them is not believed, not even its version.
        """
        more = {"anew": True} if is_anew else {}
        return self._request(leads, lambda some: {"rebuild": {"leads": some, **more}})

    def _request(self, leads: Iterable[str], body: Callable[[list[str]], Any]) -> tuple[int, int]:
        asked = messages = 0
        groups = chunks(leads, LEADS_MAX)
        for call in chunks(groups, CALL_MAX):
            self._send([json.dumps(body(each)) for each in call])
            asked, messages = asked + sum(map(len, call)), messages + len(call)
        return asked, messages

    def _send(self, bodies: list[str]) -> None:
        left = [{"Id": str(place), "MessageBody": body} for place, body in enumerate(bodies)]
        for _ in pauses(ATTEMPTS_MAX):
            answer = self._sqs.send_message_batch(QueueUrl=self._url, Entries=left)
            failed = {each["Id"] for each in answer.get("Failed", ())}
            left = [each for each in left if each["Id"] in failed]
            if not left:
                return
        raise RefreshUnsent(f"{len(left)} messages to {self._url}")
