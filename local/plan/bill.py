"""A plan: two designs side by side, with their amounts, dollars and limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from local.plan.demand.leaving import HOT, Leaves, leaves
from local.plan.demand.month import Load, running
from local.plan.demand.storage import table_bytes
from local.plan.demand.traffic import Traffic
from local.plan.given.environments import Deployment
from local.plan.given.measured_units import MeasuredUnits, tables_of
from local.plan.given.price_list import PriceList
from local.plan.given.schedules import DAYS_A_MONTH, SECONDS_A_DAY
from local.plan.idle import idle
from local.plan.limits import Reached, reached

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
    "glue": "Glue",
    "athena": "Athena",
    "logs": "CloudWatch Logs",
    "metrics": "CloudWatch metrics",
    "alarms": "CloudWatch alarms",
    "dashboards": "CloudWatch dashboards",
    "xray": "X-Ray",
    "cognito": "Cognito",
}
# The warehouse's nights, and the keys of tables in use.
UNCHANGED = frozenset({"redshift.rpu_hours", "kms.requests"})
Dollars = Mapping[str, float]


@dataclass(frozen=True)
class Design:
    """One design. amounts: of a month, idle ones included. idle, running: dollars a month, by price name.

    leaves: what leaves tables when it is old, by its parameter.
    """

    amounts: Mapping[str, float]
    idle: Dollars
    running: Dollars
    load: Load
    leaves: Mapping[str, Leaves]
    reached: Callable[[], list[Reached]]

    @cached_property
    def limits(self) -> list[Reached]:
        """What ends first, and where: worked out when asked for, because it takes many days of traffic."""
        return self.reached()

    @property
    def idle_dollars(self) -> float:
        """Dollars of a month in which nobody does anything."""
        return sum(self.idle.values())

    @property
    def dollars(self) -> float:
        """Dollars of a month."""
        return self.idle_dollars + sum(self.running.values())


@dataclass(frozen=True)
class CostPlan:
    """What an environment costs with a traffic, in our design and in the naive one."""

    traffic: Traffic
    environment: str
    prices: PriceList
    ours: Design
    naive: Design

    @property
    def events(self) -> float:
        """Events of a month: posted ones and answers."""
        return (self.traffic.events + self.traffic.answers) * DAYS_A_MONTH

    def per_million_events(self, design: Design) -> float | None:
        """Return the running dollars of a million events; None without events.

        What costs the same however many events there are is not among them (UNCHANGED).
        """
        dollars = sum(each for name, each in design.running.items() if name not in UNCHANGED)
        return 1e6 * dollars / self.events if self.events else None


def make_plan(traffic: Traffic, deployed: Deployment, units: MeasuredUnits, prices: PriceList) -> CostPlan:
    """Work out a plan; raises BadPriceList for a price that is missing."""
    return CostPlan(
        traffic,
        deployed.name,
        prices,
        _design(traffic, deployed, units, prices, naive=False),
        _design(traffic, deployed, units, prices, naive=True),
    )


def _design(
    traffic: Traffic, deployed: Deployment, units: MeasuredUnits, prices: PriceList, *, naive: bool
) -> Design:
    standing = idle(deployed, units)
    more, load = running(traffic, deployed, units, naive=naive)
    amounts = {name: standing.get(name, 0.0) + more.get(name, 0.0) for name in {*standing, *more}}
    idle_dollars, all_dollars = prices.dollars(standing), prices.dollars(amounts)
    running_dollars = {name: each - idle_dollars.get(name, 0.0) for name, each in all_dollars.items()}
    return Design(
        amounts,
        idle_dollars,
        running_dollars,
        load,
        leaves(traffic, load.day, {} if naive else deployed.parameters),
        lambda: reached(traffic, deployed, units, naive=naive),
    )


def by_service(dollars: Dollars) -> dict[str, float]:
    """Return dollars by service, in the order of SERVICES."""
    found = dict.fromkeys(SERVICES.values(), 0.0)
    for name, each in dollars.items():
        found[SERVICES[name.partition(".")[0]]] += each
    return {service: each for service, each in found.items() if each}


def shards(design: Design, peak: float) -> dict[str, int]:
    """Return the partitions that each table needs at the peak, at 1,000 write units a second each."""
    from math import ceil

    from local.plan.given.price_list import fact

    per_second = {
        table: units * peak / SECONDS_A_DAY for table, units in tables_of(design.load.day, "write").items()
    }
    return {
        table: max(1, ceil(units / fact("dynamodb.partition_writes")))
        for table, units in sorted(per_second.items())
    }


def concurrency(design: Design, peak: float) -> dict[str, float]:
    """Return the executions of each function at the peak's same moment."""
    return {
        function: seconds * peak / SECONDS_A_DAY for function, seconds in sorted(design.load.seconds.items())
    }


def stored_gb(traffic: Traffic, units: MeasuredUnits, design: Design) -> dict[str, float]:
    """Return the GB of each table at the end of the retention."""
    sizes = table_bytes(traffic, units, design.load.day, design.leaves[HOT].days)
    return {table: size / 1e9 for table, size in sorted(sizes.items())}
