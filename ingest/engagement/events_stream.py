"""Takes events from the Kinesis stream: the records of producers, whom IAM has let in.

A record holds an event or several, plain, aggregated by the KPL, zipped, or in base64. Several events are
an array, {"events": [...]}, or stand one after another.
"""

import base64
import json
import re
import string
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from typing import Any

from aws_kinesis_agg import MAGIC

from adapters import clock, settings
from adapters.logs import Logger, error_summary
from adapters.platform.aws import client
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
ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")  # RFC 1950: what Python's and Java's zlib write
# This many wrappings are taken off, one within the other.
WRAPPINGS_MAX = 4
# Of the data of one user record, unzipped: a small one may unzip to a thousand times its size.
UNZIPPED_BYTES_MAX = 10_000_000
EVENTS_MAX = 10_000
# After this many pieces that are no JSON the rest of a text is kept as one: a redrive goes on with it.
BAD_PIECES_MAX = 100
BAD_PIECE_CHARACTERS = 10_000  # a longer one counts as several: each is read from its beginning to its end
# So many bytes are unzipped at a time; they unzip to 4 MB at most.
_ZIPPED_STEP = 4_096
# No JSON that holds an event is written with these letters alone.
_BASE64 = string.ascii_letters.encode() + string.digits.encode() + b"+/-_"
_GAP = re.compile(r"[\s,\]\x00\x1e\ufeff]*")
_PADDING = re.compile(rb"\x00*")  # gzip allows it after a member
_BOUNDARY = re.compile(r"(?=\n)|\}(?=[\s,]*[{\[])")
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
    """Yield the parts of a Kinesis record, at least one.

    Each has a result of its own: what cannot be read is kept alone, with its position. What a producer has
    wrapped twice (a zipped text that its agent zips, base64 that the CLI encodes again, JSON within a JSON
    text) is unwrapped.
    """
    number = record["kinesis"]["sequenceNumber"]
    records = _user_records(base64.b64decode(record["kinesis"]["data"]))
    for record_index, (data, reason) in enumerate(records, 1):
        record_text = f"user record {record_index} of {len(records)}" if len(records) > 1 else ""
        pieces = [(data, reason)] if reason else _events_of_data(data)
        for index, (value, fault) in enumerate(pieces, 1):
            event_text = f"event {index} of {len(pieces)}" if len(pieces) > 1 else ""
            position = ", ".join(filter(None, (record_text, event_text)))
            if fault:
                raw = base64.b64encode(data if len(pieces) == 1 else value).decode()
                yield RecordPart({"data": raw, "sequence_number": number}, None, fault, position)
            else:
                yield RecordPart({"event": value, "sequence_number": number}, value, "", position)


def _user_records(data: bytes) -> list[tuple[bytes, str]]:
    """Return the data of a record's user records, each with "" or the reason why it cannot be taken."""
    if not data.startswith(MAGIC):
        return [(data, "")]
    from ingest.engagement.aggregate import user_records  # noqa: PLC0415 (costs a tenth of a cold start)

    return user_records(data)


def _events_of_data(data: bytes) -> list[tuple[Any, str]]:
    """Return the events in a user record's data, each with "", and what is no event, as bytes, with why."""
    if data.startswith(MAGIC):
        return [(data, "is aggregated within another record")]
    events: list[tuple[Any, str]] = []
    plain, rest, fault = _unwrap_data(data)
    try:
        text = text_of(plain)
    except NoJson as error:
        return [(data, f"is not JSON: {error}")]
    for value, reason in _pieces(text) if text else ():
        events += [(value, reason)] if reason else _events_of(value)
        if len(events) > EVENTS_MAX:
            return [(data, f"holds more than {EVENTS_MAX} events")]
    if events and all(reason for _, reason in events):
        _, first_reason = events[0]
        return [(data, first_reason)]  # garbage, or of another kind: pieces of it are of no use to anybody
    if rest:
        events.append((rest, fault))
    return events or [(data, "is empty")]


def _events_of(value: Any, wrappings: int = WRAPPINGS_MAX) -> list[tuple[Any, str]]:
    """Return the events in a value, also within lists of lists and JSON texts."""
    value = _parsed_text(value)
    items = value.get("events") if isinstance(value, dict) else value
    if not isinstance(items, list) or not wrappings:
        return [(value, "")]
    events = list(chain.from_iterable(_events_of(item, wrappings - 1) for item in items))
    return events or [(json.dumps(value).encode(), "holds no event")]


