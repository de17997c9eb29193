"""Takes events from the Kinesis stream: the records of producers, whom IAM has let in.

A record holds an event or several, plain, aggregated by the KPL (Amazon's library for producers), or zipped
(gzip). Several events are an array, {"events": [...]}, or stand one after another. `handler` accepts them;
`parts_of` reads a record, and the functions below it one layer each: user records, gzip, JSON.
"""

import base64
import gzip
import hashlib
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from aws_kinesis_agg import DIGEST_SIZE, MAGIC

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.platform.queues import FailureQueue, LargeRecords, partial_failures
from adapters.platform.tables import chunks
from ingest.engagement.acceptance import (
    ERASED,
    Acceptor,
    AcceptResult,
    AcceptStatus,
    IntakeSettings,
    acceptor_of,
)
from ingest.web.caller import Caller
from rules.json_values import NoJson, read_integer, read_json, text_of

GZIP = b"\x1f\x8b"
# Of the data of one user record, unzipped: a small one may unzip to a thousand times its size.
UNZIPPED_BYTES_MAX = 10_000_000
EVENTS_MAX = 10_000
UNLISTED = "has a key that its aggregated record does not list"
_GAP = re.compile(r"[\s,]*")
_BOUNDARY = re.compile(r"(?=\n)|\}(?=[\s,]*[{\[])")  # where what is no JSON ends
# Strict: a text that was cut off ends with its line, and swallows none of the next.
_DECODER = json.JSONDecoder(parse_int=read_integer)
# IAM decides who may put records on the stream. Such a producer may send events of any user, and late ones.
PRODUCER = Caller("", is_admin=False, is_producer=True)
CONSUMER = "events-stream"
BATCH_MAX = 100

logger = Logger(service="events-stream")


@dataclass(frozen=True)
class EventsStreamSettings(IntakeSettings):
    """Settings of this function."""

    payload_bucket: str
    failure_queue_url: str  # gets the records that the function cannot accept


@dataclass(frozen=True, slots=True)
class _Piece:
    """What one layer of a record holds: a value, or the bytes that cannot be read, with what is wrong."""

    value: Any
    fault: str = ""  # "": it can be read


@dataclass(frozen=True, slots=True)
class RecordPart:
    """An event of a record, or bytes that hold none."""

    record: dict[str, Any]  # what a failure queue keeps of it; a redrive sends it as a record of its own
    body: Any = None
    fault: str = ""  # why it holds no event, "" if it does
    position: str = ""  # which part of the record it is, in words; "" for the only one

    @property
    def sequence_number(self) -> str:
        """The sequence number of its record."""
        return str(self.record["sequence_number"])


def parts_of(record: Mapping[str, Any]) -> Iterator[RecordPart]:
    """Yield the parts of a Kinesis record, at least one: each event, and what cannot be read.

    Each has a result of its own: what cannot be read is kept alone, with its position.
    """
    number = record["kinesis"]["sequenceNumber"]
    user_records = _user_records(base64.b64decode(record["kinesis"]["data"]))
    for record_index, user_record in enumerate(user_records, 1):
        record_text = f"user record {record_index} of {len(user_records)}" if len(user_records) > 1 else ""
        pieces = [user_record] if user_record.fault else _events_in(user_record.value)
        for index, piece in enumerate(pieces, 1):
            event_text = f"event {index} of {len(pieces)}" if len(pieces) > 1 else ""
            position = ", ".join(filter(None, (record_text, event_text)))
            if piece.fault:
                raw = base64.b64encode(piece.value).decode()
                yield RecordPart({"data": raw, "sequence_number": number}, None, piece.fault, position)
            else:
                yield RecordPart({"event": piece.value, "sequence_number": number}, piece.value, "", position)


def _user_records(data: bytes) -> list[_Piece]:
    """Return a record's user records: their data, as bytes. One that is not aggregated is its own.

    Of the KPL's library only the message is used: its reader prints keys and data of what it cannot read, and
    leaves that out.
    """
    if not data.startswith(MAGIC):
        return [_Piece(data)]
    # They cost a tenth of a cold start, and a plain record needs none. The message cannot be imported alone.
    from aws_kinesis_agg.deaggregator import messages_pb2  # noqa: PLC0415
    from google.protobuf.message import DecodeError  # noqa: PLC0415

    message, digest = data[len(MAGIC) : -DIGEST_SIZE], data[-DIGEST_SIZE:]
    try:
        if digest != hashlib.md5(message, usedforsecurity=False).digest():
            raise DecodeError
        aggregated = messages_pb2.AggregatedRecord.FromString(message)
    except DecodeError:
        return [_Piece(data, "is aggregated, and damaged")]
    keys, hash_keys = len(aggregated.partition_key_table), len(aggregated.explicit_hash_key_table)

    def is_listed(each: Any) -> bool:
        has_hash_key = each.HasField("explicit_hash_key_index")
        return bool(
            each.partition_key_index < keys
            and not (has_hash_key and each.explicit_hash_key_index >= hash_keys)
        )

    records = [_Piece(each.data, "" if is_listed(each) else UNLISTED) for each in aggregated.records]
    return records or [_Piece(data, "is aggregated, and holds no user record")]


