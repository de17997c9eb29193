"""Webhooks outlive consumers that are killed, a database that restarts, bad bodies and large ones."""

import contextlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from local import replay
from local.api import Api
from local.cloud import embedded_postgres, laptop_cloud, processes
from local.cloud.patience import drain_leads
from local.event_sources import Purchase
from local.operate.redrive import list_failures
from local.paths import LOCAL
from local.stack import Stack
from tests.e2e.test_survival import workers
from tests.support.effort import effort
from tests.support.lead_orders import Lead, bought, send

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")
KILLING_SECONDS = effort(3, soak=5)


@pytest.fixture
def dying(stack: Stack) -> Iterator[list[int]]:
    """Kill the leads' consumers again and again."""
    stop, killed = threading.Event(), list[int]()

    def kill() -> None:
        while not stop.wait(0.7):
            for name in ("Leads", "Features", "Memory"):
                for pid in workers(stack, name):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    threading.Timer(KILLING_SECONDS, stop.set).start()
    yield killed
    stop.set()
    killer.join()


def test_consumers_killed_and_postgresql_restarted_lose_nothing(
    stack: Stack, organization: str, lead_of: Lead, dying: list[int]
) -> None:
    today = datetime.now(UTC).date()
    # They are bought at noon, which may not have come today.
    some = [
        bought(today - timedelta(days=number + 1), "2.00", f"c{number % 4}", number) for number in range(40)
    ]
    random.Random(3).shuffle(some)
    send(stack, organization, *some[:20])
    processes.stop("postgres")
    time.sleep(1)
    send(stack, organization, *some[10:])
    laptop_cloud.up()
    time.sleep(KILLING_SECONDS)
    drain_leads(stack)
    assert dying
    api = Api(stack)
    for number in range(4):
        lead = lead_of(organization, f"order:c{number}-{number}")
        found = api.get(f"/v1/leads/{lead}/features")["features"]
        assert (found["monetary_total"], found["days_since_last_purchase"]) == (20, number + 1)
    with psycopg.connect(identities()) as database:
        query = "SELECT count(*) FROM identity.lead_organization WHERE organization_id = %s"
        assert database.execute(query, [organization]).fetchall() == [(4,)]


def identities() -> str:
    """The database's URL for its owner: the application's role may only call functions."""
    port = json.loads((LOCAL / "ports.json").read_text())["postgres"]
    return embedded_postgres.url(
        embedded_postgres.OWNER,
        embedded_postgres.initialise(embedded_postgres.FOLDER)["owner"],
        port,
        embedded_postgres.DATABASE,
    )


def test_what_cannot_be_decoded_is_told_or_kept_and_replayed(stack: Stack, organization: str) -> None:
    api = Api(stack)
    good = replay.order_webhook(
        Purchase("c", 1, datetime(2026, 1, 1, tzinfo=UTC), 1, Decimal(1)), organization
    )

    def refused(**change: Any) -> tuple[int, str]:
        status, answer = api.call("POST", "/v1/leads/events", {**good, **change})
        return status, json.dumps(answer["error"])

    status, told = refused(source="telegram")
    assert status == 422 and "ecommerce" in told
    status, told = refused(payload={**good["payload"], "id": None})
    assert status == 422 and "id" in told
    status, told = refused(payload={**good["payload"], "total_price": "1.001"})
    assert status == 422 and "total_price" in told
    status, told = refused(payload={**good["payload"], "currency": "euro"})
    assert status == 422 and "currency" in told
    assert Api(stack, "somebody", admin=False).call("POST", "/v1/leads/events", good)[0] == 403

    bad = {**good, "payload": {**good["payload"], "created_at": f"never, {organization}"}}
    replay.queue_webhooks(stack, [bad])
    drain_leads(stack)
    (kept,) = [
        each
        for each in list_failures(stack)
        if each["consumer"] == "leads" and organization in str(each["record"])
    ]
    assert "created_at" in kept["reason"]
    assert json.loads(kept["record"]) == bad


def test_a_large_webhook_is_kept_whole(stack: Stack, organization: str, lead_of: Lead) -> None:
    today = datetime(2026, 1, 1, tzinfo=UTC)
    webhook = replay.order_webhook(Purchase("big", 1, today, 1, Decimal(3)), organization)
    webhook["payload"]["note"] = "x" * 300_000
    assert Api(stack).call("POST", "/v1/leads/events", webhook)[0] == 202
    drain_leads(stack)
    lead = lead_of(organization, "order:big-1")
    (event,) = stack.client("dynamodb").query(
        TableName=stack.tables["Event"],
        KeyConditionExpression="lead_organization_id = :lead",
        ExpressionAttributeValues={":lead": {"S": lead}},
    )["Items"]
    bucket, _, key = event["raw_payload_ref"]["S"].removeprefix("s3://").partition("/")
    stored = stack.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    assert json.loads(stored) == webhook["payload"]
    assert Path(key).parts[0] == "leads"
