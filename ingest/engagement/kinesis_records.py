"""What a Kinesis record holds: an event or several, plain, aggregated by the KPL, or zipped.

Several events are an array, {"events": [...]}, JSON lines, or objects one right after another. Each has an
outcome of its own: what cannot be read is kept alone, and says its place.
"""

import base64
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aws_kinesis_agg import MAGIC

from rules.json_values import NoJson, integer, read_json, text_of

GZIP = b"\x1f\x8b"
# Of the data of one user record, unzipped: a small one may unzip to a thousand times its size.
UNZIPPED_BYTES_MAX = 10_000_000
EVENTS_MAX = 10_000
# After so many pieces that are no JSON the rest of a text is kept as one: a redrive goes on with it.
BAD_PIECES_MAX = 100
# Unzips to 4 MB at most.
_ZIPPED_STEP = 4_096
_GAP = re.compile(r"[\s,\]\x00\x1e\ufeff]*")
_PADDING = re.compile(rb"\x00*")  # gzip allows it after a member
_BOUNDARY = re.compile(r"(?=\n)|\}(?=[\s,]*[{\[])")
# Strict: a text that was cut off ends with its line, and swallows none of the next.
_DECODER = json.JSONDecoder(parse_int=integer)


@dataclass(frozen=True, slots=True)
class RecordPart:
    """An event of a record, or what is none.

    kept: what a failure queue keeps of it; a redrive sends it as a record of its own. fault: why it holds no
    event, "" if it does. place: which part of the record it is, "" for the only one.
    """

    kept: dict[str, Any]
    body: Any = None
    fault: str = ""
    place: str = ""

    @property
    def sequence_number(self) -> str:
        """Of its record."""
        return str(self.kept["sequence_number"])


def parts_of(record: Mapping[str, Any]) -> Iterator[RecordPart]:
    """Yield the parts of a Kinesis record, at least one."""
    number = record["kinesis"]["sequenceNumber"]
    records, is_whole = _user_records(record)
    if not is_whole:
        kept = {"data": record["kinesis"]["data"], "sequence_number": number}
        yield RecordPart(kept, fault="is aggregated, and a part of it cannot be read")
    for place, text in enumerate(records, 1):
        named = f"user record {place} of {len(records)}" if len(records) > 1 else ""
        data = base64.b64decode(text)
        held = _held(data)
        for part, (value, fault) in enumerate(held, 1):
            which = f"event {part} of {len(held)}" if len(held) > 1 else ""
            at = ", ".join(filter(None, (named, which)))
            if fault:
                # Of an empty user record the whole record is kept: it says more than nothing.
                raw = base64.b64encode(data if len(held) == 1 else value).decode()
                kept = {"data": raw or record["kinesis"]["data"], "sequence_number": number}
                yield RecordPart(kept, None, fault, at)
            else:
                yield RecordPart({"event": value, "sequence_number": number}, value, "", at)


def _user_records(record: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Return the data of a record's user records (base64), and whether none of them is missing."""
    data = record["kinesis"]["data"]
    if not base64.b64decode(data).startswith(MAGIC):
        return [data], True
    from ingest.engagement.aggregate import user_records  # noqa: PLC0415 (costs a tenth of a cold start)

    return user_records(record)


def _held(data: bytes) -> list[tuple[Any, str]]:
    """Return the events in a user record's data, each with "", and what is no event, as bytes, with why."""
    if data.startswith(MAGIC):
        return [(data, "is aggregated, and damaged")]
    found: list[tuple[Any, str]] = []
    plain, rest, fault = _unzipped(data) if data.startswith(GZIP) else (data, b"", "")
    try:
        text = text_of(plain)
    except NoJson as error:
        return [(data, f"is not JSON: {error}")]
    for value, why in _pieces(text) if text else ():
        found += [(value, why)] if why else _events_of(value)
        if len(found) > EVENTS_MAX:
            return [(data, f"holds more than {EVENTS_MAX} events")]
    if found and all(why for _, why in found):
        return [(data, found[0][1])]  # garbage, or of another kind: pieces of it tell nobody anything
    if rest:
        found.append((rest, fault))
    return found or [(data, "is empty")]


def _events_of(value: Any) -> list[tuple[Any, str]]:
    several = value.get("events") if isinstance(value, dict) else value
    if not isinstance(several, list):
        return [(value, "")]
    return [(each, "") for each in several] or [(json.dumps(value).encode(), "holds no event")]


def _pieces(text: str) -> Iterator[tuple[Any, str]]:
    """Yield the JSON values in a text, each with "", and what is no JSON, as bytes, with the reason."""
    try:
        yield read_json(text), ""
    except NoJson:
        pass
    else:
        return
    bad, place = 0, _gap_end(text, 0)
    while place < len(text):
        end = _value_end(text, place) if bad < BAD_PIECES_MAX else len(text)
        value, fault = _piece(text[place:end])
        bad += bool(fault)
        if fault and text[place] == "[" and bad < BAD_PIECES_MAX:
            end = place + 1  # an array that is no JSON as a whole still has its events
        else:
            yield value, fault
        place = _gap_end(text, end)


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
            return _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        pass
    match = _BOUNDARY.search(text, start)
    return match.end() if match else len(text)


def _padding_end(data: bytes, start: int) -> int:
    match = _PADDING.match(data, start)
    return match.end() if match else start


def _unzipped(data: bytes) -> tuple[bytes, bytes, str]:
    """Unzip the members of gzip data; returns what they hold, what cannot be unzipped, and why not.

    What is over UNZIPPED_BYTES_MAX is not unzipped at all.
    """
    found, start = bytearray(), 0
    while (start := _padding_end(data, start)) < len(data):
        unzip, member, end = zlib.decompressobj(wbits=31), bytearray(), start
        try:
            while end < len(data) and not unzip.eof:
                member += unzip.decompress(data[end : end + _ZIPPED_STEP])
                end = min(end + _ZIPPED_STEP, len(data))
                if len(found) + len(member) > UNZIPPED_BYTES_MAX:
                    return b"", data, f"is over {UNZIPPED_BYTES_MAX} bytes when it is unzipped"
        except zlib.error:
            return bytes(found), data[start:], "is damaged gzip"
        if not unzip.eof:
            return bytes(found), data[start:], "is gzip that was cut off"
        found += member
        start = end - len(unzip.unused_data)
    return bytes(found), b"", ""
