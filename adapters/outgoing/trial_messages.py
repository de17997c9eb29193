"""Test messages: of no user, and on the way that all notifications take."""

from datetime import datetime
from typing import Any

from adapters.outgoing.told_items import log_item
from adapters.outgoing.told_store import ToldStore
from rules.days import stamp
from rules.outgoing.notices import Endpoint, Notice, NoticeType, Notification

HOLDER = "test/"  # and the endpoint: no user id has a slash


class TrialMessages:
    """The table Notifications, for tests of endpoints."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def put(self, endpoint: Endpoint, now: datetime) -> Notification:
        """Let a test message wait for an endpoint; returns it."""
        number = int(now.timestamp() * 1_000)
        notice = Notice(NoticeType.TEST, {"endpoint_id": endpoint.endpoint_id})
        made = Notification(HOLDER + endpoint.endpoint_id, number, stamp(now), notice)
        store = ToldStore(self._dynamodb, self._table)
        self._dynamodb.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": self._table, "Item": log_item([made], now)}},
                store.lane(made.holder, endpoint.endpoint_id, number, number, now),
            ]
        )
        return made
