"""What the lake holds of an event that was changed is its newest change, however often it was changed."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.items import encode_item
from adapters.platform.objects import FolderObjects
from adapters.platform.publishing import DeliveryStream
from analytics.curation.curate import curate
from processors.batches import Record
from processors.publisher import Publisher
from rules.lake.engagement_entities import FIRST_STORED, VERSION_BYTES, event_version
from rules.lake.entities import EVENTS
from rules.lake.packed_records import row_texts
from tests.support.firehose import Firehose
from tests.support.raw_lake import PLACE, event, put_raw, rows

SECOND = 1_767_225_600
FIRST = 4421584500000000017450439091
# How the numbers of an item's changes go on, from the first one. DynamoDB's are an epoch, of 8 digits here,
# and 20 more, and only the whole grows.
ONWARDS = {
    "by the tail": (7, 14, 21),
    "the tail falls": (10**20 - 9, 2 * 10**20 - 90, 3 * 10**20 - 900),
    "the tail wraps": (10**9 - 450_439_092, 10**9 + 1, 2 * 10**9),
    "the last nine digits are the same": (10**9, 2 * 10**9, 10**20),
    "a digit more": (10**28 - FIRST - 1, 10**28 - FIRST, 10**39),
}


def record(points: int, number: int, seconds: float, name: str = "MODIFY") -> Record:
    """A change of one event, as its table's stream tells it."""
    stored = event(1, points_awarded=points, occurred_local=..., version=..., dt=..., hour=...)
    return {
        "eventName": name,
        "eventSourceARN": "arn:aws:dynamodb:eu-west-1:1:table/Events/stream/2026-01-01T00:00:00.000",
        "dynamodb": {
            "ApproximateCreationDateTime": seconds,
            "NewImage": encode_item(stored),
            "SequenceNumber": f"{FIRST + number}",
        },
    }


def lines_of(changes: list[Record]) -> list[bytes]:
    client = Firehose()
    outcome = Publisher({"Events": [(EVENTS, DeliveryStream(client, "e"))]}).publish(changes)
    assert not outcome.poison
    return [text for each in client.taken for text in row_texts(each)]


@pytest.mark.parametrize("apart", [0, 1], ids=["within a second", "a second apart"])
@pytest.mark.parametrize("onwards", ONWARDS)
def test_the_newest_change_stays(tmp_path: Path, apart: int, onwards: str) -> None:
    """5, cut to 0, 999 by hand, and 5 again: in any order of arrival, and twice."""
    changes = [record(5, 0, SECOND, "INSERT")]
    numbers = ONWARDS[onwards]
    changes += [
        record(points, numbers[n], SECOND + 1 + apart * n + n / 9) for n, points in enumerate((0, 999, 5))
    ]
    lines = lines_of(changes) * 2
    random.Random(onwards).shuffle(lines)
    objects = FolderObjects(tmp_path)
    for number, some in enumerate([lines[:3], lines[3:6], lines[6:]]):
        put_raw(objects, f"{number}", some)
        curate(objects, PLACE)
    assert [row["points_awarded"] for row in rows(objects)] == [5]


def test_null_in_a_stream_is_null_in_the_lake_for_every_attribute(tmp_path: Path) -> None:
    """Of attributes that a row needs it is refused, as if they were absent; of all others the row is there."""
    objects = FolderObjects(tmp_path)
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


# What an item's numbers may be: of every documented length, and of fewer digits, as emulators have them.
numbers = st.one_of(
    st.integers(0, 40).flatmap(lambda digits: st.integers(0, 10**digits - 1)),
    st.builds(lambda epoch, tail: epoch * 10**20 + tail, st.integers(0, 9), st.integers(0, 10**12)),
    st.integers(0, 99).map(lambda more: 1100000000017454423009 + more),
)
placed_changes = st.tuples(st.one_of(st.integers(0, 3), st.integers(0, 2**33)), numbers)


@given(st.lists(placed_changes, max_size=20), st.sampled_from([0, 21, 40]), st.floats(0, 0.99))
def test_versions_are_in_the_order_of_second_and_whole_number(
    changes: list[tuple[int, int]], width: int, fraction: float
) -> None:
    """As Python sorts texts, and as UTF-8, which is how Arrow, DuckDB and Redshift compare digits."""

    def version(change: tuple[int, int]) -> str:
        return event_version(change[0] + fraction, f"{change[1]:0{width}}")

    ordered = sorted(set(changes))
    versions = [version(each) for each in ordered]
    assert sorted(set(map(version, changes))) == versions
    assert sorted(each.encode() for each in versions) == [each.encode() for each in versions]
    assert all(each > FIRST_STORED and len(each.encode()) == VERSION_BYTES for each in versions)


@pytest.mark.parametrize("sequence", ["", "x", "-1", "1.5", " 1", "1_0", "\u0661", "9" * 41])
def test_a_number_that_is_none_is_poison_with_its_reason(sequence: str) -> None:
    change = record(5, 1, SECOND)
    change["dynamodb"]["SequenceNumber"] = sequence
    client = Firehose()
    outcome = Publisher({"Events": [(EVENTS, DeliveryStream(client, "e"))]}).publish([change])
    [(_, reason)] = outcome.poison
    assert reason.startswith("ValueError: SequenceNumber is no number of at most 40 digits")
    assert not client.taken
