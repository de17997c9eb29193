"""memory-processing queue -> Memory. The evidence of an event is joined with what is remembered of its lead.

Joining is idempotent and gives the same in any order (rules.leads.memory). GroupMemory explains why that
stays true while leads merge and part. For a change of identity, this processor sets the topology, unless the
features processor has set it before. Then it joins the evidence of leaves that came to a root, or rebuilds
the memory of groups that parted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.bootstrap import ClientOf, bootstrap
from adapters.leads.erasures import is_erased
from adapters.leads.feature_store import FeatureStore, Topology
from adapters.leads.memory_store import GroupMemory, MemoryStore
from adapters.leads.person_events import PersonEvents
from adapters.logs import Logger
from adapters.platform.queues import PoisonMessage
from adapters.privacy.tombstones import NO_ERASURES, ErasureCheck, tombstones_of
from processors.batches import ConsumerSettings, queue_consumer
from rules.leads.lead_events import (
    IDENTITY_TYPES,
    LEADS_UNMERGED,
    LeadEvent,
    MalformedLeadEvent,
    from_item,
    groups_of,
)
from rules.leads.memory import derive_entries

logger = Logger(service="memory")


@dataclass(frozen=True)
class MemorySettings(ConsumerSettings):
    """The tables of leads, and of who was erased."""

    event_table: str
    memory_table: str
    feature_table: str
    group_events_table: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class MemoryProcessor:
    """Applies announced events to memory."""

    topology: Topology
    memory: GroupMemory
    erased: ErasureCheck = NO_ERASURES

    def handle(self, message: Any, now: datetime) -> None:
        """Apply one announcement; raises PoisonMessage, or an error that a later attempt may not meet."""
        try:
            event = from_item(message) if isinstance(message, Mapping) else None
            if event is None:
                raise PoisonMessage("the message is no object")
            if event.event_type in IDENTITY_TYPES:
                groups_of(event)
            if is_erased(event, self.erased):
                return
            entries = derive_entries(event)
        except MalformedLeadEvent as error:
            raise PoisonMessage(str(error)) from None
        if event.event_type in IDENTITY_TYPES:
            self._regroup(event, now)
        elif entries:
            self.memory.remember(event.lead_organization_id, event.root_id, entries, now)

    def _regroup(self, event: LeadEvent, now: datetime) -> None:
        number, groups = groups_of(event)
        self.topology.set(number, groups)
        for group in groups:
            if event.event_type == LEADS_UNMERGED:
                self.memory.rebuild(group.root, now)
            else:
                self.memory.absorb(group.root, group.leaves, now)


@bootstrap(MemorySettings)
def _parts(config: MemorySettings, client: ClientOf) -> MemoryProcessor:
    dynamodb = client("dynamodb")
    features = FeatureStore(dynamodb, config.feature_table)
    events = PersonEvents.of(dynamodb, config, features)
    memory = GroupMemory(MemoryStore(dynamodb, config.memory_table), features, events)
    return MemoryProcessor(
        Topology(dynamodb, config.feature_table, features), memory, tombstones_of(config, client)
    )


@queue_consumer("memory", logger)
def handler(message: Any, now: datetime) -> None:
    """Lambda entry: a batch of the memory-processing queue. Each message announces one event."""
    _parts().handle(message, now)
