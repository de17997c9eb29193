"""Reads of the laptop cloud which processes run, and what waits."""

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from local.aws_errors import AWS_ERRORS, explain_error
from local.cloud import health, patience
from local.cloud.poller import consumer_key, read_checkpoints
from local.cloud.shards import iterator_of, shards_of
from local.cloud.streams import EventSourceMapping, function_name, mapping_of
from local.operate.consumers import READERS, Unread, consumer_of_backlog, is_stream, mapping_trouble, unread
from local.operate.functions import functions
from local.operate.verdict import Consumer, Deployment, Part, Queue
from local.stack import Stack, load

LAPTOP = "the laptop cloud"
PROCESS_NAMES = {"ministack": "emulator", "poller": "poller", "redis": "Redis", "postgres": "PostgreSQL"}
PROCESS_MEND = "`streakline up` starts it again"
PROCESS_MENDS = {
    "ministack": "`streakline down` and `streakline up` begin anew: its data went with it",
    "poller": f"{PROCESS_MEND}; it goes on where it stopped",
    "redis": f"{PROCESS_MEND}; it is a cache, and filled anew",
    "postgres": f"{PROCESS_MEND}; its data are still there, and what came meanwhile waits in LeadIngestion",
}


def look_at_laptop() -> Deployment:
    """Look at every process and, if the emulator runs, at what waits.

    Raises SystemExit, with what to do, if no laptop cloud is up.
    """
    stack = load()
    troubles = health.troubles(stack)
    parts = tuple(
        Part(PROCESS_NAMES[process], not why, why or "runs", PROCESS_MENDS[process])
        for process, why in troubles.items()
    )
    deployment = Deployment(LAPTOP, datetime.now(UTC), parts, about={"api_url": stack.api_url})
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
    """Yield each consumer with what it has not processed, from what the poller has noted as done."""
    answer = stack.client("lambda").list_event_source_mappings()
    checkpoints = read_checkpoints()
    queue_states = defaultdict[str, list[str]](list)  # of the mappings of queues, by function
    shards: list[tuple[EventSourceMapping, str]] = []
    for description in answer["EventSourceMappings"]:
        if is_stream(description):
            mapping = mapping_of(description)
            shards += [(mapping, shard) for shard in shards_of(stack, mapping.source)]
        else:
            queue_states[function_name(description["FunctionArn"])].append(description["State"])

    def read(mapping: EventSourceMapping, shard: str) -> tuple[EventSourceMapping, Unread]:
        checkpoint = checkpoints.get(consumer_key(mapping, shard), "")
        return mapping, unread(stack, mapping, iterator_of(stack, mapping.source, shard, checkpoint))

    with ThreadPoolExecutor(READERS) as pool:
        backlog = list(pool.map(lambda pair: read(*pair), shards))
    for name, physical in functions(stack).items():
        backlog_of_function = [
            (mapping, shard_unread)
            for mapping, shard_unread in backlog
            if function_name(mapping.function) == physical
        ]
        states = queue_states[physical]
        if backlog_of_function:
            yield consumer_of_backlog(name, stack, backlog_of_function, ("ByPoller",))
        elif states:
            yield Consumer(
                name, tuple(states), trouble=mapping_trouble(states), mend="`streakline up` enables it again"
            )
