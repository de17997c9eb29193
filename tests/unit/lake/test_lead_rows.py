"""Items about leads (events, memory, features) become rows of the lake."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.items import decode_item, encode_item
from rules.days import stamp
from rules.lake.entities import row_of
from rules.lake.schema import Type
from rules.lake.valid_row import RowRefused, read_row
from rules.leads import lead_events
from rules.leads.features import FEATURES, Input, shown_value
from rules.leads.lake_entities import (
    LEAD_EVENTS,
    LEAD_FEATURES,
    LEAD_MEMORY,
    as_of_column,
    column_of,
    scaled_integer,
)
from rules.leads.lead_events import groups_of
from rules.leads.series import contributions
from tests.support.engagement_strategies import NOW
from tests.support.row_shapes import has_its_shape


def lead_event(**changes: Any) -> lead_events.LeadEvent:
    given: dict[str, Any] = {
        "lead_organization_id": "leaf",
        "root_id": "root",
        "organization_id": "o",
        "source": "o/shop",
    }
    given |= {"source_type": "order", "external_event_id": "1#2", "event_type": "purchase_completed"}
    given |= {"occurred_at": stamp(NOW), "received_at": stamp(NOW), "payload": {"amount_minor": 1177}}
    return lead_events.LeadEvent(**{**given, **changes})


def test_a_lead_s_event_leaves_its_sender_s_own_words_behind() -> None:
    event = lead_event(raw_payload='{"text": "call me"}', raw_payload_ref="s3://b/k", object_id="7")
    row = row_of(LEAD_EVENTS, decode_item(encode_item(lead_events.to_item(event))), NOW)
    has_its_shape(LEAD_EVENTS, row)
    assert "call me" not in json.dumps(row)
    assert (row["event_id"], row["external_event_id"], row["object_id"]) == (event.id, "1#2", "7")
    assert (row["payload"], row["raw_payload_ref"]) == ('{"amount_minor":1177}', "s3://b/k")
    assert (row["dt"], row["hour"]) == (f"{NOW:%Y-%m-%d}", f"{NOW:%H}")


@given(st.sampled_from(sorted(lead_events.EVENT_TYPES)), st.dictionaries(
    st.sampled_from(["amount_minor", "sentiment_milli", "campaign_id", "order_id", "currency"]),
    st.sampled_from([0, 5, -5, 10**15 + 1, 1.5, "5", "", None, True, [], "c"]),
))  # fmt: skip
def test_a_lead_s_event_is_readable_exactly_where_the_live_path_reads_it(
    kind: str, payload: dict[str, Any]
) -> None:
    event = lead_event(event_type=kind, payload=payload)
    row = row_of(LEAD_EVENTS, decode_item(encode_item(lead_events.to_item(event))), NOW)
    has_its_shape(LEAD_EVENTS, row)
    try:
        given_ = contributions(event)
        if kind in lead_events.IDENTITY_TYPES:
            groups_of(event)
    except lead_events.MalformedLeadEvent as error:
        assert row["unreadable"] == str(error)
        assert "amount_minor" not in row
    else:
        assert "unreadable" not in row
        bought, mood = given_.get(Input.PURCHASES), given_.get(Input.SENTIMENT)
        assert row.get("amount_minor") == (abs(bought.amount) if bought else None)
        assert row.get("sentiment_milli") == (mood.amount if mood else None)
        assert row.get("campaign_id") == (payload["campaign_id"] if "campaign" in kind else None)


VALUE = {"b": [Decimal("1.50"), True, {"x": "größe"}], "a": 3}


@pytest.mark.parametrize(
    ("value", "text"),
    [("x", '"x"'), (["a,b"], '["a,b"]'), (Decimal("-0.5"), "-0.5"), (VALUE, '{"a":3,"b":[1.50,true,{"x":"größe"}]}')],
)  # fmt: skip
def test_a_memory(value: Any, text: str) -> None:
    attributes = {"lead_organization_id": "l", "memory_type#key": "purchase#product:9#a", "value": value}
    attributes |= {"confidence": Decimal("0.850"), "source": "o/shop", "source_event_ids": ["a", "b"]}
    attributes |= {"created_at": stamp(NOW), "updated_at": stamp(NOW), "version": 2, "evidence": [1]}
    attributes |= {"expires_at": int(NOW.timestamp())}
    row = row_of(LEAD_MEMORY, decode_item(encode_item(attributes)), NOW + timedelta(3))
    has_its_shape(LEAD_MEMORY, row)
    assert (row["memory_type"], row["memory_key"]) == ("purchase", "product:9#a")
    assert json.loads(row["value"]) == json.loads(text)
    assert (row["confidence_milli"], row["source_event_ids"]) == (850, "a,b")
    assert (row["expires_at"], row["dt"]) == (stamp(NOW), f"{NOW:%Y-%m-%d}")


@given(st.data())
def test_features(data: st.DataObject) -> None:
    """Whatever is shown of a value, its column has it in whole units again."""
    numbers = st.none() | st.integers(-(2**53), 2**53)
    values = {each.name: data.draw(st.booleans() if each.unit == "flag" else numbers) for each in FEATURES}
    attributes = {
        "lead_organization_id": "l",
        "version": 7,
        "features": {each.name: shown_value(each, values[each.name]) for each in FEATURES},
        "as_of": {each: stamp(NOW) for each in Input},
        "computed_at": stamp(NOW),
        "leaves": ["a", "b"],
        "active_on": "2026-01-01",
        "topology": 4,
        "inputs": {"purchases": "0;;"},
        "active_shard": "1",
    }
    row = row_of(LEAD_FEATURES, decode_item(encode_item(attributes)), NOW + timedelta(days=1))
    has_its_shape(LEAD_FEATURES, row)
    assert {each.name: row.get(column_of(each)) for each in FEATURES} == values
    assert {row[as_of_column(each)] for each in Input} == {stamp(NOW)}
    assert (row["changed_at"], row["leaves"]) == (stamp(NOW + timedelta(days=1)), "a,b")


def test_a_flag_is_true_or_false_in_the_lake_and_all_else_a_whole_number() -> None:
    types = {each.name: each.type for each in LEAD_FEATURES.fields}
    assert {each.name for each in FEATURES if types[column_of(each)] is Type.BOOLEAN} == {"has_purchased"}
    assert {types[column_of(each)] for each in FEATURES} == {Type.BOOLEAN, Type.INTEGER}


def test_an_absorbed_leaf_has_no_features_and_is_placed_all_the_same() -> None:
    found = {"lead_organization_id": "l", "version": 1, "topology": 4, "merged_into": "root"}
    row = row_of(LEAD_FEATURES, found, NOW)
    has_its_shape(LEAD_FEATURES, row)
    assert (row["merged_into"], row["dt"]) == ("root", f"{NOW:%Y-%m-%d}")


def test_what_is_no_whole_number_of_its_unit_is_refused_and_not_rounded() -> None:
    assert scaled_integer({"N": "11.77"}, 2) == 1177
    assert scaled_integer({"N": "12"}, 2) == scaled_integer(12, 2) == 1200
    for value in ({"N": "11.775"}, {"N": "1E-3"}):
        attributes = {"lead_organization_id": "l", "version": 1, "features": {"monetary_total": value}}
        row = row_of(LEAD_FEATURES, attributes, NOW)
        with pytest.raises(RowRefused, match="monetary_total_minor: not an integer"):
            read_row(json.dumps(row).encode(), LEAD_FEATURES, row["dt"], row["hour"])


def test_a_feature_that_nobody_declared_travels_along() -> None:
    attributes = {"lead_organization_id": "l", "version": 1, "features": {"mood": 3, "has_purchased": True}}
    row = row_of(LEAD_FEATURES, attributes, NOW)
    assert (row["has_purchased"], row["features"]) == (True, '{"mood":3}')
