"""feature-processing queue -> Feature: an event recomputes what it affects, a refresh what time changes.

State and features of a lead change in one conditional write: an event is counted if and only if the
state that is stored has it, so after a crash it is counted by the next attempt, and a second time never.
Campaigns are the exception, their state is Memory: the event is joined there first, and then read.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger

from adapters import clock, settings
from adapters.leads.feature_store import Change, Changed, FeatureItem, FeatureStore
from adapters.leads.group_memory import GroupMemory
from adapters.leads.lead_event_store import LeadEventStore
from adapters.leads.memory_store import LeadContended, MemoryStore
from adapters.platform.aws import client, pauses
from adapters.platform.failures import FailureQueue
from adapters.platform.queues import Poison, serve
from adapters.settings.leads import FeaturesSettings
from rules.days import stamp, unstamp
from rules.leads.features import FEATURES, TRIGGERS, Contact, Input, Shown, evaluate, listed_on, shown
from rules.leads.lead_events import CAMPAIGN_TYPES, IDENTITY_TYPES, LeadEvent, MalformedLeadEvent, from_item
from rules.leads.lead_groups import groups_of
from rules.leads.memory import campaign_contact, derive_entries, remembered_entries
from rules.leads.series import (
    NOTHING,
    SERIES,
    Contribution,
    Series,
    State,
    add,
    build,
    contributions,
    decode,
    encode,
    roll,
)

logger = Logger(service="features")
CONSUMER = "features"
ATTEMPTS_MAX = 12
LEADS_MAX = 50
ALL = frozenset(Input)
Given = Mapping[Input, Contribution]


@dataclass(frozen=True, slots=True)
class FeatureProcessor:
    """Applies announced events and refreshes to features."""

    store: FeatureStore
    memory: GroupMemory
    events: LeadEventStore

    def handle(self, message: Any, now: datetime) -> None:
        """Apply one message; raises Poison, or what a later attempt may get past."""
        if not isinstance(message, Mapping):
            raise Poison("the message is no object")
        if "refresh" in message:
            self._refresh_all(*_refresh_of(message["refresh"]))
            return
        try:
            event = from_item(message)
            given = contributions(event)
            entries = derive_entries(event) if event.event_type in CAMPAIGN_TYPES else []
            groups = groups_of(event)[1] if event.event_type in IDENTITY_TYPES else ()
        except MalformedLeadEvent as error:
            raise Poison(str(error)) from None
        if groups:
            self._regroup(event, now)
            return
        hint = event.root_id
        if event.event_type in CAMPAIGN_TYPES:
            hint = self.memory.remember(event.lead_organization_id, hint, entries, now)
        elif not given:
            return
        self._apply(event, given, hint, now)

    def _apply(self, event: LeadEvent, given: Given, hint: str, now: datetime) -> None:
        for _ in pauses(ATTEMPTS_MAX):
            item = self.store.home(event.lead_organization_id, hint)
            if self._written(item, self._change(item, event, given, now)):
                return
        raise LeadContended(f"features of {event.lead_organization_id}")

    def _written(self, item: FeatureItem, change: Change | None) -> bool:
        """Write a change, if there is one; whether that is done, or somebody else was first."""
        try:
            if change is not None:
                self.store.write(item, change)
        except Changed:
            return False
        return True

    def _change(self, item: FeatureItem, event: LeadEvent, given: Given, now: datetime) -> Change | None:
        """Return what an event changes; None: nothing, as it is in already."""
        as_of = max(now, event.occurred, _moment(item.computed_at))
        affected = {each for each in Input if event.event_type in TRIGGERS[each]} & {*given, Input.CAMPAIGNS}
        if item.inputs is None:
            return self._built(item, ALL, as_of)
        before = _decoded(item.inputs, given)
        after = {each: add(before[each], each, given[each], as_of) for each in given}
        if None in after.values():
            return self._built(item, affected, as_of)
        state = {each: series for each, series in after.items() if series is not None}
        inputs: dict[Input, Any] = {each: encode(series) for each, series in state.items()}
        contacts: list[Contact] = []
        if Input.CAMPAIGNS in affected:
            contacts, inputs[Input.CAMPAIGNS] = self.memory.contacts(item), True
        values = computed(affected, state, contacts, as_of)
        newest = max(event.occurred_at[:10], item.active_on or "")
        change = Change(
            values, inputs, dict.fromkeys(affected, stamp(as_of)), stamp(as_of), listed_on(newest, as_of)
        )
        # Contacts are no part of the item: its version must move even if its values do not, or a computation
        # that read them before this event was joined would be written over this one.
        same = before == after and change.active_on == item.active_on and Input.CAMPAIGNS not in affected
        return None if same else change

    def _built(self, item: FeatureItem, affected: Collection[Input], as_of: datetime) -> Change | None:
        """Return some inputs' features from the stored events of the lead's leaves; None: there is nothing.

        Where the state was taken away because leads merged or parted, memory may be of before, too.
        """
        if item.inputs is None and item.topology:
            self.memory.rebuild(item.lead_organization_id, as_of)
        events = [each for each in self.events.of_leaves(item.group) if each.event_type not in IDENTITY_TYPES]
        if not events:
            return Change({}, {}, {}, stamp(as_of), None) if item.features else None
        as_of = max(as_of, *(each.occurred for each in events))
        state = build(events, as_of)
        campaigns = remembered_entries(each for each in events if each.event_type in CAMPAIGN_TYPES)
        inputs: dict[Input, Any] = {each: encode(state[each]) for each in SERIES if each in affected}
        if campaigns and Input.CAMPAIGNS in affected:
            inputs[Input.CAMPAIGNS] = True
        values = computed(affected, state, map(campaign_contact, campaigns.values()), as_of)
        newest = max(each.occurred_at[:10] for each in events)
        moments = {each: stamp(as_of) for each in Input if each in affected}
        return Change(values, inputs, moments, stamp(as_of), listed_on(newest, as_of))

    def _regroup(self, event: LeadEvent, now: datetime) -> None:
        """Set which leads are one, and build the features of the groups where that took them away."""
        number, groups = groups_of(event)
        self.store.set_topology(number, groups)
        for group in groups:
            for _ in pauses(ATTEMPTS_MAX):
                item = self.store.get(group.root)
                if item is None or item.merged_into or item.inputs is not None:
                    break
                if self._written(item, self._built(item, ALL, max(now, _moment(item.computed_at)))):
                    break
            else:
                raise LeadContended(f"features of {group.root}")

    def _refresh_all(self, as_of: datetime, leads: list[str]) -> None:
        for item in self.store.get_many(leads).values():
            fresh: FeatureItem | None = item
            for _ in pauses(ATTEMPTS_MAX):
                if fresh is None or self._written(fresh, self._refreshed(fresh, as_of)):
                    break
                fresh = self.store.get(item.lead_organization_id)
            else:
                raise LeadContended(f"features of {item.lead_organization_id}")

    def _refreshed(self, item: FeatureItem, as_of: datetime) -> Change | None:
        """Return what time has changed of the features older than as_of, or than the item; None: nothing."""
        if item.merged_into:
            return None
        # What a later refresh found unchanged bears an older stamp, and is of its instant all the same.
        as_of = max(as_of, _moment(item.computed_at))
        if item.inputs is None:
            return self._built(item, ALL, as_of)
        due = {each for each in Input if item.as_of.get(each, "") < stamp(as_of)}
        state = {
            each: roll(series, each, as_of) for each, series in _decoded(item.inputs, due & {*SERIES}).items()
        }
        has_contacts = Input.CAMPAIGNS in due and Input.CAMPAIGNS in item.inputs
        contacts = self.memory.contacts(item) if has_contacts else []
        values = {
            name: value
            for name, value in computed(due, state, contacts, as_of, only_time_dependent=True).items()
            if value != item.features.get(name)
        }
        moved = {each.input for each in FEATURES if each.name in values}
        inputs = {each: encode(series) for each, series in state.items() if each in moved}
        active_on = listed_on(item.active_on, as_of)
        if not values and active_on == item.active_on:
            return None
        return Change(values, inputs, dict.fromkeys(moved, stamp(as_of)), stamp(as_of), active_on)


def computed(
    inputs: Collection[Input],
    state: State,
    contacts: Iterable[Contact],
    as_of: datetime,
    only_time_dependent: bool = False,
) -> dict[str, Shown]:
    """Return the features of some inputs, as people read them."""
    listed = list(contacts)
    return {
        each.name: shown(each, evaluate(each, state, listed, as_of))
        for each in FEATURES
        if each.input in inputs and (each.is_time_dependent or not only_time_dependent)
    }


def _decoded(stored: Mapping[str, Any], wanted: Iterable[Input]) -> dict[Input, Series]:
    return {each: decode(stored[each]) if each in stored else NOTHING[each] for each in wanted}


def _moment(text: str | None) -> datetime:
    return datetime.min.replace(tzinfo=UTC) if text is None else unstamp(text)


def _refresh_of(asked: Any) -> tuple[datetime, list[str]]:
    """Read {"as_of": stamp, "leads": [id]}; raises Poison, with the field and the reason."""
    if not isinstance(asked, Mapping):
        raise Poison("refresh is no object")
    leads = asked.get("leads")
    if (
        not isinstance(leads, list)
        or len(leads) > LEADS_MAX
        or not all(isinstance(each, str) for each in leads)
    ):
        raise Poison(f"refresh.leads is no list of at most {LEADS_MAX} ids")
    try:
        as_of = unstamp(asked["as_of"])
        if stamp(as_of) != asked["as_of"]:
            raise ValueError(asked["as_of"])
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        raise Poison(f"refresh.as_of is no stamp: {error!r}") from None
    return as_of, leads


@cache
def _parts() -> tuple[FeatureProcessor, FailureQueue]:
    config, dynamodb = settings.read(FeaturesSettings), client("dynamodb")
    store = FeatureStore(dynamodb, config.feature_table, config.feature_shards)
    events = LeadEventStore(dynamodb, config.event_table)
    memory = GroupMemory(MemoryStore(dynamodb, config.memory_table), store, events)
    failures = FailureQueue(lambda: client("sqs"), config.failure_queue_url)
    return FeatureProcessor(store, memory, events), failures


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a batch of the feature-processing queue; messages are announcements or refreshes."""
    processor, failures = _parts()
    now = clock.now()
    return serve(event, lambda message: processor.handle(message, now), failures, CONSUMER, now, logger)
