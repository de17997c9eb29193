"""Attacks on points as money (rule 11): what was tried, and what broke once."""

import copy
import json
import random
import threading
import zlib
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from adapters import book_store
from adapters.book_store import BookStore, shipped_document
from adapters.engagement.account_store import AccountStore
from adapters.engagement.claims import ClaimStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.expiry import Settler
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import encode_item
from ingest.engagement.points.commands import Commands, SpendingCommands
from ingest.engagement.points.holds import Holds
from ingest.web.caller import ApiError
from processors.expiry import NotSettled
from rules.days import stamp_of_key
from rules.engagement.lots import HoldRequest
from rules.engagement.reconciliation import profile_of
from tests.integration import test_expiry
from tests.integration.test_expiry import Shop
from tests.support.dying import FAILURES, Dying, Killed
from tests.support.effort import effort

shop = test_expiry.shop
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
JAN_31, FEB_1, FEB_2 = date(2027, 1, 31), date(2027, 2, 1), date(2027, 2, 2)


def noon(on: date) -> datetime:
    return datetime(on.year, on.month, on.day, 12, tzinfo=UTC)


def simulated(entries: list[dict[str, Any]], now: datetime) -> dict[date, int]:
    """What has expired by now, by lot: points as coins in a row, the coin that expires first goes first."""
    undone = {each["reverses"] for each in entries if each.get("reverses")}
    lots: dict[date, int] = {}
    for each in entries:
        if each["kind"] == "EARN" and each.get("expires_on"):
            on = date.fromisoformat(each["expires_on"])
            lots[on] = lots.get(on, 0) + each["points"]
    spends = sorted(
        (datetime.fromisoformat(each.get("held_at") or place), -each["points"])
        for each in entries
        for place in [stamp_of_key(each["created_at"])]
        if each["kind"] == "REDEEM" and place not in undone
    )
    expired: dict[date, int] = {}
    debt, left = 0, dict(lots)
    for on in sorted(lots):
        if noon(on) > now:
            break
        while spends and spends[0][0] <= noon(on):
            debt += spends.pop(0)[1]
        for lot in sorted(left):
            some = min(debt, left[lot])
            left[lot], debt = left[lot] - some, debt - some
        if gone := left.pop(on):
            expired[on] = gone
    return expired


def stored(shop: Shop) -> dict[str, Any]:
    client = shop.api.engine.client("dynamodb")
    found: dict[str, Any] = client.get_item(TableName="UserStreaks", Key={"user_id": {"S": shop.user}})
    stored_item: dict[str, Any] = found["Item"]
    return stored_item


def accounts(shop: Shop) -> AccountStore:
    client = shop.api.engine.client("dynamodb")
    return AccountStore(client, "UserStreaks", "DailyActivity", LedgerStore(client, "RewardsLedger"), 4)


def rebuilt(shop: Shop) -> tuple[Any, Any]:
    """How far expiry is settled: as stored, and as a rebuild tells it."""
    store = accounts(shop)
    profile = store.profile(shop.user)
    return profile.expiry, profile_of(profile, store.ledger.after(shop.user, "0")[0]).expiry


def edit(shop: Shop, **values: Any) -> None:
    item_ = {**stored(shop), **encode_item(values)}
    shop.api.engine.client("dynamodb").put_item(TableName="UserStreaks", Item=item_)


