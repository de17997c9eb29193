"""The watermark: up to when raw objects are curated. It moves when a run has done all of its plan."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.platform.objects import NoObject, Objects
from analytics.curation.curate import Task
from analytics.lake import layout

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
# An object may show up in listings after one that was finished later.
OVERLAP = timedelta(hours=1)


def watermark(objects: Objects) -> datetime:
    """Return up to when raw objects are curated."""
    return state_of(objects)[0]


def state_of(objects: Objects) -> tuple[datetime, list[Task]]:
    """Return the watermark, and the past days of which the last run has written hours."""
    try:
        state = json.loads(objects.get(layout.WATERMARK))
    except NoObject:
        return BEGINNING + OVERLAP, []
    past_days = [Task(**each) for each in state.get("past_days", ())]
    return datetime.fromisoformat(state["watermark"]), past_days


def move_watermark(objects: Objects, to: datetime, past_days: Sequence[Mapping[str, Any]] = ()) -> None:
    """Note that everything up to then is curated; it never moves back."""
    mark = max(to, watermark(objects))
    state = {"watermark": mark.isoformat(), "past_days": list(past_days)}
    objects.put(layout.WATERMARK, json.dumps(state).encode())
