"""What the lake holds of an event that was changed is its newest change, however often it was changed."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.items import item
from adapters.platform.objects import FolderObjects
from adapters.platform.sending.firehose import DeliveryStream
from analytics.curation.curate import curate
from processors.publisher import Publisher, Record
from rules.lake.engagement_entities import event_version
from rules.lake.entities import EVENTS
from rules.lake.packed_records import row_texts
from tests.support.firehose import Firehose
from tests.support.raw_lake import PLACE, event, put_raw, rows

SECOND = 1_767_225_600


def record(points: int, number: int, seconds: float, name: str = "MODIFY") -> Record:
    """A change of one event, as its table's stream tells it."""
    stored = event(1, points_awarded=points, occurred_local=..., version=..., dt=..., hour=...)
    return {
        "eventName": name,
        "eventSourceARN": "arn:aws:dynamodb:eu-west-1:1:table/Events/stream/2026-01-01T00:00:00.000",
        "dynamodb": {
            "ApproximateCreationDateTime": seconds,
            "NewImage": item(stored),
            "SequenceNumber": f"{44215845000000000174504390910 + number}",
        },
    }


def lines_of(changes: list[Record]) -> list[bytes]:
    client = Firehose()
    outcome = Publisher({"Events": (EVENTS, DeliveryStream(client, "e"))}).publish(changes)
    assert not outcome.poison
    return [text for each in client.taken for text in row_texts(each)]


@pytest.mark.parametrize("apart", [0, 1], ids=["within a second", "a second apart"])
@pytest.mark.parametrize("seed", range(3))
def test_the_newest_change_stays(objects: FolderObjects, apart: int, seed: int) -> None:
    """5, cut to 0, 999 by hand, and 5 again: in any order of arrival, and twice."""
    changes = [record(5, 0, SECOND, "INSERT")]
    changes += [record(points, 7 * n, SECOND + apart * n) for n, points in enumerate((0, 999, 5), 1)]
    lines = lines_of(changes) * 2
    random.Random(seed).shuffle(lines)
    for number, some in enumerate([lines[:3], lines[3:6], lines[6:]]):
        put_raw(objects, f"{seed}-{number}", some)
        curate(objects, PLACE)
    assert [row["points_awarded"] for row in rows(objects)] == [5]


def test_null_in_a_stream_is_null_in_the_lake_for_every_attribute(objects: FolderObjects) -> None:
    """Of attributes that a row needs it is refused, as if they were absent; of all others the row is there."""
    image = record(5, 1, SECOND)["dynamodb"]["NewImage"] | {"note": {"S": "a field that is not declared"}}
    for number, name in enumerate(image):
        change = record(5, 1, SECOND)
        change["dynamodb"]["NewImage"] = image | {name: {"NULL": True}}
        absent = record(5, 1, SECOND)
        absent["dynamodb"]["NewImage"] = {each: image[each] for each in image if each != name}
        if name == "event_id":  # no place without it
            continue
        assert lines_of([change]) == lines_of([absent]), name
        put_raw(objects, f"{number}", lines_of([change]))
    curate(objects, PLACE)
    (row,) = rows(objects)
    assert "NULL" not in repr(row)


numbers = st.integers(0, 10**8)


@given(st.integers(0, 2**33), numbers, numbers, st.integers(0, 2**20))
def test_a_version_grows_with_time_and_then_with_the_sequence(
    seconds: int, one: int, more: int, later: int
) -> None:
    first = event_version(seconds, str(10**28 + one))
    assert 0 <= first < 2**63
    assert event_version(seconds + 0.5, str(10**28 + one + more)) >= first
    assert event_version(seconds + 1 + later, "0") > first
    assert more == 0 or event_version(seconds, str(10**28 + one + more)) > first
