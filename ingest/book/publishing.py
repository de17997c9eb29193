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
    effective_at = proposal.effective_at or now
    if effective_at < now:
        reason = f"is in the past: {effective_at.isoformat()}. What happened until now has been judged"
        raise BookRefused([Fault(("effective",), reason)])
    checked(proposal.document)
    books = store.look()
    for each in {
        books.newest.number: books.newest,
        (before := books.at(effective_at)).number: before,
    }.values():
        check_senders(each.book, proposal.document)
    note = proposal.note[:NOTE_MAX]
    return store.publish(Publication(proposal.document, effective_at, now, proposal.author, note))
