"""The names under which the lake has what it must not name."""

import hashlib


def pseudonym(key: str) -> str:
    """Return the name that the lake has for a fingerprint or a phone: 32 hexadecimal digits.

    It is the same in all rows, and not what agents or boards show of the person, nor a key of a table.
    """
    return hashlib.sha256(f"lake\x00{key}".encode()).hexdigest()[:32]
