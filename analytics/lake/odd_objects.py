"""Objects that an operator must look at: a run notes them for its report."""

import hashlib
import json

from adapters.platform.objects import Objects
from analytics.lake.layout import run_key

_FOLDER = "odd_objects/"


def note(objects: Objects, run_id: str, key: str, reason: str) -> None:
    """Note an object, with the reason; safe to repeat."""
    name = hashlib.sha256(key.encode()).hexdigest()[:32]
    objects.put(
        run_key(run_id, f"{_FOLDER}{name}.json"), json.dumps({"object": key, "reason": reason}).encode()
    )


def noted(objects: Objects, run_id: str) -> list[dict[str, str]]:
    """Return what is noted, by the objects' keys: object, reason."""
    found = [json.loads(objects.get(each.key)) for each in objects.list(run_key(run_id, _FOLDER))]
    return sorted(found, key=lambda each: str(each["object"]))
