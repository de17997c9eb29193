"""Events that have left their table, as the function PastEventsFunction finds them in the lake."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adapters.platform.tables import Unprocessed


@dataclass(frozen=True, slots=True)
class PastPage:
    """rows: as table attributes, newest first. reached: all events from this stamp on are among them."""

    rows: list[dict[str, Any]]
    reached: str


class PastEvents:
    """Invokes the function, and waits for it. functions: returns the client of Lambda."""

    def __init__(self, functions: Callable[[], Any], name: str) -> None:
        self._functions, self._name = functions, name

    def newest(self, user_id: str, since: str, until: str, limit: int) -> PastPage:
        """Return events with since <= event_id < until. Raises Unprocessed if the lake did not answer."""
        asked = {"user_id": user_id, "since": since, "until": until, "limit": limit}
        answer = self._functions().invoke(FunctionName=self._name, Payload=json.dumps(asked))
        told = answer["Payload"].read()
        if answer.get("FunctionError"):
            raise Unprocessed(f"{self._name}: {told[:200]!r}")
        found = json.loads(told)
        return PastPage(found["rows"], found["reached"])
