"""Batches of stream records, and a run of the poller that notes what it delivers, discards and waits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from local.cloud.streams import EventSourceMapping, InvocationReply, Record, deliver, sequence_of

PLAIN = EventSourceMapping("function", "arn:aws:dynamodb:us-east-1:0:table/T/stream/1")
BISECTING = replace(PLAIN, bisect=True, retries_max=2)


def record(number: int, arrived: float = 0.0) -> Record:
    return {"dynamodb": {"SequenceNumber": str(number), "ApproximateCreationDateTime": arrived}}


def records(count: int) -> list[Record]:
    return [record(number) for number in range(count)]


def numbers(batch: Sequence[Record]) -> list[int]:
    return [int(sequence_of(each)) for each in batch]


@dataclass
class Run:
    """What a delivery did: invocations, pauses, and what was discarded and why."""

    invoked: list[list[int]] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    discarded: list[tuple[list[int], str, int]] = field(default_factory=list)
    paused: list[float] = field(default_factory=list)
    clock: float = 0.0

    def deliver(
        self,
        batch: Sequence[Record],
        mapping: EventSourceMapping,
        function: Callable[[list[int]], InvocationReply],
        step: float = 0,
    ) -> "Run":
        def invoke(each: Sequence[Record]) -> InvocationReply:
            self.clock += step
            asked = numbers(each)
            self.invoked.append(asked)
            assert len(self.invoked) < 10_000, "it never ends"
            reply = function(asked)
            if reply.failed is not None:
                lowest = min([asked.index(int(n)) for n in reply.failed], default=len(asked))
                self.done += asked[:lowest]
            return reply

        def discard(each: Sequence[Record], why: str, tries: int) -> None:
            self.discarded.append((numbers(each), why, tries))

        deliver(batch, mapping, invoke, discard, self.paused.append, lambda: self.clock)
        return self
