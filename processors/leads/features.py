"""feature queues -> Feature: an event recomputes what it affects, a refresh what time changes.

A rebuild, which an operator asks for, makes features what the stored events say, whatever the state says.

A lead's state and features change in one conditional write. An event is counted if the stored state has it,
and not otherwise: after a crash the next attempt counts it, and no attempt counts it twice. A lead is
*joining* while leaves that came to it are *pending*: not yet in its state. What is to be written is decided
in rules/leads/feature_changes.py.

Campaigns are the exception: their state is Memory. Their events are joined there first, and then read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from adapters.bootstrap import ClientOf, bootstrap
from adapters.leads.erasures import is_erased
from adapters.leads.feature_store import FeatureItemChanged, FeatureStore, Topology
from adapters.leads.memory_store import GroupMemory, MemoryStore
from adapters.leads.person_events import PersonEvents
from adapters.logs import Logger
from adapters.platform.aws import pauses
from adapters.platform.queues import PoisonMessage
from adapters.platform.tables import Unprocessed
from adapters.privacy.tombstones import NO_ERASURES, ErasureCheck, tombstones_of
from processors.batches import ConsumerSettings, queue_consumer
from rules.days import unstamp
from rules.leads import feature_changes
from rules.leads.feature_items import Change, FeatureItem, latest_instant
from rules.leads.features import CAMPAIGN_GRACE_DAYS, Input
from rules.leads.lead_events import (
    CAMPAIGN_TYPES,
    IDENTITY_TYPES,
    LeadEvent,
    MalformedLeadEvent,
    from_item,
    groups_of,
)
from rules.leads.memory import derive_entries
from rules.leads.series import Contribution, contributions

logger = Logger(service="features")
ATTEMPTS_MAX = 12
Contributions = Mapping[Input, Contribution]
Decide = Callable[[FeatureItem], Change | None]


@dataclass(frozen=True)
class FeaturesSettings(ConsumerSettings):
    """feature_shards splits the index of active leads."""

    event_table: str
    memory_table: str
    feature_table: str
    group_events_table: str
    feature_shards: int
    campaign_grace_days: int
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class FeatureProcessor:
    """Applies announced events, refreshes and rebuilds to features."""

    store: FeatureStore
    topology: Topology
    memory: GroupMemory
    events: PersonEvents
    erased: ErasureCheck = NO_ERASURES
    grace_days: int = CAMPAIGN_GRACE_DAYS  # the setting: after which an unanswered campaign is ignored

    def handle(self, message: Any, now: datetime) -> None:
        """Apply one message; raises PoisonMessage, or an error that a later attempt may not meet."""
        if not isinstance(message, Mapping):
            raise PoisonMessage("the message is no object")
        if "refresh" in message:
            request = message["refresh"]
            change_for_time = partial(self._change_for_time, as_of=unstamp(request["as_of"]))
            self._settle_all(self.store.get_many(request["leads"]), change_for_time)
        elif "rebuild" in message:
            request = message["rebuild"]
            items = self.store.readable(request["leads"], ignores_stored="anew" in request)
            self._settle_all(items, partial(self._change_for_rebuild, now=now))
        else:
            self._handle_event(message, now)

    def _handle_event(self, message: Mapping[str, Any], now: datetime) -> None:
        """Apply an announced event. It is read in full before anything is written. Raises as handle()."""
        try:
            event = from_item(message)
            if is_erased(event, self.erased):
                return
            added = contributions(event)
            is_campaign = event.event_type in CAMPAIGN_TYPES
            entries = derive_entries(event) if is_campaign else []
            groups = groups_of(event)[1] if event.event_type in IDENTITY_TYPES else ()
        except MalformedLeadEvent as error:
            raise PoisonMessage(str(error)) from None
        if groups:
            self._regroup(event, now)
        elif is_campaign:
            root = self.memory.remember(event.lead_organization_id, event.root_id, entries, now)
            self._apply(event, added, root, now)
        elif added:
            self._apply(event, added, event.root_id, now)

    def _apply(self, event: LeadEvent, added: Contributions, hint: str, now: datetime) -> None:
        """Count an event at its leaf's root. added: its contributions. hint: the probable root."""

        def attempt() -> bool:
            item = self.store.home(event.lead_organization_id, hint)
            if item.is_joining:  # an event is counted in a state of all leaves only
                self._write(item, self._change_from_leaves(item, latest_instant(item, now)))
                item = self.store.home(event.lead_organization_id, item.lead_organization_id)
                if item.is_joining:  # further leaves came meanwhile
                    return False
            return self._write(item, self._change_for_event(item, event, added, now))

        _until_done(attempt)

    def _write(self, item: FeatureItem, change: Change | None) -> bool:
        """Write a change, if there is one; returns False if somebody else was first."""
        try:
            if change is not None:
                self.store.write(item, change)
        except FeatureItemChanged:
            return False
        return True

    def _change_for_event(
        self, item: FeatureItem, event: LeadEvent, added: Contributions, now: datetime
    ) -> Change | None:
        """Return the change by an event; None if it is counted already."""
        as_of = latest_instant(item, now, event.occurred)
        after = feature_changes.with_event(item, added, as_of)
        if after is None:
            return self._change_from_leaves(item, as_of)
        contacts = self.memory.contacts(item) if event.event_type in CAMPAIGN_TYPES else []
        return feature_changes.change_by_event(
            item, event, after, contacts, as_of, grace_days=self.grace_days
        )

    def _change_from_leaves(self, item: FeatureItem, as_of: datetime) -> Change | None:
        """Return the features from the stored events of the lead's leaves; None: nothing to write.

        If leaves came to a lead that has a state, only their events are read.
        """
        if not item.is_joining:
            return self._change_from_all_events(item, as_of)
        self.memory.absorb(item.lead_organization_id, item.pending, as_of)
        pending_events = self.events.list_pending(item)
        contacts = self.memory.contacts(item)
        change = feature_changes.change_with_leaves(item, pending_events, contacts, as_of, self.grace_days)
        return change or self._change_from_all_events(item, as_of)

    def _change_from_all_events(self, item: FeatureItem, as_of: datetime) -> Change | None:
        # A change of the group has removed the state. Memory may be that of the former group, too.
        if item.inputs is None and item.group_changes:
            self.memory.rebuild(item.lead_organization_id, as_of)
        return feature_changes.change_from_events(item, self.events.of_person(item), as_of, self.grace_days)

    def _regroup(self, event: LeadEvent, now: datetime) -> None:
        """Set which leads are one, and build the features of the groups that lack a state of all leaves."""
        number, groups = groups_of(event)
        self.topology.set(number, groups)

        def decide(item: FeatureItem) -> Change | None:
            has_all_leaves = item.inputs is not None and not item.is_joining
            if item.merged_into is not None or has_all_leaves:
                return None
            return self._change_from_leaves(item, latest_instant(item, now))

        for group in groups:
            _until_done(partial(self._settle, group.root, decide))

    def _settle(self, lead: str, decide: Decide) -> bool:
        """Write the change that `decide` returns for the lead's item now; False: somebody else was first."""
        item = self.store.get(lead)
        return item is None or self._write(item, decide(item))

    def _settle_all(self, leads: Mapping[str, FeatureItem], decide: Decide) -> None:
        """Write the change that `decide` returns for each item, which was read in bulk.

        If somebody else has changed an item since, it is read again.
        """
        for lead, item in leads.items():
            if not self._write(item, decide(item)):
                _until_done(partial(self._settle, lead, decide))

    def _change_for_time(self, item: FeatureItem, as_of: datetime) -> Change | None:
        """Return the change that time alone makes up to as_of; None if it makes none."""
        if item.merged_into:
            return None
        # An input that a later refresh found unchanged keeps its older stamp. So the item's own instant
        # counts.
        as_of = latest_instant(item, as_of)
        if not item.is_current:
            return self._change_from_leaves(item, as_of)
        return feature_changes.change_by_time(item, as_of, self.grace_days)

    def _change_for_rebuild(self, item: FeatureItem, now: datetime) -> Change | None:
        """Return the change that makes an item follow from its leaves' events; None if it does already."""
        if item.merged_into:
            return None
        change = self._change_from_all_events(item, feature_changes.rebuild_instant(item, now))
        return change if change and (item.pending or feature_changes.is_different(item, change)) else None


def _until_done(attempt: Callable[[], bool]) -> None:
    """Try until an attempt is done; raises Unprocessed if others were first in all of them."""
    if not any(attempt() for _ in pauses(ATTEMPTS_MAX)):
        raise Unprocessed("the features of a lead kept changing")


@bootstrap(FeaturesSettings)
def _parts(config: FeaturesSettings, client: ClientOf) -> FeatureProcessor:
    dynamodb = client("dynamodb")
    store = FeatureStore(dynamodb, config.feature_table, config.feature_shards)
    events = PersonEvents.of(dynamodb, config, store)
    return FeatureProcessor(
        store,
        Topology(dynamodb, config.feature_table, store),
        GroupMemory(MemoryStore(dynamodb, config.memory_table), store, events),
        events,
        tombstones_of(config, client),
        config.campaign_grace_days,
    )


@queue_consumer("features", logger)
def handler(message: Any, now: datetime) -> None:
    """Lambda entry: a batch of announcements, or a message with refreshes or rebuilds."""
    _parts().handle(message, now)
