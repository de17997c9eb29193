"""What runs of the laptop cloud, and what waits.

Each part is asked itself: that its process is there says little.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from local.cloud import laptop_cloud, patience
from local.cloud.poller import place_name, read_checkpoints
from local.cloud.streams import EventSourceMapping, function_name, iterator_of, mapping_of, shards_of
from local.operate.function_logs import functions
from local.operate.unread import Unread, summed, trouble, unread
from local.operate.verdict import Consumer, Deployment, Part, Queue
from local.stack import AwsError, Stack, load, sentence

WHERE = "the laptop cloud"
AT_ONCE = 8
NAMES = {"ministack": "emulator", "poller": "poller", "redis": "Redis", "postgres": "PostgreSQL"}
UP = "`streakline up` starts it again"
MENDS = {
    "ministack": "`streakline down` and `streakline up` begin anew: its data went with it",
    "poller": f"{UP}; it goes on where it stopped",
    "redis": f"{UP}; it is a cache, and filled anew",
    "postgres": f"{UP}; its data are still there, and what came meanwhile waits in LeadIngestion",
}


def look() -> Deployment:
    """Look at every part; raises SystemExit, with what to do, if no laptop cloud is up."""
    stack = load()
    found = laptop_cloud.troubles(stack)
    parts = tuple(
        Part(NAMES[process], not why, why or "runs", MENDS[process]) for process, why in found.items()
    )
    seen = Deployment(WHERE, datetime.now(UTC), parts, about={"api_url": stack.api_url})
    return replace(seen, **_waiting(stack)) if not found["ministack"] else seen


def _waiting(stack: Stack) -> dict[str, Any]:
    """Return what waits: in streams, in queues, in failure queues; or why that cannot be seen."""
    found: dict[str, Any] = {"unseen": {}}
    for name, read in (
        ("consumers", lambda: tuple(_consumers(stack))),
        ("queues", lambda: {each: Queue(held) for each, held in patience.messages_waiting(stack).items()}),
        ("failures", lambda: patience.failures(stack)),
    ):
        try:
            found[name] = read()
        except AwsError as error:
            found["unseen"][name] = sentence(error)
    return found


def _consumers(stack: Stack) -> Iterator[Consumer]:
    """Yield each consumer with what it has not processed, from what the poller has noted as done."""
    names = {physical: name for name, physical in functions(stack).items()}
    described = stack.client("lambda").list_event_source_mappings()["EventSourceMappings"]
    of_queues = {each["UUID"] for each in described if ":sqs:" in each["EventSourceArn"]}
    done = read_checkpoints()
    asked = [
        (mapping, shard)
        for mapping in (mapping_of(each) for each in described if each["UUID"] not in of_queues)
        for shard in shards_of(stack, mapping)
    ]

    def read(place: tuple[EventSourceMapping, str]) -> Unread:
        mapping, shard = place
        begin = iterator_of(stack, mapping, shard, done.get(place_name(mapping, shard), ""))
        return unread(stack, mapping, begin)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(zip((mapping for mapping, _ in asked), pool.map(read, asked), strict=True))
    for physical, name in names.items():
        states = [
            each["State"]
            for each in described
            if each["UUID"] in of_queues and function_name(each["FunctionArn"]) == physical
        ]
        of_streams = [each for each in found if function_name(each[0].function) == physical]
        if of_streams:
            yield summed(name, stack, of_streams, ("ByPoller",))
        elif states:
            yield Consumer(
                name, tuple(states), trouble=trouble(states), mend="`streakline up` enables it again"
            )
