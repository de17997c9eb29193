"""A lead's item, and what an event and a refresh make of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from hypothesis import settings

from rules.leads.feature_changes import (
    change_by_event,
    change_by_time,
    change_from_events,
    with_event,
)
from rules.leads.feature_items import Change, FeatureItem, latest_instant
from rules.leads.features import DECIMALS, FEATURES, Contact
from rules.leads.lake_entities import column_of
from rules.leads.lead_events import LeadEvent
from rules.leads.memory import campaign_contact, remembered_entries
from rules.leads.series import contributions
from tests.support.examples import examples

NOBODY = FeatureItem("leaf")
SMALL = settings(max_examples=examples(30))


def written(item: FeatureItem, change: Change | None) -> FeatureItem:
    """The item after a change, as adapters/leads/feature_store.py writes it."""
    if change is None:
        return item
    is_fresh = item.inputs is None

    def changed(before: Mapping[str, Any] | None, new: Mapping[Any, Any]) -> dict[str, Any]:
        after = {**({} if is_fresh else before or {}), **new}
        return {name: each for name, each in after.items() if each is not None}

    return replace(
        item,
        version=item.version + 1,
        features=changed(item.features, change.features),
        as_of=changed(item.as_of, change.as_of),
        inputs=changed(item.inputs, change.inputs) if change.inputs or not is_fresh else None,
        computed_at=change.computed_at,
        active_on=change.active_on,
    )


def contacts_of(events: Iterable[LeadEvent]) -> list[Contact]:
    return [
        campaign_contact(each)
        for each in remembered_entries(events).values()
        if each.memory_type == "campaign_contact"
    ]


def told(
    item: FeatureItem,
    event: LeadEvent,
    known: Sequence[LeadEvent],
    now: datetime,
    stored: Sequence[LeadEvent],
) -> Change | None:
    """What the processor does with an event. known: joined into memory; stored: in the table."""
    added, as_of = contributions(event), latest_instant(item, now, event.occurred)
    after = with_event(item, added, as_of)
    if after is None:
        return change_from_events(item, stored, as_of)
    return change_by_event(item, event, after, contacts_of(known), as_of)


def refreshed(item: FeatureItem, now: datetime) -> Change | None:
    return change_by_time(item, latest_instant(item, now))


def in_columns(features: Mapping[str, Any]) -> dict[str, Any]:
    """Features as the plain reading gives them: in whole units, by column of the lake."""
    whole = {each.name: 10 ** DECIMALS.get(each.unit, 0) for each in FEATURES}
    return {
        column_of(each): None if (value := features.get(each.name)) is None else value * whole[each.name]
        for each in FEATURES
    }
