"""What the lake keeps of items for restores: enough of a profile, nothing of leads, and every byte."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from adapters.engagement.account_items import profile_attributes
from adapters.platform.items import decode_item, encode_item
from local.restore import NOT_IN_THE_LAKE, RESTORABLE, table_copy, whole_second
from rules.engagement.account_state import Profile
from rules.engagement.ledger import Head
from rules.engagement.streak import Streak
from rules.lake.table_items import (
    KEYS,
    LONG_BYTES,
    PROFILE_ATTRIBUTES,
    item_of,
    item_text,
    key_text,
    removed_item,
    table_item,
)
from rules.privacy.inventory import INVENTORY, StoreKind

NOW = datetime(2026, 3, 2, 12, 0, 0, 700_000, tzinfo=UTC)
# What a profile's item has that entries tell, or that every write works out anew.
FROM_ENTRIES = {
    *("total_bestie_points", "balance", "timezone", "freezes", "applied_through", "expiry_shard"),
    *("expires_next", "ledger_head", "ledger_seq", "current_streak", "longest_streak", "last_activity_date"),
    *("active_days", "freezes_spent", "streak_checkpoints", "leaderboard_partition", "lapses_at"),
    *("run_length", "past_entry", "review_state", "repairs", "bonus_points"),
    "period_points",
}


def test_a_profile_s_attributes_are_kept_or_follow_from_entries() -> None:
    streak = Streak(last=date(2026, 3, 1), length=3, longest=4, active_days=9)
    profile = Profile("u", 2, Head("2026", 1, 5), 5, streak, alias="somebody", observed_zone="UTC")
    names = {*profile_attributes(profile, shards=2), "run_length"}  # the last one of a lapsed streak alone
    assert names - FROM_ENTRIES == PROFILE_ATTRIBUTES
    assert not PROFILE_ATTRIBUTES & FROM_ENTRIES


def test_the_settings_of_a_profile_are_kept_and_its_figures_are_not() -> None:
    image = encode_item({"user_id": "u", "version": 3, "alias": "Ann", "balance": 70})
    kept = table_item("UserStreaks", image, NOW, "9")
    assert kept
    assert decode_item(item_of(kept["item"])) == {"user_id": "u", "version": 3, "alias": "Ann"}
    assert (kept["place"], kept["version"], kept["changed_at"]) == (
        '["u"]',
        "9",
        "2026-03-02T12:00:00.000000Z",
    )


@pytest.mark.parametrize(
    ("store", "attributes", "user"),
    [
        ("IdempotencyKeys", {"user_id": "u", "idempotency_key": "k"}, "u"),
        ("IdempotencyKeys", {"user_id": "acme/ecommerce#7", "idempotency_key": "lead-event"}, None),
        ("IdempotencyKeys", {"user_id": "import#0f", "idempotency_key": "rows-taken"}, None),
        ("DailyActivity", {"user_id": "u#kept", "activity_date": "totals"}, "u"),
        ("DailyActivity", {"user_id": "u", "activity_date": "2026-03-02"}, None),
        ("DailyActivity", {"user_id": "u#kept", "activity_date": "goals"}, None),
        ("Rewards", {"holder": "u", "place": "of/mug"}, "u"),
        ("Rewards", {"holder": "mug/2", "place": "006"}, ""),
        ("RuleBooks", {"book": "versions", "version": 2}, ""),
        ("Erasures", {"part": "journal", "place": "p"}, ""),
        ("Erasures", {"part": "erasures", "place": "p"}, None),
        ("Memory", {"lead_organization_id": "l"}, None),
    ],
)
def test_what_is_kept_and_whose_it_is(store: str, attributes: dict[str, Any], user: str | None) -> None:
    """user: ""; nobody's. None: it is not kept."""
    kept = table_item(store, encode_item(attributes), NOW, "1")
    assert (kept is None) == (user is None)
    if kept:
        assert (kept["user_id"] or "") == user
        assert kept["place"] == key_text(store, encode_item(attributes))


def test_a_key_is_readable_in_any_script() -> None:
    assert key_text("UserStreaks", encode_item({"user_id": "ö"})) == '["ö"]'


def test_an_item_comes_back_byte_for_byte_also_a_long_one() -> None:
    for text in ("ö\n", "x" * LONG_BYTES):
        image = {
            **encode_item({"a": text, "n": 7, "l": [1, "b"], "m": {"c": True}}),
            "packed": {"B": b"\x00\xff"},
        }
        assert item_of(item_text(image)) == image
    assert len(item_text(encode_item({"a": "x" * 300_000}))) < LONG_BYTES


def test_that_an_item_of_a_user_is_gone_is_not_kept() -> None:
    key = encode_item({"user_id": "u", "idempotency_key": "k"})
    assert removed_item("IdempotencyKeys", key, NOW, "9") is None


def test_the_options_name_every_table_and_refuse_what_is_no_instant() -> None:
    assert {*KEYS, "RewardsLedger", "BPEvents"} == {*RESTORABLE}
    assert whole_second("2026-11-24T03:00:00+01:00") == datetime(2026, 11, 24, 2, tzinfo=UTC)
    for wrong in ("2026-11-24T03:00:00.5Z", "2026-11-24T03:00:00", "soon"):
        with pytest.raises(Exception, match=r"RFC 3339|no whole second"):
            whole_second(wrong)
    assert table_copy("Questions=q-1") == ("Questions", "q-1")
    with pytest.raises(Exception, match="TABLE=NAME"):
        table_copy("Questions")


def test_of_every_store_it_is_told_what_a_restore_cannot_have() -> None:
    """Those that it restores whole have nothing to tell."""
    kinds = (StoreKind.TABLE, StoreKind.CACHE, StoreKind.DATABASE)
    stores = {each.name for each in INVENTORY if each.kind in kinds}
    whole = {"RewardsLedger", "DailyActivity", "UserStreaks", "BPEvents", "Rewards", "RuleBooks"}
    assert stores - whole == NOT_IN_THE_LAKE.keys() - {"PayloadBucket"}
    assert whole <= {*RESTORABLE}
