"""The steps of a smoke test that send a shop's webhook, and remove the lead that it made."""

from collections.abc import Callable, Iterator
from typing import Any

from adapters.leads.lead_event_store import CLAIM_KEY
from adapters.platform.items import Item, decode_item
from local.operate.functions import invoke
from local.smoke.steps import SmokePart, SmokeStep, Subject, ask, must
from rules.leads.lead_events import SORT_KEY
from rules.leads.notice_kinds import lead_holder
from rules.leads.settings import currency_of
from rules.parts import Part

AMOUNT, ORDER = "11.77", "1"
INTEGRATION, EXTERNAL_ID = "ecommerce", f"order:{ORDER}"
KEYS = {
    "Event": ("lead_organization_id", SORT_KEY),
    "Memory": ("lead_organization_id", "memory_type#key"),
    "Feature": ("lead_organization_id",),
}


def order(subject: Subject) -> dict[str, Any]:
    """Return a shop's webhook of one order, in the currency that the stack takes."""
    return {
        "organization_id": subject.name,
        "source": INTEGRATION,
        "payload": {
            "id": ORDER,
            "created_at": f"{subject.days[-1].isoformat()}T12:00:00Z",
            "currency": currency_of(subject.stack.settings["Currency"], subject.name),
            "total_price": AMOUNT,
            "customer": {"email": f"{subject.name}@example.com"},
            "line_items": [{"product_id": "cd", "quantity": 1}],
        },
    }


def find_lead(subject: Subject) -> tuple[str | None, Any]:
    """Return the order's lead, None before it is stored; and the API's answer."""
    path = (
        f"/v1/leads?organization_id={subject.name}&integration={INTEGRATION}&external_event_id={EXTERNAL_ID}"
    )
    status, answer = subject.signed_in().call("GET", path)
    return (str(answer["lead_id"]) if status == 200 else None), (status, answer)


def webhook(subject: Subject) -> str:
    """A webhook that comes twice is one event of one lead."""
    for _ in range(2):
        receipt = ask(subject, "POST", "/v1/leads/events", order(subject), 202)
        must(receipt["accepted"] == 1, "one event in the webhook", receipt)
    lead = subject.until(lambda: find_lead(subject), "the webhook's event is stored", "lead")
    listed = ask(subject, "GET", f"/v1/leads/{lead}/events", None, 200)["events"]
    must(len(listed) == 1, "one event, though the webhook came twice", listed)
    return f"an order that came twice is one event of lead {lead}"


def features(subject: Subject) -> str:
    """The lead's features say what the order says."""
    wanted = {"monetary_total": float(AMOUNT), "frequency_purchases_30d": 1, "has_purchased": True}
    lead, seen = find_lead(subject)
    must(lead is not None, "the lead of the webhook", seen)

    def look() -> tuple[dict[str, Any] | None, Any]:
        all_features = ask(subject, "GET", f"/v1/leads/{lead}/features", None, 200)["features"]
        shown = {name: all_features.get(name) for name in wanted}
        return (shown if shown == wanted else None), shown

    subject.until(look, f"features show {wanted}", "lead")
    return f"monetary_total {AMOUNT}, 1 purchase"


def partitions(subject: Subject, items: Callable[[str, str], list[Item]]) -> Iterator[tuple[str, str]]:
    """Yield each partition that the steps may have written to, as SmokePart has it.

    The event's claim names the lead: that of an order in `leaf`, that of any other event in `target`.
    """
    claim = f"{subject.name}/{INTEGRATION}#{EXTERNAL_ID}"
    for stored in map(decode_item, items("IdempotencyKeys", claim)):
        if stored["idempotency_key"] == CLAIM_KEY:
            lead = str(stored["leaf"] if "leaf" in stored else stored["target"]).partition("#")[0]
            yield "Notifications", lead_holder(lead)
            yield from ((table, lead) for table in KEYS)
    yield "IdempotencyKeys", claim


def forget(subject: Subject) -> str:
    """Let PostgreSQL forget the test's leads; returns what went wrong, or ""."""
    name = subject.stack.outputs["LeadsFunctionName"]
    reply = invoke(subject.stack, name, {"streakline_forget": subject.name})
    left = reply.answer.get("left") if isinstance(reply.answer, dict) else None
    return "" if left == 0 and not reply.error else f"leads are left in PostgreSQL: {reply.answer}"


SMOKE = SmokePart(
    Part.LEADS,
    (
        SmokeStep("webhook", webhook, ("sign-in",), Part.LEADS),
        SmokeStep("features", features, ("webhook",), Part.LEADS),
    ),
    KEYS,
    partitions,
    forget,
)
