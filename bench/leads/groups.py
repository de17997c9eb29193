"""What a person of many leads costs: the next lead that comes to him, his next event, a page of his events.

Each lead has two page views and an order, stored before it came to the person; the root has a thousand orders
of its own, so that nothing is small because the person is new. The next lead is one that
somebody else's merge brings: its announcement goes to both processors. Counted are items (those that reads
look at, and those that are written), requests, and units as DynamoDB counts them. Printed is the exponent: 0
if the step does not feel how many leads there are, 1 if it grows with them. What grows is not here: to build
a person anew, as an operator's undoing and a change of the declarations do.
"""

import math
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from adapters.leads.groups import EventPage, GroupEvents
from adapters.platform import aws
from adapters.platform.items import encode_item
from adapters.platform.tables import put_all
from bench.counting.desk import START, Desk, desk
from bench.figure import Figure
from processors.leads import features, memory
from rules.days import stamp
from rules.leads.lead_events import LEADS_MERGED, LeadEvent, announcement, to_item

SIZES = (10, 100, 1_000, 10_000)
PAGE = 10
EXPONENT_MAX = 0.1
# The root's own events: its state and its memory are as large as they get, however few leads there are.
OWN = 1_000
DAYS = 90
WRITES = {"PutItem", "UpdateItem", "BatchWriteItem", "TransactWriteItems"}
Costs = dict[str, float]


def run() -> Iterator[Figure]:
    """Yield the exponent of each cost over the number of leads."""
    by_size = {size: _measured(size) for size in SIZES}
    few, many = SIZES[0], SIZES[-1]
    for what in by_size[few]:
        growth = max(by_size[many][what], 1) / max(by_size[few][what], 1)
        exponent = math.log(growth) / math.log(many / few)
        detail = ", ".join(f"{size:,} leads {costs[what]:,.4g}" for size, costs in by_size.items())
        yield Figure(f"{what}, growth", exponent, "<=", EXPONENT_MAX, detail)


def _measured(size: int) -> Costs:
    with desk() as made:
        made.now = START
        leaves = [str(uuid.uuid5(uuid.NAMESPACE_OID, str(number))) for number in range(size + 1)]
        root, *absorbed, new = leaves
        own = (_event(10**7 + number, _at(number), root, root, "purchase_completed") for number in range(OWN))
        _store(made, list(own))
        _built(made, root)
        _store(made, [each for place, leaf in enumerate(leaves) for each in _events(place, leaf, root)])
        _merged(made, root, absorbed)
        costs = _named("the next lead", made, lambda: _apply(made, _change(2, root, [new])))
        late = _event(10**6, START, new, root, "purchase_completed")
        _store(made, [late])
        costs |= _named("the next event", made, lambda: _apply(made, late))
        costs |= _named("a page", made, lambda: _page(root, new, ""))
        return costs | _named("a page of a type", made, lambda: _page(root, new, "purchase_completed"))


def _built(made: Desk, root: str) -> None:
    """Build the root's state from its own events. Those of its leads would make it no larger."""
    made.meter.is_paused = True
    first = encode_item({"lead_organization_id": root, "topology": 1, "version": 1})
    put_all(aws.client("dynamodb"), "Feature", [first])
    features._parts().handle({"rebuild": {"leads": [root]}}, made.now)
    made.meter.is_paused = False


def _merged(made: Desk, root: str, absorbed: list[str]) -> None:
    """Put what merging all leads leaves behind: to have each of them announced takes moto hours."""
    made.meter.is_paused = True
    dynamodb = aws.client("dynamodb")
    rows = GroupEvents(dynamodb, "GroupEvents")
    rows.note((root, each) for place, leaf in enumerate(absorbed, 1) for each in _events(place, leaf, root))
    leaf = {"merged_into": root, "topology": 1, "regrouped": 1, "version": 1}
    put_all(dynamodb, "Feature", [encode_item({"lead_organization_id": each, **leaf}) for each in absorbed])
    dynamodb.update_item(
        TableName="Feature",
        Key=encode_item({"lead_organization_id": root}),
        UpdateExpression="SET regrouped = :count",
        ExpressionAttributeValues=encode_item({":count": len(absorbed)}),
    )
    made.meter.is_paused = False


def _apply(made: Desk, event: LeadEvent) -> None:
    """Hand an announcement to both processors."""
    for module in (features, memory):
        module._parts().handle(announcement(_shape(event)), made.now)


def _page(root: str, leaf: str, event_type: str) -> None:
    people = features._parts().events
    person = people.features.get(root)
    assert person is not None
    assert len(people.newest(person, leaf, EventPage(event_type, "0", "~", PAGE))) == PAGE


def _named(step: str, made: Desk, act: Callable[[], None]) -> Costs:
    """Return what a step costs: items, requests and units by kind."""
    read, written, events = list[int](), list[int](), aws.client("dynamodb").meta.events

    def look(parsed: dict[str, Any], **_: Any) -> None:
        found = parsed.get("Responses") or {}
        read.append(parsed.get("ScannedCount", 0) + ("Item" in parsed) + sum(map(len, found.values())))

    def note(params: dict[str, Any], model: Any, **_: Any) -> None:
        several = params.get("TransactItems") or [
            each for some in params.get("RequestItems", {}).values() for each in some
        ]
        if model.name in WRITES:
            written.append(len(several) or 1)

    events.register("after-call.dynamodb", look)
    events.register("before-parameter-build.dynamodb", note)
    made.meter.take()
    act()
    events.unregister("after-call.dynamodb", look)
    events.unregister("before-parameter-build.dynamodb", note)
    taken = made.meter.take()
    costs: Costs = {"items read": sum(read), "items written": sum(written)}
    for what, kind in (("requests", "calls"), ("read units", "read"), ("write units", "write")):
        costs[what] = sum(count for name, count in taken.items() if name.startswith(f"{kind}."))
    return {f"{step}: {what}": cost for what, cost in costs.items() if cost}


def _store(made: Desk, events: list[LeadEvent]) -> None:
    made.meter.is_paused = True
    put_all(aws.client("dynamodb"), "Event", [encode_item(_shape(each)) for each in events])
    made.meter.is_paused = False


def _shape(event: LeadEvent) -> dict[str, Any]:
    return {name: each for name, each in to_item(event).items() if each is not None}


def _events(place: int, leaf: str, root: str) -> list[LeadEvent]:
    return [
        _event(10 * place + number, _at(place) + timedelta(seconds=number), leaf, root, kind)
        for number, kind in enumerate(("page_viewed", "page_viewed", "purchase_completed"))
    ]


def _at(place: int) -> datetime:
    return START - timedelta(minutes=60 + 137 * place % (DAYS * 24 * 60))


def _event(number: int, at: Any, leaf: str, root: str, kind: str) -> LeadEvent:
    payload = {"order_id": str(number), "amount_minor": 1000, "currency": "USD"}
    if kind == "page_viewed":
        payload = {"category": f"c{number % 7}"}
    names = ("org", leaf, root, "org/shop", "ecommerce", f"event-{number}", kind)
    return LeadEvent(*names, stamp(at), stamp(at), payload)


def _change(number: int, root: str, moved: list[str]) -> LeadEvent:
    told = {"change": number, "groups": [{"root": root, "leaves": [root, *moved]}]}
    names = ("org", root, root, "org/identity", "identity", str(number), LEADS_MERGED)
    return LeadEvent(*names, stamp(START), stamp(START), told)
