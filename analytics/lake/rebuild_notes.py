"""What a run could not make anew from raw objects, for its report."""

import json
from dataclasses import asdict
from typing import Any

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import Place, run_key

_FOLDER = "without_raw/"
_DELETED = "raw_deleted.json"


def note(objects: Objects, run_id: str, task: Place, reason: str) -> None:
    """Note a partition that was made from its own rows, because raw objects of it are gone."""
    name = f"{_FOLDER}{task.entity}-{task.dt}-{task.hour or 'day'}.json"
    objects.put(run_key(run_id, name), json.dumps({**asdict(task), "reason": reason}).encode())


def note_deleted(objects: Objects, run_id: str, before: str) -> None:
    """Note that a run was asked for dates before one (YYYY-MM-DD) before which raw objects are deleted."""
    objects.put(run_key(run_id, _DELETED), json.dumps({"before": before}).encode())


def read(objects: Objects, run_id: str) -> dict[str, Any]:
    """Return {"raw_deleted_before": date or None, "without_raw": [{entity, dt, hour, reason}]}."""
    try:
        before = json.loads(objects.get(run_key(run_id, _DELETED)))["before"]
    except NoObject:
        before = None
    noted = [json.loads(objects.get(each.key)) for each in objects.list(run_key(run_id, _FOLDER))]
    return {"raw_deleted_before": before, "without_raw": noted}
