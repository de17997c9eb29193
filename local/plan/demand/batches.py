"""How a stream's records come together in invocations, and what the publisher makes of a table's rows."""

from dataclasses import dataclass

from local.plan.given.environments import Deployment, EventSource
from local.plan.given.measured_units import MeasuredUnits, Spent, add, tables_of
from local.plan.given.price_list import fact
from local.plan.given.schedules import SECONDS_A_DAY

PUBLISHER = "PublisherFunction"
NAIVE = "NaivePublisher"


@dataclass(frozen=True, slots=True)
class Batches:
    """Invocations a day, and records in each."""

    invocations: float
    fill: float


def batches(records: float, source: EventSource, together: float = 1.0) -> Batches:
    """Return how so many records a day come in batches.

    together: how many of them are written at once. A batch waits for the window of its mapping, on each shard
    of the stream by itself, and holds what came meanwhile.
    """
    if not records:
        return Batches(0.0, 0.0)
    shards = fact("dynamodb.stream_shards")
    waited = records / SECONDS_A_DAY / shards * source.window_seconds
    fill = min(float(source.batch_size), max(1.0, together, waited))
    return Batches(records / fill, fill)


def waiting(day: Spent, function: str) -> dict[str, float]:
    """Return the records a day that wait for a function, by table."""
    found: dict[str, float] = {}
    for place, count in tables_of(day, "to").items():
        consumer, _, table = place.partition(".")
        if consumer == function and count > 0:
            found[table] = count
    return found


def published(day: Spent, deployed: Deployment, units: MeasuredUnits, post_size: float) -> Spent:
    """Return what the publisher costs in a day: each table's rows in batches as full as they come."""
    found: Spent = {}
    for table, rows in waiting(day, PUBLISHER).items():
        source = next(s for s in deployed.mappings if (s.function, s.source) == (PUBLISHER, table))
        at_once = post_size if table in ("BPEvents", "RewardsLedger") else 1.0
        some = batches(rows, source, at_once)
        add(found, units.at(f"publish.{table}", some.fill), some.invocations)
    return found


def naively_published(day: Spent, units: MeasuredUnits) -> Spent:
    """Return what a publisher costs that puts each change by itself: a record and a call each."""
    found: Spent = {}
    for table, rows in waiting(day, NAIVE).items():
        add(found, {NAIVE: units.paths[f"publish.{table}.1"][PUBLISHER]}, rows)
    return found
