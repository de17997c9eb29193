"""What is stored of a lead's features, and what a change writes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rules.leads.features import Shown


@dataclass(frozen=True, slots=True)
class FeatureItem:
    """A lead's item. version: grows with each write; 0: there is none yet.

    features: as shown (rules.leads.features.shown). as_of: stamps by input. inputs: the state by input, and
    the digest of the declarations that it was kept by (rules/leads/declarations.py); None: the state has to
    be built. active_on: an ISO date.
    """

    lead_organization_id: str
    version: int = 0
    features: Mapping[str, Shown] = field(default_factory=dict)
    as_of: Mapping[str, str] = field(default_factory=dict)
    computed_at: str | None = None
    inputs: Mapping[str, Any] | None = None
    active_on: str | None = None
    leaves: tuple[str, ...] = ()
    merged_into: str | None = None
    topology: int = 0

    @property
    def group(self) -> tuple[str, ...]:
        """The leaves whose events are this lead's."""
        return self.leaves or (self.lead_organization_id,)


@dataclass(frozen=True, slots=True)
class Change:
    """What to write. features, inputs, as_of: entries of these maps; None takes one away.

    Nothing that is not named is touched. An item without state is the exception: it gets all maps anew. A
    change without inputs leaves it without state. active_on: None takes the lead off the schedule.
    """

    features: Mapping[str, Shown]
    inputs: Mapping[str, Any]
    as_of: Mapping[str, str | None]
    computed_at: str
    active_on: str | None
