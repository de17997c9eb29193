"""What must be there before a change: the writer's own order, whatever order changes come in (rule 23)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rules.days import stamp
from rules.engagement.events import RETENTION
from rules.engagement.ledger import Draft, EntryKind, append_drafts
from rules.regions.changes import WAITED_FOR_MAX, claim_needed, events_needed, place_needed

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
PLACE = "2026-03-01T12:00:00.000000Z"
WAITED_MAX = timedelta(days=30)  # before it is applied: adapters/engagement/ledger_store.py


def event(created_at: datetime) -> dict[str, dict[str, str]]:
    return {"idempotency_key": {"S": "k1"}, "created_at": {"S": stamp(created_at)}}


@given(st.timedeltas(timedelta(0), RETENTION))
def test_an_event_needs_its_claim_while_that_is_surely_kept(age: timedelta) -> None:
    needed = claim_needed(event(NOW - age), NOW)
    assert needed == ("k1" if age < WAITED_FOR_MAX else "")
    assert not needed or age < RETENTION - WAITED_MAX, "the claim may have expired"


def test_an_event_of_an_import_without_a_key_needs_no_claim() -> None:
    assert not claim_needed({"created_at": {"S": stamp(NOW)}}, NOW)
    assert not claim_needed({}, NOW)


def test_entries_need_the_events_that_they_were_earned_by() -> None:
    drafts = [
        Draft(EntryKind.EARN, 10, "e1", "READ", "2026-03-20"),
        Draft(EntryKind.REDEEM, -5, reward_id="mug"),
        Draft(EntryKind.EARN, 10, "e2", "READ", "2026-03-20"),
        Draft(EntryKind.CLAWBACK, -10, "e0", "READ", "2026-03-20"),
    ]
    entries = append_drafts("ann", None, drafts, NOW)
    assert events_needed(entries, NOW) == {"e1", "e2"}
    old = [replace(each, created_at=stamp(NOW - WAITED_FOR_MAX)) for each in entries]
    assert events_needed(old, NOW) == set(), "events of this age may have expired"


def test_what_speaks_of_an_entry_waits_for_it() -> None:
    assert place_needed("UserStreaks", {"ledger_head": {"S": PLACE}}) == PLACE
    assert place_needed("DailyActivity", {"ledger_head": {"S": PLACE}}) == PLACE
    assert place_needed("IdempotencyKeys", {"target": {"S": PLACE}}) == PLACE
    assert place_needed("Rewards", {"place": {"S": PLACE}, "fulfilment": {"S": "requested"}}) == PLACE
    for table, image in (
        ("UserStreaks", {}),
        ("IdempotencyKeys", {"target": {"S": f"{PLACE}#an-event"}}),
        ("IdempotencyKeys", {"note": {"S": "x"}}),
        ("Rewards", {"place": {"S": "of/mug"}, "taken": {"N": "1"}}),
        ("BPEvents", {"created_at": {"S": PLACE}}),
    ):
        assert not place_needed(table, image)
