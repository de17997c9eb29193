"""Changes -> publisher -> Firehose -> raw objects -> curation: each row once, whatever Firehose refuses or answers late."""

import json
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from adapters.platform import publishing
from adapters.platform.items import encode_item
from adapters.platform.objects import S3Objects
from adapters.platform.publishing import DeliveryStream
from analytics.curation.curate import curate
from analytics.lake.bookkeeping import Counts
from analytics.lake.layout import Partition, raw_partition
from analytics.lake.listing import raw_objects_of_dates
from local.cloud.streams import EventSourceMapping, InvocationReply, Record, deliver
from processors.publisher import Publisher
from rules.days import key_of_stamp
from rules.lake.entities import EVENTS
from rules.lake.packed_records import row_texts
from tests.support.engine import Engine
from tests.support.raw_lake import quarantined, rows

CHANGES, BATCH, HOURS = 150, 30, 5
DT = "2031-05-06"


def change(number: int) -> Record:
    occurred = f"2031-05-06T{number * 7 % HOURS:02}:00:00.{number:06}Z"
    image = {
        "user_id": f"u{number % 9}",
        "event_id": f"{key_of_stamp(occurred)}#e{number}",
        "idempotency_key": f"k{number}",
        "event_type": "CHECK_IN",
        "occurred_at": occurred,
        "activity_date": "2031-05-06",
        "zone": "UTC",
        "points_awarded": 5,
        "source": "a,\nb]}",
        "created_at": occurred,
    }
    return {
        "eventName": "INSERT",
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:1:table/Packed/stream/x",
        "dynamodb": {
            "ApproximateCreationDateTime": 1935900000,
            "NewImage": encode_item(image),
            "SequenceNumber": f"{number:021}",
        },
    }


class Flaky:
    """The engine's Firehose, except that it refuses some records, and some answers are lost."""

    def __init__(self, client: Any, chance: Random) -> None:
        self.client, self.chance, self.records = client, chance, 0

    def put_record_batch(self, DeliveryStreamName: str, Records: list[dict[str, bytes]]) -> dict[str, Any]:  # noqa: N803
        refused = [self.chance.random() < 0.4 for _ in Records]
        taken = [each for each, is_refused in zip(Records, refused, strict=True) if not is_refused]
        self.records += len(taken)
        if taken:
            answer = self.client.put_record_batch(DeliveryStreamName=DeliveryStreamName, Records=taken)
            assert answer["FailedPutCount"] == 0
        if self.chance.random() < 0.2:
            raise ReadTimeoutError(endpoint_url="firehose")
        results = [
            {"ErrorCode": "ServiceUnavailableException"} if each else {"RecordId": "x"} for each in refused
        ]
        return {"FailedPutCount": sum(refused), "RequestResponses": results}


def test_every_row_is_curated_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "pauses", range)
    monkeypatch.setattr(publishing, "ATTEMPTS_MAX", 2)
    objects = S3Objects(engine.client("s3"), "lake")
    stale = [*raw_objects_of_dates(objects, "events", DT, DT), *objects.list(f"curated/events/dt={DT}/")]
    objects.delete([each.key for each in stale])
    flaky = Flaky(engine.client("firehose"), Random(0))
    publisher = Publisher({"Packed": [(EVENTS, DeliveryStream(flaky, "events"))]})

    def invoke(records: Sequence[Record]) -> InvocationReply:
        outcome = publisher.publish(list(records))
        assert outcome.poison == []
        return InvocationReply(outcome.again)

    def discard(records: Sequence[Record], why: str, tries: int) -> None:
        raise AssertionError((len(records), why, tries))

    mapping = EventSourceMapping("f", "s", partial=True)
    changes = [change(number) for number in range(CHANGES)]
    for at in range(0, CHANGES, BATCH):
        deliver(changes[at : at + BATCH], mapping, invoke, discard, pause=lambda _: None)
    raw = list(raw_objects_of_dates(objects, "events", DT, DT))
    assert len(raw) == flaky.records
    sent = Counter[Partition | None]()
    for each in raw:
        texts = row_texts(objects.get(each.key))
        place = raw_partition(each.key)
        assert {(json.loads(text)["dt"], json.loads(text)["hour"]) for text in texts} == {
            (place and place.dt, place and place.hour)
        }
        sent[place] += len(texts)
    total = Counts()
    for place, count in sent.items():
        assert place is not None
        counts = curate(objects, place)
        assert (counts.in_, counts.quarantined) == (count, 0)
        assert counts.in_ == counts.curated + counts.duplicates
        total += counts
    assert total.curated == CHANGES
    assert total.duplicates > 0
    mine = [row["idempotency_key"] for row in rows(objects) if row["activity_date"].year == 2031]
    assert sorted(mine) == sorted(f"k{number}" for number in range(CHANGES))
    assert not [each for each in quarantined(objects) if "2031" in each["source"]]
