"""What a lead spent, in each currency and in all, as GET /v1/leads/{lead_id}/features tells it."""

from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from adapters.leads.feature_store import FeatureStore
from adapters.leads.lead_event_store import LeadEventStore
from ingest.leads.lead_accept import read_envelope
from ingest.leads.lead_views import money_view, total_view
from ingest.leads.readers import amount_in
from rules.leads.feature_items import Change, FeatureItem
from rules.leads.features import Input
from rules.leads.series import build_state, encode_series
from tests.integration.test_lead_views import STAMP, get
from tests.support.engine import Engine
from tests.support.lead_event_strategies import START, lead_event
from tests.support.webhooks import NOW


def test_money_is_shown_by_currency() -> None:
    events = [
        lead_event(1, "purchase_completed", START, amount_minor=1177, currency="USD"),
        lead_event(2, "purchase_completed", START, foreign_minor=900, currency="EUR"),
        lead_event(3, "order_refunded", START, foreign_minor=250, currency="EUR"),
        lead_event(4, "purchase_completed", START, foreign_minor=5000, currency="JPY"),
    ]
    text = encode_series(build_state(events, START)[Input.PURCHASES])
    assert money_view(text, "USD") == {
        "EUR": {"orders": 1, "spent": Decimal("6.50")},
        "JPY": {"orders": 1, "spent": Decimal(5000)},
        "USD": {"orders": 1, "spent": Decimal("11.77")},
    }
    assert money_view(None, "USD") == {}
    rates = {"EUR": Decimal("1.1"), "JPY": Decimal("0.007")}
    total = total_view(money_view(text, "USD"), "USD", rates)
    assert total == {"currency": "USD", "spent": Decimal("53.92")}
    assert total_view(money_view(text, "USD"), "USD", {"EUR": Decimal("1.1")}) is None


def test_each_organization_s_money_is_in_its_own_currency(
    served: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CURRENCY", "USD org=EUR")
    monkeypatch.setenv("EXCHANGE_RATES", "EUR=1.08 GBP=1.35")
    told = []
    for organization in ("org", "other"):
        sent: dict[str, Any] = {"organization_id": organization, "source": "generic", "payload": {}}
        decoding = read_envelope(sent, "USD org=EUR", NOW).context
        events = [
            replace(
                lead_event(
                    number, "purchase_completed", START, str(uuid4()), **amount_in(currency, 1250, decoding)
                ),
                organization_id=organization,
            )
            for number, currency in enumerate(("EUR", "GBP"))
        ]
        (one, _), lead = events, events[0].lead_organization_id
        LeadEventStore(served.client("dynamodb"), "Event", "IdempotencyKeys").put_new(one, "a")
        series: dict[str, Any] = {Input.PURCHASES: encode_series(build_state(events, START)[Input.PURCHASES])}
        change = Change({}, series, {Input.PURCHASES: STAMP}, STAMP, None)
        FeatureStore(served.client("dynamodb"), "Feature", 2).write(FeatureItem(lead), change)
        found = get(f"{lead}/features")[1]
        assert found["money"] == {name: {"orders": 1, "spent": Decimal("12.50")} for name in ("EUR", "GBP")}
        told.append(found["money_total"])
    assert told == [
        {"currency": "EUR", "spent": Decimal("28.12")},  # 12.50 and 12.50 * 1.35 / 1.08
        {"currency": "USD", "spent": Decimal("30.38")},
    ]
