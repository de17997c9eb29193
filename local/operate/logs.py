"""`streakline logs`: what a function of the stack has logged."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import click
from botocore.exceptions import ClientError

from local.command import command, option
from local.operate.functions import MISSING, functions, name_of_spelling
from local.stack import Stack

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
PAUSE_SECONDS = 1.0
# CloudWatch shows what a function has logged some seconds later, and not in order.
LATENESS = timedelta(seconds=30)


@command("logs Engagement", "logs UsersApi --since 15m --follow")
@click.argument("function")
@option("--since", default="1h", metavar="WHEN", help="30s, 15m, 2h, 3d, or an instant")
@option("--follow", is_flag=True, help="go on with what is logged from now on")
def logs(stack: Stack, function: str, since: str, follow: bool) -> None:
    """Print what a function of the stack, such as Engagement or UsersApi, has logged."""
    for line in lines(stack, function, since, follow=follow, now=datetime.now(UTC)):
        print(line, flush=follow)


def lines(stack: Stack, function: str, since: str, *, follow: bool, now: datetime) -> Iterator[str]:
    """Yield a function's lines in order, each with its instant in UTC. since: see instant_of.

    follow: go on for ever with what comes. Raises RuntimeError for a function or an instant that is none.
    """
    physical_names = functions(stack)
    spellings = {
        spelling: name
        for name, physical in physical_names.items()
        for spelling in (name, f"{name}Function", physical)
    }
    name = name_of_spelling(function, spellings, "function")
    group, begin = _group(stack, physical_names[name]), instant_of(since, now)
    printed: set[Any] = set()  # keys of events since `begin`
    while True:
        events = _events(stack, group, begin)
        yield from (_line(event) for key, event in events.items() if key not in printed)
        if not follow:
            return
        if events:
            newest = max(event["timestamp"] for event in events.values())
            begin = max(begin, datetime.fromtimestamp(newest / 1000, UTC) - LATENESS)
            printed = {key for key, event in events.items() if event["timestamp"] >= _milliseconds(begin)}
        time.sleep(PAUSE_SECONDS)


def instant_of(text: str, now: datetime) -> datetime:
    """Return the instant that `30s`, `15m`, `2h` or `3d` before `now` is, or that RFC 3339 names.

    An instant without an offset is one of UTC. Raises RuntimeError for anything else.
    """
    try:
        if length := re.fullmatch(r"(\d+)([smhd])", text.strip()):
            return now - timedelta(**{UNITS[length[2]]: int(length[1])})
        instant = datetime.fromisoformat(text)
        return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        pass
    raise RuntimeError(f"--since {text} is neither 30s, 15m, 2h or 3d nor an instant such as {now:%FT%TZ}")


def _group(stack: Stack, physical: str) -> str:
    try:
        configuration = stack.client("lambda").get_function_configuration(FunctionName=physical)
    except ClientError as error:
        if error.response["Error"]["Code"] == MISSING:
            raise RuntimeError(f"the function {physical} is gone: deploy the stack again") from None
        raise
    return str(configuration.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{physical}")


def _events(stack: Stack, group: str, begin: datetime) -> dict[Any, dict[str, Any]]:
    """Return a log group's events since an instant, in order. A group that is not there yet has none.

    An event's key is the same in each call. It numbers equal lines of one millisecond, because the emulator
    gives events no ids.
    """
    pages = stack.client("logs").get_paginator("filter_log_events")
    try:
        events = [
            event
            for page in pages.paginate(logGroupName=group, startTime=_milliseconds(begin))
            for event in page["events"]
        ]
    except ClientError as error:
        if error.response["Error"]["Code"] == MISSING:
            return {}
        raise
    equal_lines: Counter[Any] = Counter()
    events_by_key = {}
    for event in sorted(events, key=lambda event: event["timestamp"]):
        line = event["logStreamName"], event["timestamp"], event["message"]
        events_by_key[*line, equal_lines[line]] = event
        equal_lines[line] += 1
    return events_by_key


def _line(event: dict[str, Any]) -> str:
    at = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
    return f"{at.isoformat(timespec='milliseconds').replace('+00:00', 'Z')} {event['message'].rstrip()}"


def _milliseconds(instant: datetime) -> int:
    return max(0, round(instant.timestamp() * 1000))
