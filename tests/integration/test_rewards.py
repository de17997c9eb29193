"""Rewards of the book, through the real handlers on a real engine (rule 13)."""

import contextlib
import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Thread
from typing import Any

import pytest

from bench.deployed import consumers
from ingest.engagement.history import created_at_of
from ingest.web.caller import ApiError, Caller
from processors import fulfilment
from rules.days import stamp
from tests.integration.test_rules_api import api
from tests.support.dying import FAILURES, Dying, Killed
from tests.support.effort import effort
from tests.support.gateway import CONTEXT
from tests.support.pipeline import Stream
from tests.support.rewards import a_name, earn, process, publish, taken, with_rewards
from tests.support.site import ADMIN, FULFILMENT, PRODUCERS, Site

__all__ = ["api"]  # the fixture of a site that forgets its versions

USERS = count()
DESK = Caller("desk", is_admin=False, is_fulfilment=True)


def redeem(api: Site, user: str, reward: str, key: str = "r", *groups: str, **more: Any) -> tuple[int, Any]:
    body = {"reward": reward, "idempotency_key": key, **more}
    return api.call(user, "POST", f"/v1/users/{user}/redemptions", body, *groups)


def tell(api: Site, user: str, entry: Any, what: str, *groups: str) -> tuple[int, Any]:
    path = f"/v1/users/{user}/redemptions/{entry['entry_id']}/{what}"
    return api.call("desk", "POST", path, None, *(groups or (FULFILMENT,)))


def code(told: tuple[int, Any]) -> tuple[int, str]:
    return told[0], told[1]["error"]["code"]


def balance(api: Site, user: str) -> int:
    return int(api.admin("GET", f"/v1/users/{user}/balance")[1]["balance"])


def users(api: Site, number: int) -> list[str]:
    made = [f"buyer{next(USERS)}" for _ in range(number)]
    earn(api, made)
    return made


