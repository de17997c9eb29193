"""What a new version of the book changes, and what it may not change (docs/rules.md, rules 5, 12, 13, 14)."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from rules.book.book import Book, Books
from rules.book.contracts import breaking_changes
from rules.book.document import BookRefused, Fault

# Texts that would be ambiguous to a person without quotation marks. YAML itself would quote some more.
NEEDS_QUOTES = re.compile(r'[\x00-\x1f\x7f-\x9f,\[\]{}"]|^\s|\s$|^$')


def check_succession(book: Book, books: Books, effective_at: datetime, now: datetime) -> None:
    """Raise BookRefused for a new book that does not fit among the published ones.

    books: the published versions. effective_at: the instant from which the new book is to be in force.
    """
    checks = [_sender_faults(books.at(effective_at).book, book)]
    if effective_at < now:
        checks.insert(0, _past_faults(book, books, effective_at, now))
    if (following := books.after(effective_at)) is not None:
        checks.append(_sender_faults(book, following.book))
    checks += [_stock_faults(book, books, effective_at), _streak_faults(book, books)]
    checks += [_bonus_faults(book, books), _board_faults(book, books)]
    for faults in map(list, checks):
        if faults:
            raise BookRefused(faults)


def _past_faults(book: Book, books: Books, effective_at: datetime, now: datetime) -> Iterator[Fault]:
    """Yield what a retroactive book changes besides the points of past events.

    It must have every event type that was in force since effective_at, and each must keep streaks as it did.
    For nobody's streak is judged anew. Points by an amount are computed anew from what the ledger stores. So
    the amount must be one that all these versions stored.
    """
    reported: set[str] = set()  # event types
    for version in books.between(effective_at, now):
        for name, rule in version.book.event_types.items():
            if name in reported:
                continue
            path = ("event_types", name)
            if name not in book.event_types:
                reported.add(name)
                yield Fault(path, f"is missing: version {version.number} has judged by it since then")
            elif book.event_types[name].keeps_streak != rule.keeps_streak:
                reported.add(name)
                why = f"differs from version {version.number}: who was told of a streak keeps it"
                yield Fault((*path, "keeps_streak"), why)
            elif (new := book.event_types[name].by_amount) and new.of not in (
                version.book.measured(name) or ()
            ):
                reported.add(name)
                why = f"is {new.of}, which version {version.number} did not store: its events have no amount"
                yield Fault((*path, "points", "of"), why)


def _sender_faults(before: Book, after: Book) -> Iterator[Fault]:
    """Yield where a contract refuses what senders may send under the book before."""
    for name in (name for name in after.event_types if name in before.event_types):
        contract, new_contract = before.event_types[name].properties, after.event_types[name].properties
        for path, reason in breaking_changes(contract, new_contract):
            text = f"{reason}: what may be sent before would be refused; a new event type may ask for it"
            yield Fault(("event_types", name, "properties", *path), text)


def _stock_faults(book: Book, books: Books, effective_at: datetime) -> Iterator[Fault]:
    """Yield the stocks that are lower than those of a version before, or higher than those of one after.

    A stock is divided into slices (rewards.slice_size), and each counts how many of its pieces were taken. To
    lower a stock, somebody would have to read and change all slices at once. So a stock can only be raised.
    """
    for reward_id, reward in book.rewards.items():
        if (stock := reward.stock) is None:
            continue
        earlier: list[int] = []
        later: list[int] = []
        for version in books.versions:
            other = version.book.rewards.get(reward_id)
            if other and other.stock is not None:
                (earlier if version.effective_at <= effective_at else later).append(other.stock)
        path = ("rewards", reward_id, "stock")
        if earlier and stock < max(earlier):
            reason = f"was {max(earlier)}: a stock is never lowered; end the reward by valid_until"
            yield Fault(path, reason)
        if later and stock > min(later):
            yield Fault(path, f"is {min(later)} in a version that is planned: a stock is never lowered")


def _streak_faults(book: Book, books: Books) -> Iterator[Fault]:
    """Yield the streaks that another version counts in other periods, such as weeks and months."""
    for name, rule in sorted(book.streaks.items()):
        for version in books.versions:
            earlier = version.book.streaks.get(name)
            if earlier and earlier.per is not rule.per:
                yield Fault(("streaks", name, "per"), f"was {earlier.per} before: take a new name")
                break


def _bonus_faults(book: Book, books: Books) -> Iterator[Fault]:
    """Yield the achievements that would pay, or take back, for what has happened before.

    What a bonus is for never changes, so nobody is paid or loses points because of a version.
    """
    for name, rule in sorted(book.achievements.items()):
        path = ("achievements", name)
        others = [version for version in books.versions if name in version.book.achievements]
        for version in others:
            other = version.book.achievements[name]
            if rule.points != other.points:
                reason = f"are {other.points or 'none'} in version {version.number}: take a new name"
                yield Fault((*path, "points"), reason)
                break
            if rule.points and (rule.conditions, rule.needs_all) != (other.conditions, other.needs_all):
                reason = f"has other conditions in version {version.number}: with points, take a new name"
                yield Fault(path, reason)
                break


def _board_faults(book: Book, books: Books) -> Iterator[Fault]:
    """Yield the boards that another version divides otherwise, or has per week, month or season."""
    for rule in book.daily.boards:
        others = (other for version in books.versions for other in version.book.daily.boards)
        for other in others:
            if other.name == rule.name and (other.per, other.group) != (rule.per, rule.group):
                path = ("boards", rule.name, "group" if other.per == rule.per else "per")
                was = other.group if other.per == rule.per else other.per
                yield Fault(path, f"was {was or 'left out'} before: take a new name")
                break


def differences(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield a line for each value that two documents do not share, in the order of their keys.

    Example: `event_types.CHECK_IN.points: 5 -> 8`. path: where both documents stand in the book, with a dot
    at its end; "" if they are the book.
    """
    for name in sorted(old.keys() | new.keys()):
        value_path = f"{path}{name}"
        if name not in new:
            yield f"{value_path}: {_yaml_text(old[name])} -> gone"
        elif name not in old:
            yield f"{value_path}: new: {_yaml_text(new[name])}"
        elif isinstance(old[name], Mapping) and isinstance(new[name], Mapping):
            yield from differences(old[name], new[name], f"{value_path}.")
        elif old[name] != new[name]:
            yield f"{value_path}: {_yaml_text(old[name])} -> {_yaml_text(new[name])}"


def _yaml_text(value: Any) -> str:
    """Return a value of a document as YAML writes it in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_yaml_text(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_yaml_text, value)) + "]"
    if isinstance(value, str) and not NEEDS_QUOTES.search(value) and not _is_json(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_json(text: str) -> bool:
    """Whether a text without quotation marks would be a number, a truth value or null."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
