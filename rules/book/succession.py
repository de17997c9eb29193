"""What a new version of the book may not change, given the versions before and after it.

See docs/rules.md, rules 5, 12, 13 and 14. A check raises BookRefused with all faults that it finds.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from rules.book.book import Book, Books
from rules.book.contracts import breaking_changes
from rules.book.document import BookRefused, Fault
from rules.book.rewards import lowered_stocks


def check_succession(book: Book, books: Books, effective_at: datetime, now: datetime) -> None:
    """Raise BookRefused for a new book that does not fit among the published ones.

    books: the published versions. effective_at: the instant from which the new book is to be in force.
    """
    if effective_at < now:
        check_past(book, books, effective_at, now)
    check_senders(books.at(effective_at).book, book)
    if (following := books.after(effective_at)) is not None:
        check_senders(book, following.book)
    if any(reward.stock is not None for reward in book.rewards.values()):
        before = [version.book for version in books.versions if version.effective_at <= effective_at]
        after = [version.book for version in books.versions if version.effective_at > effective_at]
        check_stocks(before, book, after)
    for version in books.versions if book.streaks else ():
        check_streaks(version.book, book)


def check_streaks(before: Book, after: Book) -> None:
    """Raise BookRefused for a streak that two books count in different periods, such as weeks and months."""
    faults = [
        Fault(("streaks", name, "per"), f"was {before.streaks[name].per} before: take a new name")
        for name in sorted(before.streaks.keys() & after.streaks.keys())
        if before.streaks[name].per is not after.streaks[name].per
    ]
    if faults:
        raise BookRefused(faults)


def check_senders(before: Book, after: Book) -> None:
    """Raise BookRefused for a contract that refuses what senders may send under the book before."""
    faults = []
    for name in before.event_types.keys() & after.event_types.keys():
        contract, new_contract = before.event_types[name].properties, after.event_types[name].properties
        for path, reason in breaking_changes(contract, new_contract):
            text = f"{reason}: what may be sent before would be refused; a new event type may ask for it"
            faults.append(Fault(("event_types", name, "properties", *path), text))
    if faults:
        raise BookRefused(faults)


def check_stocks(before: Iterable[Book], book: Book, after: Iterable[Book]) -> None:
    """Raise BookRefused for a reward whose stock was greater before, or will be smaller later."""
    rewards_before = [earlier.rewards for earlier in before]
    rewards_after = [later.rewards for later in after]
    problems = lowered_stocks(rewards_before, book.rewards, rewards_after)
    if faults := [Fault(path, reason) for path, reason in problems]:
        raise BookRefused(faults)


def check_past(book: Book, books: Books, effective_at: datetime, now: datetime) -> None:
    """Raise BookRefused for a retroactive book that changes more than the points of past events.

    It must have every event type that was in force since effective_at, and each must keep streaks as it did.
    For nobody's streak is judged anew.
    """
    faults = list(_past_faults(book, books, effective_at, now))
    if faults:
        raise BookRefused(faults)


def _past_faults(book: Book, books: Books, effective_at: datetime, now: datetime) -> Iterator[Fault]:
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
