"""Lines of any entity as the publisher writes them, and what may go wrong with a line."""

import json
from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import Any

from analytics.lake.layout import Partition
from rules.lake.entities import ENTITIES, Field, Type

Texts = dict[bytes, bytes]  # the names and values of a line, as JSON writes them

TEXTS = (
    *("", "a,", ",", "caf\u00e9", "\U0001f600", "\\", '"', "\x7f", "null"),
    *('{"a":"b"}', '{"a":"\\n\\u00e9"}'),
)
ODD_NUMBERS = rb"""
0 -0 00 05 +5 - --5 5. 5.0 1e3 1E400 0x10 1_0 "5" 999999999999999999 1000000000000000000 12345678901234567890123
9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 NaN -Infinity
""".split()
ODD_TEXTS = (
    *rb'"" "\"" "\\" "\/" "\n" "\u00e9" "\u0000" "\ud800" "\udc00\ud800" "\ud83d\ude00" "\x" "\" "a"b"'.split(),
    *(b'"a","b":"c"', b'"\x00"', b'"\x1f"', b'"\t"', b'"\x7f"', b'"\xff"', b'"\xc3"', b'"\xc0\x80"', b"'a'"),
    *(b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xef\xbb\xbf"'),
    # As long as the narrowest columns, and too long for them; Redshift counts bytes, and \" is one of them.
    *(
        b'"%s"' % (piece * times)
        for piece in (b"x", b"\xc3\xa9", b'\\"')
        for times in (16, 17, 32, 33, 64, 65, 129)
    ),
)
ODD_TIMES = (
    *b"""
"2026-02-30" "2024-02-29" "2023-02-29" "2026-3-1" "0000-01-01" "0001-01-01" "0999-12-31" "9999-12-31"
"2026-03-01T06:00:00.000000Z" "2026-03-01T04:59:59.999999Z" "2026-03-01T01:00:00.000000Z"
"2026-02-28T23:59:59.999999Z" "1970-01-01T00:00:00.000000Z" "1969-12-31T23:59:59.999999Z"
"0000-01-01T00:00:00.000000Z" "0001-01-01T00:00:00.000000Z" "9999-12-31T23:59:59.999999Z"
"0001-01-01T00:00:00+01:00" "2026-03-01T05:00:00Z" "2026-03-01T05:00:00.1Z" "2026-03-01T05:59:59.9999999Z"
"2026-03-01T07:00:00+02:00" "2026-03-01T05:00:00.00+00:00"
"2026-03-01T05:00:00-00:00" "2026-03-01T24:00:00.000000Z" "2026-03-01T05:60:00.000000Z"
"2026-03-01T05:00:60.000000Z" "2026-02-30T05:00:00.000000Z" "2026-03-01T05:00:00.0000000"
""".split(),
    b'"2026-03-01 "',
)
MARKS = ((b"T", b" "), (b"T", b"t"), (b".", b","), (b"Z", b"z"), (b"Z", b" "), (b":", b"."), (b"-", b"/"))
ODD_OTHERS = (*b'null true false True nul [] [5] {} {"a":"b"} ["a","b"]'.split(), b"", b" 5", b"5 5")
ODD = (*ODD_NUMBERS, *ODD_TEXTS, *ODD_TIMES, *ODD_OTHERS)
SPACES = (b" ", b"\t", b"\r", b"  ", b"\x0b", b"\x0c", b"\xc2\xa0", b"\xef\xbb\xbf")
PIECES = (*SPACES, b'"', b',"', b'\\"', b"\\", b"{", b"}", b"}{", b",", b"x", b"[", b"\x00", b"\xff")


def texts_of(chance: Random, place: Partition, without: Mapping[str, bool] = MappingProxyType({})) -> Texts:
    """A valid line's names and values. without: optional fields that are null (True) or absent (False)."""
    entity = ENTITIES[place.entity]
    values = {
        field.name: None if field.name in without else _value(chance, field, place, entity.occurred)
        for field in entity.fields
        if without.get(field.name, True)
    }
    values |= {"dt": place.dt, "hour": place.hour}
    return {_json(name): _json(value) for name, value in values.items()}


def joined(texts: Texts) -> bytes:
    """The line as the publisher writes it."""
    return b"{" + b",".join(name + b":" + value for name, value in texts.items()) + b"}"


def mutated(chance: Random, texts: Texts, other: bytes) -> bytes:
    """A line with something wrong, or merely odd. other: another valid line."""
    line = joined(chance.choice(FIELDS)(chance, dict(texts), chance.choice(list(texts))))
    if chance.random() < 0.4:
        line = _torn(chance, line, other)
    return line.replace(b"\n", b" ")


def _value(chance: Random, field: Field, place: Partition, occurred: str) -> Any:
    decides_place = field.name == occurred
    match field.type:
        case Type.TEXT:
            return chance.choice(TEXTS) if chance.random() < 0.1 else f"k{chance.randrange(10**6)}"
        case Type.INTEGER:
            return chance.choice((0, 5, -3, chance.randrange(10**12)))
        case Type.BOOLEAN:
            return chance.random() < 0.5
        case Type.DATE:
            return place.dt if decides_place else f"{chance.randrange(1000, 3000)}-02-28"
        case Type.TIMESTAMP:
            clock = f"{chance.randrange(60):02}:{chance.randrange(60):02}.{chance.randrange(10**6):06}"
            return f"{place.dt if decides_place else '2026-12-31'}T{place.hour}:{clock}Z"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _as_it_is(_: Random, texts: Texts, name: bytes) -> Texts:
    return texts


def _odd_value(chance: Random, texts: Texts, name: bytes) -> Texts:
    return texts | {name: chance.choice(ODD)}


def _odd_of_its_kind(chance: Random, texts: Texts, name: bytes) -> Texts:
    value = texts[name]
    if value[:2] in (b'"1', b'"2'):
        nearly = value.replace(*chance.choice(MARKS))
        return texts | {name: chance.choice((nearly, chance.choice(ODD_TIMES)))}
    return texts | {name: chance.choice(ODD_TEXTS if value[:1] == b'"' else ODD_NUMBERS)}


def _swapped(chance: Random, texts: Texts, name: bytes) -> Texts:
    other = chance.choice(list(texts))
    return texts | {name: texts[other], other: texts[name]}


def _missing(chance: Random, texts: Texts, name: bytes) -> Texts:
    if chance.random() < 0.5:
        return texts | {name: b"null"}
    return {each: value for each, value in texts.items() if each != name}


def _renamed(chance: Random, texts: Texts, name: bytes) -> Texts:
    escaped = rb'"\u00%02x' % name[1] + name[2:]
    new = chance.choice((name.upper(), name[:-1] + b' "', escaped, name[1:], b'"d\xff"', b'""', b"5"))
    return {new if each == name else each: value for each, value in texts.items()}


def _reordered(chance: Random, texts: Texts, name: bytes) -> Texts:
    return {each: texts[each] for each in chance.sample(list(texts), len(texts))}


def _unknown(chance: Random, texts: Texts, name: bytes) -> Texts:
    names = list(texts)
    names.insert(chance.randrange(len(names) + 1), b'"mood"')
    return {each: texts.get(each, chance.choice(ODD)) for each in names}


def _twice(chance: Random, texts: Texts, name: bytes) -> Texts:
    again = {name + b" ": chance.choice((texts[name], chance.choice(ODD)))}  # the blank keeps both
    return again | texts if chance.random() < 0.5 else texts | again


def _other_place(chance: Random, texts: Texts, name: bytes) -> Texts:
    name, *values = chance.choice(((b'"dt"', b"2026-03-02", b"2026-3-1"), (b'"hour"', b"06", b"5", b"24")))
    return texts | {name: b'"' + chance.choice(values) + b'"'}


def _character(chance: Random, texts: Texts, name: bytes) -> Texts:
    value = bytearray(texts[name])
    value[chance.randrange(len(value))] = chance.choice(b'0123456789019923-:.TZ+ e,"\\')
    return texts | {name: bytes(value)}


def _escaped(chance: Random, texts: Texts, name: bytes) -> Texts:
    text = json.loads(texts[name])
    if not isinstance(text, str) or not text or ord(text[0]) > 0xFFFF:
        return texts
    return texts | {name: rb'"\u%04x' % ord(text[0]) + _json(text[1:])[1:]}


def _spaced(chance: Random, texts: Texts, name: bytes) -> Texts:
    names = [name] if chance.random() < 0.5 else list(texts)
    before, behind = (chance.choice((b"", chance.choice(SPACES))) for _ in range(2))
    return {
        each + before if each in names else each: behind + value if each in names else value
        for each, value in texts.items()
    }


def _torn(chance: Random, line: bytes, other: bytes) -> bytes:  # or it goes on as another one
    at = chance.choice((0, len(line) - 1, *chance.choices(range(len(line)), k=6)))
    flipped = bytes([line[at] ^ 1 << chance.randrange(8)])
    more = chance.choice((*PIECES, bytes([chance.randrange(256)])))
    lost = chance.choice((1, 1, 2, 9, len(line)))
    rest = chance.choice((flipped + line[at + 1 :], more + line[at:], line[at:] + more, line[at + lost :]))
    return line[:at] + chance.choice((rest, rest, other[at:], other[chance.randrange(len(other)) :]))


FIELDS = (
    *(
        _as_it_is,
        _odd_value,
        _odd_of_its_kind,
        _odd_of_its_kind,
        _odd_of_its_kind,
        _swapped,
        _missing,
        _renamed,
        _reordered,
    ),
    *(_unknown, _twice, _other_place, _character, _character, _character, _escaped, _spaced),
)
