"""`streakline plan`: its options, and what it prints."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from local.command import FILE, Function, command, option
from local.plan.part_traffic import PartTraffic
from rules.parts import ALL_PARTS, Part, said

if TYPE_CHECKING:
    from local.plan.cost import Cost, Traffic
    from local.plan.price_list import PriceList

SIZES = ("small", "standard", "large")
SERVICES = {
    "dynamodb": "DynamoDB",
    "lambda": "Lambda",
    "api": "HTTP API",
    "kinesis": "Kinesis",
    "firehose": "Firehose",
    "s3": "S3",
    "states": "Step Functions",
    "sqs": "SQS",
    "sns": "SNS",
    "redshift": "Redshift Serverless",
    "aurora": "Aurora",
    "rdsdata": "RDS Data API",
    "proxy": "RDS Proxy",
    "valkey": "Valkey",
    "endpoints": "interface endpoints",
    "secrets": "Secrets Manager",
    "kms": "KMS",
    "scheduler": "EventBridge Scheduler",
    "traffic": "data transfer",
    "logs": "CloudWatch Logs",
    "metrics": "CloudWatch metrics",
    "alarms": "CloudWatch alarms",
    "dashboards": "CloudWatch dashboards",
    "xray": "X-Ray",
    "cognito": "Cognito",
}
COUNT = click.FloatRange(min=0)
TRAFFIC_OF_PARTS: list[PartTraffic] = list(said("traffic"))
TRAFFIC_OF_PART = {each.part: each.name for each in TRAFFIC_OF_PARTS}
NOT_COUNTED = (
    "Not counted: cold starts, what goes through endpoints, Aurora's storage, what the cache answers or"
    " grows by, messages to phones, outgoing webhooks, holds, expiry and clawbacks, a second region,"
    " restores, Glue, Athena, other free allowances than those in the price list."
)


def _traffic_options(function: Function) -> Function:
    """Add an option for each part's traffic."""
    for each in reversed(TRAFFIC_OF_PARTS):
        function = option(
            f"--{each.name.replace('_', '-')}", type=COUNT, metavar="N", default=0, help=each.meaning
        )(function)
    return function


@command(
    "plan --daily-actives 20_000",
    " ".join(["plan --daily-actives 20_000", *(f"--without {part}" for part in Part)]),
    "plan --daily-actives 20_000 --boards 1 --leagues",
    "plan --daily-actives 20_000 --events-per-user 10 --prices mine.json",
)
@option("--daily-actives", type=COUNT, metavar="N", required=True, help="users who do something in a day")
@option("--events-per-user", type=COUNT, metavar="N", default=5, help="events of an active user in a day")
@option(
    "--events-per-batch", type=click.FloatRange(1, 100), metavar="N", default=5, help="events in one request"
)
@_traffic_options
@option("--boards", type=COUNT, metavar="N", default=0, help="boards of the book that share no period")
@option("--leagues", is_flag=True, help="the book has leagues; they need a board")
@option("--retention-days", type=COUNT, metavar="N", default=365, help="days that the system has run")
@option(
    "--without",
    type=click.Choice([part.value for part in Part]),
    multiple=True,
    help="a part that the deployment leaves out; may be repeated",
    show_default="none",
)
@option("--prices", type=FILE, help="a price list of your own", show_default="the dated one of us-east-1")
def plan(prices: Path | None, without: tuple[str, ...], as_json: bool, **figures: float) -> None:
    """Say what each size of a deployment costs for a traffic, and which limit ends first."""
    from local.plan.cost import Traffic, cost_of
    from local.plan.price_list import PRICES, read_prices

    of_parts = {each.name: figures.pop(each.name) for each in TRAFFIC_OF_PARTS}
    price_list, traffic = read_prices(prices or PRICES), Traffic(**figures, of_parts=of_parts)
    deployed = [part for part in Part if part not in without]
    costs = {size: cost_of(traffic, size, price_list, deployed) for size in SIZES}
    if as_json:
        print(json.dumps(plain_data(traffic, price_list, costs, deployed), indent=2))
    else:
        print("\n".join(lines(traffic, price_list, costs, deployed)))


