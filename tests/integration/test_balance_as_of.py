"""What was true at an instant, told by a plain reading of the ledger's entries (rule 11)."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.integration import test_expiry
from tests.integration.test_expiry import KINDS, Shop
from tests.support.effort import effort
from tests.support.plain_lots import Plain

shop = test_expiry.shop
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def told(shop: Shop, instant: datetime) -> tuple[int, int]:
    status, body = shop.ask("GET", f"/balance?as_of={instant:%Y-%m-%dT%H:%M:%S.%fZ}")
    assert status == 200, body
    return body["known_balance"], body["true_balance"]


def known_then(entries: list[dict[str, Any]], instant: datetime) -> int:
    return sum(each["points"] for each in entries if datetime.fromisoformat(each["created_at"]) <= instant)


def true_then(entries: list[dict[str, Any]], instant: datetime) -> int:
    """What had been earned by then, less what had been spent and never given back, less what had expired."""
    undone = {each["reverses"] for each in entries if each.get("reverses")}
    earned = sum(
        each["points"]
        for each in entries
        if each["kind"] == "EARN" and datetime.fromisoformat(each["event_id"].split("#")[0]) <= instant
    )
    spent = sum(
        -each["points"]
        for each in entries
        if each["kind"] == "REDEEM"
        and each["created_at"] not in undone
        and datetime.fromisoformat(each["created_at"]) <= instant
    )
    expired = sum(Plain.of(entries).expired(instant).values())
    return int(earned - spent - expired)


def test_a_redemption_that_is_reversed_is_as_if_it_had_never_been(shop: Shop) -> None:
    shop.publish(after_days=2)
    shop.earn()
    shop.now += HOUR
    assert shop.spend(10)
    shop.now += HOUR
    between = shop.now
    shop.now = datetime(2027, 2, 2, tzinfo=UTC)
    assert shop.balance()["balance"] == 0
    after = shop.now
    shop.now += DAY
    shop.give_back(0)
    assert shop.balance()["balance"] == 0, "the lot is over"
    assert told(shop, between) == (0, 10)
    assert told(shop, after) == (0, 0), "its points had expired by then, and were not owed"


@pytest.mark.parametrize("seed", range(effort(1, soak=200)))
def test_whatever_happened_each_instant_has_one_answer(shop: Shop, seed: int) -> None:
    chance = random.Random(seed)
    shop.publish(after_days=chance.randrange(1, 4))
    instants = []
    for _ in range(25):
        shop.now += timedelta(hours=chance.randrange(1, 16))
        instants.append(shop.now - timedelta(minutes=1))
        step = chance.randrange(7)
        if step < 3:
            shop.earn(chance.choice(KINDS), timedelta(hours=chance.choice([0, 0, 5, 30, 70])))
        elif step < 5:
            shop.spend(chance.randrange(1, 40))
        elif step == 5:
            shop.give_back(chance.randrange(9))
        else:
            shop.sweep()
    shop.now += 5 * DAY
    shop.balance()
    entries = shop.entries()
    for instant in instants:
        assert told(shop, instant) == (known_then(entries, instant), true_then(entries, instant)), instant
