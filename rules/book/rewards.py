"""Rewards (docs/rules.md, rule 13): the catalogue of the book, what is left of each, and what became of a
redeemed one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from rules.days import parse_moment

REWARD_NAME = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
TITLE_MAX, DESCRIPTION_MAX, URL_MAX = 100, 500, 1000  # characters
# Characters that nobody sees: controls (a description may have line ends), and marks that reverse the
# direction of writing, such as U+202E.
INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
URL = re.compile(r"[!-\[\]-~]+", re.ASCII)  # no blank, no control character, no backslash
# What a freeze is called in the ledger. It has its price elsewhere in the book.
RESERVED = frozenset({"streak_freeze"})
ALWAYS, NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
# A thousand redemptions a second are four for each item: with transactions of 15 ms, one in 16 meets another.
SLICES = 256
# Partitions of the table. One takes a thousand write units a second; a piece that is taken costs two.
GROUPS = 4
SPARES = -1  # stands for a slice's number
Problem = tuple[tuple[str, ...], str]  # the keys that lead to what is wrong; a reason


@dataclass(frozen=True, slots=True)
class Reward:
    """What can be redeemed in [valid_from, valid_until)."""

    price_points: int  # of one, above 0
    brand: str  # who is to be paid for it, or pays for it
    stock: int | None = None  # how many there are in all, over all versions of the book; None: no end of them
    limit_per_user: int | None = None  # how many of them one user may have; None: any number
    valid_from: datetime = ALWAYS
    valid_until: datetime = NEVER
    title: str = ""  # plain text that people read; "": none
    description: str = ""  # likewise
    image_url: str = ""  # a picture of it (https, or data:image/); "": none

    def is_valid(self, now: datetime) -> bool:
        """Whether it can be redeemed at an instant."""
        return self.valid_from <= now < self.valid_until


def read_rewards(document: Mapping[str, Any]) -> dict[str, Reward]:
    """Return the rewards of a document that has no faults, by id."""
    return {reward_id: _reward(section) for reward_id, section in document.get("rewards", {}).items()}


def _reward(section: Mapping[str, Any]) -> Reward:
    return Reward(
        section["price_points"],
        section["brand"],
        section.get("stock"),
        section.get("limit_per_user"),
        parse_moment(section["valid_from"]).utc if "valid_from" in section else ALWAYS,
        parse_moment(section["valid_until"]).utc if "valid_until" in section else NEVER,
        section.get("title", ""),
        section.get("description", ""),
        section.get("image_url", ""),
    )


def reward_problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what makes no sense in the rewards of a document that satisfies book_schema.BOOK."""
    for reward_id, section in document.get("rewards", {}).items():
        if reward_id in RESERVED:
            yield ("rewards", reward_id), "is the name of what the book sells elsewhere"
        unreadable = False
        for name in ("valid_from", "valid_until"):
            try:
                parse_moment(section.get(name, "2000-01-01T00:00:00Z"))
            except ValueError as error:
                unreadable = True
                yield ("rewards", reward_id, name), str(error)
        if not unreadable and _reward(section).valid_from >= _reward(section).valid_until:
            yield ("rewards", reward_id, "valid_until"), "is not after valid_from"
        for name, reason in _problems_for_readers(section):
            yield ("rewards", reward_id, name), reason


