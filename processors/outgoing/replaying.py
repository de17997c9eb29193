"""Sends notifications again: a lane goes back to one of them, and all that come after it follow in order."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.outgoing.endpoint_store import EndpointStore, NoEndpoint
from adapters.outgoing.lane_store import LaneStore
from adapters.outgoing.waking import Share, share_of
from rules.outgoing.subjects import holder_of
from rules.privacy.logged import TellsNobody


class NothingToReplay(TellsNobody, LookupError):
    """The notification, or the endpoint, is not there any more."""


@dataclass(frozen=True, slots=True)
class Replayer:
    """Lets lanes go back."""

    endpoints: EndpointStore
    lanes: LaneStore

    def replay(self, asked: Mapping[str, Any], now: datetime) -> Share:
        """Let a holder's notifications be sent again; returns where they wait.

        asked: endpoint_id; user_id, lead_id or question_id; and number, from which on; or since, a stamp,
        from when on. Raises NothingToReplay, KeyError and TypeError.
        """
        endpoint_id, holder = str(asked["endpoint_id"]), holder_of(asked)
        try:
            self.endpoints.get(endpoint_id)
        except NoEndpoint:
            raise NothingToReplay(f"there is no endpoint {endpoint_id}") from None
        first, since = int(asked.get("number", 1)), str(asked.get("since", ""))
        there = [each.number for each in self.lanes.log(holder, first - 1) if each.at >= since]
        if not there:
            raise NothingToReplay("nothing is kept of it from then on")
        self.lanes.go_back(holder, endpoint_id, there[0], there[-1], now)
        return share_of(endpoint_id, holder)

    def replay_all(
        self, records: Iterable[Mapping[str, Any]], now: datetime
    ) -> tuple[set[Share], dict[str, str]]:
        """Replay what records of a redrive ask for; returns where it waits, and why others failed, by id."""
        shares: set[Share] = set()
        failed: dict[str, str] = {}
        for record in records:
            body = record["body"]
            try:
                shares.add(self.replay(json.loads(body) if isinstance(body, str) else body, now))
            except (NothingToReplay, KeyError, TypeError, ValueError) as error:
                failed[record["messageId"]] = f"{type(error).__name__}: {error}"
        return shares, failed
