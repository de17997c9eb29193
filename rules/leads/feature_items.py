"""The item of a lead's features: features, the state that they follow from, and the root of the lead.

A `Change` says which entries of an item to write. `features_at` returns what a reader sees at an instant.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rules.days import stamp, unstamp
from rules.leads.feature_values import compute_features
from rules.leads.features import (
    CAMPAIGN_DAYS_MAX,
    CAMPAIGN_GRACE_DAYS,
    FEATURES,
    TRIGGERS,
    Contact,
    Feature,
    Input,
    ShownValue,
)
from rules.leads.lead_events import SENTIMENT_MILLI_MAX
from rules.leads.series import (
    AMOUNT_MINOR_MAX,
    EMPTY_STATE,
    MARK_ID_CHARACTERS,
    MARKS_MAX,
    SERIES_INPUTS,
    Contribution,
    Mark,
    Series,
    State,
)
from rules.leads.series_text import decode_contacts, decode_series

# Add one when code changes what the same declarations keep or give: what an event contributes, how an
# aggregate is computed, or how a series is written as text.
STATE_VERSION = 3
DIGEST_CHARACTERS = 8
DECLARED = "declared"  # the digest's name among the stored inputs
NEVER = datetime.min.replace(tzinfo=UTC)


def declaration_digest(features: Iterable[Feature]) -> str:
    """Return a digest, 8 hexadecimal characters, of what a state keeps and what is computed from it.

    A state keeps only what the features declared at the time need. Example: the longest window is 365 dates.
    Then an order of 500 days ago stays in the totals, but its date is dropped. A feature that is declared
    later with a window of 730 dates would be computed without that order, and nothing would show it. The
    digest does: a state that has another digest, or none, is built again from the stored events. That reads
    the lead's events once for each change of the declarations.

    An item has one digest and not one for each input, because one reading of all events builds all inputs.
    The lake has no column for it: the warehouse computes features from events, by today's declarations.

    The names of features are part of it, so that a new feature needs no event to appear. Their documentation
    and their order are not. Nor is the campaigns' grace: a state has the unanswered campaigns of the whole
    window, so each state stays right if a deployment changes the grace.
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

    def unsure_marks(self, added: Mapping[Input, Contribution]) -> list[Mark]:
        """Return an event's marks whose notes must be looked up (rules.leads.series.Series.has_left)."""
        marks = set[Mark]()
        for input_, contribution in added.items():
            if input_ is not Input.ACTIVITY and self.series(input_).has_left(contribution.mark):
                marks.add(contribution.mark)
        return list(marks)

    def leaving_marks(self, after: State) -> list[Mark]:
        """Return the marks that a later state no longer has. They are noted before it is stored."""
        marks = set[Mark]()
        for input_, series in after.items():
            if series.has_all_notes:
                marks |= set(self.series(input_).marks) - set(series.marks)
        return sorted(marks)

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
    unnoted: Collection[Mark] = ()  # marks to be noted once the change is stored


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
