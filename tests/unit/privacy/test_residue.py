"""What stays of a person in the lake is numbers and dates, under names that lead back to nobody."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.engagement.ledger import OPENED_AT, Draft, Entry, EntryKind
from rules.engagement.proof import link_of, tag_of
from rules.lake.entities import ENTITIES, EXTRA, Type
from rules.lake.residue import PERSONS, RESIDUES, residue_of
from rules.lake.residues import ErasureNames, chains_of, hour_of, is_residue
from rules.lake.valid_row import lies_in
from rules.privacy.inventory import BY_NAME, Fate
from tests.support.parts import modules_of_parts

CANARY = "canary wrote this"
NAMES = ErasureNames("a salt")
AT = datetime(2026, 3, 1, 5, 17, 21, 999, tzinfo=UTC)
VALUES = {
    Type.TEXT: CANARY,
    Type.INTEGER: 7,
    Type.BOOLEAN: True,
    Type.DATE: date(2026, 3, 1),
    Type.TIMESTAMP: AT,
}
# Texts of declared vocabularies, of the book, and of agents: nobody's own words.
VOCABULARIES = {
    "events": {"event_type", "cap", "expiry", "measures"},
    "daily_activity": {"points_by_type"},
    "ledger": {"kind", "event_type", "freeze", "cap", "brand", "measures", "setting"},
    "streaks": {"freezes_spent", "freezes", "pauses", "skipped_dates", "opening"},
    **{name: texts for module in modules_of_parts("residues") for name, texts in module.VOCABULARIES.items()},
}


def full(entity: str, **more: Any) -> dict[str, Any]:
    """A row with the person's own words in every text."""
    row = {field.name: VALUES[field.type] for field in ENTITIES[entity].fields}
    return row | {EXTRA: json.dumps({"note": CANARY})} | more


def stays(entity: str, row: dict[str, Any], **others: set[str]) -> dict[str, Any]:
    found = residue_of(entity, row, NAMES, lambda _: 3, others)
    assert found is not None
    return found


def test_the_entities_of_a_residue_are_those_of_the_inventory() -> None:
    assert set(RESIDUES) == {name for name in PERSONS if BY_NAME[name].fate is Fate.RESIDUE}
    assert set(PERSONS) == {name for name in ENTITIES if BY_NAME[name].fate is not Fate.IMPERSONAL}
    assert set(VOCABULARIES) == set(RESIDUES)


@pytest.mark.parametrize("entity", RESIDUES)
def test_no_text_of_a_person_stays_in_any_column(entity: str) -> None:
    found = stays(entity, full(entity))
    with_it = {name for name, value in found.items() if isinstance(value, str) and "canary" in value}
    assert with_it == VOCABULARIES[entity]
    assert found.keys() == full(entity).keys()
    assert is_residue(found[PERSONS[entity]])


@pytest.mark.parametrize("entity", RESIDUES)
def test_a_residue_is_a_valid_row_of_its_hour_and_says_no_instant(entity: str) -> None:
    declared = ENTITIES[entity]
    found = stays(entity, full(entity))
    assert [field.name for field in declared.fields if field.required and found[field.name] is None] == []
    assert lies_in(found[declared.occurred], "2026-03-01", "00" if entity == "daily_activity" else "05")
    for field in declared.fields:
        if field.type is Type.TIMESTAMP and found[field.name] is not None:
            told: datetime = found[field.name]
            assert told - hour_of(told) in {
                timedelta(0),
                7 * timedelta(microseconds=1),
                timedelta(hours=1) - timedelta(microseconds=1),
            }, "the hour, the entry's number, or the hour's end"


def test_entries_stay_in_their_order_and_a_reversal_finds_what_it_reverses() -> None:
    entries = [full("ledger", seq=seq, created_at=AT + timedelta(microseconds=seq)) for seq in range(5)]
    places = [stays("ledger", each)["created_at"] for each in entries]
    assert places == sorted(set(places))
    undone = full("ledger", seq=9, reverses="2026-03-01T05:17:21.001002Z")
    assert stays("ledger", undone)["reverses"] == f"{places[3]:%Y-%m-%dT%H:%M:%S.%f}Z"
    assert residue_of("ledger", undone, NAMES, lambda _: None, {})["reverses"] is None  # type: ignore[index]
    opening = full("ledger", seq=0, created_at=datetime.fromisoformat(OPENED_AT))
    assert stays("ledger", opening)["created_at"] == opening["created_at"]


def test_rows_of_a_person_still_belong_together_and_nothing_else_does() -> None:
    event_id = "2026-03-01T05:17:21.000999Z#uuid"
    event = stays("events", full("events", event_id=event_id, user_id="ann"))
    entry = stays("ledger", full("ledger", event_id=event_id, account_id="ann"))
    assert (event["event_id"], event["user_id"]) == (entry["event_id"], entry["account_id"])
    assert event["event_id"].startswith("2026-03-01T05:00:00Z#")
    assert ErasureNames("another salt").name_of("ann") != event["user_id"]


@given(st.text(), st.text(max_size=20))
def test_a_name_depends_on_the_salt_and_tells_nothing(person: str, salt: str) -> None:
    name = ErasureNames(f"{salt}!").name_of(person)
    assert name != ErasureNames(f"{salt}?").name_of(person)
    assert is_residue(name)
    assert len(name) == len("erased/") + 32


def test_a_seal_is_the_commitment_of_the_entry_s_chain_and_names_the_chain_where_it_begins() -> None:
    draft = Draft(EntryKind.REVERSE, 5, reverses="2026-03-01T05:17:21.001002Z", reason=CANARY)
    names = ErasureNames("a salt", chains_of([f"9 {b'second'.hex()}", f"5 {b'first'.hex()}"]))

    def seals(seq: int, salt: bytes) -> tuple[str, str]:
        entry = Entry("ann", "2026-03-01T05:17:21.000999Z", seq, 7, draft)
        row = full("ledger", account_id="ann", created_at=AT, seq=seq, reverses=draft.reverses)
        row |= dict.fromkeys(("event_id", "reward_id", "held_at", "timezone", "set_to"))
        residue = residue_of("ledger", row, names, lambda _: 3, {})
        return residue["seal"], link_of(entry).commitment_to_hidden(salt).hex()  # type: ignore[index]

    for seq, salt in ((4, b"first"), (6, b"first"), (8, b"first"), (10, b"second")):
        assert len(set(seals(seq, salt))) == 1
    for seq, salt in ((5, b"first"), (9, b"second")):
        seal, wanted = seals(seq, salt)
        assert seal == f"{wanted} {tag_of(b'first', 'ann').hex()}"
    assert stays("ledger", full("ledger"))["seal"] is None, "there is no chain"


def test_a_word_stays_if_others_use_it_too() -> None:
    row = full("events", source="app", properties='{"amount": "12.50", "quantity": 2, "note": "hi"}')
    assert stays("events", row)["source"] == "erased"
    shared = stays("events", row, source={"app", "web"})
    assert shared["source"] == "app"
    assert json.loads(shared["properties"]) == {"amount": "12.50", "quantity": 2}
    assert stays("events", full("events", properties='{"amount": "call 555 1234"}'))["properties"] is None
    assert residue_of("lead_events", full("lead_events"), NAMES, lambda _: None, {}) is None
