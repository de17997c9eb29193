"""Versions of memory and features never restart, also where an item expires and comes again."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.leads.feature_store import FeatureStore
from adapters.leads.memory_store import KEY, MemoryStore
from adapters.platform import aws
from adapters.platform.items import encode_item
from rules.leads.feature_items import Change, FeatureItem
from rules.leads.memory import PREFERENCE, Evidence, memory_entry
from tests.support.engine import Engine

AT = "2026-03-01T00:00:00.000000Z"
NOTHING = Change({}, {}, {}, AT, None)


def expire(client: Any, table: str, **key: str) -> int:
    """Delete an item, as its time to live does; returns its version."""
    gone = client.delete_item(TableName=table, Key=encode_item(key), ReturnValues="ALL_OLD")["Attributes"]
    return int(gone["version"]["N"])


def test_a_memory_that_comes_again_is_newer_than_it_ever_was(engine: Engine) -> None:
    client, lead = engine.client("dynamodb"), "lead-that-forgets"
    store, versions = MemoryStore(client, "Memory"), []
    for value in ("S", "M", "L"):
        for number in range(3):
            at = f"2026-03-0{1 + number}T00:00:00.000000Z"
            piece = Evidence(at, f"{value}{number}", value, 900, "s", lead)
            store.join(lead, [memory_entry(PREFERENCE, "size", [piece])])
        versions.append(expire(client, "Memory", lead_organization_id=lead, **{KEY: "preference#size"}))
    assert versions == sorted(set(versions))
    assert versions[1] - versions[0] > 3, "it did not begin where it had begun"


def test_memory_is_written_without_a_wait(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = list[float]()
    monkeypatch.setattr(aws, "time", SimpleNamespace(sleep=waits.append))
    store = MemoryStore(engine.client("dynamodb"), "Memory")
    entry = memory_entry(PREFERENCE, "size", [Evidence(AT, "e", "S", 900, "s", "lead-in-a-hurry")])
    for entries in ([entry], [entry], []):
        store.join("lead-in-a-hurry", entries)
    assert waits == []


def test_features_that_come_again_are_newer_than_they_ever_were(engine: Engine) -> None:
    client, lead = engine.client("dynamodb"), "lead-that-comes-again"
    store, versions = FeatureStore(client, "Feature"), []
    for _ in range(2):
        store.write(FeatureItem(lead), NOTHING)
        for _ in range(3):
            found = store.get(lead)
            assert found
            store.write(found, NOTHING)
        versions.append(expire(client, "Feature", lead_organization_id=lead))
    assert versions[0] + 3 < versions[1]
    since = datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 10**6
    assert versions[0] > since, "and newer than what was counted from 1"
