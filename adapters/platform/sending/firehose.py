"""Firehose: records to a delivery stream, in as few calls as the service allows."""

from collections.abc import Iterator, Sequence
from typing import Any

from adapters.platform.aws import pauses

# PutRecordBatch's own limits, and the size up to which one record is taken.
RECORDS_MAX = 500
BATCH_BYTES_MAX = 4 * 1024 * 1024
RECORD_BYTES_MAX = 1000 * 1024
ATTEMPTS_MAX = 5


def batches(records: Sequence[bytes]) -> Iterator[list[int]]:
    """Split records into calls; yields the places of each call's records."""
    places: list[int] = []
    size = 0
    for place, record in enumerate(records):
        if places and (len(places) == RECORDS_MAX or size + len(record) > BATCH_BYTES_MAX):
            yield places
            places, size = [], 0
        places.append(place)
        size += len(record)
    if places:
        yield places


class DeliveryStream:
    """One delivery stream."""

    def __init__(self, firehose: Any, name: str) -> None:
        self._firehose, self._name = firehose, name

    def put(self, records: Sequence[bytes]) -> list[int]:
        """Put records; returns the places of those that Firehose still refused after all attempts.

        A call may take some of its records and refuse others; only the refused ones are sent again.
        """
        return [place for call in batches(records) for place in self._call(records, call)]

    def _call(self, records: Sequence[bytes], places: list[int]) -> list[int]:
        for _ in pauses(ATTEMPTS_MAX):
            answer = self._firehose.put_record_batch(
                DeliveryStreamName=self._name, Records=[{"Data": records[place]} for place in places]
            )
            if not answer["FailedPutCount"]:
                return []
            results = zip(places, answer["RequestResponses"], strict=True)
            places = [place for place, result in results if result.get("ErrorCode")]
        return places
