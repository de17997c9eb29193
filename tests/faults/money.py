"""What must hold of points as money after every schedule (rules 5 and 11), read from the tables alone."""

from bisect import bisect_right
from collections import Counter
from datetime import date, timedelta
from typing import Any

from adapters.book_store import BookStore
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import query_all
from rules.days import parse_moment, stamp_of_key
from rules.engagement.ledger import entry_id
from tests.faults.simulation import Simulation
from tests.faults.spenders import REWARD, Spenders
from tests.support.plain_lots import Plain

SKEW = timedelta(minutes=1)  # of clocks, and between a version's instant and its being written


def money_violations(schedule: Spenders, user: str) -> list[str]:
    """Return what is wrong with a user's points; nothing is the answer."""
    entries = rows(schedule, "RewardsLedger", "account_id", user)
    events = rows(schedule, "BPEvents", "user_id", user)
    told = schedule.balances[user]
    wrong = [each for each in schedule.promises.broken if user in each]
    balance = sum(each["points"] for each in entries)
    spendable = max(0, balance)
    if told["balance"] != balance or told["available"] != spendable or told["holds"]:
        wrong.append(f"{user}: {told}, and the entries add up to {balance}")
    if (lots := sum(each["points"] for each in told["expiring"])) != spendable:
        wrong.append(f"{user}: open lots of {lots}, a balance of {balance}")
    expired, should = _expired(entries), Plain.of(entries).expired(schedule.now)
    if expired != should:
        wrong.append(f"{user}: expired {expired}, should be {should}")
    wrong += _of_holds(schedule, user, entries)
    return wrong if schedule.report.is_judged_anew else wrong + _of_prices(schedule, user, events)


def rows(schedule: Simulation, table: str, key: str, user: str) -> list[dict[str, Any]]:
    found = query_all(
        schedule.real,
        TableName=table,
        KeyConditionExpression="#key = :user",
        ExpressionAttributeNames={"#key": key},
        ExpressionAttributeValues=encode_item({":user": user}),
        ConsistentRead=True,
    )
    rows_found = map(decode_item, found)
    return [each | {"created_at": stamp_of_key(each["created_at"])} for each in rows_found]


def _expired(entries: list[dict[str, Any]]) -> dict[date, int]:
    """By expiry, what entries say has expired."""
    gone: Counter[date] = Counter()
    for each in entries:
        if each["kind"] == "EXPIRE":
            gone[date.fromisoformat(each["expires_on"])] -= each["points"]
    return {on: points for on, points in gone.items() if points}


def _of_holds(schedule: Spenders, user: str, entries: list[dict[str, Any]]) -> list[str]:
    """A hold is captured once or not at all, and nothing is captured that was released."""
    promises = schedule.promises
    captured = {hold: places for hold, places in promises.captured.items() if hold[0] == user}
    wrong = [f"{hold} was captured by {places}" for hold, places in captured.items() if len(places) > 1]
    wrong += [f"{hold} was captured and released" for hold in captured if hold in promises.released]
    places = {
        entry_id(each["created_at"]) for each in entries if each["kind"] == "REDEEM" and each.get("held_at")
    }
    told = {place for some in captured.values() for place in some}
    if places != told:
        wrong.append(f"{user}: captures {places}, {told} were promised")
    rewards = {each["reward_id"] for each in entries if each.get("held_at")}
    return wrong + ([f"{user}: captured {rewards}"] if rewards - {REWARD} else [])


def _of_prices(schedule: Spenders, user: str, events: list[dict[str, Any]]) -> list[str]:
    """An event is worth what a version said that was in force when it occurred."""
    wrong = []
    versions = sorted(
        BookStore(schedule.real, "RuleBooks").look().versions, key=lambda each: each.effective_at
    )
    since = [each.effective_at for each in versions]
    for each in events:
        occurred = parse_moment(each["occurred_at"]).utc
        first = max(0, bisect_right(since, occurred - SKEW) - 1)
        last = bisect_right(since, occurred + SKEW)
        kind = each["event_type"]
        right = {version.book.event_types[kind].points for version in versions[first:last]}
        if each["points_awarded"] not in right:
            wrong.append(f"{user}: {each['event_id']} is worth {each['points_awarded']}, not one of {right}")
    return wrong