def by_service(dollars: Mapping[str, float]) -> dict[str, float]:
    """Return dollars by service, in the order of SERVICES."""
    sums = dict.fromkeys(SERVICES.values(), 0.0)
    for name, amount in dollars.items():
        sums[SERVICES[name.partition(".")[0]]] += amount
    return {service: amount for service, amount in sums.items() if amount}


def plain_data(
    traffic: "Traffic",
    prices: "PriceList",
    costs: Mapping[str, "Cost"],
    deployed: Collection[Part] = ALL_PARTS,
) -> dict[str, Any]:
    """Return the plan for programs. A limit's daily actives are those at whom it is reached."""
    lacking = {TRAFFIC_OF_PART[part] for part in Part if part not in deployed}
    return {
        "region": prices.region,
        "prices": {"dated": prices.dated, "source": prices.source},
        "traffic": {name: figure for name, figure in _figures(traffic).items() if name not in lacking},
        "parts": sorted(deployed),
        "sizes": {
            size: {
                "idle_dollars": sum(cost.idle.values()),
                "dollars": cost.dollars,
                "dollars_per_million_events": cost.per_million_events,
                "idle_by_service": by_service(cost.idle),
                "running_by_service": by_service(cost.running),
                "first_limit": cost.limit._asdict() | {"daily_actives": _reached_at(traffic, cost)},
            }
            for size, cost in costs.items()
        },
    }


def _figures(traffic: "Traffic") -> dict[str, float]:
    """Return the figures of a traffic by name, those of parts among them."""
    figures = asdict(traffic)
    figures |= figures.pop("of_parts")
    return figures


def _reached_at(traffic: "Traffic", cost: "Cost") -> float | None:
    """Return with how many daily actives the first limit is reached, as loads grow with them."""
    return traffic.daily_actives / cost.limit.share if cost.limit.share else None


def lines(
    traffic: "Traffic",
    prices: "PriceList",
    costs: Mapping[str, "Cost"],
    deployed: Collection[Part] = ALL_PARTS,
) -> Iterator[str]:
    """Yield the plan for people: a column of dollars for each size, and the first limit of each."""
    events = traffic.daily_actives * traffic.events_per_user
    yield f"{traffic.daily_actives:,.0f} daily actives, {events:,.0f} events a day; {prices.region}"
    asked = {each.part: f"{number:,.0f} {each.words}" for each, number in traffic.taken}
    if deployed:
        yield " and ".join(words for part, words in asked.items() if part in deployed) + " a day"
    if traffic.boards or traffic.leagues:
        yield f"{traffic.boards:g} boards by period" + (", and leagues" if traffic.leagues else "")
    yield f"{traffic.retention_days:g} days are stored"
    yield ""
    yield f"{'dollars a month':24}" + "".join(f"{size:>12}" for size in costs)
    idle = [sum(cost.idle.values()) for cost in costs.values()]
    yield _row("together, idle", idle)
    running = [by_service(cost.running) for cost in costs.values()]
    for service in SERVICES.values():
        if any(round(each.get(service, 0), 2) for each in running):
            yield _row(f"  {service}", [each.get(service, 0) for each in running])
    yield _row("together, running", [sum(each.values()) for each in running])
    yield _row("a month in all", [cost.dollars for cost in costs.values()])
    if events or any(number for _, number in traffic.taken):
        yield _row("a million events more", [cost.per_million_events or 0 for cost in costs.values()])
    yield ""
    yield "what ends first as users grow"
    for size, cost in costs.items():
        if users := _reached_at(traffic, cost):
            limit = cost.limit
            yield f"  {size}: {limit.name}, {limit.most:,.0f} {limit.unit}, at {users:,.0f} daily actives"
    yield ""
    yield f"Prices of {prices.dated}: {prices.source}"
    yield "Units: local/plan/units.json, measured by `make units`. Assumptions: local/plan/facts.json."
    yield NOT_COUNTED


def _row(name: str, dollars: list[float]) -> str:
    return f"{name:24}" + "".join(f"{amount:>12,.2f}" for amount in dollars)
