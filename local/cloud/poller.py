"""Delivers streams to functions as Lambda's event source mappings do.

The emulator's own mappings ignore partial failures, bisecting, retry limits and failure destinations. So the
template disables them on a laptop, and this process reads their settings and does their work. It calls the
public APIs alone, but asks the emulator which tables have changed (local/cloud/changes.py).
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import urllib3

from local.cloud.changes import CHANGES
from local.cloud.streams import (
    EventSourceMapping,
    InvocationReply,
    Record,
    arrival_of,
    deliver,
    discarded_message,
    function_name,
    is_wanted,
    iterator_of,
    mapping_of,
    read_records,
    reply_of,
    sequence_of,
    shards_of,
)
from local.paths import ASKED, LOCAL
from local.stack import Stack, load

CHECKPOINTS = LOCAL / "checkpoints.json"  # how far each consumer of a shard is
HEARTBEAT = LOCAL / "poller.json"  # the counts of each function
STATE_SECONDS = 0.1
CHANGES_SECONDS = 5.0  # how long the emulator may take to say what has changed
DISCOVER_SECONDS = 30.0
# Lambda asks a shard of Kinesis once a second, a table's four times. Here the emulator says when a table has
# changed (local/cloud/changes.py), and one that has not is asked rarely.
KINESIS_SECONDS = 1.0
TABLE_SECONDS = 5.0
GATHER_SECONDS = 0.25  # between two looks for more records of a batch


@dataclass(slots=True)
class PollerState:
    """What the poller has done. It is reported in the files CHECKPOINTS and HEARTBEAT."""

    checkpoints: dict[str, str] = field(default_factory=dict)  # the last record done, by consumer and shard
    # When a consumer last had nothing left to do, by function, then by consumer and shard
    caught_up: dict[str, dict[str, float]] = field(default_factory=dict)
    # Until when all that arrived is done, by the same
    done_until: dict[str, dict[str, float]] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)  # of each function
    file_texts: dict[Path, str] = field(default_factory=dict)  # as last written
    lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self) -> None:
        """Go on where a former poller stopped."""
        self.checkpoints = dict(json.loads(CHECKPOINTS.read_text())) if CHECKPOINTS.exists() else {}

    def checkpoint(self, key: str, number: str) -> None:
        """Note the last record that a consumer of a shard has done."""
        with self.lock:
            self.checkpoints[key] = number

    def count(self, function: str, what: str, number: int) -> None:
        """Add to one of a function's counts."""
        with self.lock:
            counts = self.counts.setdefault(function, {})
            counts[what] = counts.get(what, 0) + number

    def write(self) -> None:
        """Write the files whose text has changed."""
        with self.lock:
            state = {
                name: {
                    **self.counts.get(name, {}),
                    "caught_up_at": min(shards.values(), default=0.0),
                    "done_until": min(self.done_until[name].values(), default=0.0),
                }
                for name, shards in self.caught_up.items()
            }
            texts = {HEARTBEAT: json.dumps(state), CHECKPOINTS: json.dumps(self.checkpoints)}
        for path, text in texts.items():
            if self.file_texts.get(path) != text:
                self.file_texts[path] = text
                _replace(path, text)


