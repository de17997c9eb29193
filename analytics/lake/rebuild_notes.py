"""What a run could not make anew from raw objects, for its report."""

import json
from typing import Any

from adapters.platform.objects import NoObject, Objects
from analytics.lake.failed_tasks import note_place, noted_places
from analytics.lake.layout import Place, run_key

_FOLDER = "without_raw/"
_DELETED = "raw_deleted.json"


def note(objects: Objects, run_id: str, task: Place, reason: str) -> None:
    """Note a partition that was made from its own rows, because raw objects of it are gone."""
    note_place(objects, run_key(run_id, _FOLDER), task, reason)


def note_deleted(objects: Objects, run_id: str, before: str) -> None:
    """Note that a run was asked for dates before one (YYYY-MM-DD) before which raw objects are deleted."""
    objects.put(run_key(run_id, _DELETED), json.dumps({"before": before}).encode())


def read(objects: Objects, run_id: str) -> dict[str, Any]:
    """Return {"raw_deleted_before": date or None, "without_raw": [{entity, dt, hour, reason}]}."""
    try:
        before = json.loads(objects.get(run_key(run_id, _DELETED)))["before"]
    except NoObject:
        before = None
    return {
        "raw_deleted_before": before,
        "without_raw": noted_places(objects, run_key(run_id, _FOLDER)),
    }
