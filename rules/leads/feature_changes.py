"""What an event, the stored events or the passing of time change of a lead's stored features.

Each function takes what was read and returns what to write. processors/leads/features.py reads, asks here,
and writes the answer on condition that the item still is what was read.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from rules.days import stamp, unstamp
from rules.leads.declarations import DECLARED, DIGEST
from rules.leads.feature_items import Change, FeatureItem
from rules.leads.feature_values import evaluate_all
from rules.leads.features import FEATURES, TRIGGERS, Contact, Feature, Input, Shown, listed_on, shown
from rules.leads.lead_events import CAMPAIGN_TYPES, IDENTITY_TYPES, LeadEvent
from rules.leads.memory import campaign_contact, remembered_entries
from rules.leads.series import NOTHING, SERIES, Contribution, Series, State, add, build, roll
from rules.leads.series_text import decode, encode

ALL = frozenset(Input)
NEVER = datetime.min.replace(tzinfo=UTC)
AHEAD_MAX = timedelta(days=1)


def is_current(item: FeatureItem) -> bool:
    """Whether the item has a state, kept by today's declarations (rules/leads/declarations.py)."""
    return item.inputs is not None and item.inputs.get(DECLARED) == DIGEST


def not_before(item: FeatureItem, *moments: datetime) -> datetime:
    """Return the latest of some instants and of the item's newest computation.

    A slow clock or a late message then brings no older values.
    """
    return max(*moments, NEVER if item.computed_at is None else unstamp(item.computed_at))


def healed(item: FeatureItem, now: datetime) -> datetime:
    """Return the instant to rebuild an item at: not before its own, unless that one cannot be."""
    as_of = not_before(item, now)
    return now if as_of > now + AHEAD_MAX else as_of


def inputs_of(event_type: str, given: Collection[Input]) -> set[Input]:
    """Return the inputs whose features an event may change. given: what it contributes to.

    A campaign's events contribute to no series: what they say is read from memory.
    """
    return {each for each in Input if event_type in TRIGGERS[each]} & {*given, Input.CAMPAIGNS}


def with_event(item: FeatureItem, given: Mapping[Input, Contribution], as_of: datetime) -> State | None:
    """Return the series that an event contributes to, with the event in them.

    None: only the stored events can tell. The item has no state of today's declarations, or the event is so
    old that the state does not know whether it is in.
    """
    if not is_current(item):
        return None
    after = {}
    for each, contribution in given.items():
        series = add(_series(item, each), each, contribution, as_of)
        if series is None:
            return None
        after[each] = series
    return after


def after_event(
    item: FeatureItem, event: LeadEvent, after: State, contacts: Iterable[Contact], as_of: datetime
) -> Change | None:
    """Return what an event changes; None: nothing, because it is in already.

    after: what with_event() gave. contacts: the lead's campaigns, if the event's type touches them.
    """
    affected = inputs_of(event.event_type, after)
    texts = {each: encode(series) for each, series in after.items()}
    is_known = item.inputs is not None and texts.items() <= item.inputs.items()
    newest = max(event.occurred_at[:10], item.active_on or "")
    active_on = listed_on(newest, as_of)
    has_campaigns = Input.CAMPAIGNS in affected
    # Contacts are no part of the item. Its version must move even if its values do not: else a computation
    # that read the contacts before this event was joined could be written over this one.
    if is_known and active_on == item.active_on and not has_campaigns:
        return None
    return Change(
        computed(affected, after, contacts, as_of),
        texts | ({Input.CAMPAIGNS: True} if has_campaigns else {}),
        dict.fromkeys(affected, stamp(as_of)),
        stamp(as_of),
        active_on,
    )


