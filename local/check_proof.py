"""Checks a proof of a ledger entry against a published root, with nothing but the file (rule 19).

It imports the standard library alone, so it can be read and run by whoever does not trust us:
`python check_proof.py FILE ROOT`. Every digest is SHA-256 over a byte for the kind, and then the content.
"""

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

# A digest is of an account in the tree, two nodes, the hidden fields, an entry, or a link of the chain.
LEAF, NODE, COMMITMENT, CONTENT, LINK = b"\x00", b"\x01", b"\x03", b"\x04", b"\x05"
DIGEST_BYTES = 32


def root_of(proof: dict[str, Any]) -> bytes:
    """Return the root that a proof leads to. Raises KeyError, TypeError or ValueError for no proof."""
    if proof["form"] != "streakline-proof-1":
        raise ValueError(f"this is no proof of a form that is known: {proof['form']}")
    entry = proof["entry"]
    # The entry. If its person is erased, the fields `shown` stay, and of the others this commitment alone.
    commitment = _digest(COMMITMENT, _digest_of_hex(entry["salt"]), _encoded(entry["hidden"]))
    content = _digest(CONTENT, commitment, _encoded(entry["shown"]))
    head = _digest(LINK, _digest_of_hex(entry["previous"]), content)
    # The chain of the account's entries. The hash of each later one is over the hash before it.
    seq = int({name: value for name, _, value in entry["shown"]}["seq"])
    for later_content in proof["after"]:
        head, seq = _digest(LINK, head, _digest_of_hex(later_content)), seq + 1
    # The tree over all accounts, from the account's leaf up to the root.
    node = _digest(LEAF, _digest_of_hex(proof["account"]), seq.to_bytes(8, "big"), head)
    for side, text in proof["path"]:
        if side not in ("left", "right"):
            raise ValueError(f"{side} is no side")
        sibling = _digest_of_hex(text)
        node = _digest(NODE, sibling, node) if side == "left" else _digest(NODE, node, sibling)
    return node


def check(path: Path, root: str) -> list[str]:
    """Return the entry that a file proves, a line for each field. Raises ValueError if it proves nothing."""
    try:
        proof = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_object)
        proof_root = root_of(proof)
    except (AttributeError, LookupError, OverflowError, RecursionError, TypeError, UnicodeError) as error:
        raise ValueError(f"this is no proof: {type(error).__name__}: {error}") from None
    if proof_root != bytes.fromhex(root):
        raise ValueError(f"the proof leads to the root {proof_root.hex()}, and not to {root}")
    entry = proof["entry"]
    # A value that a sender wrote may have line ends, and would look like further fields.
    values = [(name, value) for name, _, value in (*entry["hidden"], *entry["shown"])]
    return [f"{name}: {value if value.isprintable() else json.dumps(value)}" for name, value in values]


def _digest(kind: bytes, *parts: bytes) -> bytes:
    return sha256(kind + b"".join(parts)).digest()


def _digest_of_hex(text: str) -> bytes:
    """Return the digest of a hexadecimal text. Raises TypeError for another length, which may hide bytes."""
    digest = bytes.fromhex(text)
    if len(digest) != DIGEST_BYTES:
        raise TypeError(f"{text} is no digest of {DIGEST_BYTES} bytes")
    return digest


def _encoded(fields: list[list[str]]) -> bytes:
    """Return fields as bytes: length, name, kind, length, value.

    Raises TypeError for a kind of more than a letter: it could contain the text of other fields.
    """
    encoded = b""
    for name, kind, value in fields:
        if kind not in ("i", "t", "b"):
            raise TypeError(f"{name} is of no kind that is known")
        encoded += b"%d:%b%b" % (len(name.encode()), name.encode(), kind.encode())
        encoded += b"%d:%b" % (len(value.encode()), value.encode())
    return encoded


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Raises TypeError if a key is there twice.

    A parser alone would keep the last value of such a key, while a person may read the first.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise TypeError(f"a key is there twice, of {', '.join(fields)}"[:500])
    return fields


if __name__ == "__main__":
    try:
        print("\n".join(check(Path(sys.argv[1]), sys.argv[2])))
    except (IndexError, OSError, ValueError) as refused:
        sys.exit(f"NOT PROVEN: {refused}")
