"""The door for imported events: POST /v1/events, as an admin, who may backfill."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

ATTEMPTS_MAX = 8
PAUSE_SECONDS = 1.0


class Calls(Protocol):
    """What calls the API: local.api.Api."""

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and answer."""


class EventsDoor:
    """Sends events; what is not decided is sent again, because events carry their keys."""

    def __init__(self, api: Calls, pause_seconds: float = PAUSE_SECONDS) -> None:
        self._api, self._pause_seconds = api, pause_seconds

    def send(self, bodies: Sequence[dict[str, Any]]) -> list[Mapping[str, Any]]:
        """Return what became of each event. Raises RuntimeError if that cannot be had."""
        told: dict[int, Mapping[str, Any]] = {}
        left = list(range(len(bodies)))
        for attempt in range(ATTEMPTS_MAX):
            if attempt:
                time.sleep(self._pause_seconds)
            status, answer = self._api.call("POST", "/v1/events", {"events": [bodies[each] for each in left]})
            results = _results(answer)
            if len(results) != len(left):
                raise RuntimeError(
                    f"POST /v1/events: {status} {answer}: run this again, it goes on from here"
                )
            told |= dict(zip(left, results, strict=True))
            left = [each for each in left if (told[each].get("error") or {}).get("code") == "unavailable"]
            if not left:
                return [told[each] for each in range(len(bodies))]
        raise RuntimeError("the API does not take events by now: run this again, it goes on from here")


def _results(answer: Any) -> list[Mapping[str, Any]]:
    if not isinstance(answer, dict):
        return []
    found = answer.get("results") or (answer.get("error") or {}).get("details")
    return found if isinstance(found, list) else []
