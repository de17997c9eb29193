"""A crowd as a rebuild of the ranks reads it: in pages, from where the last one stopped."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from adapters.engagement.rank_sets import Pages
from rules.engagement.account_state import Profile


def one_page(crowd: Iterable[Profile]) -> Pages:
    """All of a crowd at once."""
    return lambda after: [(list(crowd), "")]


def pages(crowd: Sequence[Profile], size: int) -> Callable[[str], Iterator[tuple[Sequence[Profile], str]]]:
    """A crowd in pages of so many, in the order that it has."""
    places = {each.user_id: number for number, each in enumerate(crowd, 1)}

    def read(after: str) -> Iterator[tuple[Sequence[Profile], str]]:
        for begin in range(places.get(after, 0), len(crowd), size):
            page = crowd[begin : begin + size]
            yield page, page[-1].user_id if begin + size < len(crowd) else ""

    return read
