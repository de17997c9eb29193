"""Stores of an acceptor that are always there and hold nothing."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from adapters.engagement.claims import IdempotencyClaim

Claimed = tuple[dict[tuple[str, str], IdempotencyClaim], set[tuple[str, str]]]


class Stores:
    """Claims, events, zones and payloads that are always there and hold nothing."""

    def __init__(self, zone: str | None = None) -> None:
        self.zone, self.stored = zone, list[Any]()

    def claim(self, claims: Sequence[IdempotencyClaim], now: datetime) -> Claimed:
        return {each.key: each for each in claims}, {each.key for each in claims}

    def get(self, keys: set[tuple[str, str]], now: datetime) -> dict[tuple[str, str], IdempotencyClaim]:
        return {}

    def put(self, events: Sequence[Any]) -> None:
        self.stored += events

    def missing(self, events: Sequence[Any]) -> list[Any]:
        return []

    def chosen(self, users: set[str]) -> dict[str, str | None]:
        return dict.fromkeys(users, self.zone)
