"""Publishes a book: for the HTTP door and for the command line."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.book.book_store import BookStore, Publication
from ingest.book.checking import check_senders, checked
from rules.book.reading import BookRefused, Fault
from rules.book.versions import Version

NOTE_MAX = 500


@dataclass(frozen=True, slots=True)
class Proposal:
    """A document that is to be in force from an instant on. effective_at: None for now."""

    document: Any
    effective_at: datetime | None
    author: str
    note: str = ""


def publish(store: BookStore, proposal: Proposal, now: datetime) -> Version:
    """Publish a version. Raises BookRefused, and PublishedMeanwhile where somebody else was faster.

    What is judged stays judged, so a version never takes effect in the past.
    """
    if proposal.effective_at and proposal.effective_at < now:
        reason = (
            f"is in the past: {proposal.effective_at.isoformat()}. What happened until now has been judged"
        )
        raise BookRefused([Fault(("effective",), reason)])
    book, books = checked(proposal.document), store.look()
    # The clock of whoever published last may be ahead: what comes now is in force after that, and not before.
    effective_at = proposal.effective_at or max(now, *(each.published_at for each in books.versions))
    check_senders(books.at(effective_at).book, book)
    if (following := books.after(effective_at)) is not None:
        check_senders(book, following.book)
    note = proposal.note[:NOTE_MAX]
    return store.publish(Publication(proposal.document, effective_at, now, proposal.author, note))
