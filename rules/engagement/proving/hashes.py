"""What is hashed, and how (rule 19). A digest has 32 bytes: SHA-256, with a first byte for what it is of.

Leaves and nodes of the tree have 0 and 1, as in RFC 6962. local/prove/check_proof.py has the same a second
time, on purpose: a verifier shares nothing with the writer.
"""

from collections.abc import Iterable
from hashlib import sha256

DIGEST_BYTES = 32
SALT_BYTES = 16
ZERO = bytes(DIGEST_BYTES)
LEAF, NODE, ENTRY_SALT, COMMITMENT, CONTENT, LINK, BEFORE, TAG = (bytes([each]) for each in range(8))
NUMBER_BYTES = 8
# Kinds of values, so that the number 1 and the text "1" are not the same.
INTEGER, TEXT, YES = "i", "t", "b"
Field = tuple[str, str, str]  # name, kind, value as a text


def encoded(fields: Iterable[Field]) -> bytes:
    """Return fields as bytes that can be read in one way only: each text has its length before it.

    Example: ("seq", "i", "12") is `3:seqi2:12`. A field without a value is left out by the caller.
    """
    return "".join([f"{_length(n)}:{n}{k}{_length(v)}:{v}" for n, k, v in fields]).encode()


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def number(value: int) -> bytes:
    """Return a number that is not below 0 as bytes of one length."""
    return value.to_bytes(NUMBER_BYTES, "big")


def entry_salt(salt: bytes, seq: int) -> bytes:
    """Return the salt of one entry: whoever is shown it cannot open the commitment of another."""
    return sha256(ENTRY_SALT + salt + number(seq)).digest()


def commitment(entry_salt: bytes, hidden: bytes) -> bytes:
    """Commit to what an erasure takes away: without the salt nobody can try what it was."""
    return sha256(COMMITMENT + entry_salt + hidden).digest()


def content(shown: bytes, committed: bytes) -> bytes:
    """Return the digest of an entry without its predecessor."""
    return sha256(CONTENT + committed + shown).digest()


def link(before: bytes, content: bytes) -> bytes:
    """Return an entry's hash: over its predecessor's hash and its own content."""
    return sha256(LINK + before + content).digest()


def tag_of(salt: bytes, account_id: str) -> bytes:
    """Return an account's name in the tree, which tells nobody whose it is."""
    return sha256(TAG + salt + account_id.encode()).digest()


def before_of(before: bytes, first: int, fold: bytes) -> bytes:
    """Return what a chain that begins in the middle of a ledger commits to: all that was before."""
    return sha256(BEFORE + before + number(first) + fold).digest()


def leaf_of(tag: bytes, before: bytes, first: int, seq: int, fold: bytes) -> bytes:
    """Return an account's leaf: the chain began at `first`, and its newest entry, seq, has the hash fold."""
    return sha256(LEAF + tag + before + number(first) + number(seq) + fold).digest()


def node_of(left: bytes, right: bytes) -> bytes:
    """Return the digest of two digests of the tree."""
    return sha256(NODE + left + right).digest()
