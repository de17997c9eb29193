"""Changes of a lead's stored features: by an event, by all stored events, or by time.

Each function takes the item that was read and returns the change to write. processors/leads/features.py reads
the item, and writes the change on condition that the item still is what was read. grace_days: the
deployment's (rules.leads.feature_items.evaluate_features).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from rules.days import stamp
from rules.leads.feature_items import (
    DECLARED,
    DIGEST,
    Change,
    FeatureItem,
    compute_features,
    latest_instant,
    listing_date,
)
from rules.leads.features import CAMPAIGN_GRACE_DAYS, FEATURES, TRIGGERS, Contact, Input
from rules.leads.lead_events import CAMPAIGN_TYPES, IDENTITY_TYPES, LeadEvent
from rules.leads.memory import campaign_contact, remembered_entries
from rules.leads.series import (
    SERIES_INPUTS,
    Contribution,
    State,
    add_contribution,
    build_state,
    drop_old_dates,
    encode_contacts,
    encode_series,
    unite_series,
)

ALL = frozenset(Input)
AHEAD_MAX = timedelta(days=1)  # an item's instant that is further ahead of the clock is wrong


def rebuild_instant(item: FeatureItem, now: datetime) -> datetime:
    """Return the instant to rebuild an item at: not before its own, unless that one is wrong."""
    as_of = latest_instant(item, now)
    return now if as_of > now + AHEAD_MAX else as_of


def inputs_of(event_type: str, contributing: Collection[Input]) -> set[Input]:
    """Return the inputs whose features an event may change. contributing: those of its contributions.

    A campaign's events contribute to no series: contacts are read from memory.
    """
    triggered = {input_ for input_ in Input if event_type in TRIGGERS[input_]}
    return triggered & {*contributing, Input.CAMPAIGNS}


def with_event(item: FeatureItem, added: Mapping[Input, Contribution], as_of: datetime) -> State | None:
    """Return the series that an event contributes to, with the event in them. added: its contributions.

    None: the series must be built from the stored events (rules.leads.series.add_contribution), or the item
    has no state of today's declarations.
    """
    if not item.is_current:
        return None
    after = {}
    for input_, contribution in added.items():
        series = add_contribution(item.series(input_), input_, contribution, as_of)
        if series is None:
            return None
        after[input_] = series
    return after


def change_by_event(  # noqa: PLR0913 (what a change follows from)
    item: FeatureItem,
    event: LeadEvent,
    after: State,
    contacts: Collection[Contact],
    as_of: datetime,
    *,
    grace_days: int = CAMPAIGN_GRACE_DAYS,
) -> Change | None:
    """Return the change that an event makes; None if the event is counted already.

    after: the series that with_event() returned. contacts: the lead's campaigns, if the event is about one.
    """
    affected = inputs_of(event.event_type, after)
    texts: dict[Any, str] = {input_: encode_series(series) for input_, series in after.items()}
    is_counted = item.inputs is not None and texts.items() <= item.inputs.items()
    has_campaigns = Input.CAMPAIGNS in affected
    campaigns = contacts if has_campaigns else item.unanswered_campaigns()
    active_on = listing_date({**item.state(), **after}, campaigns, as_of)
    # Contacts are no part of the item. So for a campaign the item is written even if no value changes: its
    # version grows. Then a computation that read the contacts before this event was remembered cannot be
    # written.
    if is_counted and active_on == item.active_on and not has_campaigns:
        return None
    if has_campaigns:
        texts[Input.CAMPAIGNS] = encode_contacts(contacts, as_of)
    return Change(
        features=compute_features(affected, after, contacts, as_of, grace_days=grace_days),
        inputs=texts,
        as_of=dict.fromkeys(affected, stamp(as_of)),
        computed_at=stamp(as_of),
        active_on=active_on,
    )


def change_from_events(
    item: FeatureItem, events: Iterable[LeadEvent], as_of: datetime, grace_days: int = CAMPAIGN_GRACE_DAYS
) -> Change | None:
    """Return the features, built from all events of the lead's leaves; None: nothing to write."""
    # Changes of identity say who is one lead. They contribute to no feature.
    counted_events = [event for event in events if event.event_type not in IDENTITY_TYPES]
    if not counted_events:
        return _clear_features(item, as_of)
    as_of = max(as_of, *(event.occurred for event in counted_events))
    state = build_state(counted_events, as_of)
    entries = remembered_entries(event for event in counted_events if event.event_type in CAMPAIGN_TYPES)
    contacts = [campaign_contact(entry) for entry in entries.values()]
    declared = {feature.name for feature in FEATURES}
    undeclared = dict.fromkeys(item.features.keys() - declared)
    inputs: dict[str, Any] = {input_: encode_series(series) for input_, series in state.items()}
    before = item.inputs or {}
    if before.get(DECLARED) != DIGEST:
        inputs[DECLARED] = DIGEST
    if contacts or Input.CAMPAIGNS in before:
        inputs[Input.CAMPAIGNS] = encode_contacts(contacts, as_of) if contacts else None
    change = _change_of_all(state, inputs, contacts, as_of, grace_days)
    return replace(change, features={**undeclared, **change.features})