@pytest.mark.parametrize("at_once", [False, True])
def test_a_late_event_that_is_written_while_an_account_is_settled_counts_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    """A settlement without entries conditions on the profile's version only, and has read the day of an
    event whose entry is in the ledger while the profile does not count it yet. Its points are put into
    settled_points; the event's own writer adds them again.
    """
    shop.publish(after_days=2)
    shop.earn()  # lot of 1 February
    shop.now += DAY
    for _ in range(3):
        shop.earn()  # lot of 2 February
    assert shop.spend(25)
    shop.now = noon(FEB_1) + HOUR
    at_profile, gate = threading.Event(), threading.Event()
    real_put, real_lots = AccountStore.profile_put, AccountStore.lots
    writer = threading.Thread(target=lambda: shop.earn(ago=2 * DAY))

    def put(self: AccountStore, *profiles: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            at_profile.set()
            gate.wait(20)
        return real_put(self, *profiles)

    def lots(self: AccountStore, user_id: str, *arguments: Any, **more: Any) -> Any:
        if user_id == shop.user and at_once and writer.ident is None:
            writer.start()
            assert at_profile.wait(20)
        return real_lots(self, user_id, *arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(AccountStore, "profile_put", put)
        patch.setattr(AccountStore, "lots", lots)
        shop.sweep()
        gate.set()
        if not at_once:
            writer.start()
        writer.join()
    settled = int(stored(shop)["expiry_settled_points"]["N"])
    shop.now = noon(FEB_2) + HOUR
    told = shop.ask("GET", "/balance")
    assert (told[0], settled, shop.written()) == (200, 20, simulated(shop.entries(), shop.now))


def test_one_account_that_cannot_be_read_does_not_stop_the_sweep(shop: Shop) -> None:
    """An account of nothing but keys raises KeyError."""
    shop.publish(after_days=2)
    shop.earn()
    shop.now = noon(FEB_2)
    client = shop.api.engine.client("dynamodb")
    shard = str(zlib.crc32(shop.user.encode()) % 8)
    bad = {"user_id": f"{shop.user}-bad", "expiry_shard": shard, "expires_next": "2020-01-01"}
    client.put_item(TableName="UserStreaks", Item=encode_item(bad))
    try:
        with pytest.raises(NotSettled, match="1 accounts"):
            shop.sweep()
    finally:
        client.delete_item(TableName="UserStreaks", Key=encode_item({"user_id": bad["user_id"]}))
    assert shop.written() == {FEB_1: 10}


def test_a_lapsed_hold_is_no_difference_for_the_night(shop: Shop) -> None:
    """expiry_of counts holds that have lapsed: they stay in the profile until the next hold begins."""
    shop.publish(after_days=2)
    shop.earn()
    shop.hold(10, seconds=2 * 86400 + 7200)
    shop.now = noon(FEB_1) + DAY
    assert shop.balance()["balance"] == 0
    is_, must = rebuilt(shop)
    assert is_ == must


def test_an_open_hold_over_an_expiry_is_no_difference_for_the_night(shop: Shop) -> None:
    shop.publish(after_days=2)
    shop.earn()
    shop.earn()
    shop.hold(10)
    shop.now = noon(FEB_1) + HOUR
    assert shop.balance()["balance"] == 10
    is_, must = rebuilt(shop)
    assert is_ == must


def test_a_settled_on_that_lies_ahead_is_healed_or_harmless(shop: Shop) -> None:
    """A rebuild trusts expiry_settled_on: with one in the future it keeps it, and a settlement then takes
    lots that it has not read for settled ones: it expires points before their time.
    """
    shop.publish(after_days=2)
    for _ in range(4):
        shop.earn()
        shop.now += DAY
        shop.earn()
    shop.balance()
    edit(shop, expiry_settled_on="2099-01-01")
    _, must = rebuilt(shop)  # what a repair writes
    edit(
        shop,
        expiry_settled_on=must.settled_on.isoformat(),
        expiry_settled_points=must.settled_points,
        expires_next=must.first_unsettled.isoformat(),
    )
    shop.now += DAY
    shop.ask("GET", "/balance")
    assert must.settled_on <= shop.now.date(), must
    assert shop.written() == simulated(shop.entries(), shop.now)


def test_a_settled_on_that_lies_ahead_holds_no_points_for_decades(shop: Shop) -> None:
    """_placed begins a hold at noon of settled_on, whatever that is."""
    shop.publish(after_days=20)
    shop.earn()
    edit(shop, expiry_settled_on="2099-01-01")
    shop.hold(5, seconds=60)
    shop.now += DAY
    assert shop.balance()["held"] == 0


@pytest.mark.parametrize("seed", range(effort(1, soak=200)))
def test_clocks_that_differ_by_minutes_give_the_answer_of_the_simulation(shop: Shop, seed: int) -> None:
    """Random stories by machines that are up to five minutes ahead or behind, near noon."""
    chance = random.Random(seed)
    shop.publish(after_days=chance.randrange(1, 3))
    real = shop.now.replace(hour=11, minute=50)
    shop.now = real
    shop.earn()
    captures = chance.random() < 0.5
    for _ in range(25):
        real += chance.choice([timedelta(minutes=2), timedelta(minutes=7), timedelta(hours=11), DAY])
        shop.now = real + timedelta(minutes=chance.choice([-5, 0, 5]))
        step = chance.randrange(9)
        if step < 3:
            shop.earn("LESSON_COMPLETED", chance.choice([timedelta(0), HOUR, DAY, 3 * DAY, 5 * DAY]))
        elif step < 5:
            shop.spend(chance.randrange(1, 25))
        elif step == 5:
            shop.give_back(chance.randrange(9))
        elif step == 6:
            shop.sweep()
        elif step == 7 and captures:
            shop.hold(chance.randrange(1, 15), chance.choice([600, 7000, 90_000]))
        elif captures:
            shop.end(chance.choice(["capture", "release"]), chance.randrange(9))
        status, told = shop.ask("GET", "/balance")
        assert status == 200
        assert told["balance"] >= 0 and told["available"] >= 0
    shop.now = real + 9 * DAY
    shop.balance()
    is_, must = rebuilt(shop)
    assert shop.written() == simulated(shop.entries(), shop.now), f"captures: {captures}"
    assert is_ == must or captures


def commands(dynamodb: Any) -> Commands:
    store = AccountStore(dynamodb, "UserStreaks", "DailyActivity", LedgerStore(dynamodb, "RewardsLedger"), 4)
    claims = ClaimStore(dynamodb, "IdempotencyKeys")
    settler = Settler(store, BookStore(dynamodb, "RuleBooks"))
    return Commands(store, claims, "IdempotencyKeys", EngagementCache(""), settler)


STEPS: list[tuple[str, Any]] = [
    ("capture", lambda do, user, held, now: Holds(do).capture(user, held, 7, now)),
    ("settle", lambda do, user, _, now: do.settler.settle(user, now)),
    ("hold", lambda do, user, _, now: Holds(do).hold(user, HoldRequest(5, "mug", "late"), now)),
    ("release", lambda do, user, held, now: Holds(do).release(user, held, now)),
    (
        "redeem",
        lambda do, user, _, now: SpendingCommands(do, do.settler.books).redeem(user, 5, "m", "k", now),
    ),
]


@pytest.mark.parametrize("how", FAILURES[: effort(1, soak=len(FAILURES))])
@pytest.mark.parametrize(("name", "step"), STEPS[: effort(1, soak=len(STEPS))])
def test_a_process_that_dies_at_any_call_leaves_what_the_next_one_finishes(
    shop: Shop, name: str, step: Any, how: str
) -> None:
    shop.publish(after_days=2)
    before, at = shop.now, 0
    while True:
        at += 1
        shop.now, shop.user, shop.holds = before, f"{shop.user[:30]}-{name}-{at}-{FAILURES.index(how)}", []
        for _ in range(2):
            shop.earn()
        shop.hold(10)
        shop.hold(1, seconds=30)
        shop.now += DAY
        for _ in range(3):
            shop.earn()
        shop.now = noon(FEB_1) + HOUR
        dying = Dying(shop.api.engine.client("dynamodb"), at, how)
        with suppress(Killed, BotoCoreError, ClientError, ApiError):
            step(commands(dying), shop.user, shop.holds[0], shop.now)
        is_over = dying._left > 0
        again = step(commands(shop.api.engine.client("dynamodb")), shop.user, shop.holds[0], shop.now)
        told = shop.balance()
        spent = 7 if name == "capture" else 5 if name == "redeem" else 0
        held = {"hold": 15, "capture": 0, "release": 0}.get(name, 10)
        kept = {"capture": 7, "release": 0}.get(name, 10)
        assert (told["balance"], told["held"]) == (30 + kept - spent, held), (at, how, again)
        shop.now = noon(FEB_2) + 9 * DAY
        shop.balance()
        assert shop.written() == simulated(shop.entries(), shop.now)
        if is_over:
            break
    assert at > 2


BAD_EXPIRIES: list[tuple[Any, str]] = [
    *(({}, "expiry"), ({"after_days": 5, "end_of": "month"}, "expiry"), ({"else": 1}, "expiry")),
    *((None, "expiry"), ("90d", "expiry"), ({"end_of": "week"}, "expiry.end_of")),
    *(({"after_days": each}, "expiry.after_days") for each in (0, 99999, 1.5, True, "5", None)),
]


def test_bad_expiry_is_refused_with_its_path(shop: Shop) -> None:
    for said, path in BAD_EXPIRIES:
        made = copy.deepcopy(shipped_document()) | {"expiry": said}
        status, told = shop.api.admin("POST", "/v1/rules", {"book": made, "effective": "now"})
        assert status == 422, said
        assert path in json.dumps(told), (said, told)


def test_whole_days_as_a_float_are_a_rule_that_can_be_used(shop: Shop) -> None:
    made = copy.deepcopy(shipped_document()) | {"expiry": {"after_days": 2.0}}
    status, told = shop.api.admin("POST", "/v1/rules", {"book": made, "effective": "now"})
    assert status in (201, 422), told
    shop.earn()
    assert status == 422 or [each["at"][:10] for each in shop.balance()["expiring"]] == ["2027-02-01"]


@pytest.mark.parametrize("seed", range(effort(1, soak=60)))
def test_what_is_listed_as_expiring_is_what_a_simulation_has_left(shop: Shop, seed: int) -> None:
    """Without holds: open lots and points that never expire make the balance, lot by lot."""
    chance = random.Random(seed)
    shop.earn()
    for _ in range(25):
        shop.now += timedelta(hours=chance.randrange(1, 30))
        if chance.random() < 0.3:
            rules: list[dict[str, Any]] = [{}, {"after_days": 2}, {"after_days": 9}, {"end_of": "month"}]
            shop.publish(**chance.choice(rules))
        if chance.random() < 0.6:
            shop.earn(ago=timedelta(hours=chance.choice([0, 0, 30, 70, 200, 900])))
        if chance.random() < 0.3:
            shop.spend(chance.randrange(1, 25))
        if chance.random() < 0.1:
            shop.give_back(chance.randrange(9))
        told, entries = shop.balance(), shop.entries()
        assert told["balance"] == sum(each["points"] for each in entries)
        far = datetime(2050, 1, 1, tzinfo=UTC)
        to_come = {on: some for on, some in simulated(entries, far).items() if noon(on) > shop.now}
        listed = {date.fromisoformat(each["at"][:10]): each["points"] for each in told["expiring"]}
        assert listed == to_come


def test_a_process_that_does_not_know_the_newest_book_yet_settles_no_lot_away(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes know a book up to 30 seconds late (or longer, while RuleBooks cannot be read). Settler._lots
    stops reading days where no lot of a book that it knows can be earlier than one that it has seen. A lot of
    the newer, shorter book lies behind: first_unsettled passes it over, and it never expires.
    """
    shop.publish(after_days=3)
    shop.earn()  # lot of 2 February
    shop.now = noon(FEB_1)
    shop.earn()  # lot of 4 February
    shop.now = noon(FEB_2) + HOUR
    client = shop.api.engine.client("dynamodb")
    known = BookStore(client, "RuleBooks")
    with monkeypatch.context() as patch:
        patch.setattr(book_store, "FRESH_SECONDS", 10**9)
        known.look()
    assert [each.book.expiry for each in known.books().versions if each.book.expiry] == ["3d"]
    shop.now += timedelta(seconds=1)
    shop.publish(after_days=1)
    shop.now += timedelta(seconds=1)
    shop.earn()  # lot of 3 February
    shop.now += timedelta(seconds=1)
    Settler(accounts(shop), known).settle(shop.user, shop.now)
    shop.now = noon(date(2027, 2, 3))
    during = shop.balance()["balance"]
    shop.now = noon(FEB_1) + 20 * DAY
    shop.balance()
    assert (during, shop.written()) == (10, simulated(shop.entries(), shop.now))
