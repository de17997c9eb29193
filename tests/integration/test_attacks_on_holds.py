"""Attacks on holds (rule 11): what was tried, and what broke once."""

import threading
from datetime import timedelta
from typing import Any

import pytest

from ingest.engagement.points.holds import Holds
from rules.engagement.lots import OPEN_MAX, HoldRequest
from tests.integration import test_expiry
from tests.integration.test_attacks_on_points import FEB_1, FEB_2, commands, noon, rebuilt, simulated
from tests.integration.test_expiry import Shop
from tests.support.capacity import WriteUnits
from tests.support.effort import effort
from tests.support.site import FULFILMENT, PRODUCERS

shop = test_expiry.shop
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def test_a_capture_that_was_asked_for_in_time_leaves_lots_as_the_simulation_has_them(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A capture's `now` is of when it was asked for (or of a machine that is behind). If meanwhile somebody has
    settled the account with the hold lapsed, the capture is let through, and its lots are not settled anew.
    """
    shop.publish(after_days=2)
    shop.earn()  # lot of 1 February
    shop.hold(10, seconds=int((noon(FEB_1) + HOUR - shop.now).total_seconds()))
    shop.now += DAY
    shop.earn()  # lot of 2 February
    deadline = noon(FEB_1) + HOUR
    shop.now = deadline + timedelta(seconds=1)
    shop.sweep()  # by this clock the hold has lapsed: the first lot expires
    assert shop.written() == {FEB_1: 10}
    shop.now = deadline - timedelta(seconds=1)
    shop.end("capture", 0)  # by this one it has not
    shop.now = noon(FEB_2) + DAY
    shop.ask("GET", "/balance")
    assert shop.written() == simulated(shop.entries(), shop.now)
    is_, must = rebuilt(shop)
    assert is_ == must


def test_a_hold_of_a_machine_ahead_captured_by_one_behind(shop: Shop) -> None:
    """The capture's entry has a place before the moment when its points were held."""
    shop.publish(after_days=2)
    shop.earn()  # lot of 1 February
    shop.now += DAY
    shop.earn()  # lot of 2 February
    assert shop.spend(10)
    shop.now = noon(FEB_1) + timedelta(minutes=3)  # five minutes ahead
    shop.hold(10)
    shop.now = noon(FEB_1) - timedelta(minutes=2)
    shop.end("capture", 0)
    shop.now = noon(FEB_1) + 2 * HOUR
    shop.earn(ago=2 * DAY + 3 * HOUR)
    shop.balance()
    is_, must = rebuilt(shop)
    assert (shop.written(), is_) == (simulated(shop.entries(), shop.now), must)


def test_an_event_with_the_key_of_a_hold_is_no_error_of_ours(shop: Shop) -> None:
    """Claims of events and of holds share a table and a key space: `hold:ID` may be an event's own key."""
    from rules.engagement.lots import hold_id_of

    shop.publish()
    shop.earn()
    taken = f"hold:{hold_id_of(shop.user, 'mine')}"
    sent = {"idempotency_key": taken, "event_type": "LESSON_COMPLETED", "occurred_at": shop.now.isoformat()}
    shop.api.send("server", sent | {"user_id": shop.user}, groups=(PRODUCERS,))
    body = {"points": 5, "reward_id": "mug", "idempotency_key": "mine"}
    assert shop.ask("POST", "/holds", body)[0] in (201, 409)


def test_an_event_with_the_key_of_an_open_hold_does_not_keep_it_from_ending(shop: Shop) -> None:
    """As above, but later: neither capture nor release is possible any more, and no further hold."""
    shop.publish()
    for _ in range(2):
        shop.earn()
    body = {"points": 5, "reward_id": "mug", "idempotency_key": "mine", "seconds": 60}
    _, held = shop.ask("POST", "/holds", body)
    sent = {
        "idempotency_key": f"hold:{held['hold_id']}",
        "event_type": "LESSON_COMPLETED",
        "occurred_at": shop.now.isoformat(),
    }
    shop.api.send("server", sent | {"user_id": shop.user}, groups=(PRODUCERS,))
    told = [
        shop.ask("POST", f"/holds/{held['hold_id']}/{how}", None, FULFILMENT)
        for how in ("release", "capture")
    ]
    shop.now += HOUR
    told.append(shop.ask("POST", "/holds", body | {"idempotency_key": "another"}))
    assert [status for status, _ in told] in ([200, 409, 201], [409, 201, 201]), told


ODD: list[Any] = [
    *(None, [], "x", 1, True, {}, {"points": None}, {"points": 0}, {"points": -1}, {"points": 1.5}),
    *({"points": True}, {"points": "5"}, {"points": 10**30}, {"points": 1e300}, {"points": [5]}),
    *({"points": 5, "x": 1}, {"points": 5, "reward_id": "", "idempotency_key": "k"}),
    {"points": 10**9, "reward_id": "m", "idempotency_key": "k1"},
    {"points": 5, "reward_id": "m" * 65, "idempotency_key": "k"},
    {"points": 5, "reward_id": "\ud800", "idempotency_key": "k"},
    {"points": 5, "reward_id": "m", "idempotency_key": "\ud800"},
    {"points": 5, "reward_id": "m", "idempotency_key": "k\x00"},
    {"points": 5, "reward_id": "m", "idempotency_key": "k" * 129},
    *({"points": 5, "reward_id": "m", "idempotency_key": "k", "seconds": each} for each in ("1", 0, 604801)),
    *(
        {"points": 5, "reward_id": "m", "idempotency_key": "k", "seconds": each}
        for each in (1e300, None, 0.5)
    ),
]


def test_odd_bodies_and_ids_answer_4xx(shop: Shop) -> None:
    """A hold's id has no pattern: one of over a thousand bytes makes a key that DynamoDB refuses."""
    shop.publish(after_days=2)
    shop.earn()
    body = {"points": 1, "reward_id": "mug", "idempotency_key": "mine"}
    _, held = shop.ask("POST", "/holds", body)
    wrong = []
    for each in ODD:
        for path in ("/holds", f"/holds/{held['hold_id']}/capture", "/holds/x/capture", "/holds/x/release"):
            try:
                told = shop.ask("POST", path, each, "" if path == "/holds" else FULFILMENT)
            except Exception as error:
                told = (599, repr(error))
            if not 200 <= told[0] < 500:
                wrong.append((path, each, told))
    for odd in ("%00", "%ff", "..", "x" * 3000, "%F0%9F%98%80", "a b", "'", "%2F", held["hold_id"].upper()):
        for how in ("capture", "release"):
            for path in (f"/holds/{odd}/{how}", f"/../{odd}/holds/{held['hold_id']}/{how}"):
                try:
                    told = shop.ask("POST", path, None, FULFILMENT)
                except Exception as error:
                    told = (599, repr(error))
                if not 400 <= told[0] < 500:
                    wrong.append((path, None, told))
    assert not [(path[:60], path[-10:], each, told) for path, each, told in wrong]


@pytest.mark.parametrize("round_", range(effort(1, soak=20)))
def test_at_once_nothing_is_overspent_and_each_key_has_one_answer(shop: Shop, round_: int) -> None:
    shop.publish()
    for _ in range(20):
        shop.earn()
    total = shop.balance()["balance"]
    holds = [
        shop.ask("POST", "/holds", {"points": 15, "reward_id": "m", "idempotency_key": f"h{n}"})[1]
        for n in range(4)
    ]
    told: list[tuple[str, int, Any]] = []
    overspent: list[Any] = []

    def post(name: str, path: str, body: Any, group: str = "") -> None:
        for _ in range(3):
            while (answered := shop.ask("POST", path, body, group))[0] == 503:
                pass
            told.append((name, *answered))

    def look() -> None:
        for _ in range(15):
            status, seen = shop.ask("GET", "/balance")
            if status != 200 or seen["available"] != seen["balance"] - seen["held"] or seen["balance"] < 0:
                overspent.append((status, seen))

    work = [threading.Thread(target=look)]
    for n, held in enumerate(holds):
        for how in ("capture", "release"):
            path = f"/holds/{held['hold_id']}/{how}"
            work.append(threading.Thread(target=post, args=(f"{how}{n}", path, None, FULFILMENT)))
    for n in range(3):
        for path in ("/redemptions", "/holds"):
            body = {"points": 60, "reward_id": "m", "idempotency_key": f"n{n}"}
            work.append(threading.Thread(target=post, args=(f"{path}{n}", path, body)))
        work.append(threading.Thread(target=post, args=(f"f{n}", "/freezes", {"idempotency_key": f"f{n}"})))
    for each in work:
        each.start()
    for each in work:
        each.join()
    seen = shop.balance()
    entries = shop.entries()
    assert seen["balance"] == sum(each["points"] for each in entries) >= seen["held"]
    assert total >= -sum(each["points"] for each in entries if each["kind"] == "REDEEM")
    by_name: dict[str, set[str]] = {}
    for name, status, answer in told:
        core = (
            answer
            if "error" in answer
            else {k: v for k, v in answer.items() if k not in ("duplicate", "status")}
        )
        by_name.setdefault(name, set()).add(
            f"{status} {core if 'error' not in answer else core['error']['code']}"
        )
    assert all(max(map(int, (each.split()[0] for each in answers))) < 500 for answers in by_name.values())
    for n in range(4):
        won = [how for how in ("capture", "release") if any(each[0] == "2" for each in by_name[f"{how}{n}"])]
        assert len(won) == 1, by_name
        assert len(by_name[f"{won[0]}{n}"]) == 1, by_name
    assert not overspent, overspent[:3]


def test_what_a_hold_costs(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """A hold, also after ten that have lapsed, and a release.

    A hold is an entry: two units each for it, for the head before it, and for the profile. The first write takes
    a streak that has ended out of the index of the boards: two more.
    """
    shop.publish(after_days=5)
    for _ in range(10):
        shop.earn()
    client, units = shop.api.engine.client("dynamodb"), WriteUnits()
    units.watch(client)
    do, costs = Holds(commands(client)), []
    for number in range(OPEN_MAX):
        do.hold(shop.user, HoldRequest(1, "mug", f"k{number}"), shop.now)
        costs.append(units.take())
    later = shop.now + HOUR
    held = do.hold(shop.user, HoldRequest(1, "mug", "later"), later).hold
    costs.append(units.take())
    do.commands.settler.settle(shop.user, later)
    do.release(shop.user, held.hold_id, later)
    costs.append(units.take())
    assert costs[0] in (6, 8), costs
    assert (costs[1], max(costs[:-1])) == (6, 9), costs


def test_a_hold_that_shields_an_expiry_costs_no_write_an_hour(shop: Shop) -> None:
    shop.publish(after_days=2)
    shop.earn()
    shop.hold(10)
    client, units = shop.api.engine.client("dynamodb"), WriteUnits()
    units.watch(client)
    settler, taken = commands(client).settler, []
    for hour in range(4):
        settler.settle(shop.user, noon(FEB_1) + hour * HOUR)
        taken.append(units.take())
    assert taken[1:] == [0, 0, 0], taken
