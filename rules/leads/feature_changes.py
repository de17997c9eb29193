"""What an event, the stored events or the passing of time change of a lead's stored features.

Each function takes what was read and returns what to write. processors/leads/features.py reads, asks here,
and writes the answer on condition that the item still is what was read. grace_days: the deployment's
(rules.leads.feature_items.evaluate_features).
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
from rules.leads.features import CAMPAIGN_GRACE_DAYS, FEATURES, TRIGGERS, Contact, Input, ShownValue
from rules.leads.lead_events import CAMPAIGN_TYPES, IDENTITY_TYPES, LeadEvent
from rules.leads.memory import campaign_contact, remembered_entries
from rules.leads.series import (
    SERIES,
    Contribution,
    Mark,
    Series,
    State,
    add_contribution,
    build_state,
    decode_series,
    drop_old_dates,
    encode_contacts,
    encode_series,
    sums_of,
    unite_series,
    unnoted_marks,
)

ALL = frozenset(Input)
AHEAD_MAX = timedelta(days=1)


def rebuild_instant(item: FeatureItem, now: datetime) -> datetime:
    """Return the instant to rebuild an item at: not before its own, unless that one cannot be."""
    as_of = latest_instant(item, now)
    return now if as_of > now + AHEAD_MAX else as_of


def inputs_of(event_type: str, given: Collection[Input]) -> set[Input]:
    """Return the inputs whose features an event may change. given: what it contributes to.

    A campaign's events contribute to no series: what they say is read from memory.
    """
    return {each for each in Input if event_type in TRIGGERS[each]} & {*given, Input.CAMPAIGNS}


def with_event(
    item: FeatureItem, given: Mapping[Input, Contribution], noted: Collection[Mark], as_of: datetime
) -> State | None:
    """Return the series that an event contributes to, with the event in them.

    noted: those of item.unsure_marks() that have a note. None: only the stored events show it
    (rules.leads.series.add_contribution), or the item has no state of today's declarations.
    """
    if not item.is_current:
        return None
    after = {}
    for each, contribution in given.items():
        has_note = contribution.mark in noted
        series = add_contribution(item.series(each), each, contribution, as_of, has_note=has_note)
        if series is None:
            return None
        after[each] = series
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
    """Return what an event changes; None: nothing, because it is in already.

    after: what with_event() gave. contacts: the lead's campaigns, if the event's type touches them.
    """
    affected = inputs_of(event.event_type, after)
    texts: dict[Any, str] = {each: encode_series(series) for each, series in after.items()}
    is_known = item.inputs is not None and texts.items() <= item.inputs.items()
    has_campaigns = Input.CAMPAIGNS in affected
    active_on = listing_date(
        {**item.state(), **after}, contacts if has_campaigns else item.unanswered_campaigns(), as_of
    )
    # Contacts are no part of the item. Its version must move even if its values do not: else a computation
    # that read the contacts before this event was joined could be written over this one.
    if is_known and active_on == item.active_on and not has_campaigns:
        return None
    return Change(
        compute_features(affected, after, contacts, as_of, grace_days=grace_days),
        texts | ({Input.CAMPAIGNS: encode_contacts(contacts, as_of)} if has_campaigns else {}),
        dict.fromkeys(affected, stamp(as_of)),
        stamp(as_of),
        active_on,
    )


def change_from_events(
    item: FeatureItem,
    affected: Collection[Input],
    events: Iterable[LeadEvent],
    as_of: datetime,
    grace_days: int = CAMPAIGN_GRACE_DAYS,
) -> Change | None:
    """Return some inputs' features, built from all events of the lead's leaves; None: nothing to write.

    All inputs are built where the item has no state of today's declarations.
    """
    listed = [each for each in events if each.event_type not in IDENTITY_TYPES]
    if not listed:
        return _clear_features(item, as_of)
    wanted = affected if item.is_current else ALL
    as_of = max(as_of, *(each.occurred for each in listed))
    state = build_state(listed, as_of)
    entries = remembered_entries(each for each in listed if each.event_type in CAMPAIGN_TYPES)
    contacts = [campaign_contact(each) for each in entries.values()]
    return Change(
        _drop_undeclared(item) | compute_features(wanted, state, contacts, as_of, grace_days=grace_days),
        _stored_inputs(item, wanted, state, encode_contacts(contacts, as_of) if contacts else None),
        {each: stamp(as_of) for each in Input if each in wanted},
        stamp(as_of),
        listing_date(state, contacts, as_of),
        unnoted_marks(listed, {each: series for each, series in state.items() if each in wanted}),
    )


def change_with_leaves(
    item: FeatureItem,
    events: Iterable[LeadEvent],
    contacts: Collection[Contact],
    as_of: datetime,
    grace_days: int = CAMPAIGN_GRACE_DAYS,
) -> Change:
    """Return the features of a state that is joined by its pending leaves. events: all of these leaves.

    contacts: the campaigns of all leaves.
    """
    listed = [each for each in events if each.event_type not in IDENTITY_TYPES]
    as_of = max([as_of, *(each.occurred for each in listed)])
    built, state = build_state(listed, as_of), dict[Input, Series]()
    marks = unnoted_marks(listed, built)
    for each in SERIES:
        state[each], gone = unite_series(item.series(each), built[each], each, as_of)
        marks += gone
    inputs: dict[str, Any] = {each: encode_series(series) for each, series in state.items()}
    if contacts:
        inputs[Input.CAMPAIGNS] = encode_contacts(contacts, as_of)
    was_noted = all(item.series(each).is_noted for each in SERIES)
    return Change(
        compute_features(ALL, state, contacts, as_of, grace_days=grace_days),
        inputs,
        dict.fromkeys(ALL, stamp(as_of)),
        stamp(as_of),
        listing_date(state, contacts, as_of),
        marks if was_noted else (),
    )


def note_all_marks(item: FeatureItem, change: Change) -> Change | None:
    """Return what says that all marks of a change that built it are noted; None: the item has moved on."""
    built: dict[Any, str] = {each: text for each in SERIES if (text := change.inputs.get(each)) is not None}
    stored = item.inputs or {}
    if item.pending or not item.computed_at or any(stored.get(each) != text for each, text in built.items()):
        return None
    texts: dict[Any, str] = {
        each: encode_series(replace(decode_series(text), is_noted=True)) for each, text in built.items()
    }
    return Change({}, texts, {}, item.computed_at, item.active_on)


def _stored_inputs(
    item: FeatureItem, wanted: Collection[Input], state: State, waiting: str | None
) -> dict[str, Any]:
    """Return the state to store: what is wanted of it, and the digest if that is another one than before.

    waiting: the unanswered campaigns as text; None: the lead never met a campaign.
    """
    inputs: dict[str, Any] = {each: encode_series(state[each]) for each in SERIES if each in wanted}
    before = item.inputs or {}
    if Input.CAMPAIGNS in wanted and waiting != before.get(Input.CAMPAIGNS):
        inputs[Input.CAMPAIGNS] = waiting
    return inputs if before.get(DECLARED) == DIGEST else inputs | {DECLARED: DIGEST}


def _drop_undeclared(item: FeatureItem) -> dict[str, ShownValue]:
    """Take away what is stored of features that are no longer declared."""
    declared = {each.name for each in FEATURES}
    return {name: None for name in item.features if name not in declared}


def _clear_features(item: FeatureItem, as_of: datetime) -> Change | None:
    """Take away all that was computed before; None: there was nothing."""
    if not item.features:
        return None
    gone = dict.fromkeys(item.inputs or ())
    inputs = gone | {DECLARED: DIGEST} if item.inputs is not None else gone
    return Change(dict.fromkeys(item.features), inputs, dict.fromkeys(item.as_of), stamp(as_of), None)


def is_different(item: FeatureItem, change: Change) -> bool:
    """Whether a change changes anything but the instants of computation."""
    inputs = item.inputs or {}
    return (
        change.active_on != item.active_on
        or any(item.features.get(name) != value for name, value in change.features.items())
        or any(_sums(name, inputs.get(name)) != _sums(name, text) for name, text in change.inputs.items())
    )


def _sums(name: str, text: Any) -> Any:
    """Return what an input's text says of the events, and not of the order in which they came."""
    return sums_of(text) if isinstance(text, str) and name in SERIES else text


def inputs_due(item: FeatureItem, as_of: datetime) -> set[Input]:
    """Return the inputs that were computed as of an earlier instant."""
    return {each for each in Input if item.as_of.get(each, "") < stamp(as_of)}


def change_by_time(
    item: FeatureItem, due: Collection[Input], as_of: datetime, grace_days: int = CAMPAIGN_GRACE_DAYS
) -> Change | None:
    """Return what time alone has changed of the features of due inputs; None: nothing."""
    state = {each: drop_old_dates(item.series(each), each, as_of) for each in SERIES}
    contacts = item.unanswered_campaigns()
    features = compute_features(due, state, contacts, as_of, grace_days=grace_days, only_time_dependent=True)
    values = {name: value for name, value in features.items() if value != item.features.get(name)}
    moved = {each.input for each in FEATURES if each.name in values}
    active_on = listing_date(state, contacts, as_of)
    if not values and active_on == item.active_on:
        return None
    inputs: dict[str, Any] = {each: encode_series(series) for each, series in state.items() if each in moved}
    return Change(values, inputs, dict.fromkeys(moved, stamp(as_of)), stamp(as_of), active_on)
