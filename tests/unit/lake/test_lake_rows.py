"""A table item becomes a row of the lake that has its entity's columns, in the partition of its own time."""

import json
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.engagement.account_items import day_attributes, entry_item, profile_attributes
from adapters.platform.items import item, plain
from analytics.curation.strict_reader import Refused, read_row
from analytics.lake.layout import Place
from rules.days import parse_moment, stamp
from rules.engagement.account_state import Day, Profile
from rules.engagement.events import Event, event_id, to_item
from rules.engagement.ledger import Draft, Entry, EntryKind, Head, append, opening
from rules.engagement.streaks import fold
from rules.lake.entities import (
    DAILY_ACTIVITY,
    ENTITIES,
    EVENTS,
    LEAD_EVENTS,
    LEAD_FEATURES,
    LEAD_MEMORY,
    LEDGER,
    LEFT_OUT,
    RENAMED,
    STREAKS,
    Entity,
    Type,
    Unplaceable,
    row_of,
)
from rules.lake.lead_entities import as_of_column, column_of
from rules.lake.lead_rows import scaled
from rules.leads import lead_events
from rules.leads.features import FEATURES, Input, shown
from rules.leads.lead_groups import groups_of
from rules.leads.series import contributions
from tests.support.engagement_strategies import NOW, bases, covers, instants, near, zones

PARTITION = {"dt", "hour"}
PYTHON = {
    Type.TEXT: "str",
    Type.INTEGER: "int",
    Type.BOOLEAN: "bool",
    Type.DATE: "str",
    Type.TIMESTAMP: "str",
}


def has_its_shape(entity: Entity, row: dict[str, Any]) -> None:
    """All required fields are there, nothing else, each readable as its type."""
    known = {field.name: field for field in entity.fields}
    assert set(row) <= set(known) | PARTITION
    assert {field.name for field in entity.fields if field.required} <= set(row)
    for name in set(row) - PARTITION:
        kind, value = known[name].type, row[name]
        assert type(value).__name__ == PYTHON[kind], name
        if kind is Type.DATE:
            assert datetime.fromisoformat(value).date().isoformat() == value
        if kind is Type.TIMESTAMP:
            assert stamp(datetime.fromisoformat(value.replace("Z", "+00:00"))) == value
    assert json.loads(json.dumps(row)) == row
    assert list(row) == [*(name for name in known if name in row), "dt", "hour"], "the schema's order"


@given(instants, zones, st.booleans())
def test_an_event(occurred: datetime, zone: str, corrected: bool) -> None:
    moment = parse_moment(stamp(occurred))
    event = Event(
        user_id="u",
        event_id=event_id("u", "k", moment),
        idempotency_key="k",
        event_type="CHECK_IN",
        occurred_at=stamp(occurred),
        activity_date=occurred.date(),
        zone=zone,
        points_awarded=5,
        source="api",
        created_at=stamp(NOW),
        properties='{"a": 1}',
    )
    row = row_of(EVENTS, to_item(event, index_key=True), NOW, corrected)
    has_its_shape(EVENTS, row)
    assert (row["occurred_at"], row["idempotency_key"]) == (stamp(occurred), "k")
    assert row["version"] == int(corrected)
    assert (row["dt"], row["hour"]) == (occurred.date().isoformat(), f"{occurred:%H}")


@given(bases)
def test_a_day_lies_in_its_own_date(day: Any) -> None:
    attributes = day_attributes(Day("u", day, "e", 2, 10, {"CHECK_IN": 10}, stamp(NOW), stamp(NOW)))
    row = row_of(DAILY_ACTIVITY, attributes, NOW, corrected=False)
    has_its_shape(DAILY_ACTIVITY, row)
    assert (row["dt"], row["hour"]) == (day.isoformat(), "00")
    assert json.loads(row["points_by_type"]) == {"CHECK_IN": 10}


def test_ledger_entries_lie_where_they_were_written_and_the_opening_where_it_arrived() -> None:
    entries = append("u", None, [Draft(EntryKind.EARN, 5, "e", "CHECK_IN", "2026-01-01")], NOW)
    rows = [row_of(LEDGER, plain(entry_item(entry)), NOW + timedelta(hours=3), False) for entry in entries]
    for row in rows:
        has_its_shape(LEDGER, row)
    assert [(row["kind"], row["hour"]) for row in rows] == [("OPEN", "15"), ("EARN", "12")]
    assert rows[0]["created_at"] == opening("u").created_at


def test_what_changes_in_an_entry_later_is_no_part_of_its_row() -> None:
    entry = Entry("u", stamp(NOW), 1, 5, Draft(EntryKind.EARN, 5, "e", "CHECK_IN", "2026-01-01"), active=True)
    later = Entry("u", stamp(NOW), 1, 5, entry.draft, folded=("x",), reversed_by="y")
    first, second = (row_of(LEDGER, plain(entry_item(each)), NOW, False) for each in (entry, later))
    assert first == second


@given(st.data(), bases, zones)
def test_a_profile(data: st.DataObject, base: Any, zone: str) -> None:
    cover = data.draw(covers(base))
    streak = fold(data.draw(st.lists(near(base), max_size=9)), cover)
    at = NOW.isoformat()
    profile = Profile(
        "u", 3, Head(stamp(NOW), 4, 20), 30, streak, cover, timezone=zone, tz_review=True, updated_at=at
    )
    attributes = plain(item(profile_attributes(profile, 4)))
    row = row_of(STREAKS, attributes, NOW, corrected=True)
    has_its_shape(STREAKS, row)
    assert row.get("freezes", "") == ",".join(attributes.get("freezes") or [])
    assert row.get("pauses", "") == ",".join(attributes.get("pauses") or [])
    if streak:
        assert datetime.fromisoformat(row["lapses_at"]).timestamp() == attributes["lapses_at"]
        lowered = {**attributes, "current_streak": 0, "run_length": streak.length}
        assert row_of(STREAKS, lowered, NOW, corrected=True) == row


