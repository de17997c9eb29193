"""Every change is published, or comes again, or is kept with its reason; in as few calls as Firehose allows."""

import json
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from hypothesis import given
from hypothesis import strategies as st

from adapters import settings
from adapters.platform import firehose
from adapters.platform.firehose import DeliveryStream, batches
from adapters.platform.items import item
from adapters.settings.lake import PublisherSettings
from processors import publisher
from processors.publisher import PublishedBatch, Publisher, table_of
from rules.lake.entities import DAILY_ACTIVITY, ENTITIES, EVENTS


class Firehose:
    """Takes what it is sent, but refuses the records it was told to, as often as it was told to."""

    def __init__(self, refusals: dict[bytes, int] | None = None, error: Exception | None = None) -> None:
        self.calls: list[list[bytes]] = []
        self.taken: list[bytes] = []
        self.refusals, self.error = refusals or {}, error

    def put_record_batch(self, DeliveryStreamName: str, Records: list[dict[str, bytes]]) -> dict[str, Any]:  # noqa: N803
        rows = [each["Data"] for each in Records]
        self.calls.append(rows)
        if self.error:
            raise self.error
        results: list[dict[str, str]] = []
        for row in rows:
            if self.refusals.get(row, 0) > 0:
                self.refusals[row] -= 1
                results.append({"ErrorCode": "ServiceUnavailableException"})
            else:
                self.taken.append(row)
                results.append({"RecordId": "1"})
        return {"FailedPutCount": sum("ErrorCode" in each for each in results), "RequestResponses": results}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firehose, "pauses", range)


@given(st.lists(st.integers(1, 3_000_000), max_size=40), st.integers(0, 1200))
def test_calls_hold_what_they_may_and_every_row_is_in_one(sizes: Sequence[int], small: int) -> None:
    rows: list[Any] = [range(size) for size in [*sizes, *[10] * small]]  # something with a length
    calls = list(batches(rows))
    assert [place for call in calls for place in call] == list(range(len(rows)))
    for call in calls:
        assert 0 < len(call) <= 500
        assert len(call) == 1 or sum(len(rows[place]) for place in call) <= 4 * 1024 * 1024
    for call, after in pairwise(calls):
        total = sum(len(rows[place]) for place in [*call, after[0]])
        assert len(call) == 500 or total > 4 * 1024 * 1024, "a call that could have held more"


def test_only_what_was_refused_is_sent_again() -> None:
    rows = [b"a", b"b", b"c", b"d"]
    client = Firehose({b"b": 2, b"d": 1})
    assert DeliveryStream(client, "s").put(rows) == []
    assert client.calls == [rows, [b"b", b"d"], [b"b"]]
    assert sorted(client.taken) == rows


def test_what_is_refused_every_time_is_told() -> None:
    client = Firehose({b"b": 99})
    assert DeliveryStream(client, "s").put([b"a", b"b", b"c"]) == [1]
    assert len(client.calls) == firehose.ATTEMPTS_MAX


def change(number: int, name: str = "INSERT", table: str = "Days", **attributes: Any) -> dict[str, Any]:
    image = {"user_id": "u", "activity_date": "2026-01-02", "events_count": number, **attributes}
    return {
        "eventName": name,
        "eventSourceARN": f"arn:aws:dynamodb:eu-west-1:1:table/{table}/stream/2026-01-01T00:00:00.000",
        "dynamodb": {
            "ApproximateCreationDateTime": 1767225600.5,
            "NewImage": item(image),
            "SequenceNumber": f"1{number:05}",
        },
    }


def published(client: Firehose, records: list[Any]) -> PublishedBatch:
    streams = {
        "Days": (DAILY_ACTIVITY, DeliveryStream(client, "d")),
        "Events": (EVENTS, DeliveryStream(client, "e")),
    }
    return Publisher(streams).publish(records)


def test_a_change_becomes_one_line_with_its_partition() -> None:
    client = Firehose()
    assert published(client, [change(1)]) == PublishedBatch(published=1)
    assert client.taken[0].endswith(b"\n")
    assert b"\n" not in client.taken[0][:-1]
    assert (
        json.loads(client.taken[0]).items()
        >= {
            "user_id": "u",
            "activity_date": "2026-01-02",
            "events_count": 1,
            "dt": "2026-01-02",
            "hour": "00",
        }.items()
    )


def test_a_line_break_in_a_text_stays_inside_the_line() -> None:
    client = Firehose()
    published(client, [change(1, note="a\nb\u2028é")])
    assert client.taken[0].count(b"\n") == 1
    assert json.loads(client.taken[0])["note"] == "a\nb\u2028é"


def test_a_changed_event_is_a_newer_version() -> None:
    client = Firehose()
    event_id = "2026-01-02T03:04:05.000000Z#x"
    records = [change(n, name, "Events", event_id=event_id) for n, name in enumerate(("INSERT", "MODIFY"))]
    published(client, records)
    assert [json.loads(row)["version"] for row in client.taken] == [0, 1]


def test_what_firehose_refuses_comes_again_and_nothing_else_does() -> None:
    records = [change(number) for number in range(4)]
    rows = Firehose()
    published(rows, records)
    client = Firehose({rows.taken[2]: 99})
    outcome = published(client, records)
    assert (outcome.published, outcome.again, outcome.poison) == (3, ["100002"], [])


def test_all_comes_again_when_firehose_is_gone() -> None:
    client = Firehose(error=EndpointConnectionError(endpoint_url="x"))
    outcome = published(client, [change(1), change(2)])
    assert (outcome.published, outcome.again) == (0, ["100001", "100002"])


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"activity_date": "soon"}, "activity_date is no time: 'soon'"),
        ({"activity_date": 5}, "activity_date is no time: 5"),
        ({"note": "x" * 1_100_000}, "Firehose takes"),
    ],
)
def test_poison_is_kept_with_its_reason_and_its_neighbours_go_on(attributes: Any, reason: str) -> None:
    client, bad = Firehose(), change(2, **attributes)
    outcome = published(client, [change(1), bad, change(3)])
    assert outcome.published == 2
    assert outcome.again == []
    ((record, told),) = outcome.poison
    assert record is bad
    assert reason in told


def test_a_table_that_nobody_expects_is_poison() -> None:
    outcome = published(Firehose(), [change(1, table="Other")])
    assert [reason for _, reason in outcome.poison] == ["KeyError: 'Other'"]


def test_500_records_are_one_call() -> None:
    client = Firehose()
    published(client, [change(number) for number in range(500)])
    assert len(client.calls) == 1


def test_a_table_s_name_is_in_its_stream_s() -> None:
    assert table_of(change(1, table="streakline-Days-1")) == "streakline-Days-1"


def test_every_entity_has_a_table_and_a_delivery_stream_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in fields(PublisherSettings):
        monkeypatch.setenv(settings.variable(field.name), field.name)
    monkeypatch.setattr(publisher, "client", lambda _: None)
    publisher._parts.cache_clear()
    destinations = publisher._parts()[0].destinations
    publisher._parts.cache_clear()
    names = {entity.name: stream._name for entity, stream in destinations.values()}
    assert names == {name: f"{name}_delivery_stream" for name in ENTITIES}
