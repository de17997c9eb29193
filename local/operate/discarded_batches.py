"""Fetches a batch that Lambda has given up. The failure queue holds only its place in the stream."""

from typing import Any

from botocore.exceptions import ClientError

from local.cloud.streams import Record, kinesis_record, sequence_of, table_record
from local.stack import Stack

READ_MAX = 1000
# A part of a shard may be empty although more follows; after so many empty ones in a row nothing does.
EMPTY_MAX = 10
GONE = frozenset({"TrimmedDataAccessException", "ResourceNotFoundException"})


def records_of(stack: Stack, batch: dict[str, Any]) -> list[Record]:
    """Return a discarded batch's records as the function gets them: none if the stream no longer has them.

    batch: streamArn, shardId, startSequenceNumber, endSequenceNumber. Raises ClientError for anything but
    records that are gone.
    """
    try:
        return _read(stack, batch)
    except ClientError as error:
        if error.response["Error"]["Code"] in GONE:
            return []
        raise


def _read(stack: Stack, batch: dict[str, Any]) -> list[Record]:
    source, last = batch["streamArn"], int(batch["endSequenceNumber"])
    is_kinesis = ":kinesis:" in source
    client = stack.client("kinesis" if is_kinesis else "dynamodbstreams")
    wrap = kinesis_record if is_kinesis else table_record
    iterator, found, empty = _iterator(client, batch, is_kinesis), list[Record](), 0
    while iterator and empty < EMPTY_MAX:
        answer = client.get_records(ShardIterator=iterator, Limit=READ_MAX)
        read = [wrap(each, source) for each in answer["Records"]]
        found += [each for each in read if int(sequence_of(each)) <= last]
        if read and int(sequence_of(read[-1])) >= last:
            break
        empty = 0 if read else empty + 1
        iterator = answer.get("NextShardIterator")
    return found


def _iterator(client: Any, batch: dict[str, Any], is_kinesis: bool) -> str | None:
    place = "StartingSequenceNumber" if is_kinesis else "SequenceNumber"
    answer = client.get_shard_iterator(
        **{"StreamARN" if is_kinesis else "StreamArn": batch["streamArn"]},
        ShardId=batch["shardId"],
        ShardIteratorType="AT_SEQUENCE_NUMBER",
        **{place: batch["startSequenceNumber"]},
    )
    iterator: str | None = answer["ShardIterator"]
    return iterator
