"""What tests of memory and features draw from: events of leads, clustered so that windows and ties meet."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from rules.days import stamp
from rules.leads.lead_events import (
    ACTIVITY_TYPES,
    CAMPAIGN_TYPES,
    ORDER_CANCELLED,
    PURCHASE_TYPES,
    SENTIMENT_TYPES,
    LeadEvent,
)

START = datetime(2026, 1, 10, 12, tzinfo=UTC)
# No cancellation stands alone: rules.leads.orders tells one only of an order that it told before.
TYPES = sorted((PURCHASE_TYPES | SENTIMENT_TYPES | CAMPAIGN_TYPES | ACTIVITY_TYPES) - {ORDER_CANCELLED})
PAYLOADS: dict[str, tuple[dict[str, Any], ...]] = {
    "purchase_completed": (
        {"amount_minor": 1177, "products": [{"product_id": "cd", "quantity": 2}]},
        {"amount_minor": 5, "products": [{"product_id": "cd"}, {"product_id": "lp", "quantity": 3}]},
        {"amount_minor": 0},
        {"foreign_minor": 900, "currency": "EUR"},
    ),
    "order_charged": ({"amount_minor": 30},),
    "order_refunded": ({"amount_minor": 1177}, {"amount_minor": 7}, {"foreign_minor": 3, "currency": "BRL"}),
    "message_received": ({}, {"sentiment_milli": -250}, {"sentiment_milli": 900, "objections": ["price"]}),
    "form_submitted": ({"preferences": {"size": "M"}}, {"preferences": {"size": "L"}, "sentiment_milli": 1}),
    "page_viewed": ({"category": "jazz"}, {"category": "rock"}, {}),
    "preference_stated": ({"preferences": {"size": "S", "category": "rock"}},),
    "objection_raised": ({"objections": ["price", "time"]},),
    **dict.fromkeys(CAMPAIGN_TYPES, ({"campaign_id": "spring"}, {"campaign_id": "summer"})),
}


def lead_event(
    number: int,
    event_type: str = "purchase_completed",
    at: datetime = START,
    leaf: str = "leaf",
    **payload: Any,
) -> LeadEvent:
    """An event; the number is its identity. Without a payload, its type's first."""
    return LeadEvent(
        organization_id="org",
        lead_organization_id=leaf,
        root_id=leaf,
        source="org/shop",
        source_type="generic",
        external_event_id=f"{leaf}-{number}",
        event_type=event_type,
        occurred_at=stamp(at),
        received_at=stamp(at),
        payload=payload or PAYLOADS[event_type][0],
    )


@st.composite
def histories(
    draw: st.DrawFn, size_max: int = 24, types: Sequence[str] = TYPES, leaves: Sequence[str] = ("leaf",)
) -> list[LeadEvent]:
    """Events of some leaves, in no order."""
    made = []
    for number in range(draw(st.integers(1, size_max))):
        event_type = draw(st.sampled_from(types))
        days = draw(st.sampled_from((0, 1, 2, 3, 4, 28, 29, 30, 31, 88, 89, 90, 91, 363, 364, 365, 366, 900)))
        at = START - timedelta(days=days, microseconds=draw(st.integers(0, 2)))
        payload = draw(st.sampled_from(PAYLOADS[event_type]))
        made.append(lead_event(number, event_type, at, draw(st.sampled_from(leaves))))
        object.__setattr__(made[-1], "payload", payload)
    return made


@st.composite
def with_cancellations(draw: st.DrawFn, events: Sequence[LeadEvent]) -> list[LeadEvent]:
    """The same events, and cancellations of some of the orders among them."""
    orders = [each for each in events if each.event_type == "purchase_completed"]
    chosen = draw(st.lists(st.sampled_from(orders), unique_by=lambda each: each.id)) if orders else []
    more = [
        replace(each, event_type=ORDER_CANCELLED, external_event_id=f"{each.external_event_id}-cancelled")
        for each in chosen
    ]
    return [*events, *more]


@st.composite
def deliveries(draw: st.DrawFn, events: Sequence[LeadEvent]) -> list[LeadEvent]:
    """Each event at least once, some of them twice, in any order."""
    again = draw(st.lists(st.sampled_from(events), max_size=5))
    return draw(st.permutations([*events, *again]))
