"""The records of Firehose's error objects, in all of their forms."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DATA = "rawData"  # the field with what Firehose was sent, in base64
_JSON = json.JSONDecoder()
# What may stand between records. They may be a list, and begin with a byte order mark.
_BETWEEN = re.compile(r"[\s,\[\]\ufeff]*")
# Where a record may begin after text that is no record: after a newline, or where an object meets the next.
_NEXT = re.compile(r"\n|(?<=\})(?=\s*\{)")


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """A record of an error object."""

    text: bytes
    fields: Mapping[str, Any]  # of the text as JSON; {} if it is no JSON object

    @property
    def data(self) -> bytes | None:
        """The data that Firehose was sent; None if the record does not have them."""
        try:
            return base64.b64decode(self.fields[DATA], validate=True)
        except (KeyError, TypeError, ValueError):
            return None

    def having(self, data: bytes) -> bytes:
        """Return the text of this record with other data, as a line."""
        return json.dumps({**self.fields, DATA: base64.b64encode(data).decode()}).encode() + b"\n"


def error_records(text: bytes) -> Iterator[ErrorRecord]:
    """Yield the records of an error object, in lines, in one line, indented or as a list.

    Text that is no record is yielded too, line by line. Only the separators of records are left out.
    """
    chars = text.decode(errors="surrogateescape")
    at = _end_of_gap(chars, 0)
    while at < len(chars):
        try:
            fields, end = _JSON.raw_decode(chars, at)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            following = _NEXT.search(chars, at + 1)
            fields, end = {}, following.end() if following else len(chars)
        record = chars[at:end].rstrip("\n") + "\n"
        yield ErrorRecord(record.encode(errors="surrogateescape"), fields)
        at = _end_of_gap(chars, end)


def _end_of_gap(chars: str, at: int) -> int:
    """Return the position after the separators of records that begin at a position."""
    gap = _BETWEEN.match(chars, at)
    return gap.end() if gap else at
