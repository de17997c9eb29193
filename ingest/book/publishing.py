"""Publishes a book: for the HTTP door and for the command line."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.book import BookStore, Publication
from ingest.book.checking import check_senders, check_stocks, check_streaks, checked
from ingest.book.retroactive import check_past
from rules.book.book import Version
from rules.book.document import BookRefused, Fault

NOTE_MAX = 500


@dataclass(frozen=True, slots=True)
class Proposal:
    """A document that is to be in force from an instant on. effective_at: None for now.

    rerate: it may be in the past; what happened since then is judged anew by `streakline rerate`.
    """

    document: Any
    effective_at: datetime | None
    author: str
    note: str = ""
    rerate: bool = False


def publish(store: BookStore, proposal: Proposal, now: datetime) -> Version:
    """Publish a version. Raises BookRefused, and PublishedMeanwhile where somebody else was faster.

    What is judged stays judged, so a version takes effect in the past only where that is asked for.
    """
    is_past = bool(proposal.effective_at and proposal.effective_at < now)
    if proposal.effective_at and is_past and not proposal.rerate:
        reason = (
            f"is in the past: {proposal.effective_at.isoformat()}. What happened until now has been judged:"
            " only with rerate may it be judged anew"
        )
        raise BookRefused([Fault(("effective",), reason)])
    book, books = checked(proposal.document), store.look()
    # The clock of whoever published last may be ahead: what comes now is in force after that, and not before.
    effective_at = proposal.effective_at or max(now, *(each.published_at for each in books.versions))
    if is_past:
        check_past(book, books, effective_at, now)
    check_senders(books.at(effective_at).book, book)
    if (following := books.after(effective_at)) is not None:
        check_senders(book, following.book)
    if any(each.stock is not None for each in book.rewards.values()):
        before = (each.book for each in books.versions if each.effective_at <= effective_at)
        check_stocks(before, book, (each.book for each in books.versions if each.effective_at > effective_at))
    for each in books.versions if book.streaks else ():
        check_streaks(each.book, book)
    note = proposal.note[:NOTE_MAX]
    return store.publish(Publication(proposal.document, effective_at, now, proposal.author, note))
