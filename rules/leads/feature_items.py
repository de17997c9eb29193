"""The item of a lead's features: features, the state that they follow from, and the root of the lead.

`evaluate_features` computes values from a state. A `Change` says which entries of an item to write.
`features_at` returns what a reader sees at an instant.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from rules.days import stamp, unstamp
from rules.leads.features import (
    ACTIVE_DAYS_MAX,
    CAMPAIGN_DAYS_MAX,
    CAMPAIGN_GRACE_DAYS,
    FEATURES,
    TRIGGERS,
    Aggregate,
    Contact,
    Feature,
    Input,
    ShownValue,
    Value,
    shown_value,
)
from rules.leads.lead_events import SENTIMENT_MILLI_MAX
from rules.leads.series import (
    AMOUNT_MINOR_MAX,
    EMPTY_STATE,
    KEPT_DAYS,
    MARK_ID_CHARACTERS,
    MARKS_MAX,
    SERIES_INPUTS,
    Series,
    State,
    Sums,
    decode_contacts,
    decode_series,
)

AGES = frozenset({Aggregate.DAYS_SINCE_FIRST, Aggregate.DAYS_SINCE_LAST})


def compute_features(
    inputs: Collection[Input], state: State, contacts: Iterable[Contact], as_of: datetime, *, grace_days: int
) -> dict[str, ShownValue]:
    """Return the features of some inputs by name, as people read them."""
    wanted: dict[str, Feature] = {feature.name: feature for feature in FEATURES if feature.input in inputs}
    values = evaluate_features(wanted.values(), state, contacts, as_of, grace_days)
    return {name: shown_value(wanted[name], value) for name, value in values.items()}


def evaluate_features(
    features: Iterable[Feature],
    state: State,
    campaigns: Iterable[Contact],
    as_of: datetime,
    grace_days: int = CAMPAIGN_GRACE_DAYS,
) -> dict[str, Value]:
    """Return the values of features by name, at an instant (UTC) that no event of the state is later than.

    grace_days: an unanswered campaign counts as ignored when it was sent at least so many dates ago.
    Features of one input and one window share the sums of that window, because adding up dates is most of
    the work.
    """
    today, contacts = as_of.toordinal(), list(campaigns)
    windows = dict[tuple[Input, int | None], Sums]()
    values: dict[str, Value] = {}
    for feature in features:
        if feature.input is Input.CAMPAIGNS:
            values[feature.name] = _ignored_campaigns(contacts, today, grace_days)
        elif feature.aggregate in AGES:
            values[feature.name] = _age(feature.aggregate, state[feature.input], today)
        else:
            window = feature.input, feature.window_days
            if window not in windows:
                windows[window] = _window(state[feature.input], feature.window_days, today)
            count, amount = windows[window]
            # An average of all time leaves out foreign currencies, whose amounts are not in the sum.
            if feature.aggregate is Aggregate.AVERAGE and feature.window_days is None:
                count = state[feature.input].priced
            values[feature.name] = _aggregate_window(feature.aggregate, count, amount)
    return values


def listing_date(state: State, campaigns: Iterable[Contact], as_of: datetime) -> str | None:
    """Return the date under which the schedule lists a lead; None if time changes no feature of it.

    A lead is listed until all of its windows are empty, and for 90 dates after it last did anything. The date
    is the newest one that still counts in any of these. Example: an order keeps a lead listed for 365 dates.
    """
    today = as_of.toordinal()
    # Dates, each with the number of days for which it counts
    dates = [(state[Input.ACTIVITY].last, ACTIVE_DAYS_MAX)]
    dates += [(next(reversed(state[input_].days), 0), days) for input_, days in KEPT_DAYS.items()]
    dates += [(campaign.sent or 0, CAMPAIGN_DAYS_MAX) for campaign in campaigns if not campaign.reacted]
    day = max((day for day, days in dates if day > today - days), default=0)
    return date.fromordinal(day).isoformat() if day else None


def rounded_mean(total: int, count: int) -> int:
    """Return total / count, rounded half up (towards plus infinity), in whole numbers."""
    return (2 * total + count) // (2 * count)


def _age(aggregate: Aggregate, series: Series, today: int) -> int | None:
    day = series.first if aggregate is Aggregate.DAYS_SINCE_FIRST else series.last
    return today - day if day else None


def _aggregate_window(aggregate: Aggregate, count: int, amount: int) -> Value:
    if aggregate is Aggregate.SUM:
        return amount
    if aggregate is Aggregate.COUNT:
        return count
    if aggregate is Aggregate.ANY:
        return count > 0
    return rounded_mean(amount, count) if count > 0 else None


def _window(series: Series, window_days: int | None, today: int) -> Sums:
    if window_days is None:
        return Sums(series.count, series.amount)
    sums = [day_sums for day, day_sums in series.days.items() if day > today - window_days]
    return Sums(sum(day_sums.number for day_sums in sums), sum(day_sums.amount for day_sums in sums))


def _ignored_campaigns(campaigns: Iterable[Contact], today: int, grace_days: int) -> int:
    oldest, newest = today - CAMPAIGN_DAYS_MAX, today - grace_days
    return sum(
        not campaign.reacted and campaign.sent is not None and oldest < campaign.sent <= newest
        for campaign in campaigns
    )


# Add one when code changes what the same declarations keep or give: what an event contributes, how an
# aggregate is computed, or how a series is written as text.
STATE_VERSION = 4
DIGEST_CHARACTERS = 8
DECLARED = "declared"  # the digest's name among the stored inputs
NEVER = datetime.min.replace(tzinfo=UTC)


def declaration_digest(features: Iterable[Feature]) -> str:
    """Return a digest, 8 hexadecimal characters, of what a state keeps and what is computed from it.

    A state keeps only what the features declared at the time need. If the longest window grows from 365 to
    730 dates, an order of 500 days ago is in the totals, but its date was dropped. So a state that has
    another digest, or none, is built again from the stored events.

    The names of features are part of it, so that a new feature needs no event to appear. The campaigns' grace
    is not: a state has the unanswered campaigns of the whole window.
    """
    declarations = {
        "state": (STATE_VERSION, MARKS_MAX, MARK_ID_CHARACTERS, AMOUNT_MINOR_MAX, SENTIMENT_MILLI_MAX),
        "campaigns": CAMPAIGN_DAYS_MAX,
        "triggers": {input_: sorted(types) for input_, types in TRIGGERS.items()},
        "features": {
            feature.name: (feature.input, feature.aggregate, feature.unit, feature.window_days)
            for feature in features
        },
    }
    return hashlib.sha256(json.dumps(declarations, sort_keys=True).encode()).hexdigest()[:DIGEST_CHARACTERS]


DIGEST = declaration_digest(FEATURES)


@dataclass(frozen=True, slots=True)
class FeatureItem:
    """A lead's item."""

    lead_organization_id: str
    version: int = 0  # grows with each write; 0: the item is not stored
    features: Mapping[str, ShownValue] = field(default_factory=dict)  # as people read them
    as_of: Mapping[str, str] = field(default_factory=dict)  # stamps by input
    computed_at: str | None = None
    # The state by input as text, and under DECLARED the digest of the declarations that it was made by. None:
    # the state has to be built. The state of campaigns is when the unanswered ones were sent.
    inputs: Mapping[str, Any] | None = None
    active_on: str | None = None  # an ISO date
    merged_into: str | None = None  # the lead's root, if it is not its own
    topology: int = 0  # the number of the change of identity that set the root
    group_changes: int = 0  # grows when leaves come to this root or leave it (attribute `regrouped`)
    pending: tuple[str, ...] = ()  # leaves whose events are not in the state yet
    _decoded: dict[Input, Series] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def root(self) -> str:
        """The root that the item names: the lead itself, or the lead that absorbed it."""
        return self.merged_into or self.lead_organization_id

    @property
    def is_current(self) -> bool:
        """Whether there is a state of all leaves, kept by today's declarations."""
        return self.has_state and not self.pending

    @property
    def is_joining(self) -> bool:
        """Whether there is a state, but it lacks the events of some leaves."""
        return self.has_state and bool(self.pending)

    @property
    def has_state(self) -> bool:
        """Whether there is a state, kept by today's declarations."""
        return self.inputs is not None and self.inputs.get(DECLARED) == DIGEST

    def series(self, input_: Input) -> Series:
        """Return the stored state of an input that is a series."""
        # Each event reads a series several times, and decoding takes most of the event's CPU.
        if input_ not in self._decoded:
            stored = (self.inputs or {}).get(input_)
            self._decoded[input_] = EMPTY_STATE[input_] if stored is None else decode_series(stored)
        return self._decoded[input_]

    def unanswered_campaigns(self) -> list[Contact]:
        """Return the campaigns that had no reaction when the state was written."""
        stored = (self.inputs or {}).get(Input.CAMPAIGNS)
        return [] if stored is None else decode_contacts(stored)

    def state(self) -> dict[Input, Series]:
        """Return the stored state of all series."""
        return {input_: self.series(input_) for input_ in SERIES_INPUTS}


