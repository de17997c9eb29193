"""The client for a server of the app: events of any user, many at once, and many users' profiles.

Its token is of the group streakline/producers. It keeps nothing: whoever needs an event to survive this
process has it in a database of their own, and sends it again under the same key until it is stored.
"""

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal

from streakline_client.calls import ATTEMPTS_MAX, Calls, in_seconds, path_part, pause, user_part
from streakline_client.queue.sender import BATCH_REFUSED, TEMPORARY
from streakline_client.shapes import Applied, Profile, Tie
from streakline_client.transport import Refused, Transport, over_http

EVENTS_MAX = 100  # in one request
BATCH_BYTES_MAX = 500_000  # the service takes a million
IDS_MAX = 100
WAIT_SECONDS_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent:
    """What happened to a user."""

    user: str
    event_type: str
    # Yours, such as order:1007, once a user: the same event sent twice counts once. Kept for 90 days
    key: str
    occurred_at: datetime | str  # a datetime with a zone, or RFC 3339
    timezone: str | None = None  # IANA name of the place; None: the one that the user has set
    properties: Mapping[str, Any] | None = None

    def body(self) -> dict[str, Any]:
        """Return it as it is sent. Raises ValueError for a time without a zone."""
        at = self.occurred_at
        if isinstance(at, datetime):
            if at.tzinfo is None:
                raise ValueError(f"occurred_at must have a zone, and not be {at!r}")
            at = at.isoformat()
        more = {"timezone": self.timezone, "properties": self.properties}
        return {
            "idempotency_key": self.key,
            "event_type": self.event_type,
            "occurred_at": at,
            "user_id": self.user,
            **{name: value for name, value in more.items() if value is not None},
        }


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of an event."""

    event: ServerEvent
    # accepted: it is stored. duplicate: it was stored before. conflict: its key was used for another event.
    # rejected: it is refused for good. unavailable: it is not stored; send it again later
    status: Literal["accepted", "duplicate", "conflict", "rejected", "unavailable"]
    event_id: str | None = None
    code: str | None = None  # why it is not stored: the service's code, which field, and in words
    field: str | None = None
    reason: str | None = None
    applied: Applied | None = None  # what it did; None: nobody waited for that, or it took longer

    @property
    def is_stored(self) -> bool:
        """Whether the service has it."""
        return self.status in ("accepted", "duplicate")


class StreaklineServer:
    """The service, for a server of the app."""

    def __init__(
        self,
        url: str,
        token: str | Callable[[], str],
        *,
        transport: Transport | None = None,
        timeout: float | timedelta = 10.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """token: a bearer token of streakline/producers, or a function that returns a fresh one.

        timeout: seconds of one attempt. Raises ValueError or TypeError for arguments that cannot work.
        """
        send = transport or over_http(url)
        if not callable(token) and not (isinstance(token, str) and token.strip()):
            raise ValueError("token must be a bearer token, or a function that returns one")
        self._calls, self._sleep = Calls(send, token, in_seconds(timeout, "timeout"), sleep), sleep

    def send(  # noqa: PLR0913 (what is said of an event, by name)
        self,
        user: str,
        event_type: str,
        *,
        key: str,
        occurred_at: datetime | str | None = None,
        timezone: str | None = None,
        properties: Mapping[str, Any] | None = None,
        wait: float | timedelta = 0,
    ) -> Sent:
        """Send an event, and again while that may help; returns when it is stored.

        occurred_at: None for now; name it if you may call this again, because another time under the same key
        is another event, and so a conflict. wait: seconds, at most five, in which the service may say what
        the event did. Raises Refused, with code and reason, if it is not stored; Unreachable if nobody knows
        that.
        """
        event = ServerEvent(
            user=user,
            event_type=event_type,
            key=key,
            occurred_at=occurred_at or datetime.now(UTC),
            timezone=timezone,
            properties=properties,
        )
        seconds = min(WAIT_SECONDS_MAX, math.ceil(in_seconds(wait, "wait")))
        (sent,) = self._send_batch([event], f"wait={seconds}" if seconds else "")
        if not sent.is_stored:
            status = {"conflict": 409, "unavailable": 503}.get(sent.status, 422)
            raise Refused(status, str(sent.code), str(sent.reason), [{"field": sent.field}])
        return sent

    def send_all(self, events: Iterable[ServerEvent]) -> Iterator[Sent]:
        """Send many events, a hundred at once, and yield what became of each, in their order.

        One that is refused stops no other. Raises Unreachable, or Refused for a request that the service
        refuses as a whole, such as one without a valid token; what was not yielded may be sent again.
        """
        following = iter(events)
        while batch := list(islice(following, EVENTS_MAX)):
            yield from self._send_batch(batch)

    def set_groups(self, user: str, groups: Mapping[str, str]) -> None:
        """Say in which groups a user is, all of them: {"class": "4b"}. Divided boards rank each group."""
        self._calls.call("PUT", f"/v1/users/{user_part(user)}/groups", body=dict(groups))

    def profiles(self, users: Iterable[str]) -> dict[str, Profile]:
        """Return users' profiles by id; who is not known, or was erased, is left out."""
        found: dict[str, Profile] = {}
        following = iter(dict.fromkeys(users))
        while ids := list(islice(following, IDS_MAX)):
            # A comma within an id is encoded twice, because commas part the ids.
            text = ",".join(path_part(each.replace(",", "%2C")) for each in ids)
            answer = self._calls.call("GET", f"/v1/users?ids={text}")
            found |= {profile["user_id"]: profile for profile in answer["users"]}
        return found

    def befriend(self, user: str, friend: str, *, since: datetime | None = None) -> Tie:
        """Make two users friends at once: both have agreed, and you know it. since: when; None for now.

        Raises Refused, such as with the code `blocked` or `friends_max`.
        """
        path = f"/v1/users/{user_part(user)}/friends/{user_part(friend)}"
        tie: Tie = self._calls.call("PUT", path, body={"since": since.isoformat()} if since else {})
        return tie

    def unfriend(self, user: str, friend: str) -> Tie:
        """End what two users have: a pair, or a request."""
        tie: Tie = self._calls.call("DELETE", f"/v1/users/{user_part(user)}/friends/{user_part(friend)}")
        return tie

    def _send_batch(self, batch: Sequence[ServerEvent], prefer: str = "") -> Iterator[Sent]:
        outcomes: dict[int, Sent] = {}
        left = dict(enumerate(batch))
        for attempt in range(ATTEMPTS_MAX):
            if attempt:
                self._sleep(pause(attempt - 1, None))
            results = self._results([event.body() for event in left.values()], prefer)
            outcomes |= {
                number: _sent(event, result)
                for (number, event), result in zip(left.items(), results, strict=True)
            }
            left = {number: sent.event for number, sent in outcomes.items() if sent.status == "unavailable"}
            if not left:
                break
        yield from (outcomes[number] for number in range(len(batch)))

    def _results(self, events: list[dict[str, Any]], prefer: str) -> list[dict[str, Any]]:
        """Return the service's result for each event; of a refused batch, those of its halves."""
        half = len(events) // 2
        if half and len(json.dumps(events)) > BATCH_BYTES_MAX:
            return self._results(events[:half], prefer) + self._results(events[half:], prefer)
        try:
            answer = self._calls.call("POST", "/v1/events", body={"events": events}, prefer=prefer)
        except Refused as refused:
            details = refused.details
            if isinstance(details, list) and all("status" in each for each in details):
                return details
            if refused.status not in BATCH_REFUSED:
                raise
            if half:
                return self._results(events[:half], prefer) + self._results(events[half:], prefer)
            field = details[0].get("field") if isinstance(details, list) and details else None
            error = {"code": refused.code, "field": field, "message": refused.message}
            return [{"status": "rejected", "error": error}]
        results: list[dict[str, Any]] = answer["results"]
        if "profile" in answer:
            return [{**result, "applied": answer} for result in results]
        return results


def _sent(event: ServerEvent, result: dict[str, Any]) -> Sent:
    error = result.get("error") or {}
    status: Any = "unavailable" if error.get("code") in TEMPORARY else result["status"]
    named = error.get("code"), error.get("field"), error.get("message")
    return Sent(event, status, result.get("event_id"), *named, result.get("applied"))