@dataclass(slots=True)
class Pauses:
    """The pauses of idle shards' threads. One ends when the table changes or somebody waits for the function.

    Whoever waits writes the function's name, and when the waiting began, into the file ASKED.
    """

    wait_starts: dict[str, float] = field(default_factory=dict)  # by function: the latest, in epoch seconds
    changes: dict[str, int] = field(default_factory=dict)  # by table: how many the emulator has counted
    condition: threading.Condition = field(default_factory=threading.Condition)

    def rest(self, function: str, polled_at: float, table: str, changes: int | None) -> None:
        """Pause until the next look, until the table changes, or until somebody waits.

        table: "" for a shard of Kinesis. changes: the table's count before the last look.
        """
        seconds = TABLE_SECONDS if table else KINESIS_SECONDS
        self._wait(function, polled_at, seconds, lambda: self.changes.get(table) != changes)

    def gather(self, function: str, caught_up_at: float) -> None:
        """Wait a little until a batch has more records; not at all if somebody waits for the function.

        caught_up_at: when the function last had nothing left to do.
        """
        self._wait(function, caught_up_at, GATHER_SECONDS)

    def is_awaited(self, function: str, since: float) -> bool:
        """Whether somebody has begun to wait for a function, at `since` or later."""
        return self.wait_starts.get(function, -1.0) >= since

    def _wait(
        self, function: str, since: float, seconds: float, has_changed: Callable[[], bool] = lambda: False
    ) -> None:
        with self.condition:
            self.condition.wait_for(lambda: self.is_awaited(function, since) or has_changed(), seconds)

    def end_changed(self, changes: dict[str, int]) -> None:
        """End the pauses of tables that have changed. changes: what the emulator has counted, by table."""
        if changes != self.changes:
            with self.condition:
                self.changes = changes
                self.condition.notify_all()

    def end_awaited(self) -> None:
        """End the pauses of a function for which somebody has begun to wait, as the file ASKED says."""
        # There is no file before somebody waits. A damaged one disturbs nobody.
        with contextlib.suppress(OSError, ValueError):
            text, function = ASKED.read_text().split(" ")
            wait_start = float(text)
            if wait_start != self.wait_starts.get(function):
                with self.condition:
                    self.wait_starts[function] = wait_start
                    self.condition.notify_all()


def ask(function: str, at: float) -> None:
    """Note for the poller that somebody waits for a function. at: since when (epoch seconds)."""
    _replace(ASKED, f"{at} {function}")


def _replace(path: Path, text: str) -> None:
    """Write a file in one step, so that no reader sees half of it."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


@dataclass(slots=True)
class ShardReader:
    """Reads a shard for one function, and makes batches of the records that the mapping's filters allow."""

    stack: Stack
    mapping: EventSourceMapping
    shard: str
    key: str  # of the function, as a consumer of the shard, in the poller's state
    state: PollerState
    pauses: Pauses
    position: str = ""  # the sequence number of the last record that was read; "": none was
    waiting: list[Record] = field(default_factory=list)  # records that were read, and are of no batch yet
    window_began: float = 0.0  # when the first of these was read
    iterator: str | None = None  # where the next look begins; None: behind the position

    def batches(self) -> Iterator[list[Record]]:
        """Yield batches, forever. A batch is checkpointed when the caller asks for the next one."""
        name = function_name(self.mapping.function)
        done_until, caught_up = self.state.done_until[name], self.state.caught_up[name]
        self.position = self.state.checkpoints.get(self.key, "")
        table = "" if self.mapping.is_kinesis else self.mapping.source.split("/")[1]
        while True:
            polled_at, changes = time.time(), self.pauses.changes.get(table)
            records = self._read()
            while len(self.waiting) >= self.mapping.batch_size:
                batch = self._take_waiting(self.mapping.batch_size)
                yield batch
                self.state.checkpoint(self.key, sequence_of(batch[-1]))
                done_until[self.key] = arrival_of(batch[-1])
            if self.waiting and time.monotonic() - self.window_began < self.mapping.window_seconds:
                # More may come before the batching window ends. What is gathered for a batch is not late.
                done_until[self.key] = polled_at
                if records or not self.pauses.is_awaited(name, caught_up[self.key]):
                    self.pauses.gather(name, caught_up[self.key])
                    continue
            if self.waiting:
                yield self._take_waiting(len(self.waiting))
            # Nothing waits now: all that was read is done, also what the filters left out.
            if self.position:
                self.state.checkpoint(self.key, self.position)
            done_until[self.key] = arrival_of(records[-1]) if records else polled_at
            if not records:
                caught_up[self.key] = polled_at
                self.pauses.rest(name, polled_at, table, changes)

    def _read(self) -> list[Record]:
        """Return the records behind the position. Those that the filters let through wait from now on."""
        source = self.mapping.source
        iterator = self.iterator or iterator_of(self.stack, source, self.shard, self.position)
        records, self.iterator = read_records(self.stack, source, iterator)
        if records:
            self.position = sequence_of(records[-1])
        patterns = [json.loads(pattern) for pattern in self.mapping.patterns]
        wanted = [record for record in records if is_wanted(record, patterns)]
        if wanted and not self.waiting:
            self.window_began = time.monotonic()
        self.waiting += wanted
        return records

    def _take_waiting(self, count: int) -> list[Record]:
        """Return so many of the records that wait. They wait no longer."""
        batch, self.waiting = self.waiting[:count], self.waiting[count:]
        return batch


