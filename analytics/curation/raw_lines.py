"""Unzips raw objects and splits them into lines, a batch of objects at a time.

`unzip` reads any object that Firehose has written. No other code unzips raw objects.
"""

import gzip
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from isal import igzip, isal_zlib

from analytics.lake.arrow import Flags
from rules.lake.packed_records import FOOTER, HEADER_BYTES, is_frame

GZIP = b"\x1f\x8b"
MEMBER = GZIP + b"\x08"  # a gzip member begins with these bytes
EXPANSION_MAX = 1032  # one byte of deflate gives at most so many bytes of text
BATCH_BYTES = 12 * 1024 * 1024
NEWLINE = 10
PIECE_BYTES = 256 * 1024  # so much stays in the processor's cache
TEXT_BYTES_MAX = 2**30  # Firehose's largest buffer is 128 MiB


class Unreadable(ValueError):
    """An object that cannot be unzipped as a whole. The message is the reason.

    text: the lines of whole members. rest: the bytes of the other members. seen: as much of the text of the
    other members as can be read; nothing proves that it is right.
    """

    def __init__(self, reason: str, text: bytes, rest: bytes, seen: bytes) -> None:
        super().__init__(reason)
        self.text, self.rest, self.seen = text, rest, seen


@dataclass(frozen=True, slots=True)
class LineBatch:
    """Lines of some objects."""

    text: bytes  # of all the objects
    lines: pa.BinaryArray  # the text as one value a line, each with its newline
    frame: Flags  # for each line whether it only frames a packed record, and holds no row
    names: list[str]  # of the objects
    starts: list[int]  # for each object, the index of its first line

    def origin(self, index: int) -> tuple[str, int]:
        """Return the object of a line, and the line's number in it (from 1)."""
        at = bisect_right(self.starts, index) - 1
        return self.names[at], index - self.starts[at] + 1


def unzip(data: bytes) -> bytes:
    """Return the text of an object: gzip members, and plain lines. Raises Unreadable."""
    if not data.startswith(GZIP):
        text = data
    else:
        try:
            text = _inflate(data)
        except (igzip.BadGzipFile, isal_zlib.error, EOFError):  # type: ignore[misc]
            text = _text_of_parts(data)
    if len(text) > TEXT_BYTES_MAX:
        raise Unreadable(f"{len(text)} bytes are too many for one object", b"", data, text)
    return text


def _inflate(data: bytes) -> bytes:
    """Return the text of gzip members. Raises igzip's and isal's errors, EOFError."""
    # An object of several members has these bytes again. An object of one member hardly ever has.
    if data.find(MEMBER, len(MEMBER)) < 0:
        # The text's size is known beforehand: a buffer that has to grow costs as much again. A damaged size
        # must not reserve more memory than the object can expand to.
        check, size = int.from_bytes(data[-8:-4], "little"), int.from_bytes(data[-4:], "little")
        buffer_bytes = min(size, EXPANSION_MAX * len(data)) + 64
        text = bytes(isal_zlib.decompress(data, isal_zlib.MAX_WBITS + 16, buffer_bytes))
        if (len(text), isal_zlib.crc32(text)) == (size, check):
            return text
    return bytes(igzip.decompress(data))  # type: ignore[no-untyped-call]


def readable_text(data: bytes) -> bytes:
    """Return all text that can be read in an object, also from members that are not whole."""
    try:
        return unzip(data)
    except Unreadable as error:
        return b"\n".join((error.text, error.seen, error.rest))


def _text_of_parts(data: bytes) -> bytes:
    """Return the text of gzip members, and of the plain lines between and after them.

    No line of text holds the bytes with which a member begins: they are not UTF-8. Raises Unreadable.
    """
    text, rest, seen = [], [], []
    at = 0
    while at < len(data):
        next_member = data.find(MEMBER, at + 1)
        until = next_member if next_member > 0 else len(data)
        if not data.startswith(GZIP, at):
            text.append(_plain_lines(data[at:until]))
            at = until
            continue
        member_text, end = _member(data, at)
        if end:
            text.append(member_text)
        else:
            rest.append(data[at:until])
            seen.append(member_text)
        at = end or until
    if not rest:
        return b"".join(text)
    size = sum(map(len, rest))
    reason = f"{size} of {len(data)} bytes cannot be unzipped: a gzip member ends early, or is damaged"
    raise Unreadable(reason, b"".join(text), b"".join(rest), b"\n".join(seen))


