"""What a standby takes over of an account: claim, event, entry, day and profile, in the writer's order (rule 23)."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from adapters.engagement.account_items import entry_from, entry_item
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import encode_item
from adapters.platform.tables import put_all
from adapters.regions import Follower
from rules.days import parse_moment
from rules.engagement.carriers import split_carriers
from rules.engagement.events import event_id
from rules.engagement.ledger import Draft, EntryKind, append_drafts
from rules.regions.changes import KEYS, ItemChange
from tests.support.engine import Engine, running

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
TABLES = {name: name for name in KEYS}
STAMP = "2026-03-20T11:59:00.000000Z"


@pytest.fixture(scope="module")
def standby() -> Iterator[Engine]:
    with running() as started:
        yield started


def test_what_a_carrier_names_is_stored_before_a_profile_is_followed(standby: Engine) -> None:
    """Nobody looks behind a profile: whoever followed the carrier died before it stored these."""
    follower = Follower(standby.client("dynamodb"), TABLES)
    drafts = [
        Draft(EntryKind.EARN, 5, event_id("zoe", f"k{number}", parse_moment(STAMP)), "READ", "2026-03-20")
        for number in range(3)
    ]
    entries = append_drafts("zoe", None, drafts, NOW)
    carriers, carried = split_carriers(entries)
    assert carried, "three of a batch are carried by the last"
    head = carriers[-1]
    ledger = LedgerStore(standby.client("dynamodb"), "RewardsLedger")
    put_all(standby.client("dynamodb"), "RewardsLedger", [entry_item(each) for each in carriers])
    day = {"user_id": "zoe", "activity_date": "2026-03-20", "ledger_head": head.created_at}
    profile = {"user_id": "zoe", "ledger_head": head.created_at}
    changes = [
        ItemChange(name, 1, 7, {key: stored[key] for key in KEYS[name]}, stored, is_new=True)
        for name, stored in (("DailyActivity", encode_item(day)), ("UserStreaks", encode_item(profile)))
    ]
    outcome = follower.follow(changes, NOW)
    assert (outcome.followed, outcome.waiting) == (2, [])
    assert [each.seq for each in map(entry_from, ledger.stored_after("zoe", "0"))] == [0, 1, 2, 3]


def test_entries_events_and_claims_come_in_the_writer_s_order(standby: Engine) -> None:
    dynamodb = standby.client("dynamodb")
    follower = Follower(dynamodb, TABLES)
    identifier = event_id("yan", "k", parse_moment(STAMP))
    (opened, earned) = append_drafts(
        "yan", None, [Draft(EntryKind.EARN, 5, identifier, "READ", "2026-03-20")], NOW
    )
    stored = {
        "IdempotencyKeys": encode_item({"user_id": "yan", "idempotency_key": "k", "target": identifier}),
        "BPEvents": encode_item(
            {"user_id": "yan", "event_id": identifier, "idempotency_key": "k", "created_at": STAMP}
        ),
    }
    first, second = (
        ItemChange(name, 1, 7, {key: each[key] for key in KEYS[name]}, each, is_new=True)
        for name, each in stored.items()
    )
    entries = [
        ItemChange(
            "RewardsLedger", 1, 7, {key: each[key] for key in KEYS["RewardsLedger"]}, each, is_new=True
        )
        for each in map(entry_item, (opened, earned))
    ]
    alone = follower.follow([second, *entries], NOW)
    assert (alone.followed, alone.waiting) == (1, [second, entries[1]])
    together = follower.follow([entries[1], second, first], NOW)
    assert (together.followed, together.waiting) == (3, [])
