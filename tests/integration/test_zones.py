"""The zones that the doors read are those of the profiles, whatever else these say."""

from dataclasses import replace
from pathlib import Path

from adapters.engagement.event_store import ZoneStore
from tests.support.engine import Engine
from tests.support.town import Town


def test_a_zone_is_the_profile_s_and_a_stranger_has_none(engine: Engine, tmp_path: Path) -> None:
    town = Town(engine.client("dynamodb"), tmp_path, f"zones{tmp_path.name[-8:]}", 2)
    (chose, other), stranger = town.users, "nobody"
    town.apply([town.event(user, 1, 0) for user in town.users])
    read = town.accounts.profile(chose)
    town.accounts.put_profile(replace(read, version=read.version + 1, timezone="Asia/Tokyo"))
    found = ZoneStore(town.dynamodb, "UserStreaks").chosen([chose, other, stranger, chose])
    assert found == {user: each.timezone for user, each in town.accounts.profiles(found).items()}
    assert found == {chose: "Asia/Tokyo", other: None, stranger: None}
    town.clear()


def test_nobody_asked_is_nothing_read() -> None:
    assert ZoneStore(None, "UserStreaks").chosen(()) == {}
