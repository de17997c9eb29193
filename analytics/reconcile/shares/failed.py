"""Shares that a run gave up: runs/{run_id}/failed_shares/NUMBER.json, with the reason."""

import json
from collections.abc import Mapping
from typing import Any

from adapters.platform.objects import Objects
from analytics.lake.layout import run_key
from analytics.lake.run_notes import REASON_MAX

FOLDER = "failed_shares/"


def note(objects: Objects, run_id: str, number: int, error: Mapping[str, str]) -> None:
    """Note that a run has given up a share. error: Error and Cause, as Step Functions tells them."""
    reason = f"{error.get('Error', '')}: {error.get('Cause', '')}"[:REASON_MAX]
    told = {"share": number, "reason": reason}
    objects.put(run_key(run_id, f"{FOLDER}{number:04}.json"), json.dumps(told).encode())


def noted(objects: Objects, run_id: str) -> list[dict[str, Any]]:
    """Return the shares that a run has given up: share, reason."""
    return [json.loads(objects.get(each.key)) for each in objects.list(run_key(run_id, FOLDER))]