@dataclass(slots=True)
class Poller:
    """Serves every mapping that the template left disabled."""

    stack: Stack
    state: PollerState = field(default_factory=PollerState)
    consumers: set[str] = field(default_factory=set)  # of shards, those that have a thread
    pauses: Pauses = field(default_factory=Pauses)
    pool: urllib3.PoolManager = field(default_factory=urllib3.PoolManager)

    def run(self) -> None:
        """Look for mappings and shards, forever. Each shard has a thread of its own."""
        self.state.load()
        discovered_at = 0.0
        while True:
            if time.monotonic() - discovered_at > DISCOVER_SECONDS:
                self._discover()
                discovered_at = time.monotonic()
            self.pauses.end_awaited()
            self.pauses.end_changed(self._changes())
            self.state.write()
            time.sleep(STATE_SECONDS)

    def _changes(self) -> dict[str, int]:
        """Return how often each table has changed; {} if the emulator does not say it."""
        url = f"{self.stack.endpoint_url}{CHANGES}"
        with contextlib.suppress(urllib3.exceptions.HTTPError, ValueError):
            counts: dict[str, int] = self.pool.request(
                "GET", url, retries=False, timeout=CHANGES_SECONDS
            ).json()
            return counts
        return {}

    def _discover(self) -> None:
        """Start a thread for each shard of each mapping that the template left disabled, if it has none."""
        answer = self.stack.client("lambda").list_event_source_mappings()
        for description in answer["EventSourceMappings"]:
            source = description["EventSourceArn"]
            if description["State"] != "Disabled" or not (":kinesis:" in source or ":dynamodb:" in source):
                continue
            mapping = mapping_of(description)
            for shard in shards_of(self.stack, source):
                key = f"{mapping.function} {source} {shard}"
                if key not in self.consumers:
                    self.consumers.add(key)
                    for times in (self.state.caught_up, self.state.done_until):
                        times.setdefault(function_name(mapping.function), {})[key] = 0.0
                    threading.Thread(target=self._serve, args=(mapping, shard, key), daemon=True).start()

    def _serve(self, mapping: EventSourceMapping, shard: str, key: str) -> None:
        """Deliver a shard's records to a function, forever. After an error it goes on from the checkpoint."""
        while True:
            try:
                for batch in ShardReader(self.stack, mapping, shard, key, self.state, self.pauses).batches():
                    self.state.count(function_name(mapping.function), "records", len(batch))
                    deliver(
                        batch,
                        mapping,
                        lambda records: self._invoke(mapping, records),
                        lambda records, why, tries: self._discard(mapping, shard, records, why, tries),
                    )
            except Exception as error:
                print(f"{key}: {error!r}", flush=True)
                time.sleep(1)

    def _invoke(self, mapping: EventSourceMapping, records: Sequence[Record]) -> InvocationReply:
        """Invoke a mapping's function with records; an error is counted, printed, and part of the reply."""
        try:
            answer = self.stack.client("lambda", attempts=1).invoke(
                FunctionName=mapping.function, Payload=json.dumps({"Records": list(records)}).encode()
            )
            text = answer["Payload"].read().decode()
            payload = json.loads(text or "null")
            error = f"{answer['FunctionError']}: {text[:300]}" if answer.get("FunctionError") else ""
        except Exception as raised:
            payload, error = None, repr(raised)
        if error:
            self.state.count(function_name(mapping.function), "errors", 1)
            print(f"{function_name(mapping.function)}: {len(records)} records: {error}", flush=True)
        return reply_of(payload, error, records, partial=mapping.partial)

    def _discard(
        self, mapping: EventSourceMapping, shard: str, records: Sequence[Record], why: str, tries: int
    ) -> None:
        """Send to the failure destination what Lambda sends: where the records are, not the records."""
        self.state.count(function_name(mapping.function), "discarded", len(records))
        if not mapping.destination:
            return
        message = discarded_message(mapping, shard, records, why, tries)
        sqs = self.stack.client("sqs")
        url = sqs.get_queue_url(QueueName=mapping.destination.rsplit(":", 1)[-1])["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody=json.dumps(message))


if __name__ == "__main__":
    Poller(load()).run()
