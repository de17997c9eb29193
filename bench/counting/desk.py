"""Runs the real handlers in this process and counts what they cost. A *desk* is that set-up.

moto answers for DynamoDB, canned answers stand for the other services, the clock stands still, and a meter
counts every request. Nothing leaves the process. A path is measured by calling handlers one after the other,
as AWS would: each change of a table becomes a record of its stream, which waits until a function consumes it.

moto is imported late, because it adds a handler to all later botocore sessions of the process.
"""

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from adapters import book_store, clock
from adapters.engagement import amnesty_store, boards, daily_terms_store
from adapters.platform import aws, keyed_hash
from adapters.platform.items import Item
from adapters.privacy.tombstones import Tombstones
from bench.counting.canned_services import CannedServices
from bench.counting.dynamodb_units import shape_of
from bench.counting.meter import Meter, UnmeteredTables
from bench.counting.requests import Record, captured_logs
from bench.deployed import consumers, handler_modules
from rules.parts import said
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
# Log bytes are rounded up, so that a longer line number in a log line is no change of a path's cost.
LOG_STEP_BYTES = 64
Units = dict[str, float]  # see bench.counting.meter
PathCosts = Iterator[tuple[str, dict[str, Units]]]  # a path's name; by function, what the path cost


@dataclass
class Desk:
    """The functions of the template in this process, and what they have cost."""

    meter: Meter
    services: CannedServices
    tables: UnmeteredTables
    now: datetime = START  # what handlers take for the time
    costs: dict[str, Units] = field(default_factory=dict)  # by function, since `start_path` or `take_costs`
    streams: dict[tuple[str, str], list[Record]] = field(default_factory=dict)  # by function and table
    sequence_numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 10**9)))

    def start_path(self) -> None:
        """Begin to measure: nothing has been spent, and nothing waits on a stream, a queue or a topic."""
        self.costs.clear()
        self.streams.clear()
        self.services.clear()
        self.meter.take_counts()
        self.meter.take_changes()

    def call(self, function: str, event: Mapping[str, Any]) -> Any:
        """Call a function's handler, by its name in the template, and add its cost; returns its answer."""
        self.meter.take_counts()  # what the benchmark asked for between two calls is no function's cost
        module = import_module(handler_modules()[function])
        with captured_logs(module) as lines:
            answer = module.handler(dict(event), CONTEXT)
        assert not (answer or {}).get("batchItemFailures"), (function, answer)
        log_bytes = math.ceil(len(lines.getvalue().encode()) / LOG_STEP_BYTES) * LOG_STEP_BYTES
        self.add_cost(function, {"invocations": 1, "logs.bytes": log_bytes, **self.meter.take_counts()})
        for table, before, after in self.meter.take_changes():
            record = self._record(table, before, after)
            for consumer in consumers(table):
                if consumer.wants(record):
                    self.streams.setdefault((consumer.function, table), []).append(record)
                    self.add_cost(function, {f"to.{consumer.function}.{table}": 1})
        return answer

    def _record(self, table: str, before: Item | None, after: Item) -> Record:
        return {
            "eventName": "MODIFY" if before else "INSERT",
            "eventSourceARN": f"arn:aws:dynamodb:us-east-1:000000000000:table/{table}/stream/1",
            "dynamodb": {
                "ApproximateCreationDateTime": self.now.timestamp(),
                "NewImage": after,
                "SequenceNumber": f"{next(self.sequence_numbers):021}",
            },
        }

    def add_cost(self, function: str, units: Mapping[str, float]) -> None:
        """Add units to what a function has cost."""
        costs = self.costs.setdefault(function, {})
        for name, count in units.items():
            costs[name] = costs.get(name, 0) + count

    def add_metered_cost(self, function: str) -> None:
        """Add what the meter has counted since it was last asked, as the cost of code that is no function."""
        self.meter.take_changes()
        self.add_cost(function, self.meter.take_counts())

    def take_costs(self) -> dict[str, Units]:
        """Return what each function has cost, and start again."""
        costs, self.costs = self.costs, {}
        return {function: units for function, units in costs.items() if units}

    def tick(self, duration: timedelta = timedelta(milliseconds=250)) -> datetime:
        """Let time pass; returns the new time."""
        self.now += duration
        return self.now

    def take_records(self, function: str, table: str) -> list[Record]:
        """Return the records of a table that wait for a function; they wait no longer."""
        return self.streams.pop((function, table), [])

    def consume(self, function: str, table: str) -> None:
        """Hand a function the records of a table that wait for it, if there are any."""
        if records := self.take_records(function, table):
            self.call(function, {"Records": records})


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
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, environment))
        for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
            os.environ.pop(name, None)
        stack.enter_context(mock_aws())
        # Powertools writes into each log line whether the process has just started.
        stack.enter_context(patch("aws_lambda_powertools.logging.logger.is_cold_start", new=False))
        _clear_handlers()
        stack.callback(_clear_handlers)
        new_desk = _new_desk()
        stack.enter_context(patch.object(clock, "now", lambda: new_desk.now))
        # A busy process reads the keys of hashes every five minutes: that is no cost of a request.
        stack.enter_context(patch.object(keyed_hash, "KNOWN_WITHIN", timedelta.max))
        # Versions, terms, amnesties, boards and tombstones are re-read by the monotonic clock, which cannot
        # stand still: never here.
        for module in (book_store, amnesty_store, boards, daily_terms_store):
            stack.enter_context(patch.object(module, "FRESH_SECONDS", math.inf))
        stack.enter_context(patch.object(Tombstones, "look", lambda _: {}))
        # With several threads that write, the order of requests differs from run to run.
        for module in ("processors.engagement", *(each for names in said("threads") for each in names)):
            stack.enter_context(patch(f"{module}.WRITERS", 1))
        yield new_desk


def _new_desk() -> Desk:
    from moto.core.models import botocore_stubber

    tables = UnmeteredTables()
    definitions = {name: table_definition(name, name) for name in TABLES}
    for definition in definitions.values():
        tables.create(definition)
    shapes = {name: shape_of(each) for name, each in definitions.items()}
    meter = Meter(shapes, tables)
    services = CannedServices(
        lambda table, item: tables.insert(table, shapes[table].key_of(item), item), botocore_stubber
    )
    attach(aws._session(), services, meter)
    return Desk(meter, services, tables)


def attach(session: Any, services: CannedServices, meter: Meter) -> None:
    """Let the services answer all clients of a botocore session, and the meter count their requests."""
    from moto.core.models import botocore_stubber

    events = session.get_component("event_emitter")
    # Every handler of this event is called. moto's must answer only what the services hand on to it.
    events.unregister("before-send", botocore_stubber)
    events.register("before-send", services.answer)
    meter.watch(events)


def _clear_handlers() -> None:
    aws._session.cache_clear()
    aws.client.cache_clear()
    for name in set(handler_modules().values()) & sys.modules.keys():
        if parts := getattr(sys.modules[name], "_parts", None):
            parts.cache_clear()