def at_once(work: Callable[[int], Any], times: int) -> Counter[Any]:
    found: list[Any] = []

    def run(number: int) -> None:
        try:
            found.append(work(number))
        except ApiError as error:
            found.append(error.code)

    threads = [Thread(target=run, args=(number,)) for number in range(times)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == times
    return Counter(found)


def test_a_reward_costs_what_the_book_says_and_the_entry_tells_all(api: Site, user: str) -> None:
    mug = a_name()
    version = publish(api, with_rewards(**{mug: {"price_points": 30, "stock": 2, "limit_per_user": 1}}))
    earn(api, [user], 5)
    status, entry = redeem(api, user, mug)
    assert (status, entry["kind"], entry["points"], entry["balance"]) == (201, "REDEEM", -30, 20)
    assert (entry["reward_id"], entry["brand"]) == (mug, "acme")
    assert redeem(api, user, mug) == (201, entry | {"duplicate": True})
    status, told = api.call(user, "GET", f"/v1/users/{user}/redemptions/{entry['entry_id']}")
    assert status == 200
    assert (told["reward"], told["price_points"], told["rules_version"]) == (mug, 30, version)
    assert told["fulfilment"] == "requested"
    assert taken(api.engine.client("dynamodb"), mug).out == 1
    assert code(redeem(api, user, mug, "again")) == (409, "reward_limit")
    earn(api, [f"{user}x"], 1)
    assert code(redeem(api, f"{user}x", mug)) == (409, "insufficient_balance")
    assert taken(api.engine.client("dynamodb"), mug).out == 1


def test_a_plain_user_names_no_price(api: Site, user: str) -> None:
    mug = a_name()
    publish(api, with_rewards(**{mug: {"price_points": 30}}))
    earn(api, [user], 5)
    free = {"points": 1, "reward_id": mug, "idempotency_key": "f"}
    path = f"/v1/users/{user}/redemptions"
    assert code(api.call(user, "POST", path, free)) == (403, "price_forbidden")
    assert code(redeem(api, user, mug, points=1)) == (403, "price_forbidden")
    assert code(redeem(api, user, mug, price=1)) == (422, "invalid_field")
    assert code(redeem(api, user, mug, price_points=1)) == (409, "price_changed")
    assert code(api.call(user, "POST", path, {"idempotency_key": "f"})) == (422, "invalid_field")
    hold = {"points": 1, "reward_id": mug, "idempotency_key": "h"}
    assert code(api.call(user, "POST", f"/v1/users/{user}/holds", hold)) == (403, "forbidden")
    assert code(redeem(api, user, mug, "k", ADMIN, points=1)) == (422, "invalid_field")
    assert balance(api, user) == 50
    assert api.call("desk", "POST", path, free, FULFILMENT)[1]["points"] == -1
    assert code(api.call("desk", "POST", path, {"idempotency_key": "g"}, FULFILMENT)) == (
        422,
        "invalid_field",
    )


def test_a_stranger_redeems_and_tells_nothing(api: Site, user: str) -> None:
    mug, tea = a_name(), a_name()
    publish(api, with_rewards(**{mug: {}, tea: {"brand": "tea.house"}}))
    earn(api, [user], 2)
    body = {"reward": mug, "idempotency_key": "r"}
    path = f"/v1/users/{user}/redemptions"
    for groups in ((), (PRODUCERS,), (FULFILMENT,), ("streakline/fulfilment/acme",)):
        assert code(api.call("stranger", "POST", path, body, *groups)) == (403, "forbidden")
    entry, other = redeem(api, user, mug)[1], redeem(api, user, tea, "t")[1]
    shipper = "streakline/fulfilment/acme"
    for what in ("fulfilled", "failed", "reversal"):
        assert code(tell(api, user, entry, what, PRODUCERS)) == (403, "forbidden")
        assert code(tell(api, user, other, what, shipper)) == (403, "forbidden")
        assert code(api.call(user, "POST", f"{path}/{entry['entry_id']}/{what}")) == (403, "forbidden")
    missing = {"entry_id": "20270101T000000000000Z"}
    assert code(tell(api, user, missing, "failed", shipper)) == (403, "forbidden")
    assert code(tell(api, user, missing, "failed")) == (404, "not_found")
    for place in ("", f"/{entry['entry_id']}"):
        assert code(api.call("stranger", "GET", f"{path}{place}")) == (403, "forbidden")
    assert code(api.call("stranger", "GET", f"/v1/users/{user}/rewards")) == (403, "forbidden")
    assert tell(api, user, entry, "fulfilled", shipper)[1]["fulfilment"] == "fulfilled"


def test_what_is_not_offered_is_refused(api: Site, user: str) -> None:
    now, early, late, none = datetime.now(UTC), a_name(), a_name(), a_name()
    offered = {
        early: {"valid_from": stamp(now + timedelta(hours=1))},
        late: {"valid_until": stamp(now - timedelta(seconds=1))},
        none: {"stock": 0},
    }
    publish(api, with_rewards(**offered))
    earn(api, [user], 5)
    assert code(redeem(api, user, early)) == (409, "reward_not_valid")
    assert code(redeem(api, user, late)) == (409, "reward_not_valid")
    assert code(redeem(api, user, none)) == (409, "sold_out")
    assert code(redeem(api, user, "nothing")) == (404, "unknown_reward")
    assert [each["reward"] for each in api.call(user, "GET", "/v1/rewards")[1]["rewards"]] == [none]
    for zone in ("Asia/Tokyo", "Europe/Berlin", "America/Lima"):
        api.call(user, "PUT", f"/v1/users/{user}/timezone", {"timezone": zone})
    assert code(redeem(api, user, none)) == (409, "under_review")
    assert balance(api, user) == 50


def test_nobody_pays_another_price_than_they_were_shown(api: Site, user: str) -> None:
    mug, desk = a_name(), FULFILMENT
    publish(api, with_rewards(**{mug: {"price_points": 10}}))
    earn(api, [user], 5)
    refused = redeem(api, user, mug, price_points=9)
    assert code(refused) == (409, "price_changed")
    assert refused[1]["error"]["details"] == {"price_points": 10}
    assert balance(api, user) == 50
    assert redeem(api, user, mug, price_points=10)[1]["balance"] == 40
    publish(api, with_rewards(**{mug: {"price_points": 12}}))
    assert redeem(api, user, mug, price_points=12)[1]["duplicate"]
    assert code(redeem(api, user, mug, "s", price_points=10)) == (409, "price_changed")
    named = {"points": 5, "reward_id": "x", "idempotency_key": "t", "price_points": 5}
    assert code(api.call("desk", "POST", f"/v1/users/{user}/redemptions", named, desk)) == (
        422,
        "invalid_field",
    )
    assert balance(api, user) == 40


def test_the_catalogue_tells_what_is_left_and_what_a_user_can_have(api: Site, user: str) -> None:
    one, two, three = (a_name() for _ in range(3))
    offered = {one: {"stock": 70, "limit_per_user": 2}, two: {"price_points": 1000}, three: {}}
    version = publish(api, with_rewards(**offered))
    earn(api, [user], 3)
    redeem(api, user, one)
    status, told = api.call("anybody", "GET", "/v1/rewards")
    assert (status, told["version"], told["cursor"]) == (200, version, None)
    by_name = {each["reward"]: each for each in told["rewards"]}
    assert by_name[one] == {
        "reward": one,
        "price_points": 10,
        "brand": "acme",
        "limit_per_user": 2,
        "left": 69,
    }
    assert "left" not in by_name[three]
    told = api.call(user, "GET", f"/v1/users/{user}/rewards")[1]
    mine = {each["reward"]: each for each in told["rewards"]}
    assert (told["available"], mine[one]["left_for_user"]) == (20, 1)
    assert [mine[name]["affordable"] for name in (one, two, three)] == [True, False, True]
    pages, cursor = [], ""
    while True:
        told = api.call(user, "GET", f"/v1/rewards?limit=1{cursor}")[1]
        pages += [each["reward"] for each in told["rewards"]]
        if not told["cursor"]:
            break
        cursor = f"&cursor={told['cursor']}"
    assert pages == sorted([one, two, three])
    assert code(api.call(user, "GET", "/v1/rewards?cursor=%ff")) == (400, "invalid_parameter")


def test_title_description_and_picture_are_told_and_the_title_of_what_was_redeemed_stays(
    api: Site, user: str
) -> None:
    mug, bare = a_name(), a_name()
    about = {"title": "<b>Blue</b> mug", "description": "Tea.\nOr more.", "image_url": "https://e.com/m.png"}
    publish(api, with_rewards(**{mug: about, bare: {}}))
    earn(api, [user], 3)
    for path in ("/v1/rewards", f"/v1/users/{user}/rewards"):
        told = {each["reward"]: each for each in api.call(user, "GET", path)[1]["rewards"]}
        assert {name: told[mug].get(name) for name in about} == about
        assert not about.keys() & told[bare].keys()
    entry, other = redeem(api, user, mug)[1], redeem(api, user, bare, "b")[1]
    publish(api, with_rewards(**{mug: about | {"title": "Red mug"}, bare: {"title": "Late"}}))
    path = f"/v1/users/{user}/redemptions"
    listed = {each["reward"]: each.get("title") for each in api.call(user, "GET", path)[1]["redemptions"]}
    assert listed == {mug: "<b>Blue</b> mug", bare: None}
    assert api.call(user, "GET", f"{path}/{entry['entry_id']}")[1]["title"] == "<b>Blue</b> mug"
    assert "title" not in tell(api, user, other, "fulfilled")[1]


def test_64_users_at_once_take_exactly_20(api: Site) -> None:
    mug, buyers = a_name(), users(api, 64)
    publish(api, with_rewards(**{mug: {"stock": 20}}))
    dynamodb = api.engine.client("dynamodb")
    # Each process of its own: none knows what another one has seen.
    shops = [process(dynamodb) for _ in range(8)]
    now = datetime.now(UTC)

    def buy(number: int) -> str:
        return shops[number % 8].redeem(buyers[number], mug, "r", now).entry.draft.brand or ""

    assert at_once(buy, 64) == {"acme": 20, "sold_out": 44}
    left = taken(dynamodb, mug)
    assert (left.out, max(left.slices.values())) == (20, 1)
    assert sum(balance(api, each) for each in buyers) == 64 * 10 - 200


def test_what_comes_back_is_sold_again_and_no_more(api: Site) -> None:
    mug, buyers = a_name(), users(api, 6)
    publish(api, with_rewards(**{mug: {"stock": 2}}))
    first, second, *others = buyers
    entry = redeem(api, first, mug)[1]
    redeem(api, second, mug)
    for each in others:
        assert code(redeem(api, each, mug)) == (409, "sold_out")
    assert tell(api, first, entry, "failed")[1]["fulfilment"] == "failed"
    dynamodb = api.engine.client("dynamodb")
    shop, now = process(dynamodb), datetime.now(UTC)
    came = at_once(lambda number: shop.redeem(others[number], mug, "x", now).entry.draft.points, 4)
    assert came == {-10: 1, "sold_out": 3}
    assert taken(dynamodb, mug).out == 2


def test_a_raised_stock_is_there_at_once_also_where_the_version_is_not_known_yet(
    api: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two functions with different versions of the book."""
    mug, buyers = a_name(), users(api, 7)
    publish(api, with_rewards(**{mug: {"stock": 2}}))
    stale = process(api.engine.client("dynamodb"))
    now = datetime.now(UTC)
    monkeypatch.setattr("adapters.book_store.FRESH_SECONDS", 3600)
    for each in buyers[:2]:
        stale.redeem(each, mug, "r", now)
    publish(api, with_rewards(**{mug: {"stock": 5, "price_points": 9}}))
    later = datetime.now(UTC)
    assert stale.redeem(buyers[2], mug, "r", later).entry.draft.points == -9
    for each in buyers[3:5]:
        assert redeem(api, each, mug)[0] == 201
    assert code(redeem(api, buyers[5], mug)) == (409, "sold_out")
    with pytest.raises(ApiError, match="nothing is left"):
        stale.redeem(buyers[6], mug, "r", later)


def test_a_limit_holds_under_threads(api: Site, user: str) -> None:
    mug = a_name()
    publish(api, with_rewards(**{mug: {"limit_per_user": 3, "stock": 50}}))
    earn(api, [user], 10)
    dynamodb, now = api.engine.client("dynamodb"), datetime.now(UTC)
    shop = process(dynamodb)
    came = at_once(lambda number: shop.redeem(user, mug, f"r{number}", now).entry.draft.points, 8)
    assert came == {-10: 3, "reward_limit": 5}
    assert taken(dynamodb, mug).out == 3
    entries = api.call(user, "GET", f"/v1/users/{user}/redemptions")[1]["redemptions"]
    assert [each["fulfilment"] for each in entries] == ["requested"] * 3
    assert tell(api, user, entries[0], "failed")[0] == 200
    assert redeem(api, user, mug, "again")[0] == 201
    assert code(redeem(api, user, mug, "once more")) == (409, "reward_limit")


def test_one_key_at_once_takes_one_and_all_get_the_same(api: Site, user: str) -> None:
    mug = a_name()
    publish(api, with_rewards(**{mug: {"stock": 1, "limit_per_user": 1}}))
    earn(api, [user], 1)
    dynamodb, now = api.engine.client("dynamodb"), datetime.now(UTC)
    shops = [process(dynamodb) for _ in range(8)]
    came = at_once(lambda number: shops[number].redeem(user, mug, "r", now).entry.created_at, 8)
    assert list(came.values()) == [8]
    assert (taken(dynamodb, mug).out, balance(api, user)) == (1, 0)


@pytest.mark.parametrize("how", FAILURES[: effort(1, soak=len(FAILURES))])
def test_a_process_that_dies_anywhere_leaves_one_redemption_and_one_reversal(
    api: Site, user: str, how: str
) -> None:
    mug = a_name()
    publish(api, with_rewards(**{mug: {"stock": 100, "limit_per_user": 100}}))
    dynamodb, now = api.engine.client("dynamodb"), datetime.now(UTC)
    earn(api, [user], 20)
    for dies_at in range(1, 9):
        key = f"r{dies_at}"
        dying = Dying(dynamodb, dies_at, how)
        with contextlib.suppress(Killed, Exception):
            process(dying).redeem(user, mug, key, now)
        entry = process(dynamodb).redeem(user, mug, key, now).entry
        assert taken(dynamodb, mug).out == 1
        dying = Dying(dynamodb, dies_at, how)
        with contextlib.suppress(Killed, Exception):
            process(dying).report_failed(user, entry.created_at, DESK, now)
        told = process(dynamodb).report_failed(user, entry.created_at, DESK, now)
        assert told.redemption.fulfilment == "failed"
        assert taken(dynamodb, mug).out == 0
        assert process(dynamodb).store.owned(user, mug) == 0
        assert balance(api, user) == 200


def test_a_failure_and_reversals_at_once_give_back_once(api: Site, user: str) -> None:
    mug = a_name()
    publish(api, with_rewards(**{mug: {"stock": 1, "limit_per_user": 1}}))
    earn(api, [user], 1)
    dynamodb, now = api.engine.client("dynamodb"), datetime.now(UTC)
    for number in range(4):
        place = process(dynamodb).redeem(user, mug, f"r{number}", now).entry.created_at
        shops = [process(dynamodb) for _ in range(6)]

        def undo(at: int, place: str = place, shops: Any = shops) -> str:
            if at % 2:
                return "reversed" if shops[at].reverse(user, place, now) else ""
            told = shops[at].report_failed(user, place, DESK, now)
            return "again" if told.duplicate else "failed"

        came = at_once(undo, 6)
        assert came["reversed"] + came["failed"] == 1
        assert came["already_reversed"] == 3 - came["reversed"]
        assert came["again"] == 3 - came["failed"]
        assert (taken(dynamodb, mug).out, balance(api, user)) == (0, 10)
        assert process(dynamodb).store.owned(user, mug) == 0


def test_what_is_fulfilled_does_not_fail_but_may_come_back(api: Site, user: str) -> None:
    mug = a_name()
    publish(api, with_rewards(**{mug: {"stock": 1}}))
    earn(api, [user], 1)
    entry = redeem(api, user, mug)[1]
    status, told = tell(api, user, entry, "fulfilled")
    assert (status, told["fulfilment"], "duplicate" in told) == (200, "fulfilled", False)
    assert tell(api, user, entry, "fulfilled")[1] == told | {"duplicate": True}
    assert code(tell(api, user, entry, "failed")) == (409, "redemption_ended")
    assert balance(api, user) == 0
    assert tell(api, user, entry, "reversal")[1]["brand"] == "acme"
    assert code(tell(api, user, entry, "fulfilled")) == (409, "redemption_ended")
    again = tell(api, user, entry, "failed")[1]
    assert (again["fulfilment"], again["duplicate"]) == ("reversed", True)
    assert (balance(api, user), taken(api.engine.client("dynamodb"), mug).out) == (10, 0)


def test_a_free_redemption_has_nothing_to_fulfil(api: Site, user: str) -> None:
    earn(api, [user], 1)
    body = {"points": 10, "reward_id": "mug", "idempotency_key": "r"}
    entry = api.call("desk", "POST", f"/v1/users/{user}/redemptions", body, FULFILMENT)[1]
    for what in ("fulfilled", "failed"):
        assert code(tell(api, user, entry, what)) == (404, "not_found")
    assert tell(api, user, entry, "reversal")[0] == 201
    assert created_at_of(entry["entry_id"]) == entry["created_at"]


def test_each_redeemed_reward_comes_to_the_worker_and_nothing_else(api: Site, user: str) -> None:
    mug, (stream, sqs) = a_name(), (Stream(api.engine, "Rewards"), api.engine.client("sqs"))
    publish(api, with_rewards(**{mug: {"stock": 5, "limit_per_user": 3}}))
    earn(api, [user], 3)
    fulfilment._parts.cache_clear()
    sqs.purge_queue(QueueUrl=api.engine.queue_url)

    def told() -> list[Any]:
        (consumer,) = consumers("Rewards")
        taken = [each for each in stream.read() if consumer.wants(each)]
        # It comes twice: nobody knows whether the first attempt got through.
        for _ in range(2):
            assert fulfilment.handler({"Records": taken}, CONTEXT) == {"batchItemFailures": []}
        answered = sqs.receive_message(QueueUrl=api.engine.queue_url, MaxNumberOfMessages=10)
        for each in answered.get("Messages", []):
            sqs.delete_message(QueueUrl=api.engine.queue_url, ReceiptHandle=each["ReceiptHandle"])
        return [json.loads(each["Body"]) for each in answered.get("Messages", [])]

    entry = redeem(api, user, mug)[1]
    messages = told()
    wanted = {"user": user, "reward": mug, "brand": "acme", "price_points": 10, "at": entry["created_at"]}
    assert messages == [{"redemption": entry["entry_id"], **wanted}] * 2
    for _ in messages:
        assert tell(api, user, {"entry_id": messages[0]["redemption"]}, "failed")[0] == 200
    assert told() == []
