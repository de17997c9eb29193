"""An item of a table becomes a row of the lake: its entity's columns, in the partition of its own time."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.engagement.account_items import day_attributes, entry_item, profile_attributes
from adapters.platform.items import decode_item, encode_item
from rules.days import parse_moment, stamp
from rules.engagement.account_state import Day, Profile
from rules.engagement.events import Event, event_id, to_item
from rules.engagement.ledger import Draft, Entry, EntryKind, Head, append_drafts, opening_entry
from rules.engagement.streak import fold
from rules.lake.entities import (
    DAILY_ACTIVITY,
    ENTITIES,
    EVENTS,
    FIRST_STORED,
    LEDGER,
    STREAKS,
    Entity,
    Type,
    Unplaceable,
    event_version,
    row_of,
)
from rules.leads.lake_entities import LEAD_FEATURES
from tests.support.engagement_strategies import NOW, bases, covers, instants, near, zones
from tests.support.ledger_strategies import earn
from tests.support.row_shapes import has_its_shape


@given(instants, zones, st.sampled_from([FIRST_STORED, event_version(1, "7")]))
def test_an_event(occurred: datetime, zone: str, change: str) -> None:
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
    row = row_of(EVENTS, to_item(event), NOW, change)
    has_its_shape(EVENTS, row)
    assert (row["occurred_at"], row["idempotency_key"]) == (stamp(occurred), "k")
    assert row["version"] == change
    assert (row["dt"], row["hour"]) == (occurred.date().isoformat(), f"{occurred:%H}")


@given(bases)
def test_a_day_lies_in_its_own_date(day: Any) -> None:
    attributes = day_attributes(
        Day("u", day, "e", 2, 10, {"CHECK_IN": 1, "CHECK_IN 9/day": 9}, stamp(NOW), stamp(NOW))
    )
    row = row_of(DAILY_ACTIVITY, attributes, NOW)
    has_its_shape(DAILY_ACTIVITY, row)
    assert (row["dt"], row["hour"]) == (day.isoformat(), "00")
    assert json.loads(row["points_by_type"]) == {"CHECK_IN": 10}


@pytest.mark.parametrize(("passive", "events"), [(0, 2), (1, 2), (2, 0)])
def test_a_day_that_keeps_no_streak_has_no_events(passive: int, events: int) -> None:
    day = Day("u", NOW.date(), "e", 2, 10, {}, stamp(NOW), stamp(NOW), passive_events=passive)
    assert row_of(DAILY_ACTIVITY, day_attributes(day), NOW)["events_count"] == events


def test_ledger_entries_lie_where_they_were_written_and_the_opening_where_it_arrived() -> None:
    entries = append_drafts("u", None, [Draft(EntryKind.EARN, 5, "e", "CHECK_IN", "2026-01-01")], NOW)
    rows = [row_of(LEDGER, decode_item(entry_item(entry)), NOW + timedelta(hours=3)) for entry in entries]
    for row in rows:
        has_its_shape(LEDGER, row)
    assert [(row["kind"], row["hour"]) for row in rows] == [("OPEN", "15"), ("EARN", "12")]
    assert rows[0]["created_at"] == opening_entry("u").created_at


def test_what_changes_in_an_entry_later_is_no_part_of_its_row() -> None:
    entry = Entry("u", stamp(NOW), 1, 5, Draft(EntryKind.EARN, 5, "e", "CHECK_IN", "2026-01-01"), active=True)
    later = Entry("u", stamp(NOW), 1, 5, entry.draft, carried=(earn(1),), reversed_by="y")
    first, second = (row_of(LEDGER, decode_item(entry_item(each)), NOW) for each in (entry, later))
    assert first == second


@given(st.data(), bases, zones)
def test_a_profile(data: st.DataObject, base: Any, zone: str) -> None:
    cover = data.draw(covers(base))
    streak = fold(data.draw(st.lists(near(base), max_size=9)), cover)
    at = stamp(NOW)
    profile = Profile(
        "u", 3, Head(stamp(NOW), 4, 20), 30, streak, cover, chosen_zone=zone, tz_review=True, updated_at=at
    )
    attributes = decode_item(encode_item(profile_attributes(profile, 4)))
    row = row_of(STREAKS, attributes, NOW)
    has_its_shape(STREAKS, row)
    assert row.get("freezes", "") == ",".join(f"{day}{change:+d}" for day, change in cover.freezes)
    assert row.get("pauses", "") == ",".join(f"{first}/{last}" for first, last in cover.pauses)
    if streak:
        assert datetime.fromisoformat(row["lapses_at"]).timestamp() == attributes["lapses_at"]
        lowered = {**attributes, "current_streak": 0, "run_length": streak.length}
        assert row_of(STREAKS, lowered, NOW) == row


@pytest.mark.parametrize("entity", [each for each in ENTITIES.values() if each is not LEAD_FEATURES])
def test_a_time_that_is_none_is_told(entity: Entity) -> None:
    source = entity.field(entity.occurred).attribute or entity.occurred
    names = {source, "event_id"} if entity is EVENTS else {source}
    for value in ("", "soon", 5, {"S": "x"}):
        with pytest.raises(Unplaceable, match=entity.occurred):
            row_of(entity, dict.fromkeys(names, value), NOW)


def test_what_is_unknown_travels_along() -> None:
    found = {"user_id": "u", "activity_date": "2026-01-01", "mood": ["a", "b"], "more": {"z": 1, "a": [1]}}
    row = row_of(DAILY_ACTIVITY, found, NOW)
    assert (row["mood"], row["more"]) == ("a,b", '{"a":[1],"z":1}')


@pytest.mark.parametrize("entity", ENTITIES.values())
def test_a_declaration_is_sound(entity: Entity) -> None:
    names = [field.name for field in entity.fields]
    assert len(set(names)) == len(names)
    assert {"extra", "dt", "hour"}.isdisjoint(names)
    for name in (*entity.key, entity.occurred, *([entity.version] if entity.version else [])):
        assert entity.field(name).required, name
    assert all(field.doc for field in entity.fields)
    assert entity.left_out.isdisjoint(field.attribute or field.name for field in entity.fields)
    assert entity.field(entity.occurred).type in (Type.TIMESTAMP, Type.DATE)
    assert entity.spread is None or entity.field(entity.spread)
    with pytest.raises(KeyError):
        entity.field("no such field")
