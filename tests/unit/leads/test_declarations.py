"""A state that was kept by other declarations is built again, from the stored events, once."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.days import DAY
from rules.leads import feature_items
from rules.leads.feature_changes import ALL, change_from_events, with_event
from rules.leads.feature_items import DECLARED, DIGEST, FeatureItem, declaration_digest
from rules.leads.features import FEATURES, TRIGGERS, Aggregate, Feature, Input, Unit
from rules.leads.lead_events import LeadEvent
from rules.leads.series import contributions
from tests.support.declarations import MONETARY_730D, declare
from tests.support.lead_event_strategies import START, lead_event
from tests.support.lead_items import NOBODY, written

EVENTS = [
    lead_event(1, at=START - 500 * DAY, amount_minor=7000),
    lead_event(2, at=START - 3 * DAY, amount_minor=1005),
]
declared = st.builds(
    Feature,
    st.sampled_from(("a", "b", "c", "d")),
    st.sampled_from(Input),
    st.sampled_from(Aggregate),
    st.sampled_from(Unit),
    st.text(max_size=3),
    st.none() | st.integers(1, 800),
)
tables = st.lists(declared, unique_by=lambda each: each.name, max_size=4)


def kept() -> FeatureItem:
    """A lead's item, by the declarations of now."""
    return written(NOBODY, change_from_events(NOBODY, ALL, EVENTS, START))


def rebuilt(item: FeatureItem, events: Sequence[LeadEvent] = EVENTS) -> FeatureItem:
    return written(item, change_from_events(item, {Input.SENTIMENT}, events, START))


@given(tables, tables)
def test_the_digest_is_that_of_all_but_documentation_and_order(
    one: list[Feature], other: list[Feature]
) -> None:
    def told(features: list[Feature]) -> set[Feature]:
        return {replace(each, doc="") for each in features}

    assert (declaration_digest(one) == declaration_digest(other)) == (told(one) == told(other))
    assert (
        declaration_digest(one)
        == declaration_digest(one[::-1])
        == declaration_digest(replace(each, doc="new") for each in one)
    )
    assert len(declaration_digest(one)) == 8


@pytest.mark.parametrize(
    "name",
    ["STATE_VERSION", "MARKS_MAX", "MARK_ID_CHARACTERS", "AMOUNT_MINOR_MAX", "SENTIMENT_MILLI_MAX",
     "CAMPAIGN_DAYS_MAX"],
)  # fmt: skip
def test_what_else_decides_about_the_state_is_in_the_digest(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(feature_items, name, getattr(feature_items, name) + 1)
    assert declaration_digest(FEATURES) != DIGEST


def test_other_event_types_are_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    more = TRIGGERS[Input.ACTIVITY] | {"called_us"}
    monkeypatch.setattr(feature_items, "TRIGGERS", {**TRIGGERS, Input.ACTIVITY: more})
    assert declaration_digest(FEATURES) != DIGEST


def test_a_longer_window_finds_what_the_state_had_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    item = kept()
    assert item.is_current
    declare(monkeypatch, *FEATURES, MONETARY_730D)
    assert not item.is_current
    order = lead_event(3, amount_minor=100)
    assert with_event(item, contributions(order), START) is None
    after = rebuilt(item, [*EVENTS, order])
    assert after.features["monetary_730d"] == Decimal("81.05")
    assert after.is_current
    assert after == replace(
        written(NOBODY, change_from_events(NOBODY, ALL, [*EVENTS, order], START)), version=2
    )
    assert with_event(after, contributions(lead_event(4)), START) is not None


def test_a_state_of_before_there_was_a_digest_is_built_once() -> None:
    item = kept()
    assert item.inputs
    old = replace(item, inputs={name: text for name, text in item.inputs.items() if name != DECLARED})
    assert not old.is_current
    assert rebuilt(old) == replace(item, version=2)
    assert not NOBODY.is_current


def test_a_feature_that_is_declared_no_more_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as later:
        declare(later, *FEATURES, MONETARY_730D)
        item = kept()
        assert "monetary_730d" in item.features
    assert not item.is_current
    assert rebuilt(item) == replace(kept(), version=2)


def test_campaigns_that_no_event_tells_of_are_asked_for_no_more() -> None:
    item = kept()
    assert item.inputs
    wrong = replace(item, inputs={**item.inputs, Input.CAMPAIGNS: True, DECLARED: "another"})
    assert rebuilt(wrong) == replace(item, version=2)


def test_a_state_whose_events_are_gone_ends_empty_and_is_not_built_again() -> None:
    item = kept()
    assert item.inputs
    gone = rebuilt(replace(item, inputs={**item.inputs, DECLARED: "another"}), [])
    assert (gone.features, gone.as_of, gone.active_on) == ({}, {}, None)
    assert gone.is_current
    assert change_from_events(gone, ALL, [], START) is None
    order = lead_event(5)
    assert with_event(gone, contributions(order), START) == with_event(
        replace(NOBODY, inputs={DECLARED: DIGEST}), contributions(order), START
    )
