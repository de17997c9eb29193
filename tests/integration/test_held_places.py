"""An owner has so many things at once and no more, however many are on their way: on a real engine."""

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from adapters.platform.limits import OwnerQuota, QuotaSlot
from tests.support.engine import Engine

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_64_at_once_get_no_more_places_than_there_are(engine: Engine) -> None:
    places = OwnerQuota(engine.client("dynamodb"), "Limits")
    owner = f"o{time.time_ns()}"

    def take(number: int) -> bool:
        for _ in range(20):
            try:
                wanted = QuotaSlot(owner, f"t{number}", NOW + timedelta(hours=1))
                return places.take(wanted, 5, NOW, all_there)
            except Exception:  # contended: as a caller would, again
                time.sleep(0.05)
        raise AssertionError

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(take, range(24))) == 5
    later = QuotaSlot(owner, "later", NOW + timedelta(hours=3))
    assert places.take(later, 5, NOW + timedelta(hours=2), all_there), "the others have ended"


def all_there(things: Iterable[str]) -> dict[str, bool]:
    return dict.fromkeys(things, True)


def test_what_was_never_stored_holds_its_place_for_a_minute(engine: Engine) -> None:
    places = OwnerQuota(engine.client("dynamodb"), "Limits")
    owner, until = f"o{time.time_ns()}", NOW + timedelta(hours=1)

    def take(thing: str, seconds: int) -> bool:
        return places.take(QuotaSlot(owner, thing, until), 1, NOW + timedelta(seconds=seconds), lambda _: {})

    assert [take("a", 0), take("b", 59), take("b", 60), take("c", 61)] == [True, False, True, False]
    places.give_back(owner, "b", NOW)
    assert take("c", 62)