def lead_event(**changes: Any) -> lead_events.LeadEvent:
    given: dict[str, Any] = {
        "lead_organization_id": "leaf",
        "root_id": "root",
        "organization_id": "o",
        "source": "o/shop",
    }
    given |= {"source_type": "order", "external_event_id": "1#2", "event_type": "order_placed"}
    given |= {"occurred_at": stamp(NOW), "received_at": stamp(NOW), "payload": {"amount_minor": 1177}}
    return lead_events.LeadEvent(**{**given, **changes})


def test_a_lead_s_event_leaves_its_sender_s_own_words_behind() -> None:
    event = lead_event(raw_payload='{"text": "call me"}', raw_payload_ref="s3://b/k", object_id="7")
    row = row_of(LEAD_EVENTS, plain(item(lead_events.to_item(event))), NOW, corrected=False)
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
    row = row_of(LEAD_EVENTS, plain(item(lead_events.to_item(event))), NOW, corrected=False)
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
    row = row_of(LEAD_MEMORY, plain(item(attributes)), NOW + timedelta(3), corrected=True)
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
        "features": {each.name: shown(each, values[each.name]) for each in FEATURES},
        "as_of": {each: stamp(NOW) for each in Input},
        "computed_at": stamp(NOW),
        "leaves": ["a", "b"],
        "active_on": "2026-01-01",
        "topology": 4,
        "inputs": {"purchases": "0;;"},
        "active_shard": "1",
    }
    row = row_of(LEAD_FEATURES, plain(item(attributes)), NOW + timedelta(days=1), corrected=True)
    has_its_shape(LEAD_FEATURES, row)
    assert {each.name: row.get(column_of(each)) for each in FEATURES} == values
    assert {row[as_of_column(each)] for each in Input} == {stamp(NOW)}
    assert (row["changed_at"], row["leaves"]) == (stamp(NOW + timedelta(days=1)), "a,b")


def test_an_absorbed_leaf_has_no_features_and_is_placed_all_the_same() -> None:
    found = {"lead_organization_id": "l", "version": 1, "topology": 4, "merged_into": "root"}
    row = row_of(LEAD_FEATURES, found, NOW, corrected=False)
    has_its_shape(LEAD_FEATURES, row)
    assert (row["merged_into"], row["dt"]) == ("root", f"{NOW:%Y-%m-%d}")


def test_what_is_no_whole_number_of_its_unit_is_refused_and_not_rounded() -> None:
    assert scaled({"N": "11.77"}, 2) == 1177
    assert scaled({"N": "12"}, 2) == scaled(12, 2) == 1200
    for value in ({"N": "11.775"}, {"N": "1E-3"}):
        attributes = {"lead_organization_id": "l", "version": 1, "features": {"monetary_total": value}}
        row = row_of(LEAD_FEATURES, attributes, NOW, corrected=False)
        place = Place("lead_features", row["dt"], row["hour"])
        with pytest.raises(Refused, match="monetary_total_minor: not an integer"):
            read_row(json.dumps(row).encode(), place)


def test_a_feature_that_nobody_declared_travels_along() -> None:
    attributes = {"lead_organization_id": "l", "version": 1, "features": {"mood": 3, "has_purchased": True}}
    row = row_of(LEAD_FEATURES, attributes, NOW, corrected=False)
    assert (row["has_purchased"], row["features"]) == (True, '{"mood":3}')


@pytest.mark.parametrize("entity", [each for each in ENTITIES.values() if each is not LEAD_FEATURES])
def test_a_time_that_is_none_is_told(entity: Entity) -> None:
    source = next(
        (old for old, new in RENAMED[entity.name].items() if new == entity.occurred), entity.occurred
    )
    names = {source, "event_id"} if entity is EVENTS else {source}
    for value in ("", "soon", 5, {"S": "x"}):
        with pytest.raises(Unplaceable, match=entity.occurred):
            row_of(entity, dict.fromkeys(names, value), NOW, corrected=False)


def test_what_is_unknown_travels_along() -> None:
    found = {"user_id": "u", "activity_date": "2026-01-01", "mood": ["a", "b"], "more": {"z": 1, "a": [1]}}
    row = row_of(DAILY_ACTIVITY, found, NOW, corrected=False)
    assert (row["mood"], row["more"]) == ("a,b", '{"a":[1],"z":1}')


@pytest.mark.parametrize("entity", ENTITIES.values())
def test_a_declaration_is_sound(entity: Entity) -> None:
    names = [field.name for field in entity.fields]
    assert len(set(names)) == len(names)
    assert {"extra", "dt", "hour"}.isdisjoint(names)
    for name in (*entity.key, entity.occurred, *entity.order, *([entity.version] if entity.version else [])):
        assert entity.field(name).required, name
    assert all(field.doc for field in entity.fields)
    assert set(RENAMED) == set(LEFT_OUT) == set(ENTITIES)
    assert entity.field(entity.occurred).type in (Type.TIMESTAMP, Type.DATE)
    assert set(entity.order[: len(entity.key)]) == set(entity.key)  # so that equal keys are neighbours
    with pytest.raises(KeyError):
        entity.field("no such field")