def _events_in(data: bytes) -> list[_Piece]:
    """Return the events in a user record's data, and what is no event; at least one piece."""
    if data.startswith(MAGIC):
        return [_Piece(data, "is aggregated within another record")]
    events: list[_Piece] = []
    try:
        for piece in _json_values(text_of(_unzipped(data))):
            items = piece.value.get("events") if isinstance(piece.value, dict) else piece.value
            events += map(_Piece, items) if isinstance(items, list) else [piece]
            if len(events) > EVENTS_MAX:
                return [_Piece(data, f"holds more than {EVENTS_MAX} events")]
    except NoJson as error:
        return [_Piece(data, f"is not JSON: {error}")]
    if events and all(event.fault for event in events):
        # Garbage, or data of another kind: pieces of it are of no use to anybody.
        return [_Piece(data, events[0].fault)]
    return events or [_Piece(data, "holds no event")]


def _unzipped(data: bytes) -> bytes:
    if not data.startswith(GZIP):
        return data
    try:
        plain = gzip.GzipFile(fileobj=io.BytesIO(data)).read(UNZIPPED_BYTES_MAX + 1)
    except (OSError, EOFError, zlib.error):
        raise NoJson("it is damaged gzip") from None
    if len(plain) > UNZIPPED_BYTES_MAX:
        raise NoJson(f"it is over {UNZIPPED_BYTES_MAX} bytes when it is unzipped")
    return plain


def _json_values(text: str) -> Iterator[_Piece]:
    """Yield the JSON values that stand one after another in a text.

    What is no JSON comes as bytes, to the end of its line or before the next object.
    """
    start = _match_end(_GAP.match(text), 0)
    while start < len(text):
        try:
            _, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = _match_end(_BOUNDARY.search(text, start), len(text))
        try:
            yield _Piece(read_json(text[start:end]))
        except NoJson as error:
            yield _Piece(text[start:end].encode(errors="surrogateescape"), f"is not JSON: {error}")
        start = _match_end(_GAP.match(text, end), end)


def _match_end(match: re.Match[str] | None, otherwise: int) -> int:
    return match.end() if match else otherwise


@bootstrap(EventsStreamSettings)
def _parts(config: EventsStreamSettings, client: ClientOf) -> tuple[Acceptor, FailureQueue]:
    large = LargeRecords(lambda: client("s3"), config.payload_bucket)
    return acceptor_of(config, client), FailureQueue(lambda: client("sqs"), config.failure_queue_url, large)


def reason_of(part: RecordPart, result: AcceptResult) -> str | None:
    """Return why a part of a record was not taken; None for one that was, now or by an earlier attempt.

    Also None for an event of somebody who was erased: no queue may keep it.
    """
    if result.status in (AcceptStatus.ACCEPTED, AcceptStatus.DUPLICATE):
        return None
    error = result.error or {}
    if error.get("code") == ERASED:
        return None
    if part.fault:
        return f"{part.position or 'the record'} {part.fault}"
    fields = [f"{each['field']} {each['reason']}" for each in error.get("details", ())]
    reason = f"{result.status.value}: {error.get('code')}: {'; '.join(fields) or error.get('message')}"
    return f"{part.position}: {reason}" if part.position else reason


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a Kinesis batch.

    The answer names the first record that must come again. Lambda then sends it and all later ones again.
    """
    acceptor, failures = _parts()
    now, is_redrive = clock.now(), bool(event.get("streakline_redrive"))
    parts = (part for record in event["Records"] for part in parts_of(record))
    first_parts = list(islice(parts, 2))
    # A single event that still is bad stays in its queue. Of several the bad ones are kept, each by itself.
    is_single = is_redrive and len(first_parts) == 1
    accepted, kept = 0, 0
    for batch in chunks(chain(first_parts, parts), BATCH_MAX):
        results = acceptor.accept([part.body for part in batch], PRODUCER, now, default_source="kinesis")
        if any((result.error or {}).get("code") == "unavailable" for result in results):
            return _failure_answer(batch[0], "unavailable" if is_redrive else "")
        reasons = [(part, reason_of(part, result)) for part, result in zip(batch, results, strict=True)]
        bad = [(part, reason) for part, reason in reasons if reason]
        if bad and is_single:
            return _failure_answer(*bad[0])
        failures.keep(CONSUMER, [(part.record, reason) for part, reason in bad], now)
        accepted += len(batch) - len(bad)
        kept += len(bad)
    logger.info("batch", extra={"accepted": accepted, "kept": kept})
    return {"batchItemFailures": []}


def _failure_answer(part: RecordPart, reason: str) -> dict[str, Any]:
    return partial_failures({part.sequence_number: reason})
