"""What a process knows of the book while its table is away."""

import pytest
from botocore.exceptions import EndpointConnectionError

from adapters import book_store
from adapters.book_store import BookStore


class Table:
    """Answers that nothing is published, until it is away."""

    away = False

    def query(self, **_: object) -> dict[str, object]:
        if self.away:
            raise EndpointConnectionError(endpoint_url="dynamodb")
        return {"Items": []}


def test_a_process_goes_on_with_what_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book_store, "FRESH_SECONDS", 0)
    table = Table()
    store = BookStore(table, "RuleBooks")
    known = store.books()
    table.away = True
    assert store.books() is known


def test_a_process_that_knows_nothing_yet_judges_nothing() -> None:
    table = Table()
    table.away = True
    with pytest.raises(EndpointConnectionError):
        BookStore(table, "RuleBooks").books()
