"""Raw objects are unzipped and split into lines, a batch of objects at a time."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from isal import isal_zlib

from analytics.lake.arrow_buffers import Flags
from rules.lake.packed_records import FOOT, HEAD_BYTES, is_frame

GZIP = b"\x1f\x8b"
MEMBER = GZIP + b"\x08"
EXPANSION_MAX = 1032  # deflate's
BATCH_BYTES = 12 * 1024 * 1024
NEWLINE = 10
PIECE_BYTES = 256 * 1024
TEXT_BYTES_MAX = 2**30  # Firehose's largest buffer is 128 MiB


class Unreadable(ValueError):
    """An object that cannot be unzipped: the reason."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of some objects.

    text: the objects' text. lines: the same as one value a line, each with its newline.
    frame: which of the lines frame a packed record, and hold no row.
    names: the objects. starts: for each object, the index of its first line.
    """

    text: bytes
    lines: pa.BinaryArray
    frame: Flags
    names: list[str]
    starts: list[int]

    def origin(self, index: int) -> tuple[str, int]:
        """Return the object of a line, and the line's number in it (from 1)."""
        at = bisect_right(self.starts, index) - 1
        return self.names[at], index - self.starts[at] + 1


def unzipped(data: bytes) -> bytes:
    """Return an object's text, plain or gzip; plain lines may follow its members. Raises Unreadable."""
    try:
        text = _inflated(data) if data.startswith(GZIP) else data
    except isal_zlib.error as error:  # type: ignore[misc]
        raise Unreadable(str(error)) from None
    if len(text) > TEXT_BYTES_MAX:
        raise Unreadable(f"{len(text)} bytes are too many for one object")
    return text


def _inflated(data: bytes) -> bytes:
    # An object of many members has these bytes again. One of a single member all but never does.
    if data.find(MEMBER, len(MEMBER)) >= 0:
        return _of_members(data)
    # The text's size is known beforehand: a buffer that has to grow costs as much again.
    check, size = int.from_bytes(data[-8:-4], "little"), int.from_bytes(data[-4:], "little")
    most = min(size, EXPANSION_MAX * len(data)) + 64
    text = bytes(isal_zlib.decompress(data, isal_zlib.MAX_WBITS + 16, most))
    # If these were not the member's last bytes, something comes after it.
    is_whole = (len(text), isal_zlib.crc32(text)) == (size, check)
    return text if is_whole else _of_members(data)


def _of_members(data: bytes) -> bytes:
    """Return the text of gzip members, and of the plain lines after them; raises Unreadable."""
    parts: list[bytes] = []
    while data.startswith(GZIP):
        member = isal_zlib.decompressobj(isal_zlib.MAX_WBITS + 16)
        parts.append(bytes(member.decompress(data)))
        if not member.eof:
            raise Unreadable("incomplete: a gzip member ends early")
        data = member.unused_data
    if data.strip(b"\0"):  # gzip may be padded with zeros
        parts += [b"\n", data]
    return b"".join(parts)


def batches(texts: Iterable[tuple[str, bytes]], bytes_max: int = BATCH_BYTES) -> Iterator[Batch]:
    """Yield the lines of (name, text) pairs, many small texts together, in their order."""
    names: list[str] = []
    parts: list[bytes] = []
    size = 0
    for name, text in texts:
        names.append(name)
        parts.append(text if text.endswith(b"\n") or not text else text + b"\n")
        size += len(text)
        del text  # a batch's memory is given back before the next one's is taken
        if size >= bytes_max:
            batch = _batch(names, parts)
            names, parts, size = [], [], 0
            yield batch
            del batch
    if names:
        yield _batch(names, parts)


def _batch(names: list[str], parts: list[bytes]) -> Batch:
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
    return Batch(text, lines, _frame(text, offsets), names, starts.tolist())


def _frame(text: bytes, offsets: npt.NDArray[np.int32]) -> Flags:
    sizes = np.diff(offsets)
    found = np.zeros(len(sizes), np.bool_)
    # Few lines have such a length. Only these are looked at one by one.
    for index in np.flatnonzero((sizes == HEAD_BYTES) | (sizes == len(FOOT))).tolist():
        found[index] = is_frame(text[offsets[index] : offsets[index + 1]])
    return found


def _line_ends(text: bytes) -> npt.NDArray[np.int64]:
    """Return the positions after the newlines; found in pieces that stay in the processor's cache."""
    data = np.frombuffer(text, np.uint8)
    pieces = range(0, len(data), PIECE_BYTES)
    found = [np.flatnonzero(data[at : at + PIECE_BYTES] == NEWLINE) + (at + 1) for at in pieces]
    return np.concatenate(found) if found else np.zeros(0, np.int64)
