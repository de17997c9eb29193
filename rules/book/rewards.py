"""Rewards (docs/rules.md, rule 13): the catalogue of the book, the stock of a reward, and redemptions."""

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
# The ledger calls a freeze by this name. Its price is elsewhere in the book.
RESERVED = frozenset({"streak_freeze"})
ALWAYS, NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
# A stock is counted in so many items, because transactions on one item conflict. With a thousand redemptions
# a second, each item has four; a transaction takes 15 ms, so one in 16 meets another.
SLICES = 256
# Slices lie in so many partitions. One takes a thousand write units a second, and taking a piece costs two.
GROUPS = 4
SPARES = -1  # in place of a slice's number: the pieces that were given back
Problem = tuple[tuple[str, ...], str]  # the keys that lead to what is wrong; a reason


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward that users can redeem in [valid_from, valid_until)."""

    price_points: int  # of one, above 0
    brand: str  # the company that is paid for it, or that pays for it
    stock: int | None = None  # the number of pieces, over all versions of the book; None: unlimited
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
        price_points=section["price_points"],
        brand=section["brand"],
        stock=section.get("stock"),
        limit_per_user=section.get("limit_per_user"),
        valid_from=parse_moment(section["valid_from"]).utc if "valid_from" in section else ALWAYS,
        valid_until=parse_moment(section["valid_until"]).utc if "valid_until" in section else NEVER,
        title=section.get("title", ""),
        description=section.get("description", ""),
        image_url=section.get("image_url", ""),
    )


def reward_faults(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the faults of a document's rewards that the schema (book_schema.BOOK) does not find."""
    for reward_id, section in document.get("rewards", {}).items():
        if reward_id in RESERVED:
            yield ("rewards", reward_id), "is the name of what the book sells elsewhere"
        has_bad_moment = False
        for name in ("valid_from", "valid_until"):
            try:
                if name in section:
                    parse_moment(section[name])
            except ValueError as error:
                has_bad_moment = True
                yield ("rewards", reward_id, name), str(error)
        if not has_bad_moment and _reward(section).valid_from >= _reward(section).valid_until:
            yield ("rewards", reward_id, "valid_until"), "is not after valid_from"
        for name, reason in _problems_for_readers(section):
            yield ("rewards", reward_id, name), reason


def _problems_for_readers(section: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the fields of a reward that people could not read or see, each with the reason."""
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

    A stock is divided into slices (see slice_size), and each counts how many of its pieces were taken. To
    lower a stock, somebody would have to read and change all slices at once. So a stock can only be raised.
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
    """Return how many pieces of a stock a slice has. Sizes differ by one at most; their sum is the stock.

    Each slice has stock // SLICES, and the first stock % SLICES slices have one more. Both follow from
    rounding up (stock - number) / SLICES. Example: with a stock of 257, slice 0 has 2, and each other slice
    has 1.

    A slice counts how many of its pieces were taken, and that number only grows. So a full slice stays full
    until the stock is raised, and a process that has seen all slices full need not read them again. A piece
    that a reversal gives back belongs to no slice but to the spares, which are taken last. So one read of the
    spares decides whether anything is left.
    """
    return (stock + SLICES - 1 - number) // SLICES


def group_of(number: int) -> int:
    """Return the partition of a slice."""
    return number % GROUPS


def open_slices(stock: int, taken: Mapping[int, int]) -> tuple[int, ...]:
    """Return the slices that are not full. taken: by slice, how many pieces were taken; no entry: none."""
    return tuple(number for number in range(SLICES) if taken.get(number, 0) < slice_size(stock, number))


def pieces_left(stock: int, taken: Mapping[int, int], spares: int) -> int:
    """Return how many pieces are left in all."""
    return spares + sum(max(0, slice_size(stock, number) - taken.get(number, 0)) for number in range(SLICES))


class Fulfilment(StrEnum):
    """The state of a redemption."""

    REQUESTED = "requested"
    FULFILLED = "fulfilled"  # an admin may still reverse it, if the user sends the reward back
    FAILED = "failed"  # the user will not get the reward, and has got the points back
    REVERSED = "reversed"  # an admin has reversed it, and the user has got the points back


@dataclass(frozen=True, slots=True)
class Redemption:
    """A reward that a user has redeemed."""

    user_id: str
    created_at: str  # the place of its ledger entry
    reward_id: str
    brand: str
    price_points: int
    rules_version: int  # of the book that named the price
    from_stock: bool = False  # whether it was taken from a stock, so that a reversal gives it back
    is_limited: bool = False  # whether it was counted for the user's limit, so that a reversal uncounts it
    fulfilment: Fulfilment = Fulfilment.REQUESTED
    changed_at: str | None = None  # when its fulfilment changed
    title: str = ""  # the reward's title at that time; "": none
