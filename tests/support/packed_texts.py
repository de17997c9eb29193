"""Raw texts that mix packed records with plain lines, and what may go wrong with such a text."""

from collections.abc import Sequence
from random import Random

from analytics.lake.layout import Partition
from rules.lake.packed_records import FOOTER, frame_record, record_header
from tests.support.mutated_lines import PIECES

HEAD = record_header("2026-03-01", "05")


def packed_text(chance: Random, place: Partition, lines: Sequence[bytes], plain_share: float = 0.2) -> bytes:
    """Lines in records of one to twenty, some of them plain."""
    head, text, at = record_header(place.dt, str(place.hour)), b"", 0
    while at < len(lines):
        some = lines[at : at + chance.choice((1, 2, 7, 20))]
        at += len(some)
        is_plain = chance.random() < plain_share
        text += b"".join(each + b"\n" for each in some) if is_plain else frame_record(head, some)
    return text


def spoiled(chance: Random, text: bytes) -> bytes:
    """A text that is cut off, repeated in part, or has other bytes somewhere."""
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        at, other = chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)
        match chance.randrange(6):
            case 0:
                text = text[:at]
            case 1:
                text = text[at:]
            case 2:
                text = text[:at] + text[other:]  # without a part, or with one twice
            case 3:
                pieces = (
                    *PIECES,
                    b"\n",
                    b",\n",
                    b"},\n",
                    b"}\n",
                    b"]",
                    FOOTER,
                    HEAD,
                    HEAD[:-1],
                    b"\r\n",
                    b"null",
                )
                text = text[:at] + chance.choice(pieces) + text[at:]
            case 4:
                text = text[:at] + bytes([chance.randrange(256)]) + text[at + 1 :]
            case _:
                text = _without_some_ends(chance, text)
    return text


def lines_of(text: bytes) -> list[bytes]:
    """A text's lines as curation numbers them, each without its newline."""
    return text.removesuffix(b"\n").split(b"\n") if text else []


def _without_some_ends(chance: Random, text: bytes) -> bytes:
    """The text without a comma or a newline behind one of its rows, or with two."""
    ends = [at for at in range(len(text)) if text.startswith((b",\n", b"\n"), at)]
    if not ends:
        return text
    at = chance.choice(ends)
    return text[:at] + chance.choice((b"", text[at : at + 1])) + text[at + chance.randrange(2) :]