def _parsed_text(value: Any) -> Any:
    """Return the JSON that a JSON text holds; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return read_json(value)
        except NoJson:
            pass
    return value


def _pieces(text: str) -> Iterator[tuple[Any, str]]:
    """Yield the JSON values in a text, each with "", and what is no JSON, as bytes, with the reason."""
    try:
        yield read_json(text), ""
    except NoJson:
        pass
    else:
        return
    bad_pieces, start = 0, _gap_end(text, 0)
    while start < len(text):
        end = _value_end(text, start) if bad_pieces < BAD_PIECES_MAX else len(text)
        value, fault = _piece(text[start:end])
        bad_pieces += 1 + (end - start) // BAD_PIECE_CHARACTERS if fault else 0
        if fault and text[start] == "[" and bad_pieces < BAD_PIECES_MAX:
            end = start + 1  # an array that is no JSON as a whole still has its events
        else:
            yield value, fault
        start = _gap_end(text, end)


def _piece(text: str) -> tuple[Any, str]:
    try:
        return read_json(text), ""
    except NoJson as error:
        return text.encode(errors="surrogateescape"), f"is not JSON: {error}"


def _gap_end(text: str, start: int) -> int:
    match = _GAP.match(text, start)
    return match.end() if match else start


def _value_end(text: str, start: int) -> int:
    """Return where the object or array ends that starts here; if none does, where the next may start."""
    try:
        if text[start] in "{[":
            _, end = _DECODER.raw_decode(text, start)
            return end
    except (ValueError, RecursionError):
        pass
    match = _BOUNDARY.search(text, start)
    return match.end() if match else len(text)


def _padding_end(data: bytes, start: int) -> int:
    match = _PADDING.match(data, start)
    return match.end() if match else start


def _unwrap_data(data: bytes) -> tuple[bytes, bytes, str]:
    """Take off what data is wrapped in, one within the other; returns the same as _unzip_data."""
    for _ in range(WRAPPINGS_MAX):
        if data.startswith((GZIP, *ZLIB)):
            data, rest, fault = _unzip_data(data)
            if fault:
                return data, rest, fault
        elif decoded := _from_base64(data):
            data = decoded
        else:
            break
    return data, b"", ""


def _from_base64(data: bytes) -> bytes:
    """Return what base64 holds if that may be events, plain or zipped; else nothing."""
    letters = b"".join(data.split()).rstrip(b"=")
    if not letters or letters.translate(None, _BASE64):
        return b""
    text = letters.translate(bytes.maketrans(b"-_", b"+/"))
    try:
        decoded = base64.b64decode(text + b"=" * (-len(text) % 4))
    except ValueError:
        return b""
    is_known = decoded.lstrip().startswith((b"{", b"[", b"\xef\xbb\xbf", GZIP, *ZLIB))
    return decoded if is_known or _from_base64(decoded) else b""


def _unzip_data(data: bytes) -> tuple[bytes, bytes, str]:
    """Unzip the members of gzip or zlib data; returns what they hold, what cannot be unzipped, and why not.

    The last two are empty if all is unzipped. What is over UNZIPPED_BYTES_MAX is not unzipped at all.
    """
    kind, wbits = ("gzip", 31) if data.startswith(GZIP) else ("zlib", 15)
    plain, start = bytearray(), 0
    while (start := _padding_end(data, start)) < len(data):
        unzip, member, end = zlib.decompressobj(wbits), bytearray(), start
        try:
            while end < len(data) and not unzip.eof:
                member += unzip.decompress(data[end : end + _ZIPPED_STEP])
                end = min(end + _ZIPPED_STEP, len(data))
                if len(plain) + len(member) > UNZIPPED_BYTES_MAX:
                    return b"", data, f"is over {UNZIPPED_BYTES_MAX} bytes when it is unzipped"
        except zlib.error:
            return bytes(plain), data[start:], f"is damaged {kind}"
        if not unzip.eof:
            return bytes(plain), data[start:], f"is {kind} that was cut off"
        plain += member
        start = end - len(unzip.unused_data)
    return bytes(plain), b"", ""


@cache
def _parts() -> tuple[Acceptor, FailureQueue]:
    config = settings.read_settings(EventsStreamSettings)
    large = LargeRecords(lambda: client("s3"), config.payload_bucket)
    return acceptor_of(config), FailureQueue(lambda: client("sqs"), config.failure_queue_url, large)


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
    events_acceptor, failures = _parts()
    now, is_redrive = clock.now(), bool(event.get("streakline_redrive"))
    parts = (part for record in event["Records"] for part in _parts_of(record))
    first_parts = list(islice(parts, 2))
    # A single event that still is bad stays in its queue. Of several the bad ones are kept, each by itself.
    is_single = is_redrive and len(first_parts) == 1
    counts = {"accepted": 0, "kept": 0}
    for batch in chunks(chain(first_parts, parts), BATCH_MAX):
        results = events_acceptor.accept(
            [part.body for part in batch], PRODUCER, now, default_source="kinesis"
        )
        if any((result.error or {}).get("code") == "unavailable" for result in results):
            return _failure_answer(batch[0], "unavailable" if is_redrive else "")
        bad = [
            (part, reason)
            for part, result in zip(batch, results, strict=True)
            if (reason := reason_of(part, result))
        ]
        if bad and is_single:
            return _failure_answer(*bad[0])
        failures.keep(CONSUMER, [(part.record, reason) for part, reason in bad], now)
        counts["accepted"] += len(batch) - len(bad)
        counts["kept"] += len(bad)
    logger.info("batch", extra=counts)
    return {"batchItemFailures": []}


def _parts_of(record: Mapping[str, Any]) -> Iterator[RecordPart]:
    """Yield the parts of a record. One that only looks like an aggregated record must not stop the shard."""
    try:
        yield from parts_of(record)
    except Exception as error:  # noqa: BLE001 (protobuf raises what it likes on foreign bytes)
        logger.warning("undecodable", extra={"error": error_summary(error)})
        data, number = record["kinesis"]["data"], record["kinesis"]["sequenceNumber"]
        yield RecordPart({"data": data, "sequence_number": number}, fault="cannot be read")


def _failure_answer(part: RecordPart, reason: str) -> dict[str, Any]:
    return partial_failures({part.sequence_number: reason})
