"""What must hold of rewards and of points that are taken back (rules 12 and 13), read from the tables alone."""

from collections import Counter
from datetime import date
from typing import Any

from adapters.book_store import BookStore
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import query_all
from rules.days import parse_moment, stamp_of_key
from rules.engagement.ledger import entry_id
from tests.faults.merchants import Merchants
from tests.faults.money import rows
from tests.support.plain_points import Edition, PlainPoints, Price
from tests.support.rewards import taken

EARNING = ("EARN", "CLAWBACK", "RERATE")
BACK = ("failed", "reversed")


def goods_violations(schedule: Merchants) -> list[str]:
    """Return what is wrong with stocks, limits, redemptions and sums; nothing is the answer."""
    wrong: list[str] = []
    out: Counter[str] = Counter()
    for user in schedule.users:
        entries = rows(schedule, "RewardsLedger", "account_id", user)
        wrong += _of_sums(schedule, user, entries)
        owned = _owned(schedule, user)
        redemptions = {stamp_of_key(each["place"]): each for each in owned if "fulfilment" in each}
        wrong += _of_redemptions(schedule, user, entries, redemptions)
        have = Counter(each["reward_id"] for each in redemptions.values() if each["fulfilment"] not in BACK)
        out += have
        counted = {each["place"].removeprefix("of/"): each["taken"] for each in owned if "taken" in each}
        for reward, terms in schedule.rewards.items():
            limit = terms.get("limit_per_user")
            if limit and not have[reward] == counted.get(reward, 0) <= limit:
                wrong.append(f"{user}: {have[reward]} of {reward}, counted {counted}, at most {limit}")
    for reward, terms in schedule.rewards.items():
        if stock := terms.get("stock"):
            found = taken(schedule.real, reward)
            if not out[reward] == found.out <= stock or found.spares < 0:
                wrong.append(f"{reward}: {out[reward]} are out, {found.out} of {stock} say the slices")
    return wrong


def _owned(schedule: Merchants, user: str) -> list[dict[str, Any]]:
    found = query_all(
        schedule.real,
        TableName="Rewards",
        KeyConditionExpression="holder = :user",
        ExpressionAttributeValues=encode_item({":user": user}),
        ConsistentRead=True,
    )
    return [decode_item(each) for each in found]


def _of_redemptions(
    schedule: Merchants, user: str, entries: list[dict[str, Any]], redemptions: dict[str, dict[str, Any]]
) -> list[str]:
    """Each sold reward is one entry and one request, at one price; each that came back, one reversal."""
    bought = {each["created_at"]: each for each in entries if each["kind"] == "REDEEM" and each.get("brand")}
    wrong = []
    if bought.keys() != redemptions.keys():
        wrong.append(f"{user}: entries of rewards {sorted(bought)}, requested {sorted(redemptions)}")
    told = [places for (owner, _), places in schedule.sold.items() if owner == user]
    if sorted(entry_id(each) for each in bought) != sorted(each for places in told for each in places):
        wrong.append(f"{user}: bought {sorted(bought)}, promised {told}")
    if any(len(places) > 1 for places in told):
        wrong.append(f"{user}: a key bought {told}")
    undone = Counter(each["reverses"] for each in entries if each.get("reverses") in bought)
    back = Counter({place: 1 for place, each in redemptions.items() if each["fulfilment"] in BACK})
    if undone != back:
        wrong.append(f"{user}: reversed {dict(undone)}, came back {dict(back)}")
    for place in bought.keys() & redemptions.keys():
        if -bought[place]["points"] != redemptions[place]["price_points"]:
            wrong.append(f"{user}: {place} has two prices")
    taken_back = {each["event_id"] for each in entries if each["kind"] == "CLAWBACK"}
    promised = {event for owner, event in schedule.clawed if owner == user}
    if taken_back != promised:
        wrong.append(f"{user}: reversed {taken_back}, promised {promised}")
    return wrong


def _of_sums(schedule: Merchants, user: str, entries: list[dict[str, Any]]) -> list[str]:
    """By expiry, the ledger has what the events that are left come to by the book."""
    gone = {each["event_id"] for each in entries if each["kind"] == "CLAWBACK"}
    told = PlainPoints(_editions(schedule))
    for each in rows(schedule, "BPEvents", "user_id", user):
        if each["event_id"] not in gone:
            told.events[each["event_id"]] = each["event_type"], parse_moment(each["occurred_at"]).utc
    have: Counter[date] = Counter()
    for each in entries:
        if each["kind"] in EARNING and each["points"]:  # Nothing has no date on which it expires.
            have[date.fromisoformat(each["expires_on"])] += each["points"]
    must = {on: points for on, points in told.earned().items() if points}
    found = {on: points for on, points in have.items() if points}
    return [] if must == found else [f"{user}: earned {found}, the plain reading has {must}"]


def _editions(schedule: Merchants) -> list[Edition]:
    made = []
    for each in BookStore(schedule.real, "RuleBooks").look().versions:
        if each.author == "desk":
            prices = {
                kind: Price(rule.points, rule.cap_points or 0) for kind, rule in each.book.event_types.items()
            }
            made.append(
                Edition(each.effective_at.date(), prices, int((each.book.expiry or "").removesuffix("d")))
            )
    return made
