"""Posts events of histories, again and again until the API has decided each of them."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

ATTEMPTS_MAX = 8
ATTEMPT_PAUSE_SECONDS = 1.0


class Calls(Protocol):
    """What calls the API: local.api.Api."""

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and answer."""


class EventPoster:
    """Posts events. Those that the API could not decide are sent again: their keys make that harmless."""

    def __init__(self, api: Calls, pause_seconds: float = ATTEMPT_PAUSE_SECONDS) -> None:
        self._api, self._pause_seconds = api, pause_seconds

    def send(self, bodies: Sequence[dict[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the result of each event. Raises RuntimeError if the API does not decide all of them."""
        result_of: dict[int, Mapping[str, Any]] = {}
        undecided = list(range(len(bodies)))
        for attempt in range(ATTEMPTS_MAX):
            if attempt:
                time.sleep(self._pause_seconds)
            events = [bodies[index] for index in undecided]
            status, answer = self._api.call("POST", "/v1/events", {"events": events})
            results = _results(answer)
            if len(results) != len(undecided):
                raise RuntimeError(
                    f"POST /v1/events: {status} {answer}: run this again, it goes on from here"
                )
            result_of |= dict(zip(undecided, results, strict=True))  # replaces earlier undecided results
            undecided = [index for index in undecided if _is_undecided(result_of[index])]
            if not undecided:
                return [result_of[index] for index in range(len(bodies))]
        raise RuntimeError("the API does not take events by now: run this again, it goes on from here")


def _results(answer: Any) -> list[Mapping[str, Any]]:
    """Return the result of each event, from an answer or the details of a refusal; [] if there are none."""
    if not isinstance(answer, dict):
        return []
    results = answer.get("results") or (answer.get("error") or {}).get("details")
    return results if isinstance(results, list) else []


def _is_undecided(result: Mapping[str, Any]) -> bool:
    return (result.get("error") or {}).get("code") == "unavailable"
