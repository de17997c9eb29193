"""Webhooks outlive a PostgreSQL that is away for 13 days, and a batch that is more than a function's time."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from adapters.leads.lead_event_store import LeadEventStore, StoreOutcome
from adapters.platform.queues import WAIT_SECONDS_MAX
from tests.support.effort import effort
from tests.support.identity_server import Registry
from tests.support.leads_line import START, VISIBILITY_SECONDS, LeadsLine
from tests.support.webhooks import MAIL

pytestmark = pytest.mark.xdist_group("identity")
HOUR, DAY = 3600, 86_400
DAYS = effort(1, soak=13)  # a queue keeps a message for 14


@pytest.fixture
def deployed(dynamodb: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[LeadsLine]:
    import boto3

    at = LeadsLine(dynamodb, boto3.client("sqs"))
    monkeypatch.setattr("moto.sqs.models.unix_time", lambda: at.seconds)
    monkeypatch.setattr("moto.sqs.models.unix_time_millis", lambda: at.seconds * 1000)
    yield at


def mail(number: int, **more: Any) -> dict[str, Any]:
    return {**MAIL, "sg_event_id": f"sg-{number}", "timestamp": int(START.timestamp()) - 60, **more}


def test_postgresql_is_away_for_days_and_nothing_is_lost_or_given_up(
    deployed: LeadsLine, registry: Registry
) -> None:
    deployed.send([mail(0)])
    receives = 0
    while deployed.seconds < START.timestamp() + DAYS * DAY:
        deployed.deliver()
        receives += 1
        deployed.seconds += WAIT_SECONDS_MAX + 1
    assert (deployed.failed(), deployed.stored()) == ([], set())
    assert receives > 92 * DAYS
    deployed.connect(registry.url)
    deployed.deliver()
    assert deployed.stored() == {"sg-0"}, "all of it within a quarter of an hour"
    deployed.seconds += DAY
    assert deployed.deliver() == 0
    deployed.leads.identities._database.close()


def test_what_is_bad_is_in_the_failure_queue_soon_all_the_same(
    deployed: LeadsLine, registry: Registry
) -> None:
    deployed.connect(registry.url)
    deployed.send([mail(1, email="bug@example.com")])
    deployed.send([mail(2, timestamp="never")])
    deployed.deliver()
    assert len(deployed.failed()) == 1, "poison at once"
    while len(deployed.failed()) < 2:
        deployed.seconds += VISIBILITY_SECONDS + 1
        deployed.deliver()
    assert deployed.seconds - START.timestamp() < 2.5 * HOUR
    assert any("bug@example.com" in each for each in deployed.failed())
    deployed.leads.identities._database.close()


def test_ten_messages_are_stored_however_little_time_each_call_has(
    deployed: LeadsLine, registry: Registry
) -> None:
    """Each call has time for 30 events, and a message has 20. None of them is given up."""
    deployed.connect(registry.url)
    known: set[tuple[str, str]] = set()

    class Known(LeadEventStore):
        """Stores by name alone: what DynamoDB costs is none of this test's business."""

        def claimed(self, source: str, external_event_id: str, *_: Any) -> Any:
            return StoreOutcome.DUPLICATE if (source, external_event_id) in known else None

        def put_new(self, event: Any, *_: Any) -> Any:
            known.add((event.source, event.external_event_id))

    deployed.leads = replace(deployed.leads, events=Known(None, ""))
    for number in range(10):
        deployed.send([{**mail(20 * number + each), "x": ""} for each in range(20)])
    calls = 0
    while len(known) < 200:
        steps = count()
        deployed.deliver(lambda steps=steps: next(steps) >= 30)  # type: ignore[misc]
        calls += 1
        assert calls < 60
        deployed.seconds += 1
    assert calls >= 7
    assert deployed.failed() == []
    deployed.leads.identities._database.close()


def test_a_queue_gives_up_after_ten_deliveries_whatever_the_reason(deployed: LeadsLine) -> None:
    """Of the test itself: without waits a message would be in the failure queue after two hours."""
    deployed.consumer = replace(deployed.consumer, source=None)
    deployed.send([mail(1)])
    while not deployed.failed():
        deployed.deliver()
        deployed.seconds += VISIBILITY_SECONDS + 1
    assert timedelta(seconds=deployed.seconds - START.timestamp()) < timedelta(hours=3)
