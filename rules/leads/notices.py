"""Which notices follow from a lead's item (docs/rules.md, rule 18)."""

from dataclasses import replace
from decimal import Decimal

from rules.leads.feature_items import FeatureItem
from rules.leads.notice_kinds import LEAD_UPDATED
from rules.outgoing.derivation import ItemNoticeState
from rules.outgoing.notices import Notice


def notices_of_lead(
    state: ItemNoticeState, item: FeatureItem, organization_id: str, at: str
) -> tuple[list[Notice], ItemNoticeState]:
    """Return the notices of a lead's item, and the state after them. An item of an older version gives none.

    at: a stamp, when the item was written. The lead's memory is not sent: it has people's own words.
    """
    shown = {
        "organization_id": organization_id,
        "merged_into": item.merged_into,
        "features": {
            name: float(value) if isinstance(value, Decimal) else value
            for name, value in sorted(item.features.items())
        },
    }
    if item.version <= state.version or shown == state.shown:
        return [], state
    after = replace(
        state, version=item.version, number=state.number + 1, as_of=max(state.as_of, at), shown=shown
    )
    return [Notice(LEAD_UPDATED, {**shown, "computed_at": item.computed_at})], after
