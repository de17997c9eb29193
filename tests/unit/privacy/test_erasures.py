"""An erasure goes through every online store, at least twice, and ends only when nothing was found."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.days import stamp
from rules.privacy.erasures import (
    DEADLINE,
    LEADS,
    SWEEPS_MAX,
    USERS,
    Erasure,
    Person,
    PersonKind,
    after_pass,
    after_sweep,
    certificate_of,
    excluded_stores,
    hand_to_lake,
    lead_of,
    nightly_plan_of,
    plan_of,
    with_count,
    with_lead,
    with_store_done,
)
from rules.privacy.inventory import BY_NAME, INVENTORY, Fate, StoreKind

NOW = datetime(2026, 11, 23, 10, tzinfo=UTC)
SETTLES = timedelta(minutes=20)
BEGUN = Erasure("e", PersonKind.USER, "ann", "digest", stamp(NOW))


@pytest.mark.parametrize("kind", PersonKind)
def test_every_store_is_gone_through_or_said_to_be_left_alone(kind: PersonKind) -> None:
    planned = [store.name for store in (*plan_of(kind), *nightly_plan_of(kind))]
    assert len(set(planned)) == len(planned)
    assert set(planned) | excluded_stores(kind).keys() == {store.name for store in INVENTORY}
    assert not set(planned) & excluded_stores(kind).keys()


def test_every_table_with_persons_is_in_a_plan() -> None:
    planned = {store.name for kind in PersonKind for store in (*plan_of(kind), *nightly_plan_of(kind))}
    tables = {store.name for store in INVENTORY if store.kind is StoreKind.TABLE}
    impersonal = {store.name for store in INVENTORY if store.fate is Fate.IMPERSONAL}
    assert tables - impersonal <= planned
    assert {"Redis", "PostgreSQL", "PayloadBucket", "Warehouse", "events"} <= planned


def test_what_leads_to_other_stores_is_erased_after_them() -> None:
    user = [store.name for store in plan_of(PersonKind.USER)]
    lead = [store.name for store in plan_of(PersonKind.LEAD)]
    assert not {*user} & {"Event", "PostgreSQL"}
    assert not {*lead} & {"DailyActivity"}
    assert user.index("Redis") < user.index("DailyActivity")
    for store in user:  # what of a part has no key of the person is found by Limits
        if BY_NAME[store].part and BY_NAME[store].user_key == "owner":
            assert user.index(store) < user.index("Limits")
    assert lead.index("IdempotencyKeys") < lead.index("Event")
    assert lead.index("PayloadBucket") < lead.index("Event")
    assert lead[-1] == "PostgreSQL"


def test_what_is_known_of_a_lead_is_in_its_erasure() -> None:
    identities = (("email", "ann@example.com"), ("phone", "+491701234567"))
    person = Person("digest", organization="shop", leads=("ann", "2"), identities=identities)
    assert lead_of(with_lead(replace(BEGUN, kind=PersonKind.LEAD), person)) == person


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), min_size=1, max_size=30))
def test_it_ends_after_a_sweep_that_found_nothing_and_began_when_all_knew(
    sweeps: list[tuple[int, int]],
) -> None:
    """sweeps: how much each one finds, and how many minutes it takes."""
    erasure, now = BEGUN, NOW
    for found, minutes in sweeps:
        assert erasure.is_due(now)
        for store in plan_of(erasure.kind):
            assert erasure.next_store() == store.name
            erasure = with_store_done(with_count(erasure, store.name, found), store.name)
        assert erasure.next_store() is None
        began, now = now, now + timedelta(minutes=minutes)
        after = after_sweep(erasure, SETTLES, now)
        if after is None:
            assert found == 0
            assert erasure.sweep >= 2
            assert began >= NOW + SETTLES
            return
        assert not (found == 0 and erasure.sweep >= 2 and began >= NOW + SETTLES)
        assert (after.sweep, after.done, after.found_now) == (erasure.sweep + 1, (), 0)
        assert after.found == erasure.found
        erasure, now = after, max(now, datetime.fromisoformat(after.waits_until))


def test_one_that_keeps_finding_things_pauses_and_never_says_that_it_is_done() -> None:
    erasure = replace(BEGUN, sweep=SWEEPS_MAX, found_now=1)
    after = after_sweep(erasure, SETTLES, NOW + timedelta(days=1))
    assert after is not None
    assert not after.is_due(NOW + timedelta(days=1))
    assert after.is_due(NOW + timedelta(days=1) + SETTLES)


NIGHTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=12)


@given(NIGHTS)
def test_the_lake_is_done_after_a_night_that_began_when_nothing_was_on_its_way_and_found_nothing(
    nights: list[tuple[int, int]],
) -> None:
    """nights: how many half days pass before each, and how much it finds."""
    lake_settles, now = timedelta(days=2), NOW
    erasure = hand_to_lake(replace(BEGUN, found={"events": 1}), "salt")
    total = 0
    for number, (later, found) in enumerate(nights):
        now += timedelta(hours=12 * later)
        if not erasure.is_due(now):
            continue
        erasure = after_pass(erasure, f"run {number}", {"events": found}, lake_settles, now)
        assert after_pass(erasure, f"run {number}", {"events": 9}, lake_settles, now) == erasure
        total += found
        assert erasure.found["events"] == 1 + total
        if erasure.is_done:
            assert found == 0
            assert erasure.passes >= 2
            assert now >= NOW + lake_settles
            return
        assert erasure.awaits == tuple(store.name for store in nightly_plan_of(erasure.kind))
        assert erasure.passes < 2 or found or now < NOW + lake_settles


def test_two_nights_are_enough_if_the_second_one_finds_nothing() -> None:
    erasure, settles = hand_to_lake(BEGUN, "salt"), timedelta(days=2)
    assert erasure.is_due(NOW)
    erasure = after_pass(erasure, "one", {"events": 5}, settles, NOW + timedelta(hours=9))
    assert not erasure.is_due(NOW + timedelta(hours=33))
    assert erasure.is_due(NOW + timedelta(hours=57))
    assert after_pass(erasure, "two", {}, settles, NOW + timedelta(hours=57)).is_done


def test_the_lake_is_handed_its_names_alone() -> None:
    known = {USERS: ("ann",), LEADS: ("l1",), "texts": ("ann@example.com",)}
    assert hand_to_lake(replace(BEGUN, known=known), "salt").known == {USERS: ("ann",), LEADS: ("l1",)}


def test_the_deadline() -> None:
    assert not BEGUN.is_late(NOW + DEADLINE)
    assert BEGUN.is_late(NOW + DEADLINE + timedelta(seconds=1))


def test_the_certificate_counts_and_names_nobody() -> None:
    erasure = replace(BEGUN, subject="ann@example.com", found={"BPEvents": 7}, sweep=2)
    told = certificate_of(erasure, NOW)
    assert {each["store"]: each["removed"] for each in told["stores"]}["BPEvents"] == 7
    assert {each["left"] for each in told["stores"]} == {0}
    assert told["certificate"] == "streakline erasure"
    assert "ann@example.com" not in str(told)
    assert told["other_stores"]["LeadIngestion"] == "refused by the tombstone, and gone after 14 days"
