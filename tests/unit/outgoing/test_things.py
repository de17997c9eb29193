"""What is told of leads, and of whom the messages are."""

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rules.leads.feature_items import FeatureItem
from rules.outgoing.derivation import ItemNoticeState, notices_of_lead
from rules.outgoing.notices import (
    KINDS_OF_PARTS,
    Notice,
    NoticeType,
    Notification,
    holder_names,
    holder_of,
    is_user,
    lead_holder,
)

AT = "2026-03-01T12:00:00.000000Z"


def lead(version: int, merged_into: str | None = None, **features: Any) -> FeatureItem:
    return FeatureItem("7", version, features, merged_into=merged_into)


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


def test_messages_say_of_whom_they_are() -> None:
    of_parts = {f"{kind.holder}q1": {kind.holder_name: "q1"} for kind in KINDS_OF_PARTS.values()}
    holders = ["ann", "lead", lead_holder("7"), "lead:7", *of_parts]
    said = [holder_names(each) for each in holders]
    assert said[:3] == [{"user_id": "ann"}, {"user_id": "lead"}, {"lead_id": "7"}]
    assert said[4:] == [*of_parts.values()]
    assert [holder_of(each) for each in said] == holders
    assert [is_user(each) for each in holders] == [True, True, False, True, *(False for _ in of_parts)]
    ids = {Notification(each, 1, AT, Notice(NoticeType.TEST, {})).message_id for each in holders}
    assert len(ids) == len(holders)
