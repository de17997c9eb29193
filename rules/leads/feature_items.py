"""What is stored of a lead's features, what a change writes, and what a reading makes of it at an instant."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rules.days import stamp, unstamp
from rules.leads.declarations import DECLARED, DIGEST
from rules.leads.feature_values import evaluate_all
from rules.leads.features import CAMPAIGN_GRACE_DAYS, FEATURES, Contact, Feature, Input, Shown, shown
from rules.leads.series import NOTHING, SERIES, Contribution, Mark, Series, State
from rules.leads.series_text import decode, decode_contacts, encode, encode_after

NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class FeatureItem:
    """A lead's item. version: grows with each write; 0: there is none yet.

    features: as shown (rules.leads.features.shown). as_of: stamps by input. inputs: the state by input, and
    the digest of the declarations that it was kept by (rules/leads/declarations.py); None: the state has to
    be built. Of campaigns, the state is when the unanswered ones were sent. active_on: an ISO date.
    merged_into: the lead's root, if it is not its own. topology: the change that said so. regrouped: grows
    when leaves come to this root or leave it. pending: leaves that the state is still without.
    """

    lead_organization_id: str
    version: int = 0
    features: Mapping[str, Shown] = field(default_factory=dict)
    as_of: Mapping[str, str] = field(default_factory=dict)
    computed_at: str | None = None
    inputs: Mapping[str, Any] | None = None
    active_on: str | None = None
    merged_into: str | None = None
    topology: int = 0
    regrouped: int = 0
    pending: tuple[str, ...] = ()
    _read: dict[Input, Series] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def root(self) -> str:
        """The root that its item says: the lead itself, or who absorbed it."""
        return self.merged_into or self.lead_organization_id

    @property
    def is_current(self) -> bool:
        """Whether there is a state of all leaves, kept by today's declarations."""
        return self.has_state and not self.pending

    @property
    def is_joining(self) -> bool:
        """Whether there is a state, and the events of some leaves are still to be joined to it."""
        return self.has_state and bool(self.pending)

    @property
    def has_state(self) -> bool:
        """Whether there is a state, kept by today's declarations (rules/leads/declarations.py)."""
        return self.inputs is not None and self.inputs.get(DECLARED) == DIGEST

    def series(self, input_: Input) -> Series:
        """Return the stored state of an input that is a series."""
        if input_ not in self._read:  # each event asks several times, and reading takes the most of its CPU
            stored = (self.inputs or {}).get(input_)
            self._read[input_] = NOTHING[input_] if stored is None else decode(stored)
        return self._read[input_]

    def text_after(self, input_: Input, series: Series) -> str:
        """Return the text of what an input's series has become."""
        stored = (self.inputs or {}).get(input_)
        return encode(series) if stored is None else encode_after(series, self.series(input_), stored)

    def unsure(self, given: Mapping[Input, Contribution]) -> list[Mark]:
        """Return the marks of an event that only a note can tell of (rules.leads.series.Series.has_left)."""
        series = ((self.series(each), one.mark) for each, one in given.items() if each is not Input.ACTIVITY)
        return list({mark for one, mark in series if one.has_left(mark)})

    def leaving(self, after: State) -> list[Mark]:
        """Return the marks that a later state has no more: they are noted before it is stored."""
        gone = [
            set(self.series(each).seen) - set(later.seen) for each, later in after.items() if later.is_noted
        ]
        return sorted(set().union(*gone))

    def waiting(self) -> list[Contact]:
        """Return the campaigns that had no reaction when the state was written."""
        stored = (self.inputs or {}).get(Input.CAMPAIGNS)
        return [] if stored is None else decode_contacts(stored)

    def state(self) -> dict[Input, Series]:
        """Return the stored state of all series."""
        return {each: self.series(each) for each in SERIES}


@dataclass(frozen=True, slots=True)
class Change:
    """What to write. features, inputs, as_of: entries of these maps; None takes one away.

    Nothing that is not named is touched. An item without state is the exception: it gets all maps anew. A
    change without inputs leaves it without state. active_on: None takes the lead off the schedule. unnoted:
    marks to be noted once the change is stored.
    """

    features: Mapping[str, Shown]
    inputs: Mapping[str, Any]
    as_of: Mapping[str, str | None]
    computed_at: str
    active_on: str | None
    unnoted: Collection[Mark] = ()


def not_before(item: FeatureItem, *moments: datetime) -> datetime:
    """Return the latest of some instants and of the item's newest computation.

    A slow clock or a late message then brings no older values.
    """
    return max(*moments, NEVER if item.computed_at is None else unstamp(item.computed_at))


def read_at(
    item: FeatureItem, now: datetime, grace_days: int = CAMPAIGN_GRACE_DAYS
) -> tuple[dict[str, Shown], dict[str, str]]:
    """Return an item's features as of an instant, and by input as of when each is (stamps).

    What time alone changes follows from the state. So it does not matter how long ago the item was written.
    An item without a state of today's declarations is shown as it is stored; `as_of` tells how old that is.
    """
    if not item.is_current:
        return dict(item.features), dict(item.as_of)
    as_of = not_before(item, now)
    known = {Input(each) for each in item.as_of}
    found = computed(known, item.state(), item.waiting(), as_of, grace_days=grace_days)
    return {name: each for name, each in found.items() if each is not None}, dict.fromkeys(
        known, stamp(as_of)
    )


def computed(  # noqa: PLR0913 (what a value follows from)
    inputs: Collection[Input],
    state: State,
    contacts: Iterable[Contact],
    as_of: datetime,
    *,
    grace_days: int,
    only_time_dependent: bool = False,
) -> dict[str, Shown]:
    """Return the features of some inputs, as people read them. grace_days: see `evaluate`."""
    wanted: dict[str, Feature] = {
        each.name: each
        for each in FEATURES
        if each.input in inputs and (each.is_time_dependent or not only_time_dependent)
    }
    values = evaluate_all(wanted.values(), state, contacts, as_of, grace_days)
    return {name: shown(wanted[name], value) for name, value in values.items()}
