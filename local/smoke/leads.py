"""A shop's webhook finds or makes a lead, once, and the lead's features follow."""

from typing import Any

from adapters.settings.choices import currency_of
from local.smoke.asking import ask, must
from local.smoke.steps import SmokeStep
from local.smoke.subject import Subject

AMOUNT, ORDER = "11.77", "1"
INTEGRATION, EXTERNAL_ID = "ecommerce", f"order:{ORDER}"


def source(subject: Subject) -> str:
    """Return the source of the order's event, as its claim names it."""
    return f"{subject.name}/{INTEGRATION}"


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
    lead = subject.until(lambda: find_lead(subject), "the webhook's event is stored", subject.waits.lead)
    listed = ask(subject, "GET", f"/v1/leads/{lead}/events", None, 200)["events"]
    must(len(listed) == 1, "one event, though the webhook came twice", listed)
    return f"an order that came twice is one event of lead {lead}"


def features(subject: Subject) -> str:
    """The lead's features say what the order says."""
    wanted = {"monetary_total": float(AMOUNT), "frequency_purchases_30d": 1, "has_purchased": True}
    lead, seen = find_lead(subject)
    must(lead is not None, "the lead of the webhook", seen)

    def look() -> tuple[dict[str, Any] | None, Any]:
        told = ask(subject, "GET", f"/v1/leads/{lead}/features", None, 200)["features"]
        found = {name: told.get(name) for name in wanted}
        return (found if found == wanted else None), found

    subject.until(look, f"features show {wanted}", subject.waits.lead)
    return f"monetary_total {AMOUNT}, 1 purchase"


STEPS = (SmokeStep("webhook", webhook, ("sign-in",)), SmokeStep("features", features, ("webhook",)))
