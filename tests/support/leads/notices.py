"""The messages that a lead leads to (tests/unit/outgoing/test_message_bodies.py)."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from rules.leads.feature_items import FeatureItem
from rules.leads.notice_kinds import lead_holder
from rules.leads.notices import notices_of_lead
from rules.outgoing.derivation import ItemNoticeState
from rules.outgoing.notices import Notification

AT = "2026-03-01T12:00:00.000000Z"


def lead(version: int, merged_into: str | None = None, **features: Any) -> FeatureItem:
    """An item of Feature."""
    return FeatureItem("7", version, features, merged_into=merged_into)


def bodies() -> Iterator[tuple[str, bytes]]:
    """Each message that may be sent, with its type."""
    for item in (lead(1, merged_into="9"), lead(1, revenue=Decimal("11.5"), vip=True, last=None)):
        for notice in notices_of_lead(ItemNoticeState(), item, "acme", AT)[0]:
            yield notice.type, Notification(lead_holder("7"), 1, AT, notice).body
