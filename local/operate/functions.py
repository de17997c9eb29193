"""Functions of the stack: what one has logged (`streakline logs`), and what it answers that is invoked."""

import base64
import difflib
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import click
from botocore.exceptions import ClientError

from local.command import command, option
from local.stack import Stack

# Invokes a function of the stack, and says why it failed.


TEXT_MAX = 400
LEVELS = ("ERROR", "WARNING", "CRITICAL")


@dataclass(frozen=True, slots=True)
class Invocation:
    """What a function answered. error: that the function itself failed. log: the end of its log."""

    answer: Any
    error: str = ""
    log: str = ""

    def failure(self) -> str | None:
        """Return why a consumer did not take its records; None if it took them all.

        The consumer says it of poison; what may come again says it in its log.
        """
        if self.error:
            return f"{self.error}: {_shown(self.answer)}"
        failed = self.answer.get("batchItemFailures") if isinstance(self.answer, dict) else None
        if failed is None:
            return f"the answer is not a consumer's: {_shown(self.answer)}"
        reasons = dict.fromkeys(each["reason"] for each in failed if each.get("reason"))
        if not failed:
            return None
        return ("; ".join(reasons) or last_trouble(self.log) or "the function's log says why")[:TEXT_MAX]


def invoke(stack: Stack, function: str, payload: Any) -> Invocation:
    """Invoke a function and wait for its answer. Raises what botocore raises."""
    answer = stack.client("lambda").invoke(
        FunctionName=function, Payload=json.dumps(payload).encode(), LogType="Tail"
    )
    text: str = answer["Payload"].read().decode(errors="replace")
    log = base64.b64decode(answer.get("LogResult") or "").decode(errors="replace")
    try:
        found = json.loads(text or "null")
    except ValueError:
        found = text
    return Invocation(found, answer.get("FunctionError", ""), log)


def last_trouble(log: str) -> str:
    """Return the last warning or error of a function's log; "" if there is none."""
    for line in reversed(log.splitlines()):
        try:
            line_fields = json.loads(line[line.index("{") :])
        except ValueError:
            continue
        if isinstance(line_fields, dict) and line_fields.get("level") in LEVELS:
            raised = str(line_fields.get("exception") or "").strip().splitlines()
            return ": ".join(
                dict.fromkeys(each for each in (str(line_fields.get("message")), *raised[-1:]) if each)
            )
    return ""


def _shown(answer: Any) -> str:
    message = answer.get("errorMessage") if isinstance(answer, dict) else None
    return str(message or json.dumps(answer))[:TEXT_MAX]


# Which of several names somebody means who has typed one.


def meant(typed: str, spellings: Mapping[str, str], what: str) -> str:
    """Return the name that a spelling stands for. Case, hyphens and underscores do not matter.

    spellings: spelling -> name. what: a word for the sentence, such as "failure queue". Raises RuntimeError,
    with the names that are near or else with all, if there is no such spelling.
    """
    plain = {_plain(spelling): name for spelling, name in spellings.items()}
    if found := plain.get(_plain(typed)):
        return found
    near = dict.fromkeys(plain[each] for each in difflib.get_close_matches(_plain(typed), plain))
    hint = (
        f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted({*plain.values()}))}"
    )
    raise RuntimeError(f"there is no {what} {typed}: {hint}")


def _plain(name: str) -> str:
    return "".join(each for each in name.casefold() if each.isalnum())


FUNCTION = "FunctionName"  # the end of an output that names a function
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
PAUSE_SECONDS = 1.0
# CloudWatch shows what a function has logged some seconds later, and not in order.
SETTLED = timedelta(seconds=30)
MISSING = "ResourceNotFoundException"


def functions(stack: Stack) -> dict[str, str]:
    """Return the physical names of a stack's functions, by the names that the template gives them."""
    return {
        name.removesuffix(FUNCTION): physical
        for name, physical in sorted(stack.outputs.items())
        if name.endswith(FUNCTION)
    }


def lines(stack: Stack, function: str, since: str, *, follow: bool, now: datetime) -> Iterator[str]:
    """Yield a function's lines in order, each with its instant in UTC. since: see instant_of.

    follow: go on for ever with what comes. Raises RuntimeError for a function or an instant that is none.
    """
    known = functions(stack)
    spellings = {spelling: name for name in known for spelling in (name, f"{name}Function", known[name])}
    name = meant(function, spellings, "function")
    group, begin = _group(stack, known[name]), instant_of(since, now)
    shown: set[Any] = set()
    while True:
        found = _events(stack, group, begin)
        yield from (_line(each) for key, each in found.items() if key not in shown)
        if not follow:
            return
        if found:
            newest = max(each["timestamp"] for each in found.values())
            begin = max(begin, datetime.fromtimestamp(newest / 1000, UTC) - SETTLED)
            shown = {key for key, each in found.items() if each["timestamp"] >= _milliseconds(begin)}
        time.sleep(PAUSE_SECONDS)


def instant_of(text: str, now: datetime) -> datetime:
    """Return the instant that `30s`, `15m`, `2h` or `3d` before `now` is, or that RFC 3339 names.

    An instant without an offset is one of UTC. Raises RuntimeError for anything else.
    """
    try:
        if found := re.fullmatch(r"(\d+)([smhd])", text.strip()):
            return now - timedelta(**{UNITS[found[2]]: int(found[1])})
        instant = datetime.fromisoformat(text)
        return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        pass
    raise RuntimeError(f"--since {text} is neither 30s, 15m, 2h or 3d nor an instant such as {now:%FT%TZ}")


def _group(stack: Stack, physical: str) -> str:
    try:
        found = stack.client("lambda").get_function_configuration(FunctionName=physical)
    except ClientError as error:
        if error.response["Error"]["Code"] == MISSING:
            raise RuntimeError(f"the function {physical} is gone: deploy the stack again") from None
        raise
    return str(found.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{physical}")


def _events(stack: Stack, group: str, begin: datetime) -> dict[Any, dict[str, Any]]:
    """Return a log group's events since an instant, in order. A group that is not there yet has none.

    A key is the same each time: of equal lines of one millisecond it says which. (The emulator has no ids.)
    """
    pages = stack.client("logs").get_paginator("filter_log_events")
    try:
        found = [
            each
            for page in pages.paginate(logGroupName=group, startTime=_milliseconds(begin))
            for each in page["events"]
        ]
    except ClientError as error:
        if error.response["Error"]["Code"] == MISSING:
            return {}
        raise
    equal: Counter[Any] = Counter()
    keyed = {}
    for each in sorted(found, key=lambda each: each["timestamp"]):
        key = each["logStreamName"], each["timestamp"], each["message"]
        keyed[*key, equal[key]] = each
        equal[key] += 1
    return keyed


def _line(event: dict[str, Any]) -> str:
    at = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
    return f"{at.isoformat(timespec='milliseconds').replace('+00:00', 'Z')} {event['message'].rstrip()}"


def _milliseconds(instant: datetime) -> int:
    return max(0, round(instant.timestamp() * 1000))


@command("logs Engagement", "logs UsersApi --since 15m --follow")
@click.argument("function")
@option("--since", default="1h", metavar="WHEN", help="30s, 15m, 2h, 3d, or an instant")
@option("--follow", is_flag=True, help="go on with what is logged from now on")
def logs(stack: Stack, function: str, since: str, follow: bool) -> None:
    """Print what a function of the stack, such as Engagement or UsersApi, has logged."""
    for line in lines(stack, function, since, follow=follow, now=datetime.now(UTC)):
        print(line, flush=follow)
