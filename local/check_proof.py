"""Checks a proof of a ledger entry against a published root, with nothing but the file (rule 19).

It imports the standard library alone, so it can be read and run by whoever does not trust us:
`python check_proof.py FILE ROOT`. Every digest is SHA-256 over a byte that says what it is of, and the rest.
"""

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

LEAF, NODE, COMMITMENT, CONTENT, LINK = (bytes([each]) for each in (0, 1, 3, 4, 5))


def _digest(kind: bytes, *parts: bytes) -> bytes:
    return sha256(kind + b"".join(parts)).digest()


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")


def _sha256(text: str) -> bytes:
    """Return a digest. Another length would move bytes between it and what is hashed beside it."""
    digest = bytes.fromhex(text)
    if len(digest) != len(bytes(32)):
        raise TypeError(f"{text} is no digest of 32 bytes")
    return digest


def _encoded(fields: list[list[str]]) -> bytes:
    """Return fields as bytes: length, name, kind, length, value. A longer kind would hide fields."""
    encoded = b""
    for name, kind, value in fields:
        if kind not in ("i", "t", "b"):
            raise TypeError(f"{name} is of no kind that is known")
        encoded += b"%d:%b%b" % (len(name.encode()), name.encode(), kind.encode())
        encoded += b"%d:%b" % (len(value.encode()), value.encode())
    return encoded


def _single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; a parser alone would keep a key's last value, and a person may read the first."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise TypeError(f"a key is there twice, of {', '.join(found)}"[:500])
    return found


def root_of(proof: dict[str, Any]) -> bytes:
    """Return the root that a proof leads to. Raises KeyError, TypeError or ValueError for no proof."""
    if proof["form"] != "streakline-proof-1":
        raise ValueError(f"this is no proof of a form that is known: {proof['form']}")
    entry = proof["entry"]
    # The entry: what stays of it when its person is erased, and a commitment to all else.
    committed = _digest(COMMITMENT, _sha256(entry["salt"]), _encoded(entry["hidden"]))
    content = _digest(CONTENT, committed, _encoded(entry["shown"]))
    fold = _digest(LINK, _sha256(entry["previous"]), content)
    # The chain: each later entry's hash is over its predecessor's.
    seq = int({name: value for name, _, value in entry["shown"]}["seq"])
    for each in proof["after"]:
        fold, seq = _digest(LINK, fold, _sha256(each)), seq + 1
    # The tree over all accounts.
    found = _digest(LEAF, _sha256(proof["account"]), _number(seq), fold)
    for side, beside in proof["path"]:
        if side not in ("left", "right"):
            raise ValueError(f"{side} is no side")
        pair = (_sha256(beside), found) if side == "left" else (found, _sha256(beside))
        found = _digest(NODE, *pair)
    return found


def check(path: Path, root: str) -> list[str]:
    """Return, line by line, what a proof proves. Raises ValueError if it does not prove it."""
    try:
        proof = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_single)
        found = root_of(proof)
    except (AttributeError, LookupError, OverflowError, RecursionError, TypeError, UnicodeError) as error:
        raise ValueError(f"this is no proof: {type(error).__name__}: {error}") from None
    if found != bytes.fromhex(root):
        raise ValueError(f"the proof leads to the root {found.hex()}, and not to {root}")
    entry = proof["entry"]
    # A sender's own text may have lines that look like fields.
    values = [(name, value) for name, _, value in (*entry["hidden"], *entry["shown"])]
    return [f"{name}: {value if value.isprintable() else json.dumps(value)}" for name, value in values]


if __name__ == "__main__":
    try:
        print("\n".join(check(Path(sys.argv[1]), sys.argv[2])))
    except (IndexError, OSError, ValueError) as refused:
        sys.exit(f"NOT PROVEN: {refused}")
