"""Which share of all users a user is in. Each night's comparison is done share by share.

There are 1, 2, 4 ... shares, at most 512. A share is a range of hashes: twice as many shares cut each one in
two. Example: whoever is in share 3 of 4 is in share 6 or 7 of 8.
"""

import hashlib

HASH_DIGITS = 3  # hexadecimal, of the id's MD5: the warehouse has the same function
HEXADECIMAL = 16
HASHES = 4096  # so many values have three digits
SHARES_MAX = 512  # a function may have 1,024 files open, and whoever splits has one for each share


def share_of(user_id: str, shares: int) -> int:
    """Return the number of a user's share, from 0. shares: how many there are, a power of two."""
    digits = hashlib.md5(user_id.encode(), usedforsecurity=False).hexdigest()[:HASH_DIGITS]
    return share_of_hash(digits, shares)


def share_of_hash(digits: str, shares: int) -> int:
    """Return the number of the share that has these first three digits of an MD5."""
    return int(digits, HEXADECIMAL) * shares // HASHES


def enough(parts: float) -> int:
    """Return the smallest number of shares that is at least as large."""
    shares = 1
    while shares < min(parts, SHARES_MAX):
        shares *= 2
    return shares


def shares_for(parts: float, before: int | None) -> int:
    """Return how many shares a night has. before: how many the last one had.

    parts: how many the night's work would fill. With another number nothing is settled any more, so a little
    less work keeps the number: it falls when a quarter of the shares would do.
    """
    wanted = enough(parts)
    return before if before and before // 4 < wanted <= before else wanted
