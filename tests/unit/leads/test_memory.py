"""What memory keeps of each event, how sure it is of it, and when it forgets."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from adapters.leads.memory_store import entry_attributes, memory_from, withdrawn_attributes
from adapters.platform.items import decode_item, encode_item
from rules.days import DAY, stamp
from rules.leads.lead_events import EVENT_TYPES, IDENTITY_TYPES, PURCHASE_TYPES, MalformedLeadEvent
from rules.leads.memory import (
    DERIVATIONS,
    EVIDENCE_MAX,
    PREFERENCE,
    Evidence,
    confidence_at,
    derive_entries,
    join_entries,
    memory_entry,
    remembered_entries,
)
from tests.support.lead_event_strategies import START, lead_event


def preference(days_ago: int, value: str, number: int, weight: int = 600) -> Evidence:
    return Evidence(stamp(START - days_ago * DAY), str(number), value, weight, "s", "x")


def test_older_knowledge_never_overwrites_newer() -> None:
    new, old = (
        memory_entry(PREFERENCE, "size", [preference(1, "M", 1)]),
        memory_entry(PREFERENCE, "size", [preference(9, "L", 2)]),
    )
    for joined in (join_entries(new, old), join_entries(old, new)):
        assert (joined.value, joined.source_event_ids) == ("M", ("1", "2"))
        assert (joined.created_at, joined.updated_at) == (old.created_at, new.updated_at)


def test_confidence_grows_is_lowered_by_contradiction_and_decays() -> None:
    once = memory_entry(PREFERENCE, "size", [preference(0, "M", 1)])
    twice = join_entries(once, memory_entry(PREFERENCE, "size", [preference(0, "M", 2)]))
    against = join_entries(twice, memory_entry(PREFERENCE, "size", [preference(180, "L", 3)]))
    assert once.confidence == Decimal("0.600")
    assert twice.confidence == Decimal("0.840")  # 1 - 0.4 * 0.4
    assert against.confidence == Decimal("0.588")  # 0.84 * (1 - 0.6 / 2): half a year is one half-life
    assert confidence_at(twice, START) == twice.confidence
    assert confidence_at(twice, START + 180 * DAY) == Decimal("0.420")
    assert confidence_at(twice, START - DAY) == twice.confidence


def test_the_evidence_kept_is_bounded_and_what_expired_is_gone() -> None:
    many = memory_entry(PREFERENCE, "size", [preference(days, "M", days) for days in range(20)])
    assert [int(each) for each in many.source_event_ids] == list(range(EVIDENCE_MAX))
    assert many.created_at == stamp(START - 19 * DAY)
    apart = memory_entry(PREFERENCE, "size", [preference(0, "M", 1), preference(731, "L", 2)])
    assert apart.source_event_ids == ("1",)
    assert apart.expires_at == int((START + 730 * DAY).timestamp())


def test_what_each_event_type_gives() -> None:
    def given_by(event_type: str, **payload: Any) -> dict[str, str]:
        return {each.name: each.value for each in derive_entries(lead_event(1, event_type, START, **payload))}

    products = [
        {"product_id": "cd", "quantity": 2},
        {"product_id": "lp"},
        {"product_id": "cd", "quantity": 1},
    ]
    assert given_by("purchase_completed", amount_minor=1, products=products) == {
        "purchase#product:cd": "3 on 2026-01-10",
        "purchase#product:lp": "1 on 2026-01-10",
    }
    said = {"sentiment_milli": -250, "objections": ["price"], "preferences": {"size": "M", "news": True}}
    assert given_by("message_received", **said) == {
        "sentiment#overall": "-0.250",
        "objection#price": "raised on 2026-01-10",
        "preference#size": "M",
        "preference#news": "true",
    }
    assert given_by("page_viewed", category="jazz") == {"preference#category": "jazz"}
    assert given_by("campaign_opened", campaign_id="c") == {"campaign_contact#c": "opened 2026-01-10"}
    assert given_by("order_refunded", amount_minor=1) == {}
    without = IDENTITY_TYPES | {"identity_replaced"} | PURCHASE_TYPES - {"purchase_completed"}
    assert EVENT_TYPES - set(DERIVATIONS) == without


@pytest.mark.parametrize(
    ("event_type", "payload", "field"),
    [
        ("purchase_completed", {"products": "cd"}, "products"),
        ("purchase_completed", {"products": [{"quantity": 1}]}, "products"),
        ("purchase_completed", {"products": [{"product_id": "a", "quantity": "2"}]}, "products"),
        ("message_received", {"sentiment_milli": 1001}, "sentiment_milli"),
        ("message_received", {"sentiment_milli": True}, "sentiment_milli"),
        ("form_submitted", {"preferences": ["M"]}, "preferences"),
        ("objection_raised", {"objections": "price"}, "objections"),
        ("campaign_sent", {"campaign_id": 7}, "campaign_id"),
    ],
)
def test_bad_payloads_are_named_and_left_out_of_a_rebuild(
    event_type: str, payload: dict[str, Any], field: str
) -> None:
    event = lead_event(1, event_type, START, **payload)
    with pytest.raises(MalformedLeadEvent, match=field):
        derive_entries(event)
    assert remembered_entries([event]) == {}


def test_items_are_small_in_the_common_case() -> None:
    events = [
        lead_event(
            n,
            "purchase_completed",
            START - timedelta(days=n),
            amount_minor=1,
            products=[{"product_id": "cd-17"}],
        )
        for n in range(12)
    ]
    (found,) = remembered_entries(events).values()
    leaf = "00000000-0000-5000-8000-000000000000"
    moved = encode_item({**entry_attributes("leaf", found), "lead_organization_id": leaf, "version": 10**15})
    assert len(str(moved)) < 1515  # with the wire format's own signs
    assert sum(len(name) + len(str(each)) for name, each in decode_item(moved).items()) < 1024


def test_a_long_key_stays_unique_and_a_withdrawn_entry_is_past_with_its_value() -> None:
    long = [
        derive_entries(lead_event(1, "campaign_sent", START, campaign_id="c" * 400 + end))[0] for end in "ab"
    ]
    assert long[0].name != long[1].name
    assert max(len(each.name) for each in long) < 200
    read = decode_item(
        encode_item(
            {
                **entry_attributes("x", memory_entry(PREFERENCE, "size", [preference(0, "M", 1)])),
                "lead_organization_id": "x",
                "version": 1,
            }
        )
    )
    gone = withdrawn_attributes(read, START + DAY)
    assert (gone["value"], gone["evidence"]) == ("M", [])
    assert gone["expires_at"] <= int((START + DAY).timestamp())
    assert memory_from(decode_item(encode_item(gone)))[1].entry is None
