"""Changes of leads' features that lead to notifications (processors/outgoing/notifications.py)."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from adapters.leads.feature_store import feature_item_from
from adapters.leads.lead_event_store import LeadEventStore
from processors.outgoing.part_changes import PartChanges, ReadChange
from rules.days import stamp
from rules.leads.feature_items import FeatureItem
from rules.leads.notice_kinds import LEAD_UPDATED, lead_holder
from rules.leads.notices import notices_of_lead
from rules.outgoing.derivation import ItemNoticeState, ThingChange
from rules.outgoing.notices import Notice


def lead_change(
    organization_of: Callable[[str], str | None], image: Mapping[str, Any]
) -> tuple[str, ThingChange]:
    """Return the holder of an item of Feature, and the item as a change.

    organization_of: returns the organization of a lead; None if the lead has no event any more.
    """
    item = feature_item_from(image)
    notices = partial(_notices, item=item, organization_of=organization_of)
    return lead_holder(item.lead_organization_id), ThingChange(LEAD_UPDATED, notices)


def _notices(
    state: ItemNoticeState, now: datetime, item: FeatureItem, organization_of: Callable[[str], str | None]
) -> tuple[list[Notice], ItemNoticeState]:
    """Return the notices of a lead, and the next state. An erased lead, which has no event, gives none."""
    organization_id = state.shown.get("organization_id") or organization_of(item.lead_organization_id)
    return notices_of_lead(state, item, organization_id, stamp(now)) if organization_id else ([], state)


def readers(config: Any, dynamodb: Any) -> Mapping[str, ReadChange]:
    """Return what reads an item of Feature."""
    events = LeadEventStore(dynamodb, config.event_table)
    return {"lead_organization_id": partial(lead_change, events.organization_of)}


CHANGES = PartChanges({"event_table": str}, readers)
