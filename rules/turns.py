"""Whose turn it is, where a night compares only a part of everything; and the shares that a night works in.

The part of an account follows from hexadecimal digits of the MD5 of its id. The warehouse has the same hash.
"""

import hashlib
from collections.abc import Collection
from datetime import date

# This many nights pass at most until a ledger that nobody writes to is compared again.
NIGHTS = 28
# A night compares all users share by share. A share keeps what it knows of its users from night to night, so
# there are as many shares each night, whatever the number of users.
SHARES = 8
SHARE_DIGITS = 3  # the first three hexadecimal digits of the hash choose an account's share
SHARE_DIGIT_VALUES = 4096  # this many values have three digits
TURN_DIGITS = slice(3, 6)  # the next three digits choose its slice, so each share has accounts of all slices
HEXADECIMAL = 16


def slices_due(last: date | None, today: date) -> frozenset[int]:
    """Return which of the 28 slices of all accounts are to be compared.

    last: the date of the last comparison; None: there was none, and all slices are due. A night makes good
    those before it that were left out.
    """
    nights = NIGHTS if last is None else min(NIGHTS, (today - last).days)
    return frozenset((today.toordinal() - night) % NIGHTS for night in range(nights))


def slice_of(user_id: str) -> int:
    """Return the slice that an account is in."""
    return int(_hash_of(user_id)[TURN_DIGITS], HEXADECIMAL) % NIGHTS


def turn_digits(slices: Collection[int]) -> list[str]:
    """Return TURN_DIGITS of all accounts in these slices, as SQL compares them."""
    return [f"{value:03x}" for value in range(HEXADECIMAL**3) if value % NIGHTS in slices]


def dates_due(dates: Collection[date], last: date | None, today: date) -> set[date]:
    """Return the dates whose turn has come since the last comparison, of all dates of an entity.

    A date has its turn once in 28 nights; of 56 dates or more each once in 56; of 112 or more each once in
    112; and so on. So about one is due a night. A night makes good those before it that were left out.
    last: the date of the last comparison; None: there was none, and all dates are due.

    Example: of the last 60 dates, with a comparison yesterday, today and the date 56 days ago are due.
    """
    cycle = NIGHTS
    while 2 * cycle <= len(dates):
        cycle *= 2
    nights = cycle if last is None else (today - last).days
    return {day for day in dates if (today - day).days % cycle < nights}


def share_of(user_id: str, shares: int) -> int:
    """Return the number of a user's share, from 0. shares: how many there are, 4,096 at most."""
    return share_of_digits(_hash_of(user_id)[:SHARE_DIGITS], shares)


def share_of_digits(digits: str, shares: int) -> int:
    """Return the number of the share that has these SHARE_DIGITS. A share is a range of their values."""
    return int(digits, HEXADECIMAL) * shares // SHARE_DIGIT_VALUES


def _hash_of(user_id: str) -> str:
    return hashlib.md5(user_id.encode(), usedforsecurity=False).hexdigest()
