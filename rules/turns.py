"""Whose turn it is in a nightly comparison: a slice of the accounts, some dates, a share of the users.

Slices and shares follow from the MD5 of the user id, because the warehouse has the same function.
"""

import hashlib
from collections.abc import Collection
from datetime import date

NIGHTS = 28  # at most until a ledger that nobody writes to is compared again
# Of all users in a night, however many they are: what is known of a share is kept from night to night.
SHARES = 8
HEXADECIMAL = 16
HASH_DIGITS = 3  # the first ones of the MD5: they tell the share
HASHES = 4096  # values of three digits
TURN_DIGITS = slice(3, 6)  # the digits that tell the slice: others, so that a slice has users of all shares


def slices_due(last: date | None, today: date) -> frozenset[int]:
    """Return which of the NIGHTS slices of all accounts are compared today. last: the run before this one.

    A run makes good the nights that were left out. last: None: all slices are due.
    """
    nights = NIGHTS if last is None else min(NIGHTS, (today - last).days)
    return frozenset((today.toordinal() - night) % NIGHTS for night in range(nights))


def dates_due(dates: Collection[date], last: date | None, today: date) -> set[date]:
    """Return which of an entity's dates are compared today. last: the date of the run before this one.

    A date has its turn once in 28 nights; of 56 dates or more each once in 56; of 112 or more each once in
    112; and so on. So about one is due a night. A run makes good the nights that were left out. last: None:
    all dates are due.
    """
    nights = NIGHTS
    while 2 * nights <= len(dates):
        nights *= 2
    since = nights if last is None else (today - last).days
    return {day for day in dates if (today - day).days % nights < since}


def slice_of(user_id: str) -> int:
    """Return the number of the slice that an account is in."""
    digest = hashlib.md5(user_id.encode(), usedforsecurity=False).hexdigest()
    return int(digest[TURN_DIGITS], HEXADECIMAL) % NIGHTS


def turn_digits(slices: Collection[int]) -> list[str]:
    """Return the TURN_DIGITS that accounts in these slices have, as SQL compares them."""
    return [f"{value:03x}" for value in range(HEXADECIMAL**3) if value % NIGHTS in slices]


def share_of(user_id: str, shares: int) -> int:
    """Return the number of a user's share, from 0. shares: how many there are, 4,096 at most."""
    digits = hashlib.md5(user_id.encode(), usedforsecurity=False).hexdigest()[:HASH_DIGITS]
    return share_of_hash(digits, shares)


def share_of_hash(digits: str, shares: int) -> int:
    """Return the number of the share that has these first three digits of an MD5."""
    return int(digits, HEXADECIMAL) * shares // HASHES
