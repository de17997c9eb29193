"""What Firehose bills for an event's rows, packed as the publisher does it, compared with one row a record.

Users with open accounts each send some events of a new date at once. The real door and processor make the
rows of events, ledger, days and profiles, the real publisher packs what comes in one window, and its requests
are counted. Firehose bills each record rounded up to 5 KB.
"""

import base64
import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import yaml

from adapters import settings
from adapters.platform.aws import client
from adapters.settings.event_intake import EventsStreamSettings
from bench.engagement.workload import BATCH, DAY, DAY_ONE, bodies
from bench.figure import Figure
from bench.lake.publisher import CONTEXT
from bench.units.paths.publishing import billed_bytes
from ingest.engagement.events import AcceptStatus, acceptor
from ingest.web.caller import Caller
from local.cloud.streams import matches, table_record
from local.paths import ROOT
from processors import engagement, publisher
from rules.lake.packed_records import row_texts
from tests.support.dynamodb_engine import Engine, running

# Users who send in one window, and the events that each sends.
BUDGETS: dict[tuple[int, int], float | None] = {(100, 1): 1.3, (100, 5): 1.3, (100, 20): 1.3}
FEW: dict[tuple[int, int], float | None] = {(1, 1): None, (1, 20): None, (10, 1): None}
LATE_SHARE, LATE_HOURS_MAX = 0.05, 72
MAPPINGS = {
    "BPEvents": "PublishEventsMapping",
    "DailyActivity": "PublishDaysMapping",
    "RewardsLedger": "PublishLedgerMapping",
    "UserStreaks": "PublishStreaksMapping",
}
CALLER = Caller("", is_admin=True)


def run() -> Iterator[Figure]:
    """Yield the bytes billed, of the bytes that the rows have."""
    publisher.logger.setLevel("CRITICAL")
    with running() as engine:
        os.environ.update(engine.environment())
        site = FirehoseBill(engine, {table: TableStream(engine, table) for table in MAPPINGS})
        client("firehose").meta.events.register("before-call.firehose", site.sent.note)
        for (users, per_user), budget in (BUDGETS | FEW).items():
            yield from site.figures(users, per_user, 0.0, budget)
        yield from site.figures(100, 20, LATE_SHARE, None)


@dataclass(slots=True)
class Sent:
    """The records that Firehose got, and their rows, each with its line break."""

    records: list[bytes] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)

    def note(self, params: Mapping[str, Any], **_: Any) -> None:
        """Note a call of PutRecordBatch: botocore hands over the request as it is sent."""
        for each in json.loads(params["body"])["Records"]:
            data = base64.b64decode(each["Data"])
            self.records.append(data)
            self.rows += [text + b"\n" for text in row_texts(data)]


class TableStream:
    """A table's stream from now on, as the publisher's mapping filters and cuts it."""

    def __init__(self, engine: Engine, table: str) -> None:
        self._streams = engine.client("dynamodbstreams")
        self._arn = engine.client("dynamodb").describe_table(TableName=table)["Table"]["LatestStreamArn"]
        shard = self._streams.describe_stream(StreamArn=self._arn)["StreamDescription"]["Shards"][0]
        self._next = self._streams.get_shard_iterator(
            StreamArn=self._arn, ShardId=shard["ShardId"], ShardIteratorType="LATEST"
        )["ShardIterator"]
        mapping = _mapping(MAPPINGS[table])
        self._patterns = [json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"]]
        self.batch = int(mapping["BatchSize"])

    def read(self) -> list[dict[str, Any]]:
        """Return what has come since the last time."""
        found: list[dict[str, Any]] = []
        while True:
            answer = self._streams.get_records(ShardIterator=self._next)
            self._next = answer["NextShardIterator"]
            if not answer["Records"]:
                return [each for each in found if any(matches(one, each) for one in self._patterns)]
            found += [table_record(each, self._arn) for each in answer["Records"]]


@dataclass(slots=True)
class FirehoseBill:
    """The doors, the processor and the publisher over an engine, and what Firehose got from them."""

    engine: Engine
    streams: Mapping[str, TableStream]
    sent: Sent = field(default_factory=Sent)
    loads: int = 0

    def figures(self, users: int, per_user: int, late_share: float, budget: float | None) -> Iterator[Figure]:
        """Yield a load's ratio, and the same for one row a record."""
        self.loads += 1
        chance = random.Random(self.loads)
        who = [f"load-{self.loads}-user-{number:09}" for number in range(users)]
        self._window([bodies([user], 1, DAY_ONE) for user in who], DAY_ONE)
        self.sent.records.clear()
        self.sent.rows.clear()
        day_two = DAY_ONE + DAY
        requests = [
            [_late(each, chance, late_share) for each in bodies([user], per_user, day_two)] for user in who
        ]
        self._window(requests, day_two)
        rows, records, events = self.sent.rows, self.sent.records, users * per_user
        after, before, own = (
            sum(map(billed_bytes, records)),
            sum(map(billed_bytes, rows)),
            sum(map(len, rows)),
        )
        claim = f"Firehose bytes billed, {users} users with {per_user}"
        claim += ", 1 of 20 late" if late_share else ""
        detail = f"{after / events:,.0f} against {before / events:,.0f} an event"
        detail += f", whose rows have {own / events:,.0f}"
        detail += f"; {len(records)} records of {len(rows)} rows"
        yield Figure(claim, after / own, "<=", budget, detail)
        yield Figure("  one row a record", before / own)

    def _window(self, requests: Sequence[Sequence[Any]], at: datetime) -> None:
        """Take requests in, apply their events, and publish what came of it."""
        now = at + DAY / 4
        door = acceptor(settings.read_settings(EventsStreamSettings))
        for each in requests:
            assert all(one.status is AcceptStatus.ACCEPTED for one in door.accept(each, CALLER, now))
        changes = {"BPEvents": self.streams["BPEvents"].read()}
        for batch in _cut(changes["BPEvents"], BATCH):
            outcome = engagement._parts().apply(batch, now + DAY / 1000)
            assert outcome.counts["applied"] == len(batch), outcome
        for table, stream in self.streams.items():
            found = [*changes.get(table, []), *stream.read()]
            for batch in _cut(found, stream.batch):
                assert publisher.handler({"Records": batch}, CONTEXT) == {"batchItemFailures": []}


def _late(body: dict[str, Any], chance: random.Random, share: float) -> dict[str, Any]:
    if chance.random() >= share:
        return body
    moved = datetime.fromisoformat(body["occurred_at"]) - timedelta(
        hours=chance.uniform(1, LATE_HOURS_MAX - 8)
    )
    return body | {"occurred_at": moved.isoformat()}


def _cut(records: list[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    yield from (records[at : at + size] for at in range(0, len(records), size))


class _Loader(yaml.SafeLoader):
    """Reads a template without CloudFormation's short forms (`!Ref` ...)."""


_Loader.add_multi_constructor("!", lambda *_: None)


def _mapping(name: str) -> dict[str, Any]:
    template = yaml.load((ROOT / "template.yaml").read_text(), Loader=_Loader)
    mapping: dict[str, Any] = template["Resources"][name]["Properties"]
    return mapping
