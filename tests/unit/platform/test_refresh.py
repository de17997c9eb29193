"""What a process keeps is read again when it is due, and outlives a store that is away."""

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from adapters.platform import tables
from adapters.platform.tables import AWAY_SECONDS, Refresh

AWAY = EndpointConnectionError(endpoint_url="http://127.0.0.1")
DENIED = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "not of ada"}}, "Query")
NO_ERROR: Exception | None = None


class Store:
    """Counts looks, which can raise an error."""

    def __init__(self, clock: list[float]) -> None:
        self.clock, self.refresh, self.looks, self.error = clock, Refresh(30), 0, NO_ERROR

    def look(self) -> None:
        self.looks += 1
        if self.error:
            raise self.error
        self.refresh.renew(self.clock[0])

    def used(self) -> int:
        self.refresh.renew_if_over(self.look)
        return self.looks


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    return Store(clock)


def test_it_is_read_at_the_first_use_and_when_its_time_is_over(store: Store) -> None:
    assert [store.used(), store.used()] == [1, 1]
    store.clock[0] += 29.9
    assert store.used() == 1
    store.clock[0] += 0.1
    assert store.used() == 2
    store.refresh.end()
    assert store.used() == 3


def test_where_the_store_is_away_what_is_known_stays_good_for_seconds(store: Store) -> None:
    store.used()
    store.error = AWAY
    store.clock[0] += 30
    assert [store.used(), store.used()] == [2, 2]
    store.clock[0] += AWAY_SECONDS
    assert store.used() == 3


def test_what_was_never_read_cannot_stay_good(store: Store) -> None:
    store.error = AWAY
    for _ in range(2):
        with pytest.raises(EndpointConnectionError):
            store.used()
    assert store.looks == 2


@pytest.mark.parametrize(
    ("error", "lines"),
    [(AWAY, []), (DENIED, ["ClientError: AccessDeniedException of Query"])],
)
def test_a_table_that_denies_access_is_logged_without_its_words(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception, lines: list[str]
) -> None:
    told: list[str] = []
    monkeypatch.setattr(tables.logger, "warning", lambda _, extra: told.append(extra["error"]))
    store.used()
    store.error = error
    store.clock[0] += 30
    assert [store.used(), store.used()] == [2, 2]
    assert told == lines
