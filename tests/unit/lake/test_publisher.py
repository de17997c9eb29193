"""Every change is published, or comes again, or is kept with its reason; those of one hour as one record."""

import json
from collections import Counter
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from adapters.platform import publishing
from adapters.platform.items import encode_item
from adapters.platform.publishing import DeliveryStream
from processors.batches import BatchResult
from processors.publisher import Publisher
from rules.lake.entities import DAILY_ACTIVITY, EVENTS
from rules.lake.packed_records import row_texts
from rules.leads.feature_items import DECLARED, DIGEST
from rules.leads.lake_entities import LEAD_FEATURES, LEAD_MEMORY
from tests.support.firehose import Firehose


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "pauses", range)


def change(number: int, name: str = "INSERT", table: str = "Days", **attributes: Any) -> dict[str, Any]:
    image = {"user_id": "u", "activity_date": "2026-01-02", "events_count": number, **attributes}
    return {
        "eventName": name,
        "eventSourceARN": f"arn:aws:dynamodb:eu-west-1:1:table/{table}/stream/2026-01-01T00:00:00.000",
        "dynamodb": {
            "ApproximateCreationDateTime": 1767225600.5,
            "NewImage": encode_item(image),
            "SequenceNumber": f"1{number:05}",
        },
    }


def published(client: Firehose, records: list[Any]) -> BatchResult:
    streams = {
        "Days": [(DAILY_ACTIVITY, DeliveryStream(client, "d"))],
        "Events": [(EVENTS, DeliveryStream(client, "e"))],
        "Feature": [(LEAD_FEATURES, DeliveryStream(client, "f"))],
        "Memory": [(LEAD_MEMORY, DeliveryStream(client, "m"))],
    }
    return Publisher(streams).publish(records)


def rows_of(record: bytes) -> list[dict[str, Any]]:
    return [json.loads(text) for text in row_texts(record)]


def test_a_change_becomes_one_line_with_its_partition() -> None:
    client = Firehose()
    assert published(client, [change(1)]) == BatchResult(Counter(published=1))
    assert client.taken[0].splitlines()[0] == b'{"dt":"2026-01-02","hour":"00","rows":['
    [row] = rows_of(client.taken[0])
    assert (
        row.items()
        >= {
            "user_id": "u",
            "activity_date": "2026-01-02",
            "events_count": 1,
            "dt": "2026-01-02",
            "hour": "00",
        }.items()
    )


def test_a_date_without_activity_is_not_in_the_lake() -> None:
    client = Firehose()
    outcome = published(client, [change(1, is_inactive=True), change(2)])
    assert (outcome.counts["published"], outcome.poison, outcome.again) == (1, [], [])


def on(number: int, dt: str) -> dict[str, Any]:
    return change(number, activity_date=dt)


def test_changes_of_one_hour_are_one_record() -> None:
    client = Firehose()
    dates = ["2026-01-02", "2026-01-03", "2026-01-02", "2026-01-04", "2026-01-03", "2026-01-02"]
    assert published(client, [on(*each) for each in enumerate(dates)]) == BatchResult(Counter(published=6))
    assert [[row["events_count"] for row in rows_of(each)] for each in client.taken] == [
        [0, 2, 5],
        [1, 4],
        [3],
    ]
    assert len(client.calls) == 1


def test_a_record_is_no_larger_than_firehose_takes() -> None:
    client = Firehose()
    assert (
        published(client, [change(number, note="x" * 90_000) for number in range(30)]).counts["published"]
        == 30
    )
    assert [len(rows_of(each)) for each in client.taken] == [11, 11, 8]
    assert all(len(each) <= publishing.RECORD_BYTES_MAX for each in client.taken)


def test_the_largest_row_is_published_and_a_larger_one_is_poison() -> None:
    client = Firehose()
    published(client, [change(1, note="")])
    spare = publishing.RECORD_BYTES_MAX - len(client.taken[0])
    outcome = published(client, [change(1, note="x" * (spare - 1)), change(2, note="x" * (spare + 1))])
    assert (outcome.counts["published"], len(outcome.poison)) == (1, 1)
    assert len(client.taken[1]) == publishing.RECORD_BYTES_MAX - 1


def test_a_partition_that_raw_has_no_place_for_is_poison() -> None:
    outcome = published(Firehose(), [on(1, "0999-12-31")])
    assert [reason for _, reason in outcome.poison] == [
        """ValueError: no partition: b'{"dt":"999-12-31","hour":"00","rows":[\\n'"""
    ]


def test_a_changed_event_is_a_newer_version() -> None:
    client = Firehose()
    event_id = "2026-01-02T03:04:05.000000Z#x"
    records = [change(n, name, "Events", event_id=event_id) for n, name in enumerate(("INSERT", "MODIFY"))]
    published(client, records)
    assert [row["version"] for row in rows_of(client.taken[0])] == ["0", f"1767225600.{100_001:040}"]


def test_what_firehose_refuses_comes_again_and_nothing_else_does() -> None:
    dates = ["2026-01-02", "2026-01-03", "2026-01-02", "2026-01-04", "2026-01-03"]
    records = [on(*each) for each in enumerate(dates)]
    whole = Firehose()
    published(whole, records)
    client = Firehose({whole.taken[1]: 99})
    outcome = published(client, records)
    assert (outcome.counts["published"], outcome.again, outcome.poison) == (3, ["100001", "100004"], [])
    assert client.taken == [whole.taken[0], whole.taken[2]]
    published(again := Firehose(), [records[1], records[4]])  # what a redelivery sends
    assert again.taken == [whole.taken[1]]


def test_all_comes_again_when_firehose_is_gone() -> None:
    client = Firehose(error=EndpointConnectionError(endpoint_url="x"))
    outcome = published(client, [change(1), change(2)])
    assert (outcome.counts["published"], outcome.again) == (0, ["100001", "100002"])


@pytest.mark.parametrize(
    ("table", "attributes", "reason"),
    [
        ("Days", {"activity_date": "soon"}, "activity_date is no time: 'soon'"),
        ("Days", {"activity_date": 5}, "activity_date is no time: 5"),
        ("Days", {"note": "x" * 1_100_000}, "Firehose takes"),
        ("Memory", {"expires_at": 2**63}, "Error: "),  # no platform's clock goes so far
        ("Feature", {"inputs": {DECLARED: DIGEST, "sentiment": True}}, "Error: "),
        ("Feature", {"inputs": {DECLARED: DIGEST, "campaigns": str(2**63)}}, "Error: "),
    ],
)
def test_poison_is_kept_with_its_reason_and_its_neighbours_go_on(
    table: str, attributes: Any, reason: str
) -> None:
    client, bad = Firehose(), change(2, table=table, **attributes)
    outcome = published(client, [change(1), bad, change(3)])
    assert (outcome.counts["published"], outcome.again) == (2, [])
    ((record, told),) = outcome.poison
    assert record is bad
    assert reason in told


def test_a_table_that_nobody_expects_is_poison() -> None:
    outcome = published(Firehose(), [change(1, table="Other")])
    assert [reason for _, reason in outcome.poison] == ["KeyError: 'Other'"]
