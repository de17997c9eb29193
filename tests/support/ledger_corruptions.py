"""Ways to corrupt the ledgers of a town by hand, by name."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from adapters.platform.items import Item
from tests.support.corruptions import edit, number, value, without
from tests.support.town import Town


def edit_entry(
    change: Callable[[Item], Any], kind: str = "EARN", place: int = -1
) -> Callable[[Town, str], None]:
    """Change one entry of a kind, by default the newest, and all later balances so that they add up."""

    def apply(town: Town, user: str) -> None:
        stored = town.entries(user)
        entry = [each for each in stored if each["kind"]["S"] == kind][place]
        before = dict(entry)
        change(entry)
        assert entry != before
        _rebalance_and_store(town, stored)

    return apply


def _rebalance_and_store(town: Town, entries: list[Item]) -> None:
    balance = Decimal(0)
    for each in entries:
        if set(each["points"]) == {"N"}:
            balance += Decimal(each["points"]["N"])
            each["balance"] = {"N": str(balance)}
        town.put("RewardsLedger", each)


def delete_entry(place: int) -> Callable[[Town, str], None]:
    def apply(town: Town, user: str) -> None:
        gone = town.entries(user)[place]
        town.delete("RewardsLedger", account_id=user, created_at=gone["created_at"]["S"])

    return apply


def cut_newest_entry(town: Town, user: str) -> None:
    """Delete the newest entry, and make the one before it the head: the ledger looks sound."""
    *rest, newest = town.entries(user)
    town.delete("RewardsLedger", account_id=user, created_at=newest["created_at"]["S"])
    rest[-1]["active"] = {"BOOL": True}
    rest[-1].pop("carried", None)
    town.put("RewardsLedger", rest[-1])


def delete_all_entries(town: Town, user: str) -> None:
    for each in town.entries(user):
        town.delete("RewardsLedger", account_id=user, created_at=each["created_at"]["S"])


def swap_events(town: Town, user: str) -> None:
    """Give two entries each other's event: all sums stay."""
    earned = [each for each in town.entries(user) if each["kind"]["S"] == "EARN"][:2]
    earned[0]["event_id"], earned[1]["event_id"] = earned[1]["event_id"], earned[0]["event_id"]
    for each in earned:
        town.put("RewardsLedger", each)


def move_points(town: Town, user: str) -> None:
    """Take a point from one entry and give it to another: all sums stay, and the balances between change."""
    stored = town.entries(user)
    earned = [each for each in stored if each["kind"]["S"] == "EARN"]
    number("points", 1)(earned[0])
    number("points", -1)(earned[1])
    _rebalance_and_store(town, stored)


def pay_out(town: Town, user: str) -> None:
    """Raise ledger and profile by 1000 points, so that the live tables agree with each other."""
    edit_entry(number("points", 1000))(town, user)
    edit(number("balance", 1000))(town, user)


# Users need at least two EARN entries, and nothing else in their ledgers.
LEDGER = {
    "1000 points more": edit_entry(number("points", 1000)),
    "1000 points more, and in the profile": pay_out,
    "1000 points more long ago": edit_entry(number("points", 1000), place=0),
    "points moved": move_points,
    "events swapped": swap_events,
    "another date": edit_entry(value("activity_date", {"S": "2026-02-01"})),
    "another type": edit_entry(value("event_type", {"S": "WORKOUT_COMPLETED"})),
    "another kind": edit_entry(value("kind", {"S": "ADJUST"})),
    "no kind that is": edit_entry(value("kind", {"S": "GIFT"})),
    "a freeze": edit_entry(
        lambda each: each.update({"freeze": {"S": "freeze_granted"}, "freeze_date": {"S": "2026-02-01"}})
    ),
    "points as text": edit_entry(value("points", {"S": "5"})),
    "type as number": edit_entry(value("event_type", {"N": "-3"})),
    "head's mark as number": edit_entry(value("active", {"N": "1"})),
    "salt gone": edit_entry(without("salt"), kind="OPEN"),
    "no date that is": edit_entry(value("activity_date", {"S": "2026-02-30"})),
    "half a point": edit_entry(value("points", {"N": "1.5"})),
    "marked as reversed": edit_entry(value("reversed_by", {"S": "2026-03-20T12:00:00.000000Z"})),
    "two heads": edit_entry(value("active", {"BOOL": True}), place=0),
    "opening with points": edit_entry(number("points", 1000), kind="OPEN"),
    "first gone": delete_entry(0),
    "newest gone": delete_entry(-1),
    "newest gone, and the one before it is the head": cut_newest_entry,
    "all gone": delete_all_entries,
}
