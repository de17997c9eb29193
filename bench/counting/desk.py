"""A desk: the real handlers in this process, DynamoDB by moto, a clock that stands still, and a meter.

Nothing leaves the process. A path is measured by calling handlers one after the other, as AWS would: what a
handler writes comes out as records of the table's stream, and these are handed to the stream's consumers.
"""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import import_module
from math import ceil
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from adapters import book, clock
from adapters.engagement import amnesty, boards
from adapters.platform import aws, keyed_hash
from adapters.platform.items import Item
from adapters.privacy.tombstones import Tombstones
from bench.counting.meter import Meter
from bench.counting.past_the_meter import PastTheMeter
from bench.counting.requests import logged
from bench.counting.table_shapes import shape_of
from bench.counting.wire_answers import Canned, Services
from bench.deployed import consumers, handler_modules
from tests.support.dynamodb_engine import TABLES, Engine, table_definition

CONTEXT = SimpleNamespace(
    function_name="f",
    memory_limit_in_mb=1024,
    invoked_function_arn="arn",
    aws_request_id="1",
    get_remaining_time_in_millis=lambda: 900_000,
)
START = datetime(2026, 3, 20, 14, 0, 0, 123456, tzinfo=UTC)
PHONES = "arn:aws:sns:us-east-1:000000000000:app/GCM/streakline"
# Lines are counted in steps: a line number with another digit is no change of a path.
LOG_STEP_BYTES = 64
Units = dict[str, float]
Call = tuple[str, Mapping[str, Any], list[Canned]]
Record = dict[str, Any]


@dataclass
class Desk:
    """now: what handlers take for the time. spent: what each function has cost since `take`.

    streams: by function and table, the records that wait. calls: those since `forget`, with the answers that
    they got, if these are kept.
    """

    meter: Meter
    services: Services
    past: PastTheMeter
    now: datetime = START
    spent: dict[str, Units] = field(default_factory=dict)
    streams: dict[tuple[str, str], list[Record]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 10**9)))

    def call(self, function: str, event: Mapping[str, Any]) -> Any:
        """Call a function's handler, by its name in the template; its cost is added up under that name."""
        self.meter.take()
        module = import_module(handler_modules()[function])
        if self.services.kept is not None:
            self.services.kept = []
        with logged(module) as lines:
            answer = module.handler(dict(event), CONTEXT)
        assert not (answer or {}).get("batchItemFailures"), (function, answer)
        logs = ceil(len(lines.getvalue().encode()) / LOG_STEP_BYTES) * LOG_STEP_BYTES
        self.note(function, {"invocations": 1, "logs.bytes": logs, **self.meter.take()})
        self.calls.append((function, event, self.services.kept or []))
        for change in self.meter.take_changes():
            record = self._record(*change)
            for consumer in consumers(change[0]):
                if consumer.takes(record):
                    self.streams.setdefault((consumer.function, change[0]), []).append(record)
                    self.note(function, {f"to.{consumer.function}.{change[0]}": 1})
        return answer

    def note(self, function: str, units: Mapping[str, float]) -> None:
        """Add units to what a function has cost."""
        sofar = self.spent.setdefault(function, {})
        for name, count in units.items():
            sofar[name] = sofar.get(name, 0) + count

    def _record(self, table: str, before: Item | None, after: Item) -> Record:
        number = next(self.numbers)
        return {
            "eventName": "MODIFY" if before else "INSERT",
            "eventSourceARN": f"arn:aws:dynamodb:us-east-1:000000000000:table/{table}/stream/1",
            "dynamodb": {
                "ApproximateCreationDateTime": self.now.timestamp(),
                "NewImage": after,
                "SequenceNumber": f"{number:021}",
            },
        }

    def tick(self, by: timedelta = timedelta(milliseconds=250)) -> datetime:
        """Let time pass; returns the new time."""
        self.now += by
        return self.now

    def records(self, function: str, table: str) -> list[Record]:
        """Return what a table's stream has for a function since the last time, and forget it."""
        return self.streams.pop((function, table), [])

    def consume(self, function: str, table: str) -> None:
        """Hand a function what waits for it on a table's stream, if anything does."""
        if records := self.records(function, table):
            self.call(function, {"Records": records})

    def take(self) -> dict[str, Units]:
        """Return what each function has cost, and start again."""
        taken, self.spent = self.spent, {}
        return {function: units for function, units in taken.items() if units}

    def forget(self) -> None:
        """Start a path: nothing is spent, nothing waits on a stream, a queue or a topic."""
        self.spent.clear()
        self.calls.clear()
        self.streams.clear()
        for each in ("messages", "announced", "delivered", "objects"):
            getattr(self.services, each).clear()


