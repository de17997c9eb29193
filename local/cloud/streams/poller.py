"""Delivers streams to functions as Lambda's event source mappings do, through public APIs only.

The emulator's own mappings ignore partial failures, bisecting, retry limits and failure destinations. So the
template disables them on a laptop, and this process reads their settings and does their work.
"""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from local.cloud.streams.delivery import (
    EventSourceMapping,
    InvocationReply,
    Record,
    deliver,
    discarded_message,
    function_name,
    mapping_of,
    reply_of,
    sequence_of,
)
from local.cloud.streams.event_filters import is_wanted
from local.cloud.streams.poller_state import PollerState, place_name
from local.cloud.streams.resting import Resting
from local.cloud.streams.shard_reader import ShardReader
from local.cloud.streams.stream_records import iterator_of, read_records, shards_of
from local.stack import Stack, load

STATE_SECONDS = 0.1
DISCOVER_SECONDS = 10.0


@dataclass(slots=True)
class Poller:
    """Serves every mapping that the template left disabled.

    shards: of each stream. readers: by stream and shard. served: each consumer of each shard.
    """

    stack: Stack
    state: PollerState = field(default_factory=PollerState)
    shards: dict[str, list[str]] = field(default_factory=dict)
    readers: dict[tuple[str, str], ShardReader] = field(default_factory=dict)
    served: set[str] = field(default_factory=set)
    resting: Resting = field(default_factory=Resting)

    def run(self) -> None:
        """Look for mappings and shards, forever. Each shard has a thread of its own."""
        self.state.load()
        looked = 0.0
        while True:
            if time.monotonic() - looked > DISCOVER_SECONDS:
                self._discover()
                looked = time.monotonic()
            self.resting.hear()
            self.state.write()
            time.sleep(STATE_SECONDS)

    def _discover(self) -> None:
        found = self.stack.client("lambda").list_event_source_mappings()["EventSourceMappings"]
        for described in found:
            source = described["EventSourceArn"]
            if described["State"] != "Disabled" or not (":kinesis:" in source or ":dynamodb:" in source):
                continue
            mapping = mapping_of(described)
            for shard in self._shards_of(mapping):
                key = place_name(mapping, shard)
                if key not in self.served:
                    self.served.add(key)
                    self.state.caught_up.setdefault(self._name(mapping), {})[key] = 0.0
                    threading.Thread(target=self._serve, args=(mapping, shard, key), daemon=True).start()

    def _shards_of(self, mapping: EventSourceMapping) -> list[str]:
        """Return the ids of a stream's shards. Those of a table never change here, and are asked for once."""
        if mapping.is_kinesis or mapping.source not in self.shards:
            self.shards[mapping.source] = shards_of(self.stack, mapping)
        for shard in self.shards[mapping.source]:
            if (mapping.source, shard) not in self.readers:
                begin = partial(iterator_of, self.stack, mapping, shard)
                reader = ShardReader(begin, partial(read_records, self.stack, mapping))
                self.readers[mapping.source, shard] = reader
        return self.shards[mapping.source]

    @staticmethod
    def _name(mapping: EventSourceMapping) -> str:
        return function_name(mapping.function)

    def _serve(self, mapping: EventSourceMapping, shard: str, key: str) -> None:
        while True:
            try:
                for batch in self._batches(mapping, shard, key):
                    self.state.count(self._name(mapping), "records", len(batch))
                    deliver(
                        batch,
                        mapping,
                        lambda records: self._invoke(mapping, records),
                        lambda records, why, tries: self._discard(mapping, shard, records, why, tries),
                    )
            except Exception as error:
                print(f"{key}: {error!r}", flush=True)
                time.sleep(1)

    def _batches(self, mapping: EventSourceMapping, shard: str, key: str) -> Iterator[list[Record]]:
        """Yield filtered batches. A batch is checkpointed when the caller asks for the next one."""
        name, reader = self._name(mapping), self.readers[mapping.source, shard]
        patterns = [json.loads(each) for each in mapping.patterns]
        place = passed = self.state.checkpoints.get(key, "")
        waiting: list[Record] = []
        polled_at, started, idle = 0.0, 0.0, 0
        while True:
            page = reader.read(place, polled_at)
            polled_at = page.polled_at
            place = sequence_of(page.records[-1]) if page.records else place
            wanted = [each for each in page.records if is_wanted(each, patterns)]
            if wanted and not waiting:
                started = time.monotonic()
            waiting += wanted
            while len(waiting) >= mapping.batch_size:
                batch, waiting = waiting[: mapping.batch_size], waiting[mapping.batch_size :]
                yield batch
                self.state.checkpoint(key, sequence_of(batch[-1]))
            if waiting and time.monotonic() - started < mapping.window_seconds:
                caught_up_at = self.state.caught_up[name][key]
                if page.records or not self.resting.is_awaited(name, caught_up_at):
                    self.resting.gather(name, caught_up_at)  # more may come before the batching window ends
                    continue
            if waiting:
                batch, waiting = waiting, []
                yield batch
            if place != passed:
                self.state.checkpoint(key, place)
                passed = place
            idle = 0 if page.records else idle + 1
            if idle:
                self.state.caught_up[name][key] = polled_at
                self.resting.rest(name, polled_at, idle, is_kinesis=mapping.is_kinesis)

    def _invoke(self, mapping: EventSourceMapping, records: Sequence[Record]) -> InvocationReply:
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
            self.state.count(self._name(mapping), "errors", 1)
            print(f"{self._name(mapping)}: {len(records)} records: {error}", flush=True)
        return reply_of(payload, error, records, partial=mapping.partial)

    def _discard(
        self, mapping: EventSourceMapping, shard: str, records: Sequence[Record], why: str, tries: int
    ) -> None:
        """Send to the failure destination what Lambda sends: the place of the records, not the records."""
        self.state.count(self._name(mapping), "discarded", len(records))
        if not mapping.destination:
            return
        message = discarded_message(mapping, shard, records, why, tries)
        sqs = self.stack.client("sqs")
        url = sqs.get_queue_url(QueueName=mapping.destination.rsplit(":", 1)[-1])["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody=json.dumps(message))


if __name__ == "__main__":
    Poller(load()).run()
