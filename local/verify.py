"""`streakline events verify`: compares a deployment's answers with an independent calculation.

The calculation takes the input alone. It shares the shipped book and the names of zones with the product, and
nothing else: dates, runs and sums are counted by brute force over the whole history. It knows no freezes,
pauses or skipped dates. The demo and tests/e2e use it too, and do the same with features of leads.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click

from adapters.book_store import shipped_document
from local.api import Api
from local.command import DAY, FILE, command, option, show
from local.event_sources import Body, from_csv
from local.stack import Stack
from rules.days import AT_MIDNIGHT, DayStarts, UnknownZone, start_on
from rules.user_ids import path_part
from rules.zone_names import find_zone

LEAD = "/v1/leads?organization_id={}&integration=ecommerce&external_event_id=order:{}"


@command("events verify tests/data/commits.csv")
@click.argument("file", type=FILE)
@option(
    "--as-of",
    type=DAY,
    default=lambda: datetime.now(UTC).date(),
    help="as of this date",
    show_default="today",
)
def verify(stack: Stack, file: Path, as_of: date, as_json: bool) -> None:
    """Hold every user's profile against an independent calculation; fails if an answer differs."""
    expected = expect(from_csv(file), as_of)
    differences = compare(Api(stack), expected, as_of)
    show({"users": len(expected), "differences": differences}, as_json=as_json)
    if differences:
        raise RuntimeError(f"{len(differences)} answers differ from the independent calculation")


@dataclass(frozen=True, slots=True)
class Expected:
    """What a user's profile must show as of a date."""

    active_days: int
    longest_streak: int
    current_streak: int
    total_bestie_points: int


def local_date(body: Body, starts: DayStarts = AT_MIDNIGHT) -> date:
    """Return an event's date in the zone that it names, or else in the offset that it was written with.

    starts: when dates begin (Books.day_starts).
    """
    local = _local_time(body)
    return local.date() - timedelta(days=local.time() < start_on(local.date(), starts))


def _local_time(body: Body) -> datetime:
    moment = datetime.fromisoformat(body["occurred_at"].replace("Z", "+00:00"))
    try:
        name = find_zone(body.get("timezone") or "")
    except UnknownZone:
        return moment
    if name[0] in "+-":
        hours, minutes = int(name[1:3]), int(name[4:6])
        delta = timedelta(hours=hours, minutes=minutes)
        return moment.astimezone(timezone(-delta if name[0] == "-" else delta))
    return moment.astimezone(ZoneInfo(name))


def expect(events: Iterable[Body], as_of: date) -> dict[str, Expected]:
    """Return what every user's profile must show as of a date."""
    unique = {(body["user_id"], body["idempotency_key"]): body for body in events}
    types = shipped_document()["event_types"]
    days: dict[str, set[date]] = defaultdict(set)  # of each user
    points: dict[tuple[str, date, str], int] = defaultdict(int)  # by user, date and type: caps are of a day
    for body in unique.values():
        day = local_date(body)
        kind = body.get("event_type", "CONTRIBUTION")
        if day <= as_of:
            days[body["user_id"]].add(day)
        points[body["user_id"], day, kind] += types[kind]["points"]
    totals: dict[str, int] = defaultdict(int)
    for (user, _, kind), earned in points.items():
        totals[user] += min(earned, types[kind]["cap"]["points"])
    return {
        user: Expected(len(days[user]), _longest(days[user]), _current(days[user], as_of), totals[user])
        for user in totals
    }


def _longest(days: set[date]) -> int:
    best = 0
    for day in days:
        if day - timedelta(days=1) not in days:
            length = 1
            while day + timedelta(days=length) in days:
                length += 1
            best = max(best, length)
    return best


def _current(days: set[date], as_of: date) -> int:
    end = as_of if as_of in days else as_of - timedelta(days=1)
    length = 0
    while end - timedelta(days=length) in days:
        length += 1
    return length


def compare(api: Api, expected: dict[str, Expected], as_of: date) -> list[dict[str, Any]]:
    """Return every difference between the API's answers and the expected ones."""
    differences = []
    for user, profile in expected.items():
        answer = api.get(f"/v1/users/{path_part(user)}?as_of={as_of.isoformat()}")
        differences += [
            {"user_id": user, "field": name, "got": answer[name], "wanted": value}
            for name, value in asdict(profile).items()
            if answer[name] != value
        ]
    return differences


def expect_features(webhooks: Iterable[Mapping[str, Any]], today: date) -> dict[str, dict[str, Any]]:
    """Return what features say of each customer of a shop, by the path that finds the customer's lead.

    webhooks: as they were sent, in any order and some of them twice; those of other sources count nothing.
    """
    orders: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for webhook in webhooks:
        if webhook["source"] == "ecommerce":
            order = webhook["payload"]
            orders[webhook["organization_id"], order["customer"]["id"]][order["id"]] = order
    return {
        LEAD.format(organization, next(iter(by_id))): _count_orders(list(by_id.values()), today)
        for (organization, _), by_id in orders.items()
    }


def _count_orders(orders: Sequence[Mapping[str, Any]], today: date) -> dict[str, Any]:
    ages = [(today - datetime.fromisoformat(order["created_at"]).date()).days for order in orders]
    return {
        "has_purchased": True,
        "monetary_total": float(sum((Decimal(order["total_price"]) for order in orders), Decimal())),
        "frequency_purchases_90d": sum(age < 90 for age in ages),
        "days_since_last_purchase": min(ages),
    }


def compare_features(api: Api, expected: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return every customer whose features are other than expected."""
    wrong = []
    for path, wanted in expected.items():
        features = api.get(f"/v1/leads/{api.get(path)['lead_id']}/features")["features"]
        got = {name: features.get(name) for name in wanted}
        if got != wanted:
            wrong.append({"lead": path, "got": got, "wanted": wanted})
    return wrong
