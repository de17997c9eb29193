"""Roots as they are published: roots/RUN.json, each with the one before, so that none can be left out.

The bucket keeps each version under a lock, so nobody can replace a root, whatever their rights. What is put
under the key again is a further version, and who asks for the first one gets it.
"""

import json
from typing import Any

from adapters.platform.objects import NoObject, Objects
from analytics.proving.heads import Heads

ROOTS = "roots/"
LATEST = f"{ROOTS}latest.json"


def root_key(run_id: str) -> str:
    """Return where a run's root is."""
    return f"{ROOTS}{run_id}.json"


def publish_root(objects: Objects, heads: Heads) -> dict[str, Any]:
    """Write the root of a night; returns it as it is told."""
    try:
        last = json.loads(objects.get(LATEST))
    except NoObject:
        last = {}
    if last.get("run_id") == heads.run_id:
        return dict(last)
    told = {
        "run_id": heads.run_id,
        "at": heads.at,
        "root": heads.root.hex(),
        "accounts": sum(heads.accounts),
        "before": last.get("root", ""),
    }
    text = json.dumps(told, indent=1).encode()
    objects.put(root_key(heads.run_id), text)
    objects.put(LATEST, text)
    return told
