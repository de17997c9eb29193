"""A standby's tables and a region's return, on two engines: items in any order, and tables of every kind (rule 23)."""

import json
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.engagement.account_items import entry_item, entry_key
from adapters.platform.fence import RegionFenced, RegisterMoved, RegisterStore
from adapters.platform.items import encode_item
from adapters.privacy.tombstones import NO_ERASURES
from adapters.regions import FollowedItems, Follower
from ingest.engagement.points.commands import COMMAND
from local.region_return import RegionReturn
from local.region_unseen import Side, UnseenFinder, shared_fields
from local.regions import report_of, update_of
from local.stack import Stack
from rules.days import stamp_of_key
from rules.engagement.carriers import split_carriers
from rules.engagement.ledger import Draft, EntryKind, append_drafts
from rules.regions.changes import KEYS, ItemChange
from rules.regions.register import Phase, Register
from tests.support.engine import Engine, running

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
TABLES = {name: name for name in KEYS}
STAMP = "2026-03-20T11:59:00.000000Z"


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Engine, Engine]]:
    with running() as old, running() as new:
        yield old, new


def change(place: int, image: dict[str, Any] | None, key: str) -> ItemChange:
    return ItemChange("GroupEvents", 1, place, of(key), image, is_new=False)


def of(key: str) -> dict[str, Any]:
    return {"root_id": {"S": key}, "event_type#occurred_at#id": {"S": "e"}}


