"""A schedule of faults in which an endpoint hears of everything: tellers and deliverers die as others do."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import ingest.engagement.users_api
import processors.outgoing.notifications
from adapters.outgoing.endpoint_store import EndpointStore
from adapters.outgoing.lane_store import LaneStore, WorkerLeases
from adapters.outgoing.outbox_store import LANE_SHARDS
from adapters.outgoing.transports import SendAnswer
from adapters.platform.queues import FailureQueue
from processors.outgoing.delivery import Deliverer
from rules.outgoing.notices import Endpoint, Notification
from tests.faults.callers import CONTEXT, KINDS
from tests.faults.spenders import Spenders
from tests.faults.turns import Killed
from tests.support.engine import Engine, lean_client

ENDPOINT = "app"
ROUNDS_MAX = 400


class Listeners(Spenders):
    """One schedule of users who spend, hold and come late, and an app that is told of them.

    Records come at least once and out of order, the endpoint refuses some messages, and loses some answers.
    """

    def __init__(self, engine: Engine, seed: int, patch: Any) -> None:
        super().__init__(engine, seed, patch)
        self.heard: list[Notification] = []
        self.changes: list[dict[str, Any]] = []
        self.profiles = self._stream_of("UserStreaks")
        self.mood = 0.3
        self.busy: set[str] = set()  # Lambda hands on one batch of a user at a time
        known = EndpointStore(self.real, "WebhookEndpoints")
        for each in known.all():
            known.remove(each.endpoint_id)
        known.put(Endpoint(ENDPOINT, "acme", "https://app.example.com/"))

    def _wire(self, patch: Any) -> None:
        clients = {"dynamodb": self.faults, "sqs": lean_client(self.engine, "sqs"), "lambda": _Nobody()}
        patch.setattr(processors.outgoing.notifications._parts, "client", clients.__getitem__)
        super()._wire(patch)

    def _book(self) -> dict[str, Any]:
        """The same achievements in each version; those of another version would wait for the next change."""
        kind = KINDS[0]
        made = super()._book()
        made["streaks"] = {"dates": {"per": "day", "needs": {"active_days": 1}, "freezes": True}}
        made["achievements"] = {
            "first": {"all": [{"points_earned": 1}]},
            "some": {"all": [{"count": kind, "at_least": 2}], "history": True, "withdrawn": "when_untrue"},
            "rich": {"any": [{"points_earned": 60}, {"streak": "dates", "at_least": 3}]},
            "steady": {"all": [{"streak": "dates", "at_least": 2}], "withdrawn": "when_untrue"},
        }
        return made

    def _new_process(self) -> None:
        super()._new_process()
        processors.outgoing.notifications._parts.cache_clear()

    def _stream_of(self, table: str) -> tuple[str, str]:
        arn: str = self.real.describe_table(TableName=table)["Table"]["LatestStreamArn"]
        shard = self.streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
        asked = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "LATEST"}
        return arn, self.streams.get_shard_iterator(**asked)["ShardIterator"]

    def _deliver(self) -> bool:
        """Hand on what the stream of profiles has, too: each user's changes in order, some of them again."""
        self._hear()
        users = {each["dynamodb"]["Keys"]["user_id"]["S"] for each in self.changes} - self.busy
        if users and self.chance.random() < 0.5:
            user = self.chance.choice(sorted(users))
            own = [each for each in self.changes if each["dynamodb"]["Keys"]["user_id"]["S"] == user]
            some = own[: self.chance.randrange(1, 6)]
            self.changes = [each for each in self.changes if each not in some]
            self.busy.add(user)
            self._start("teller", lambda: self._told(user, some))
            return True
        return super()._deliver() or self._left()

    def _left(self) -> bool:
        return (
            bool({each["dynamodb"]["Keys"]["user_id"]["S"] for each in self.changes} - self.busy)
            and self._deliver()
        )

    def _hear(self) -> None:
        arn, iterator = self.profiles
        while True:
            answer = self.streams.get_records(ShardIterator=iterator)
            iterator = answer["NextShardIterator"]
            if not answer["Records"]:
                break
            for record in answer["Records"]:
                change = dict(record["dynamodb"], ApproximateCreationDateTime=0)
                if change["Keys"]["user_id"]["S"] in self.users:
                    self.changes.append({**record, "dynamodb": change, "eventSourceARN": arn})
        self.profiles = arn, iterator

    def _told(self, user: str, batch: list[dict[str, Any]]) -> bool:
        try:
            return self._tell(batch, again=batch[-2:])
        finally:
            self.busy.discard(user)

    def _tell(self, batch: list[dict[str, Any]], again: list[dict[str, Any]]) -> bool:
        """Tell of a batch; whatever happens to the process, what was not told comes again, before what is later."""
        try:
            answer = processors.outgoing.notifications.handler({"Records": batch}, CONTEXT)
        except Killed:
            self.changes = batch + self.changes
            self._new_process()
            return True
        except Exception as error:
            self.errors.append(repr(error))
            self.changes = batch + self.changes
            return True
        failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        left = [each for each in batch if each["dynamodb"]["SequenceNumber"] in failed]
        self.changes = (left or (again if self.chance.random() < 0.3 else [])) + self.changes
        return True

    def finish(self) -> dict[str, dict[str, Any]]:
        """Let all be told and delivered; returns what GET shows of each user then. Looking may write what expired."""
        shown: dict[str, dict[str, Any]] = {}

        def look(user: str) -> bool:
            handler = ingest.engagement.users_api.handler
            status, shown[user] = self._call(handler, "GET", f"/v1/users/{user}", None)
            seen, told = self._call(handler, "GET", f"/v1/users/{user}/achievements", None)
            has = {e["name"]: e["achieved_at"] for e in told.get("achievements", ()) if e["achieved"]}
            shown[user] = {**shown[user], "achievements": has}
            return status == seen == 200

        for _ in range(2):
            self._listen()
            self.tasks += [lambda u=user: look(u) for user in self.users]  # type: ignore[misc]
            self._drain()
        self._listen()
        return shown

    def _listen(self) -> None:
        """Quiet days: what is due is told, and what was told is delivered."""
        for _ in range(ROUNDS_MAX):
            self._tell_due()
            if not self._send_due():
                return
            self.now += timedelta(minutes=30)
        raise AssertionError("it is never all delivered")

    def _tell_due(self) -> None:
        teller = self._teller()
        for user in self.users:
            told, _ = teller.store.get(user)
            assert told.version <= self._version(user)
        teller.sweep(self.now, lambda: False)

    def _teller(self) -> Any:
        parts = processors.outgoing.notifications._parts()
        own = {"dynamodb": self.real, "store": type(parts.writer.store)(self.real, "Notifications")}
        return type(parts.writer)(
            own["dynamodb"], "UserStreaks", own["store"], EndpointStore(self.real, "WebhookEndpoints")
        )

    def _version(self, user: str) -> int:
        found = self.real.get_item(TableName="UserStreaks", Key={"user_id": {"S": user}}, ConsistentRead=True)
        return int(found["Item"]["version"]["N"]) if "Item" in found else 0

    def _send_due(self) -> bool:
        lanes = LaneStore(self.real, "Notifications")
        deliverer = Deliverer(
            EndpointStore(self.real, "WebhookEndpoints"),
            lanes,
            WorkerLeases(self.real, "Notifications"),
            self._answer,
            FailureQueue(lambda: SimpleNamespace(send_message=self._given_up), ""),
            lambda: self.now,
            1,
        )
        for share in range(LANE_SHARDS):
            deliverer.run(ENDPOINT, share, lambda: False)
        return any(lanes.get(user, ENDPOINT) for user in self.users)

    def _answer(self, _endpoint: Endpoint, sent: Notification, _now: Any) -> SendAnswer:
        roll = self.chance.random()
        if roll > self.mood / 2:
            self.heard.append(sent)
        return SendAnswer(503 if roll < self.mood else 200)

    @staticmethod
    def _given_up(**_: Any) -> None:
        raise AssertionError("nothing is given up within a week")


class _Nobody:
    """Lambda, which wakes nobody: the schedule does."""

    def invoke(self, **_: Any) -> None:
        pass
