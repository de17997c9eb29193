"""One of two regions in a simulation: an engine with its tables, a fence, and what is on its way to it."""

import base64
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from adapters.platform.fence import Fence, guard_client
from local.region_unseen import Side
from processors.region_sender import ChangeSender
from rules.days import stamp_of_key
from rules.regions.changes import KEYS
from rules.regions.register import Clocks, Phase, Register, may_follow, may_write
from tests.support.engine import Engine, changes, lean_client

TABLES = {name: name for name in KEYS}
# Of these the simulated users have something.
IN_USE = ("UserStreaks", "BPEvents", "DailyActivity", "RewardsLedger", "IdempotencyKeys", "Rewards")


@dataclass
class Region:
    """bare: a client that nothing stops, for what checks. operator: one that may fail. changes, events: not read yet.

    intrusions: writes that were let through while the other region wrote. arrived: messages in its queue. cut: whether it reaches neither the register nor the other region.
    """

    name: str
    engine: Engine
    users: list[str]
    read: Callable[[], Register | None]
    seconds: Callable[[], float]
    rate: float
    cut: bool = False
    is_consuming: bool = True
    changes: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    arrived: list[str] = field(default_factory=list)
    entries: dict[tuple[str, str], str] = field(default_factory=dict)
    intrusions: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bare = lean_client(self.engine, "dynamodb")
        self.fence = Fence(self._look, self.name, self._clocks)
        self.writes = guard_client(
            lean_client.__wrapped__(self.engine, "dynamodb"), self.fence, self._may_write
        )
        self.follows = guard_client(lean_client.__wrapped__(self.engine, "dynamodb"), self.fence, may_follow)
        self._streams = lean_client(self.engine, "dynamodbstreams")
        self._iterators = {name: self._latest(name) for name in IN_USE}
        self._at, self._polled = 0, dict.fromkeys(IN_USE, -1)

    @property
    def side(self) -> Side:
        """Its tables, for whoever only looks."""
        return Side(self.name, self.bare, TABLES)

    def _look(self) -> Register | None:
        if self.cut:
            raise ConnectionError("the region is cut off")
        return self.read()

    def _may_write(self, register: Register, region: str) -> bool:
        """The fence's question; and whether somebody else writes at the moment at which it says yes."""
        is_allowed, now = may_write(register, region), self.read()
        if is_allowed and now and now.phase is Phase.OPEN and now.writer != region:
            self.intrusions.append(f"{region} writes by epoch {register.epoch}, while {now.writer} does")
        return is_allowed

    def _clocks(self) -> Clocks:
        now = self.seconds() * self.rate
        return Clocks(now, now)

    def _latest(self, name: str) -> tuple[str, str]:
        arn: str = self.bare.describe_table(TableName=name)["Table"]["LatestStreamArn"]
        shard = self._streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
        found = self._streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="LATEST")
        return arn, found["ShardIterator"]

    def poll(self) -> None:
        """Read what the tables' streams have: all of it is a change, and events go to the processor too."""
        for name in IN_USE:
            if self._polled[name] == (made := changes(self.engine, name)):
                continue
            self._polled[name] = made
            arn, iterator = self._iterators[name]
            while True:
                answer = self._streams.get_records(ShardIterator=iterator)
                iterator = answer["NextShardIterator"]
                if not answer["Records"]:
                    break
                for record in answer["Records"]:
                    self._take(name, arn, record)
            self._iterators[name] = arn, iterator

    def _take(self, name: str, arn: str, record: dict[str, Any]) -> None:
        change = dict(record["dynamodb"], ApproximateCreationDateTime=0)
        owner = next(iter(change["Keys"][KEYS[name][0]].values()))
        if owner not in self.users:
            return
        if name == "BPEvents" and "NewImage" in change:
            self.events.append({**record, "dynamodb": change, "eventSourceARN": arn})
        if name == "RewardsLedger" and record["eventName"] == "INSERT":
            place = stamp_of_key(change["Keys"]["created_at"]["S"])
            self.entries[owner, place] = change["NewImage"]["kind"]["S"]
        self.changes.append(self._as_kinesis(name, record))

    def _as_kinesis(self, name: str, record: dict[str, Any]) -> dict[str, Any]:
        """Return a change as a table writes it to Kinesis: its place there is told by microseconds alone."""
        self._at = max(self._at + 1, int(self.seconds() * 1e6))
        told = {
            "tableName": name,
            "eventName": record["eventName"],
            "userIdentity": None,
            "dynamodb": {
                "ApproximateCreationDateTime": self._at,
                "ApproximateCreationDateTimePrecision": "MICROSECOND",
                **{
                    each: record["dynamodb"][each]
                    for each in ("Keys", "NewImage")
                    if each in record["dynamodb"]
                },
            },
        }
        data = json.dumps(told, default=lambda some: base64.b64encode(some).decode())
        return {"kinesis": {"data": base64.b64encode(data.encode()).decode()}}


class Channel:
    """The other region's queue, as a sender sees it: it may be out of reach, and a message may come twice."""

    def __init__(self, here: Region, there: Region, chance: random.Random) -> None:
        self._here, self._there, self._chance = here, there, chance

    def send_message(self, QueueUrl: str, MessageBody: str) -> None:  # noqa: N803 (SQS's names)
        if self._here.cut or self._there.cut:
            raise ConnectionError("the other region is out of reach")
        self._there.arrived += [MessageBody] * (2 if self._chance.random() < 0.1 else 1)


def sender_of(here: Region, there: Region, chance: random.Random) -> ChangeSender:
    """Return what sends a region's changes."""
    return ChangeSender(Channel(here, there, chance), "queue", TABLES, here.name)
