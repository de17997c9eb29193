"""`streakline status`: says what runs of a deployment, what waits, and what alarms say.

stack_status.py reads this of a stack on AWS; what the laptop cloud says is read here. verdict.py says what is
wrong with what was read.
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from local.aws_errors import AWS_ERRORS, explain_error
from local.cloud import laptop_cloud, patience
from local.cloud.streams import function_name
from local.command import command, find_stack, show
from local.operate import verdict
from local.operate.functions import functions
from local.operate.stack_status import is_stream, look_at_stack, mapping_trouble
from local.operate.verdict import Consumer, Deployment, Queue, RunningPart
from local.stack import Stack, load

PROCESS_NAMES = {"ministack": "emulator", "poller": "poller", "redis": "Redis", "postgres": "PostgreSQL"}
PROCESS_MEND = "`streakline up` starts it again"
# An emulator that runs has its data, however long it does not answer.
EMULATOR_SILENT = "its process runs, and has its data: a busy machine answers later, so ask again"
PROCESS_MENDS = {
    "ministack": f"{PROCESS_MEND}, and begins anew: its data went with it",
    "poller": f"{PROCESS_MEND}; it goes on where it stopped",
    "redis": f"{PROCESS_MEND}; it is a cache, and filled anew",
    "postgres": f"{PROCESS_MEND}; its data are still there, and what came meanwhile waits in LeadIngestion",
}


@command("status", "status --json --stack-name streakline")
def status(stack_name: str | None, region: str | None, as_json: bool) -> None:
    """Say whether all is well: what runs, what waits and for how long. Fails if something is wrong."""
    try:
        stack = find_stack(stack_name, region)
    except SystemExit as error:  # no laptop cloud is up
        if as_json:
            text = str(error.code)
            show({"is_well": False, "verdict": text, "problems": [{"what": text}]}, as_json=True)
        raise
    deployment = look_at_laptop() if stack.is_laptop else look_at_stack(stack)
    if as_json:
        show(verdict.as_json(deployment), as_json=True)
    else:
        print(verdict.as_text(deployment))
    if verdict.problems(deployment):
        raise SystemExit(1)


def look_at_laptop() -> Deployment:
    """Look at every process and, if the emulator runs, at what waits.

    Raises SystemExit, with what to do, if no laptop cloud is up.
    """
    stack = load()
    troubles = laptop_cloud.troubles(stack)
    mends = PROCESS_MENDS | (
        {"ministack": EMULATOR_SILENT} if troubles["ministack"] == laptop_cloud.SILENT else {}
    )
    parts = tuple(
        RunningPart(PROCESS_NAMES[process], not why, why or "runs", mends[process])
        for process, why in troubles.items()
    )
    deployment = Deployment("the laptop cloud", datetime.now(UTC), parts, about={"api_url": stack.api_url})
    return deployment if troubles["ministack"] else replace(deployment, **_laptop_backlog(stack))


def _laptop_backlog(stack: Stack) -> dict[str, Any]:
    """Return fields of Deployment: what waits in streams and queues, or why that is unseen."""
    fields: dict[str, Any] = {"unseen": {}}
    for name, read in (
        ("consumers", lambda: tuple(_laptop_consumers(stack))),
        ("queues", lambda: {queue: Queue(n) for queue, n in patience.messages_waiting(stack).items()}),
        ("failures", lambda: patience.failures(stack)),
    ):
        try:
            fields[name] = read()
        except AWS_ERRORS as error:
            fields["unseen"][name] = explain_error(error)
    return fields


def _laptop_consumers(stack: Stack) -> Iterator[Consumer]:
    states = defaultdict[str, list[str]](list)  # of the mappings of queues, by function
    polled = set[str]()
    for mapping in stack.client("lambda").list_event_source_mappings()["EventSourceMappings"]:
        name = function_name(mapping["FunctionArn"])
        if is_stream(mapping):
            polled.add(name)
        else:
            states[name].append(mapping["State"])
    for name, physical in functions(stack).items():
        if physical in polled:
            done_until = patience.state_of(physical).get("done_until")
            behind = timedelta(seconds=time.time() - done_until) if done_until else None
            yield Consumer(name, ("ByPoller",), behind)
        elif physical in states:
            trouble = mapping_trouble(states[physical])
            yield Consumer(name, tuple(states[physical]), None, trouble, "`streakline up` enables it again")
