"""What a version may change of what has been judged: it takes effect in the past (rule 12)."""

from collections.abc import Iterator
from datetime import datetime

from rules.book.book import Book, Books
from rules.book.document import BookRefused, Fault


def check_past(book: Book, books: Books, effective_at: datetime, now: datetime) -> None:
    """Raise BookRefused for a book that takes more than points from what happened since an instant.

    Every type that was known must be there, and keep the streak as it did: nobody's streak is judged anew.
    """
    faults = list(_faults(book, books, effective_at, now))
    if faults:
        raise BookRefused(faults)


def _faults(book: Book, books: Books, effective_at: datetime, now: datetime) -> Iterator[Fault]:
    seen: set[str] = set()
    for version in books.between(effective_at, now):
        for name, rule in version.book.event_types.items():
            if name in seen:
                continue
            path = ("event_types", name)
            if name not in book.event_types:
                seen.add(name)
                yield Fault(path, f"is missing: version {version.number} has judged by it since then")
            elif book.event_types[name].keeps_streak != rule.keeps_streak:
                seen.add(name)
                why = f"differs from version {version.number}: who was told of a streak keeps it"
                yield Fault((*path, "keeps_streak"), why)