@pytest.mark.parametrize("seed", range(12))
def test_in_any_order_an_item_is_as_its_newest_change_says(both: tuple[Engine, Engine], seed: int) -> None:
    chance, key = random.Random(seed), f"root-{seed}"
    items = FollowedItems(both[1].client("dynamodb"), TABLES)
    changes = [
        change(place, None if chance.random() < 0.4 else {**of(key), "n": {"N": str(place)}}, key)
        for place in range(1, chance.randrange(2, 8))
    ]
    arriving = changes + chance.sample(changes, k=len(changes) // 2)
    chance.shuffle(arriving)
    for each in arriving:
        if each.image is None:
            items.delete(each, NOW)
        else:
            items.put(each)
    found = both[1].client("dynamodb").get_item(TableName="GroupEvents", Key=of(key)).get("Item")
    newest = changes[-1].image
    assert (shared_fields(found) if found else None) == newest


def test_a_later_epoch_is_newer_whatever_its_clock_says(both: tuple[Engine, Engine]) -> None:
    items = FollowedItems(both[1].client("dynamodb"), TABLES)
    image = {**of("epochs"), "n": {"N": "1"}}
    assert items.put(ItemChange("GroupEvents", 1, 999, of("epochs"), image, is_new=True))
    assert items.put(ItemChange("GroupEvents", 2, 0, of("epochs"), {**image, "n": {"N": "2"}}, is_new=True))
    assert not items.put(ItemChange("GroupEvents", 1, 1000, of("epochs"), image, is_new=True))


def test_the_register_is_changed_by_whoever_has_read_it_last(both: tuple[Engine, Engine]) -> None:
    dynamodb = both[0].client("dynamodb")
    registers = register(dynamodb, "moved")
    assert registers.read() is None
    first = Register(1, "west")
    registers.change(None, first)
    registers.change(None, first)  # whose answer was lost
    assert registers.read() == first
    second = Register(2, "east", Phase.DRAINING, former="west")
    registers.change(first, second)
    with pytest.raises(RegisterMoved):
        registers.change(first, Register(2, "west"))
    assert registers.read() == second


def register(dynamodb: Any, name: str) -> RegisterStore:
    dynamodb.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "name", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "name", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return RegisterStore(dynamodb, name)


class NobodyAsks:
    """A door that nobody should knock at."""

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        raise AssertionError(f"{method} {path}")


def stored(side: Side, name: str) -> list[str]:
    """All items of a table but the marks of deletions, which each region has of its own."""
    return sorted(
        json.dumps(shared_fields(each), sort_keys=True)
        for each in side.items(name)
        if "gone/" not in str(each)
    )


ITEMS: dict[str, dict[str, Any]] = {
    "Erasures": {"part": {"S": "journal"}, "place": {"S": "2026#d#erased"}, "erasure_id": {"S": "x"}},
    "Event": {"lead_organization_id": {"S": "lead"}, "occurred_at#id": {"S": "e1"}, "n": {"N": "1"}},
    "Questions": {"question_id": {"S": "q1"}, "text": {"S": "why"}},
    "WebhookEndpoints": {"registry": {"S": "all"}, "endpoint_id": {"S": "w1"}},
    "Memory": {"lead_organization_id": {"S": "lead"}, "memory_type#key": {"S": "m"}},
    "BPEvents": {
        "user_id": {"S": "ann"},
        "event_id": {"S": "2026#e"},
        "idempotency_key": {"S": "k"},
        "ttl": {"N": str(int(NOW.timestamp()) + 60)},
    },
}


def test_a_return_carries_lists_cuts_and_fills_every_kind_of_table(both: tuple[Engine, Engine]) -> None:
    old, new = (
        Side(name, engine.client("dynamodb"), TABLES)
        for name, engine in zip(("west", "east"), both, strict=True)
    )
    for name, example in ITEMS.items():
        old.store(name).put(example)
    expired = {**ITEMS["BPEvents"], "event_id": {"S": "2025#e"}, "ttl": {"N": "1"}}
    old.store("BPEvents").put(expired)
    new.store("Questions").put({"question_id": {"S": "q2"}, "text": {"S": "how"}})
    new.store("Subscriptions").put({"subscription_id": {"S": "s1"}, "last": {"S": "here"}})
    old.store("Subscriptions").put({"subscription_id": {"S": "s1"}, "last": {"S": "there"}})
    registers = register(both[0].client("dynamodb"), "returned")
    registers.change(None, Register(4, "east"))
    steps = RegionReturn(old, new, registers, NobodyAsks(), lambda _: None, lambda _: None)
    found = steps.find(NO_ERASURES, NOW)
    assert set(found.carried) == {"Erasures", "Event", "BPEvents"}
    assert {(each.store, each.key) for each in found.listed} == {
        ("Questions", "q1"),
        ("WebhookEndpoints", "all/w1"),
        ("Subscriptions", "s1"),
    }
    outcome = steps.apply(found)
    json.dumps(report_of(found, outcome))
    assert dict(outcome.carried) == {"Erasures": 1, "Event": 1, "BPEvents": 1}
    steps.follow(found, old.dynamodb, NOW)
    assert registers.read() == Register(5, "east", standby="west", is_filled=True)
    for name in KEYS:
        assert stored(old, name) == stored(new, name), name
    assert steps.find(NO_ERASURES, NOW).listed == []
    steps.follow(steps.find(NO_ERASURES, NOW), old.dynamodb, NOW)  # again, it changes nothing but the epoch
    assert registers.read() == Register(6, "east", standby="west", is_filled=True)


def test_what_the_writer_deletes_before_all_know_who_follows_is_deleted(
    both: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody sends it, or whoever receives it does not know the epoch yet."""
    old, new = (
        Side(name, engine.client("dynamodb"), TABLES)
        for name, engine in zip(("west", "east"), both, strict=True)
    )
    deleted = [
        ("Subscriptions", {"subscription_id": {"S": "deleted"}}),
        ("Subscriptions", {"subscription_id": {"S": "deleted too"}}),
        ("RewardsLedger", encode_item(entry_key("deleted", STAMP))),
    ]
    for name, item in deleted:
        for side in (old, new):
            side.store(name).put(item)

    drafts = [
        Draft(EntryKind.EARN, 1, f"2026-01-01T10:00:0{n}.000000Z#e", "READ", "2026-01-01") for n in range(3)
    ]
    carriers, carried = split_carriers(append_drafts("carl", None, drafts, NOW - timedelta(days=60)))
    assert carried
    for entry in carriers:
        new.store("RewardsLedger").put(entry_item(entry))
    for entry in (*carriers, *carried):
        old.store("RewardsLedger").put(entry_item(entry))

    def delete(_: float) -> None:
        for name, item in deleted:
            new.store(name).delete(item)

    sizes, said, follow = set[int](), list[str](), Follower.follow

    def count(follower: Follower, changes: Sequence[ItemChange], now: datetime) -> Any:
        sizes.update(len(changes) for each in changes if each.image is None)
        return follow(follower, changes, now)

    monkeypatch.setattr(Follower, "follow", count)
    monkeypatch.setattr("local.region_fill.CHUNK_ITEMS", 1)

    registers = register(both[0].client("dynamodb"), "deleted")
    registers.change(None, Register(4, "east"))
    steps = RegionReturn(old, new, registers, NobodyAsks(), delete, said.append)
    steps.follow(steps.find(NO_ERASURES, NOW), old.dynamodb, NOW)
    assert sizes == {1}, "no table is listed as a whole first"
    assert "Subscriptions: 2 items deleted" in said
    assert stored(old, "Subscriptions") == stored(new, "Subscriptions")
    places = [stamp_of_key(item["created_at"]["S"]) for item in old.items("RewardsLedger")]
    assert sorted(places) == sorted(entry.created_at for entry in (*carriers, *carried)), (
        "the writer has not stored yet what its carrier names"
    )


def test_a_command_s_claim_is_carried_only_where_its_entry_is(both: tuple[Engine, Engine]) -> None:
    """A return was interrupted when the old ledger was cut already: nothing but the claim tells of the entry."""
    old, new = (
        Side(name, engine.client("dynamodb"), TABLES)
        for name, engine in zip(("west", "east"), both, strict=True)
    )
    entry = encode_item(entry_key("ben", STAMP))
    seen, unseen = (
        {
            "user_id": {"S": "ben"},
            "idempotency_key": {"S": f"{COMMAND}{key}"},
            "body_hash": {"S": "10 mug"},
            "target": {"S": target},
        }
        for key, target in (("seen", STAMP), ("unseen", "2026-03-20T11:58:00.000000Z"))
    )
    for item in (seen, unseen):
        old.store("IdempotencyKeys").put(item)
    new.store("RewardsLedger").put(entry)
    found = UnseenFinder(old, new, NO_ERASURES, NOW).find()
    assert [each for each in found.carried["IdempotencyKeys"] if each["user_id"]["S"] == "ben"] == [seen]


def test_an_update_of_a_stack_changes_its_role_and_keeps_all_else() -> None:
    stack = Stack(
        "",
        "",
        "us-west-2",
        {},
        {},
        "",
        "streakline",
        {"Role": "standby", "Size": "small", "RedisUrl": "****"},
    )
    asked = update_of(stack, "active")
    assert {"ParameterKey": "Role", "ParameterValue": "active"} in asked["Parameters"]
    kept = {each["ParameterKey"] for each in asked["Parameters"] if each.get("UsePreviousValue")}
    assert kept == {"Size", "RedisUrl"}
    assert asked["UsePreviousTemplate"] is True


def test_a_command_of_an_operator_writes_only_where_its_region_writes(both: tuple[Engine, Engine]) -> None:
    dynamodb = both[0].client("dynamodb")
    registers = register(dynamodb, "operators")
    registers.change(None, Register(1, "east", standby="west", is_filled=True))
    request = {"TableName": "UserStreaks", "Key": {"user_id": {"S": "nobody"}}}
    for region in ("east", "west"):
        stack = Stack("", both[0].endpoint, region, {"RegisterTableName": "operators"}, TABLES, "")
        client = stack.client("dynamodb")
        assert "Item" not in client.get_item(**request)
        if region == "east":
            client.delete_item(**request)
            continue
        with pytest.raises(RegionFenced, match="east writes, epoch 1"):
            client.delete_item(**request)
        stack.free_client("dynamodb").delete_item(**request)


APART = {
    "one event under two ids": ("2026-03-20T10:00:01#id", "2026-03-20T10:00:02#id", "same"),
    "another body in each region": ("2026-03-20T10:00:01#id", "2026-03-20T10:00:02#id", "another"),
    "carried out in both regions": ("2026-03-20T10:00:01.000000Z", "2026-03-20T10:00:02.000000Z", "same"),
}


@pytest.mark.parametrize("reason", APART)
@pytest.mark.parametrize("is_during", [False, True], ids=["before", "during"])
def test_a_key_stands_for_what_it_does_at_the_new_writer_also_if_it_came_during_a_return(
    both: tuple[Engine, Engine], reason: str, *, is_during: bool
) -> None:
    """The new writer goes on: a client asks it again after both were read, and before anything is carried."""
    old, new = (
        Side(name, engine.client("dynamodb"), TABLES)
        for name, engine in zip(("west", "east"), both, strict=True)
    )
    theirs, ours, body = APART[reason]
    user, key = f"{reason}, {is_during}", "twice"

    def put(side: Side, target: str, digest: str) -> None:
        mine = {"user_id": {"S": user}, "idempotency_key": {"S": key}, "ttl": {"N": "9999999999"}}
        claim = {"target": {"S": target}, "body_hash": {"S": digest}}
        side.store("IdempotencyKeys").put({**mine, **claim})
        if "#" in target:
            side.store("BPEvents").put({**mine, "event_id": {"S": target}})

    put(old, theirs, "same")
    if not is_during:
        put(new, ours, body)
    registers = RegisterStore(both[0].client("dynamodb"), "no step before following reads it")
    steps = RegionReturn(old, new, registers, NobodyAsks(), lambda _: None, lambda _: None)
    found = steps.find(NO_ERASURES, NOW)
    if is_during:
        put(new, ours, body)
    outcome = steps.apply(found)
    (claim,) = [each for each in new.items("IdempotencyKeys") if each["user_id"]["S"] == user]
    assert claim["target"]["S"] == ours
    stored_ids = [each["event_id"]["S"] for each in new.items("BPEvents") if each["user_id"]["S"] == user]
    assert stored_ids == [ours] * ("#" in ours)
    (listed,) = [each for each in outcome.listed if each.key == f"{user}/{key}"]
    assert listed.reason.startswith(reason)
    assert listed.reason.endswith(f"{theirs} and {ours}")