def change_with_leaves(
    item: FeatureItem,
    events: Iterable[LeadEvent],
    contacts: Collection[Contact],
    as_of: datetime,
    grace_days: int = CAMPAIGN_GRACE_DAYS,
) -> Change | None:
    """Return the change that joins the pending leaves to the state; None if it must be built from all events.

    events: all of the pending leaves. contacts: the campaigns of all leaves.
    """
    joining_events = [event for event in events if event.event_type not in IDENTITY_TYPES]
    as_of = max([as_of, *(event.occurred for event in joining_events)])
    joining_state = build_state(joining_events, as_of)
    state = {}
    for input_ in SERIES_INPUTS:
        series = unite_series(item.series(input_), joining_state[input_], input_, as_of)
        if series is None:
            return None
        state[input_] = series
    inputs: dict[str, Any] = {input_: encode_series(series) for input_, series in state.items()}
    if contacts:
        inputs[Input.CAMPAIGNS] = encode_contacts(contacts, as_of)
    return _change_of_all(state, inputs, contacts, as_of, grace_days)


def _change_of_all(
    state: State,
    inputs: Mapping[str, Any],
    contacts: Collection[Contact],
    as_of: datetime,
    grace_days: int,
) -> Change:
    """Return the change that writes all declared features. inputs: the entries of the state's text."""
    return Change(
        features=compute_features(ALL, state, contacts, as_of, grace_days=grace_days),
        inputs=inputs,
        as_of=dict.fromkeys(ALL, stamp(as_of)),
        computed_at=stamp(as_of),
        active_on=listing_date(state, contacts, as_of),
    )


def is_different(item: FeatureItem, change: Change) -> bool:
    """Return whether a change changes anything but the instants of computation."""
    inputs = item.inputs or {}
    return (
        change.active_on != item.active_on
        or any(item.features.get(name) != value for name, value in change.features.items())
        or any(inputs.get(name) != text for name, text in change.inputs.items())
    )


def change_by_time(
    item: FeatureItem, as_of: datetime, grace_days: int = CAMPAIGN_GRACE_DAYS
) -> Change | None:
    """Return the change that time alone makes; None if it makes none."""
    state = {input_: drop_old_dates(item.series(input_), input_, as_of) for input_ in SERIES_INPUTS}
    contacts = item.unanswered_campaigns()
    features = compute_features(ALL, state, contacts, as_of, grace_days=grace_days)
    values = {name: value for name, value in features.items() if value != item.features.get(name)}
    changed = {feature.input for feature in FEATURES if feature.name in values}
    active_on = listing_date(state, contacts, as_of)
    if not values and active_on == item.active_on:
        return None
    return Change(
        features=values,
        inputs={input_: encode_series(state[input_]) for input_ in SERIES_INPUTS if input_ in changed},
        as_of=dict.fromkeys(changed, stamp(as_of)),
        computed_at=stamp(as_of),
        active_on=active_on,
    )


def _clear_features(item: FeatureItem, as_of: datetime) -> Change | None:
    if not item.features:
        return None
    inputs: dict[str, Any] = {} if item.inputs is None else dict.fromkeys(item.inputs) | {DECLARED: DIGEST}
    return Change(
        features=dict.fromkeys(item.features),
        inputs=inputs,
        as_of=dict.fromkeys(item.as_of),
        computed_at=stamp(as_of),
        active_on=None,
    )
