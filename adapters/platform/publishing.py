"""Messages to an SNS topic and records to a Firehose stream, in as few calls as the services allow."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.platform.aws import Unavailable, pauses

# PublishBatch's own limits: entries, and bytes of all their bodies and attributes together.
ENTRIES_MAX = 10
TOPIC_BATCH_BYTES_MAX = 256 * 1024
ATTEMPTS_MAX = 5


@dataclass(frozen=True, slots=True)
class TopicMessage:
    """A message. attributes: texts that subscriptions filter by."""

    body: str
    attributes: Mapping[str, str]

    @property
    def size_bytes(self) -> int:
        """Bytes, as SNS counts them: body, and names, types and values of attributes."""
        attributes = (f"{name}String{value}" for name, value in self.attributes.items())
        return len(self.body.encode()) + sum(len(each.encode()) for each in attributes)


def topic_batches(messages: Sequence[TopicMessage]) -> Iterator[list[int]]:
    """Split messages into calls; yields the places of each call's messages."""
    places: list[int] = []
    size = 0
    for place, message in enumerate(messages):
        if places and (len(places) == ENTRIES_MAX or size + message.size_bytes > TOPIC_BATCH_BYTES_MAX):
            yield places
            places, size = [], 0
        places.append(place)
        size += message.size_bytes
    if places:
        yield places


@dataclass(slots=True)
class PublishFailures:
    """Messages that SNS did not take, by their places.

    again: to be sent again. faulty: SNS will never take them, with the reason.
    """

    again: list[int] = field(default_factory=list)
    faulty: dict[int, str] = field(default_factory=dict)


class Topic:
    """One topic."""

    def __init__(self, sns: Any, arn: str) -> None:
        self._sns, self._arn = sns, arn

    def publish(self, messages: Sequence[TopicMessage]) -> PublishFailures:
        """Publish messages; returns those that SNS did not take after all attempts.

        A call may take some of its messages and refuse others. Only the refused ones are sent again, unless
        SNS says that the message is at fault. If a call fails as a whole, the other calls are still made.
        """
        refused = PublishFailures()
        for call in topic_batches(messages):
            refused.again += self._call(messages, call, refused.faulty)
        return refused

    def _call(self, messages: Sequence[TopicMessage], places: list[int], faulty: dict[int, str]) -> list[int]:
        for _ in pauses(ATTEMPTS_MAX):
            try:
                answer = self._sns.publish_batch(
                    TopicArn=self._arn, PublishBatchRequestEntries=[_entry(at, messages[at]) for at in places]
                )
            except Unavailable:
                return places
            failed = {int(each["Id"]): each for each in answer.get("Failed", ())}
            faulty |= {at: _reason(each) for at, each in failed.items() if each.get("SenderFault")}
            places = [at for at in failed if at not in faulty]
            if not places:
                break
        return places


def _reason(failed: Mapping[str, Any]) -> str:
    return f"SNS refuses it: {failed.get('Code')}: {failed.get('Message', '')}"


def _entry(place: int, message: TopicMessage) -> dict[str, Any]:
    attributes = {
        name: {"DataType": "String", "StringValue": value} for name, value in message.attributes.items()
    }
    return {"Id": str(place), "Message": message.body, "MessageAttributes": attributes}


# Firehose: records to a delivery stream, in as few calls as the service allows.


# PutRecordBatch's own limits, and the size up to which one record is taken.
RECORDS_MAX = 500
STREAM_BATCH_BYTES_MAX = 4 * 1024 * 1024
RECORD_BYTES_MAX = 1000 * 1024


def stream_batches(records: Sequence[bytes]) -> Iterator[list[int]]:
    """Split records into calls; yields the places of each call's records."""
    places: list[int] = []
    size = 0
    for place, record in enumerate(records):
        if places and (len(places) == RECORDS_MAX or size + len(record) > STREAM_BATCH_BYTES_MAX):
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
        return [place for call in stream_batches(records) for place in self._call(records, call)]

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