def _problems_for_readers(section: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what people could not read or see of a reward: field, reason."""
    for name, allowed in (("title", ""), ("description", "\n")):
        text = section.get(name)
        if text is not None and not text.strip():
            yield name, "is blank: leave it out"
        invisible = (character for character in INVISIBLE.findall(text or "") if character not in allowed)
        if character := next(invisible, None):
            yield name, f"has the character U+{ord(character):04X}, which nobody sees"
    if "image_url" in section and (reason := _url_problem(section["image_url"])):
        yield "image_url", reason


def _url_problem(url: str) -> str | None:
    """Return why a browser could not load a picture from a URL (RFC 3986); None if it may."""
    if not url.startswith(("https://", "data:image/")):
        return "must begin with https:// or data:image/"
    if URL.fullmatch(url) is None:
        return (
            "must be a URL in ASCII, without blanks and backslashes: others are written %20, and hosts xn--"
        )
    if url.startswith("data:"):
        return None if "," in url else "has no picture: it follows a comma, data:image/svg+xml,%3Csvg ..."
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
    except ValueError as error:
        return f"is no URL: {error}"[:200]
    if "@" in parts.netloc:
        return "must not have a user or a password in it"
    return None if parts.hostname and has_port else "has no host that can be called"


def lowered_stocks(
    earlier: Sequence[Mapping[str, Reward]],
    rewards: Mapping[str, Reward],
    later: Sequence[Mapping[str, Reward]] = (),
) -> Iterator[Problem]:
    """Yield the stocks that are lower than those of a version before, or higher than those of one after.

    A stock lies in slices (see slice_size), and pieces are gone from each. Nobody could gather them without
    asking all slices at once. So a stock is only ever raised.
    """
    for reward_id, reward in rewards.items():
        if (stock := reward.stock) is None:
            continue
        path = ("rewards", reward_id, "stock")
        earlier_stocks, later_stocks = _stocks(earlier, reward_id), _stocks(later, reward_id)
        if earlier_stocks and stock < max(earlier_stocks):
            yield path, f"was {max(earlier_stocks)}: a stock is never lowered; end the reward by valid_until"
        if later_stocks and stock > min(later_stocks):
            yield path, f"is {min(later_stocks)} in a version that is planned: a stock is never lowered"


def _stocks(versions: Sequence[Mapping[str, Reward]], reward_id: str) -> list[int]:
    """Return the stocks of a reward in those versions that have it with an end."""
    stocks = (rewards[reward_id].stock for rewards in versions if reward_id in rewards)
    return [stock for stock in stocks if stock is not None]


def slice_size(stock: int, number: int) -> int:
    """Return how many of a stock belong to a slice: shares differ by one at most, and their sum is the stock.

    Each slice counts what was taken of its share. A share follows from the stock alone, and what was taken
    only grows. So a slice that is full stays full until the stock is raised, and who has seen all of them
    full need not ask them again. What comes back by a reversal belongs to no slice: it lies apart, in the
    spares, and is taken last. So when somebody looks at the spares, nothing else is left: one look decides.
    Each slice has stock // SLICES, and the first stock % SLICES slices have one more. Rounding up
    (stock - number) / SLICES says both: of a stock of 257, slice 0 has 2, and each other slice has 1.
    """
    return (stock + SLICES - 1 - number) // SLICES


def group_of(number: int) -> int:
    """Return the partition of a slice."""
    return number % GROUPS


def open_slices(stock: int, taken: Mapping[int, int]) -> tuple[int, ...]:
    """Return the slices of which something is left. taken: by slice; nothing of those it lacks."""
    return tuple(number for number in range(SLICES) if taken.get(number, 0) < slice_size(stock, number))


def pieces_left(stock: int, taken: Mapping[int, int], spares: int) -> int:
    """Return how many are left in all."""
    return spares + sum(max(0, slice_size(stock, number) - taken.get(number, 0)) for number in range(SLICES))


class Fulfilment(StrEnum):
    """What has become of a redemption."""

    REQUESTED = "requested"
    FULFILLED = "fulfilled"  # it may still be reversed by hand, when the reward comes back
    FAILED = "failed"  # the user will not get the reward; the points have gone back
    REVERSED = "reversed"  # likewise, by hand


@dataclass(frozen=True, slots=True)
class Redemption:
    """A reward that a user has redeemed."""

    user_id: str
    created_at: str  # the place of its ledger entry, which has its price too
    reward_id: str
    brand: str
    price_points: int
    rules_version: int  # of the book that named the price
    from_stock: bool = False  # it was taken from a stock: a reversal gives it back there
    is_limited: bool = False  # it was counted for its user: a reversal takes that back
    fulfilment: Fulfilment = Fulfilment.REQUESTED
    changed_at: str | None = None  # when its fulfilment changed
    title: str = ""  # what the reward was called then; "": nothing
