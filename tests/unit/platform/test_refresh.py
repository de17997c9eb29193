"""What a process keeps is read again when it is due, and outlives a store that is away."""

import pytest
from botocore.exceptions import EndpointConnectionError

from adapters.platform.tables import AWAY_SECONDS, Refresh


class Store:
    """Counts looks; it can be away."""

    def __init__(self, clock: list[float]) -> None:
        self.clock, self.refresh, self.looks, self.is_away = clock, Refresh(30), 0, False

    def look(self) -> None:
        self.looks += 1
        if self.is_away:
            raise EndpointConnectionError(endpoint_url="http://127.0.0.1")
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
    store.is_away = True
    store.clock[0] += 30
    assert [store.used(), store.used()] == [2, 2]
    store.clock[0] += AWAY_SECONDS
    assert store.used() == 3


def test_what_was_never_read_cannot_stay_good(store: Store) -> None:
    store.is_away = True
    for _ in range(2):
        with pytest.raises(EndpointConnectionError):
            store.used()
    assert store.looks == 2
