"""What a person of many leads costs: the next lead that comes to him, his next event, a page of his events.

Each lead has three page views and an order, stored before it came to the person. Counted are requests, units
as DynamoDB counts them, and items that a page looks at. Printed is the exponent: 0 if the step does not feel
how many leads there are, 1 if it grows with them. A figure without a budget grows, for a reason: the root's
Feature item lists its leads (39 bytes each), and a page asks for each of them.
"""

import math
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from adapters.leads.lead_event_store import LeadEventStore
from adapters.platform import aws
from adapters.platform.batches import put_all
from adapters.platform.items import item
from bench.counting.desk import START, Desk, desk
from bench.figure import Figure
from processors.leads import features
from rules.days import stamp
from rules.leads.lead_events import LEADS_MERGED, LeadEvent, announcement, to_item

SIZES = (20, 60, 240)  # moto looks through all items of a table for each read
PAGE = 10
# Which figures must not grow, and by which exponent at most.
BUDGETS = {
    "the next lead: requests": 0.1,
    "the next event: requests": 0.1,
    "a page: items": 0.1,
}
Costs = dict[str, float]


def run() -> Iterator[Figure]:
    """Yield the exponent of each cost over the number of leads."""
    by_size = {size: _measured(size) for size in SIZES}
    few, many = SIZES[0], SIZES[-1]
    for what in by_size[few]:
        growth = max(by_size[many][what], 1) / max(by_size[few][what], 1)
        exponent = math.log(growth) / math.log(many / few)
        detail = ", ".join(f"{size} leads {costs[what]:,.4g}" for size, costs in by_size.items())
        yield Figure(f"{what}, growth", exponent, "<=", BUDGETS.get(what), detail)


def _measured(size: int) -> Costs:
    with desk() as made:
        made.now = START
        leaves = [str(uuid.uuid5(uuid.NAMESPACE_OID, str(number))) for number in range(size + 1)]
        _store(made, [each for place, leaf in enumerate(leaves) for each in _events(place, leaf, leaves[0])])
        made.meter.is_paused = True
        _apply(made, _change(1, leaves[:-1]))
        made.meter.is_paused = False
        costs = _named("the next lead", _apply(made, _change(2, leaves)))
        late = _event(10**6, START, leaves[0], leaves[0], "order_placed")
        _store(made, [late])
        costs |= _named("the next event", _apply(made, late))
        return costs | _named("a page", _page(made, leaves))


def _apply(made: Desk, event: LeadEvent) -> Costs:
    """Hand an announcement to the features processor; returns what that cost."""
    processor, _ = features._parts()
    made.meter.take()
    processor.handle(announcement(_shape(event)), made.now)
    return _costs(made)


def _page(made: Desk, leaves: list[str]) -> Costs:
    client, looked_at = aws.client("dynamodb"), list[int]()
    client.meta.events.register(
        "after-call.dynamodb", lambda parsed, **_: looked_at.append(parsed.get("ScannedCount", 0))
    )
    made.meter.take()
    rows = LeadEventStore(client, "Event").newest(leaves, "0", "~", PAGE)
    assert len(rows) == PAGE
    return _costs(made) | {"items": sum(looked_at)}


def _costs(made: Desk) -> Costs:
    taken = made.meter.take()
    made.meter.take_changes()
    units = {
        kind: sum(count for name, count in taken.items() if name.startswith(f"{kind}."))
        for kind in ("calls", "read", "write")
    }
    return {"requests": units["calls"], "read units": units["read"], "write units": units["write"]}


def _named(step: str, costs: Costs) -> Costs:
    return {f"{step}: {what}": cost for what, cost in costs.items() if cost}


def _store(made: Desk, events: list[LeadEvent]) -> None:
    made.meter.is_paused = True
    put_all(aws.client("dynamodb"), "Event", [item(_shape(each)) for each in events])
    made.meter.is_paused = False


def _shape(event: LeadEvent) -> dict[str, Any]:
    return {name: each for name, each in to_item(event).items() if each is not None}


def _events(place: int, leaf: str, root: str) -> list[LeadEvent]:
    at = START - timedelta(minutes=7 * place + 60)
    kinds = ("page_viewed", "page_viewed", "page_viewed", "order_placed")
    return [
        _event(10 * place + number, at + timedelta(seconds=number), leaf, root, kind)
        for number, kind in enumerate(kinds)
    ]


def _event(number: int, at: Any, leaf: str, root: str, kind: str) -> LeadEvent:
    payload = {"order_id": str(number), "amount_minor": 1000, "currency": "USD"}
    if kind == "page_viewed":
        payload = {"category": f"c{number % 7}"}
    names = ("org", leaf, root, "org/shop", "ecommerce", f"event-{number}", kind)
    return LeadEvent(*names, stamp(at), stamp(at), payload)


def _change(number: int, leaves: list[str]) -> LeadEvent:
    told = {"change": number, "groups": [{"root": leaves[0], "leaves": leaves}]}
    names = ("org", leaves[0], leaves[0], "org/identity", "identity", str(number), LEADS_MERGED)
    return LeadEvent(*names, stamp(START), stamp(START), told)