@dataclass(frozen=True, slots=True)
class Change:
    """The entries of an item that are written; others stay.

    An item without state gets all its maps anew. A change without inputs leaves it without state.
    """

    features: Mapping[str, ShownValue]  # entries of the item's `features`; None removes one
    inputs: Mapping[str, Any]  # entries of the item's `inputs`; None removes one
    as_of: Mapping[str, str | None]  # entries of the item's `as_of`; None removes one
    computed_at: str  # a stamp
    active_on: str | None  # the lead's date in the schedule (listing_date); None removes the lead from it


def latest_instant(item: FeatureItem, *moments: datetime) -> datetime:
    """Return the latest of some instants and of the item's newest computation.

    A slow clock or a late message then brings no older values.
    """
    return max(*moments, NEVER if item.computed_at is None else unstamp(item.computed_at))


def features_at(
    item: FeatureItem, now: datetime, grace_days: int = CAMPAIGN_GRACE_DAYS
) -> tuple[dict[str, ShownValue], dict[str, str]]:
    """Return (features by name, stamp by input): an item's features, and the instant that each input is as
    of.

    A current item is computed as of now from its state, so it does not matter how long ago it was written. An
    item without a state of today's declarations is returned as it is stored, with the stamps that say how old
    it is.
    """
    if not item.is_current:
        return dict(item.features), dict(item.as_of)
    as_of = latest_instant(item, now)
    inputs = {Input(name) for name in item.as_of}
    campaigns = item.unanswered_campaigns()
    features = compute_features(inputs, item.state(), campaigns, as_of, grace_days=grace_days)
    present: dict[str, ShownValue] = {name: value for name, value in features.items() if value is not None}
    return present, dict.fromkeys(inputs, stamp(as_of))