def _member(data: bytes, start: int) -> tuple[bytes, int]:
    """Return the text of the member that begins at a position, and where it ends; 0: it is not whole."""
    stream, parts = zlib.decompressobj(zlib.MAX_WBITS + 16), list[bytes]()
    for at in range(start, len(data), PIECE_BYTES):
        before, piece = stream.copy(), data[at : at + PIECE_BYTES]
        try:
            parts.append(stream.decompress(piece))
        except zlib.error:
            with suppress(zlib.error):  # byte by byte, to read the text up to the byte that is wrong
                for index in range(len(piece)):
                    parts.append(before.decompress(piece[index : index + 1]))
            break
        if stream.eof:
            return b"".join(parts), min(at + PIECE_BYTES, len(data)) - len(stream.unused_data)
        if sum(map(len, parts)) > TEXT_BYTES_MAX:
            break
    return b"".join(parts), 0


def _plain_lines(data: bytes) -> bytes:
    """Return the text between or after an object's members as lines; b"" for zeros, gzip's padding."""
    return b"\n" + data + b"\n" if data.strip(b"\0") else b""


def zip_like(data: bytes, text: bytes) -> bytes:
    """Return an object with a text that takes another object's place: zipped if that one is."""
    return gzip.compress(text, mtime=0) if data.startswith(GZIP) else text


def batches(texts: Iterable[tuple[str, bytes]], bytes_max: int = BATCH_BYTES) -> Iterator[LineBatch]:
    """Yield the lines of (name, text) pairs, many small texts together, in their order."""
    names: list[str] = []
    parts: list[bytes] = []
    size = 0
    for name, text in texts:
        names.append(name)
        parts.append(text if text.endswith(b"\n") or not text else text + b"\n")
        size += len(text)
        del text  # so that a batch's memory is free before the next one's is taken
        if size >= bytes_max:
            batch = _batch(names, parts)
            names, parts, size = [], [], 0
            yield batch
            del batch
    if names:
        yield _batch(names, parts)


def _batch(names: list[str], parts: list[bytes]) -> LineBatch:
    """Return the lines of texts, each of which ends with a newline."""
    text = parts[0] if len(parts) == 1 else b"".join(parts)
    ends = _line_ends(text)
    sizes = np.cumsum([0, *map(len, parts[:-1])])
    starts = np.searchsorted(ends, sizes, side="right")
    # A line is everything up to and including its newline: the bytes are used where they are.
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    lines = pa.BinaryArray.from_buffers(
        pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    )
    return LineBatch(text, lines, _frame_flags(text, offsets), names, starts.tolist())


def _frame_flags(text: bytes, offsets: npt.NDArray[np.int32]) -> Flags:
    """Return for each line whether it frames a packed record."""
    sizes = np.diff(offsets)
    flags = np.zeros(len(sizes), np.bool_)
    # Few lines have such a length. Only these are compared one by one.
    for index in np.flatnonzero((sizes == HEADER_BYTES) | (sizes == len(FOOTER))).tolist():
        flags[index] = is_frame(text[offsets[index] : offsets[index + 1]])
    return flags


def _line_ends(text: bytes) -> npt.NDArray[np.int64]:
    """Return the positions after the newlines."""
    data = np.frombuffer(text, np.uint8)
    pieces = range(0, len(data), PIECE_BYTES)
    ends = [np.flatnonzero(data[at : at + PIECE_BYTES] == NEWLINE) + (at + 1) for at in pieces]
    return np.concatenate(ends) if ends else np.zeros(0, np.int64)