@contextmanager
def desk(**settings: str) -> Iterator[Desk]:
    """Set up a desk for a `with` block. settings: environment variables that differ from the engine's."""
    from moto import mock_aws

    environment = {
        **Engine("", "https://sqs.us-east-1.amazonaws.com/000000000000/failures").environment(),
        "PLATFORM_APPLICATION_ARN": PHONES,
        "LEAD_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/000000000000/leads",
        "ANNOUNCEMENT_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/000000000000/announcements",
        "FEATURE_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/000000000000/features",
        "IDENTITY_URL": "postgresql://nobody:none@localhost/none",
        "QUEUE_URLS": json.dumps({}),
        **settings,
    }
    with ExitStack() as held:
        held.enter_context(patch.dict(os.environ, environment))
        for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
            os.environ.pop(name, None)
        held.enter_context(mock_aws())
        held.enter_context(patch("aws_lambda_powertools.logging.logger.is_cold_start", new=False))
        _forget_processes()
        held.callback(_forget_processes)
        made = _made()
        held.enter_context(patch.object(clock, "now", lambda: made.now))
        # A busy process reads the keys of hashes every five minutes: that is no cost of a request.
        held.enter_context(patch.object(keyed_hash, "KNOWN_WITHIN", timedelta.max))
        # A process looks for versions, amnesties, boards, tombstones twice a minute, by a clock of its own.
        for module in (book, amnesty, boards):
            held.enter_context(patch.object(module, "FRESH_SECONDS", math.inf))
        held.enter_context(patch.object(Tombstones, "look", lambda _: {}))
        # Whoever comes first among threads differs from run to run.
        for name in ("engagement", "questions.fan_out", "questions.reminders"):
            held.enter_context(patch(f"processors.{name}.WRITERS", 1))
        yield made


def _made() -> Desk:
    from moto.core.models import botocore_stubber

    past = PastTheMeter()
    definitions = {name: table_definition(name, name) for name in TABLES}
    for definition in definitions.values():
        past.create(definition)
    shapes = {name: shape_of(each) for name, each in definitions.items()}
    meter = Meter(shapes, past.peek, past.evaluated)
    services = Services(
        lambda table, item: past.insert(table, shapes[table].key_of(item), item), botocore_stubber
    )
    attach(aws._session(), services, meter)
    return Desk(meter, services, past)


def attach(session: Any, services: Services, meter: Meter) -> None:
    """Let services answer what the clients of a botocore session ask, and the meter count it."""
    from moto.core.models import botocore_stubber

    events = session.get_component("event_emitter")
    # Of all handlers of this event moto's is called, too; so it is asked by our own, and only for its part.
    events.unregister("before-send", botocore_stubber)
    events.register("before-send", services.answer)
    meter.watch(events)


def _forget_processes() -> None:
    """Drop what this process holds as a Lambda process would: clients, settings."""
    aws._session.cache_clear()
    aws.client.cache_clear()
    for module in sorted(set(handler_modules().values())):
        parts: Callable[[], Any] | None = getattr(_loaded(module), "_parts", None)
        if parts is not None:
            parts.cache_clear()  # type: ignore[attr-defined]


def _loaded(module: str) -> Any:
    import sys

    return sys.modules.get(module)
