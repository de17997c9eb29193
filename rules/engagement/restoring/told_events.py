"""A stored event from its row in the lake (rule 21)."""

from collections.abc import Mapping
from typing import Any

from rules.book.point_rules import Cap
from rules.days import stamp
from rules.engagement.events import Event


def event_of(row: Mapping[str, Any], *, by_server: bool = False) -> Event:
    """Return the event of a row as it is curated. by_server: what its claim says, which the row does not."""
    return Event(
        user_id=row["user_id"],
        event_id=row["event_id"],
        idempotency_key=row["idempotency_key"],
        event_type=row["event_type"],
        occurred_at=row["occurred_local"],
        activity_date=row["activity_date"],
        zone=row["zone"],
        points_awarded=row["points_awarded"],
        source=row["source"],
        created_at=stamp(row["created_at"]),
        rules_version=row["rules_version"],
        cap=Cap.of(row["cap"]),
        is_passive=bool(row["is_passive"]),
        expiry=row["expiry"],
        by_server=by_server,
        measures=row["measures"],
        device_time=row["device_time"],
        offline_since=row["offline_since"],
        timezone=row["timezone"],
        properties=row["properties"],
    )
