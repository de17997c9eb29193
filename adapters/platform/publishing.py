"""Messages to an SNS topic and records to a Firehose stream, in as few calls as the services allow."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.logs import Logger, error_summary
from adapters.platform.aws import Unavailable, pauses

logger = Logger(service="topic")
# SNS's own limits of PublishBatch: entries, and bytes of all their bodies and attributes together.
MESSAGES_MAX = 10
TOPIC_BATCH_BYTES_MAX = 256 * 1024
# Firehose's own limits of PutRecordBatch, and the size up to which it takes one record.
RECORDS_MAX = 500
STREAM_BATCH_BYTES_MAX = 4 * 1024 * 1024
RECORD_BYTES_MAX = 1000 * 1024
ATTEMPTS_MAX = 5


@dataclass(frozen=True, slots=True)
class TopicMessage:
    """A message to a topic."""

    body: str
    attributes: Mapping[str, str]  # texts that subscriptions filter by

    @property
    def size_bytes(self) -> int:
        """Its size as SNS counts it: body, and names, types and values of attributes."""
        attributes = (f"{name}String{value}" for name, value in self.attributes.items())
        return len(self.body.encode()) + sum(len(attribute.encode()) for attribute in attributes)

    def entry(self, index: int) -> dict[str, Any]:
        """Return it as an entry of PublishBatch."""
        attributes = {
            name: {"DataType": "String", "StringValue": value} for name, value in self.attributes.items()
        }
        return {"Id": str(index), "Message": self.body, "MessageAttributes": attributes}


def call_batches(sizes: Iterable[int], count_max: int, bytes_max: int) -> Iterator[list[int]]:
    """Split entries into calls by their sizes in bytes, and yield the indices of each call's entries."""
    indices: list[int] = []
    total = 0
    for index, size in enumerate(sizes):
        if indices and (len(indices) == count_max or total + size > bytes_max):
            yield indices
            indices, total = [], 0
        indices.append(index)
        total += size
    if indices:
        yield indices


@dataclass(slots=True)
class PublishFailures:
    """The messages that SNS did not take, by their indices."""

    again: list[int] = field(default_factory=list)  # messages that SNS may take later
    faulty: dict[int, str] = field(default_factory=dict)  # why SNS will never take a message, by its index


class Topic:
    """One SNS topic."""

    def __init__(self, sns: Any, arn: str) -> None:
        self._sns, self._arn = sns, arn

    def publish(self, messages: Sequence[TopicMessage]) -> PublishFailures:
        """Publish messages; returns those that SNS did not take after all attempts. A call may take some of
        its messages and refuse others. Only the refused ones are sent again, unless SNS says that the message
        is at fault. If a call fails as a whole, the other calls are still made: it never raises Unavailable.
        """
        refused = PublishFailures()
        sizes = (message.size_bytes for message in messages)
        for indices in call_batches(sizes, MESSAGES_MAX, TOPIC_BATCH_BYTES_MAX):
            refused.again += self._call(messages, indices, refused.faulty)
        return refused

    def _call(
        self, messages: Sequence[TopicMessage], indices: list[int], faulty: dict[int, str]
    ) -> list[int]:
        """Publish the messages of one call; returns the indices to be sent again, and notes faulty ones."""
        for _ in pauses(ATTEMPTS_MAX):
            try:
                answer = self._sns.publish_batch(
                    TopicArn=self._arn,
                    PublishBatchRequestEntries=[messages[index].entry(index) for index in indices],
                )
            except Unavailable as error:
                logger.warning("SNS did not take a call", extra={"error": error_summary(error)})
                return indices
            failed = {int(failure["Id"]): failure for failure in answer.get("Failed", ())}
            for index, failure in failed.items():
                if failure.get("SenderFault"):
                    faulty[index] = f"SNS refuses it: {failure.get('Code')}: {failure.get('Message', '')}"
            indices = [index for index in failed if index not in faulty]
            if not indices:
                break
        return indices


class DeliveryStream:
    """One Firehose stream."""

    def __init__(self, firehose: Any, name: str) -> None:
        self._firehose, self._name = firehose, name

    def put(self, records: Sequence[bytes]) -> list[int]:
        """Put records; returns the indices of those that Firehose still refused after all attempts.

        A call may take some of its records and refuse others; only the refused ones are sent again. Raises
        Unavailable.
        """
        refused: list[int] = []
        for call in call_batches(map(len, records), RECORDS_MAX, STREAM_BATCH_BYTES_MAX):
            indices = call
            for _ in pauses(ATTEMPTS_MAX):
                answer = self._firehose.put_record_batch(
                    DeliveryStreamName=self._name, Records=[{"Data": records[index]} for index in indices]
                )
                if not answer["FailedPutCount"]:
                    break
                results = zip(indices, answer["RequestResponses"], strict=True)
                indices = [index for index, result in results if result.get("ErrorCode")]
            else:  # refused in all attempts
                refused += indices
        return refused
