"""What is told of leads."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.leads.notice_kinds import LEAD_UPDATED, lead_holder
from rules.leads.notices import notices_of_lead
from rules.outgoing.derivation import ItemNoticeState
from rules.outgoing.notices import BUS, OWNED_KINDS, Endpoint, Notice, Notification, silent_filters
from tests.support.leads.notices import AT, lead

ACME = Endpoint("e1", "acme", "https://hooks.example.com/")
OF_ACME = Notification(lead_holder("7"), 3, AT, Notice(LEAD_UPDATED, {"organization_id": "acme"}))


def test_a_lead_is_told_of_as_a_whole_when_something_shown_has_changed() -> None:
    found, told = notices_of_lead(ItemNoticeState(), lead(1, orders=1, revenue=Decimal("11.50")), "acme", AT)
    assert [each.data for each in found] == [
        {
            "organization_id": "acme",
            "merged_into": None,
            "features": {"orders": 1, "revenue": 11.5},
            "computed_at": None,
        }
    ]
    assert notices_of_lead(told, lead(2, orders=1, revenue=Decimal("11.5")), "acme", AT) == ([], told)
    (merged,), told = notices_of_lead(told, lead(3, merged_into="9"), "acme", AT)
    assert (merged.data["merged_into"], merged.data["features"]) == ("9", {})
    assert (told.number, told.version) == (2, 3)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), max_size=12))
def test_records_that_come_again_and_late_change_nothing(seen: list[tuple[int, int]]) -> None:
    told, folded, newest = ItemNoticeState(), None, 0
    by_version: dict[int, int] = {}
    for version, drawn in seen:
        orders = by_version.setdefault(version, drawn)  # a version is written once
        found, told = notices_of_lead(told, lead(version + 1, orders=orders), "acme", AT)
        for each in found:
            assert each.data["features"] != folded, "nothing is told twice in a row"
            folded, newest = each.data["features"], version
        assert notices_of_lead(told, lead(version + 1, orders=orders), "acme", AT) == ([], told)
    if seen and [each for each, _ in seen] == sorted(each for each, _ in seen):
        assert folded == {"orders": by_version[max(by_version)]}
    assert newest <= max(by_version, default=0)


@pytest.mark.parametrize("asked", [(), (LEAD_UPDATED, *(kind.type for kind in OWNED_KINDS))])
def test_no_organization_hears_of_another_one_s_leads(asked: tuple[str, ...]) -> None:
    acme = replace(ACME, types=frozenset(asked))
    assert acme.wants(OF_ACME)
    assert not replace(acme, organization_id="globex").wants(OF_ACME)
    assert Endpoint(BUS, "", "apps").wants(OF_ACME)


def test_a_filter_may_name_a_lead() -> None:
    one = replace(ACME, filters={LEAD_UPDATED: {"lead_id": ["7"]}})
    assert one.wants(OF_ACME)
    assert not replace(one, filters={LEAD_UPDATED: {"lead_id": ["8"]}}).wants(OF_ACME)


@pytest.mark.parametrize(("names", "is_silent"), [(["other"], True), (["other", "acme"], False)])
def test_a_filter_that_names_another_organization_alone_is_silent(names: list[str], is_silent: bool) -> None:
    one = replace(ACME, filters={LEAD_UPDATED: {"organization_id": names}})
    fields = [field for field, _ in silent_filters(one)]
    assert fields == ([f"filters.{LEAD_UPDATED}.organization_id"] if is_silent else [])
