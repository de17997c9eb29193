"""What the lake keeps of phones for restores, and that they are gone."""

import json
from datetime import UTC, datetime, time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.items import encode_item
from adapters.questions.phone_table import Phone
from adapters.questions.subscription_store import items_of
from analytics.questions.gone_phones import _finder, ends_phone
from rules.days import stamp
from rules.lake.entities import event_version
from rules.lake.table_items import REMOVED, item_of, item_text, key_text, removed_item, table_item
from rules.questions.notifications import INTERVAL_MINUTES_MAX, NEVER, QuietHours, Subscription
from rules.questions.phone_items import CHANGED, PHONE_ATTRIBUTES, PHONES

NOW = datetime(2026, 3, 2, 12, 0, 0, 700_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("store", "attributes", "user"),
    [
        (PHONES, {"subscription_id": "s", "owner": "u", CHANGED: True}, "u"),
        (PHONES, {"subscription_id": "s", "owner": "u", "last_notified_at": "2026"}, None),
        (PHONES, {"subscription_id": "s#tag=it", "of": "s", "active": "00000#=it"}, None),
        (PHONES, {"subscription_id": "s#sent#question=q", "outcome": "sent"}, None),
        (PHONES, {"subscription_id": "token#0f", "of": "s"}, None),
    ],
)
def test_what_is_kept_and_whose_it_is(store: str, attributes: dict[str, Any], user: str | None) -> None:
    """user: None: it is not kept."""
    kept = table_item(store, encode_item(attributes), NOW, "1")
    assert (kept is None) == (user is None)
    if kept:
        assert kept["user_id"] == user
        assert kept["place"] == key_text(store, encode_item(attributes))


phones = st.builds(
    Subscription,
    subscription_id=st.uuids().map(str),
    owner=st.text(min_size=1, max_size=9),
    fcm_token=st.text("abc:_-", min_size=1),
    tags=st.lists(st.text("abc", min_size=1), max_size=3, unique=True).map(tuple),
    min_interval_minutes=st.integers(0, INTERVAL_MINUTES_MAX),
    timezone=st.sampled_from(["UTC", "Asia/Tokyo"]),
    quiet_hours=st.sampled_from([None, QuietHours(time(22), time(7))]),
    streak_reminders=st.booleans(),
    created_at=st.just(stamp(NOW)),
    updated_at=st.just(stamp(NOW)),
    last_notified_at=st.sampled_from([NEVER, stamp(NOW)]),
    endpoint_arn=st.sampled_from(["", "arn:phone"]),
    reminders_at=st.sampled_from([None, time(0), time(18, 30)]),
    language=st.sampled_from(["", "pt-BR"]),
)


@given(phones)
def test_of_a_phone_its_own_item_alone_is_kept_and_all_its_items_follow_from_it(phone: Subscription) -> None:
    items = items_of(phone, NOW)
    (kept,) = filter(None, (table_item(PHONES, each, NOW, "1") for each in items.values()))
    assert (kept["user_id"], json.loads(kept["place"])) == (phone.owner, [phone.subscription_id])
    back = Phone(item_of(kept["item"]), phone.last_notified_at)
    assert back.items(NOW) == items
    own = items[phone.subscription_id]
    assert own.keys() - item_of(kept["item"]).keys() == {"active", "last_notified_at", CHANGED}
    assert item_of(kept["item"]).keys() <= PHONE_ATTRIBUTES
    assert not ends_phone(kept["item"])


def test_that_a_phone_is_gone_is_kept_and_that_other_items_are_is_not() -> None:
    kept = removed_item(PHONES, encode_item({"subscription_id": "s"}), NOW, "9")
    assert kept == {
        "store": PHONES,
        "place": '["s"]',
        "version": "9",
        "changed_at": "2026-03-02T12:00:00.000000Z",
        "user_id": None,
        "item": REMOVED,
    }
    assert ends_phone(REMOVED)
    assert ends_phone(item_text(encode_item({"subscription_id": "s", "owner": '"fcm_token"'}))), (
        "its token is dead"
    )
    for store, key in (
        (PHONES, {"subscription_id": "s#sent#reminder=2026-03-02"}),
        (PHONES, {"subscription_id": "token#0f"}),
        (PHONES, {"subscription_id": "poll#agent#1"}),
    ):
        assert removed_item(store, encode_item(key), NOW, "9") is None


@pytest.mark.parametrize(
    ("version", "is_gone"),
    [
        (event_version(8, "9"), True),
        (event_version(9, "8"), False),
        (event_version(9, "9"), False),
        (7, True),
        (None, True),
        ([], True),
    ],
)
def test_a_refused_line_of_a_gone_phone_goes_if_it_is_of_before_or_says_no_version(
    version: object, is_gone: bool
) -> None:
    place = '["s"]'
    line = json.dumps({"store": PHONES, "place": place, "version": version}).encode()
    assert _finder({place: event_version(9, "8")}).owner_if_removed(line) == (place if is_gone else None)