def from_events(
    item: FeatureItem, affected: Collection[Input], events: Iterable[LeadEvent], as_of: datetime
) -> Change | None:
    """Return some inputs' features, built from all events of the lead's leaves; None: nothing to write.

    All inputs are built where the item has no state of today's declarations.
    """
    listed = [each for each in events if each.event_type not in IDENTITY_TYPES]
    if not listed:
        return _without_events(item, as_of)
    wanted = affected if is_current(item) else ALL
    as_of = max(as_of, *(each.occurred for each in listed))
    state = build(listed, as_of)
    campaigns = remembered_entries(each for each in listed if each.event_type in CAMPAIGN_TYPES)
    newest = max(each.occurred_at[:10] for each in listed)
    return Change(
        _undeclared(item) | computed(wanted, state, map(campaign_contact, campaigns.values()), as_of),
        _inputs_built(item, wanted, state, bool(campaigns)),
        {each: stamp(as_of) for each in Input if each in wanted},
        stamp(as_of),
        listed_on(newest, as_of),
    )


def _inputs_built(
    item: FeatureItem, wanted: Collection[Input], state: State, has_campaigns: bool
) -> dict[str, Any]:
    """Return the state to store: what is wanted of it, and the digest if that is another one than before."""
    inputs: dict[str, Any] = {each: encode(state[each]) for each in SERIES if each in wanted}
    before = item.inputs or {}
    if Input.CAMPAIGNS in wanted and has_campaigns != (Input.CAMPAIGNS in before):
        inputs[Input.CAMPAIGNS] = has_campaigns or None
    return inputs if before.get(DECLARED) == DIGEST else inputs | {DECLARED: DIGEST}


def _undeclared(item: FeatureItem) -> dict[str, Shown]:
    """Take away what is stored of features that are no longer declared."""
    declared = {each.name for each in FEATURES}
    return {name: None for name in item.features if name not in declared}


def _without_events(item: FeatureItem, as_of: datetime) -> Change | None:
    """Take away all that was computed before; None: there was nothing."""
    if not item.features:
        return None
    gone = dict.fromkeys(item.inputs or ())
    inputs = gone | {DECLARED: DIGEST} if item.inputs is not None else gone
    return Change(dict.fromkeys(item.features), inputs, dict.fromkeys(item.as_of), stamp(as_of), None)


def differs(item: FeatureItem, change: Change) -> bool:
    """Whether a change changes anything but the instants of computation."""
    inputs = item.inputs or {}
    return (
        change.active_on != item.active_on
        or any(item.features.get(name) != value for name, value in change.features.items())
        or any(inputs.get(name) != text for name, text in change.inputs.items())
    )


def inputs_due(item: FeatureItem, as_of: datetime) -> set[Input]:
    """Return the inputs that were computed as of an earlier instant."""
    return {each for each in Input if item.as_of.get(each, "") < stamp(as_of)}


def has_contacts(item: FeatureItem, inputs: Collection[Input]) -> bool:
    """Whether some inputs' features ask for the campaigns that the lead was contacted by."""
    return Input.CAMPAIGNS in inputs and Input.CAMPAIGNS in (item.inputs or ())


def after_time(
    item: FeatureItem, due: Collection[Input], contacts: Iterable[Contact], as_of: datetime
) -> Change | None:
    """Return what time alone has changed of the features of due inputs; None: nothing."""
    state = {each: roll(_series(item, each), each, as_of) for each in SERIES if each in due}
    found = computed(due, state, contacts, as_of, only_time_dependent=True)
    values = {name: value for name, value in found.items() if value != item.features.get(name)}
    moved = {each.input for each in FEATURES if each.name in values}
    active_on = listed_on(item.active_on, as_of)
    if not values and active_on == item.active_on:
        return None
    inputs: dict[str, Any] = {each: encode(series) for each, series in state.items() if each in moved}
    return Change(values, inputs, dict.fromkeys(moved, stamp(as_of)), stamp(as_of), active_on)


def computed(
    inputs: Collection[Input],
    state: State,
    contacts: Iterable[Contact],
    as_of: datetime,
    only_time_dependent: bool = False,
) -> dict[str, Shown]:
    """Return the features of some inputs, as people read them."""
    wanted: dict[str, Feature] = {
        each.name: each
        for each in FEATURES
        if each.input in inputs and (each.is_time_dependent or not only_time_dependent)
    }
    values = evaluate_all(wanted.values(), state, contacts, as_of)
    return {name: shown(wanted[name], value) for name, value in values.items()}


def _series(item: FeatureItem, input_: Input) -> Series:
    stored = (item.inputs or {}).get(input_)
    return NOTHING[input_] if stored is None else decode(stored)
