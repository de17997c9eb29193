"""What benchmarks hand to functions: events as apps send them, HTTP requests, batches of queues."""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl
from uuid import NAMESPACE_OID, uuid5

USER = "user"
ADMIN, AGENTS, LEADS = "[streakline/admin]", "[streakline/agents]", "[streakline/leads/acme]"
FULFILMENT = "[streakline/fulfilment]"
# Twenty of these events just reach the daily cap. The usual design has no cap, so more would not compare.
KIND, POINTS = "LESSON_COMPLETED", 10
Body = dict[str, Any]
Record = dict[str, Any]


def bodies(users: Sequence[str], per_user: int, first: datetime, kind: str = KIND) -> list[Body]:
    """Return events as an app sends them: user by user, a minute apart, from `first` on."""
    return [
        {
            "user_id": user,
            "idempotency_key": str(uuid5(NAMESPACE_OID, f"{user} {occurred} {kind}")),
            "event_type": kind,
            "occurred_at": occurred.isoformat(),
            "timezone": "Europe/Berlin",
            "source": "app",
            "properties": {"lesson": "geometry-12", "score": 87},
        }
        for user in users
        for occurred in (first + timedelta(minutes=number) for number in range(per_user))
    ]


def record(number: int, image: Body) -> Record:
    """Return a stream record of a stored event, given as a DynamoDB item."""
    return {"eventName": "INSERT", "dynamodb": {"SequenceNumber": f"{number:021}", "NewImage": image}}


def http(method: str, path: str, body: Any = None, *, sub: str = USER, groups: str = "") -> dict[str, Any]:
    """Return a request to the HTTP API, payload format 2.0. path: with a query, if there is one."""
    path, _, query = path.partition("?")
    return {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": query,
        "queryStringParameters": dict(parse_qsl(query)),
        "headers": {"content-type": "application/json"},
        "requestContext": {
            "http": {"method": method, "path": path, "sourceIp": "192.0.2.1"},
            "stage": "$default",
            "authorizer": {"jwt": {"claims": {"sub": sub, "cognito:groups": groups}, "scopes": None}},
        },
        "body": None if body is None else json.dumps(body),
        "isBase64Encoded": False,
    }


def queue(bodies: Iterable[str]) -> dict[str, Any]:
    """Return a batch of an SQS queue."""
    return {"Records": [{"messageId": str(index), "body": body} for index, body in enumerate(bodies)]}


@contextmanager
def captured_logs(module: Any) -> Iterator[io.StringIO]:
    """Capture what a handler's module logs, at the level that functions have in the template."""
    # The modules of the HTTP API have their logger in `app`.
    logger = module.app.logger if hasattr(module, "app") else module.logger
    (handler,), level, lines = logger.handlers, logger._logger.level, io.StringIO()
    stream = handler.setStream(lines)
    logger.setLevel("INFO")
    try:
        yield lines
    finally:
        handler.setStream(stream)
        logger.setLevel(level)
