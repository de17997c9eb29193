"""The zones that the doors read are those of the profiles, whatever else these say."""

from typing import Any
from uuid import uuid4

from adapters.engagement.account_items import profile_attributes
from adapters.engagement.event_store import ZoneStore
from adapters.platform.items import encode_item
from rules.engagement.account_state import Profile


def test_a_zone_is_the_profile_s_and_a_stranger_has_none(dynamodb: Any) -> None:
    chose, other, stranger = (f"{name}-{uuid4()}" for name in ("chose", "other", "stranger"))
    for user, zone in ((chose, "Asia/Tokyo"), (other, None)):
        stored = profile_attributes(Profile(user, 1, chosen_zone=zone, updated_at="x"))
        dynamodb.put_item(TableName="UserStreaks", Item=encode_item(stored))
    found = ZoneStore(dynamodb, "UserStreaks").chosen([chose, other, stranger, chose])
    assert found == {chose: "Asia/Tokyo", other: None, stranger: None}


def test_nobody_asked_is_nothing_read() -> None:
    assert ZoneStore(None, "UserStreaks").chosen(()) == {}
