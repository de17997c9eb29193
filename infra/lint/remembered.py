"""What was found before in the same content, so that only what has changed is looked at again."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Found = list[tuple[str, ...]]


def remembered(
    path: Path, version: str, contents: Sequence[Any], look: Callable[[Sequence[Any]], Iterable[Found]]
) -> list[Found]:
    """Return what was found in each content, looking only at those that the file at path does not know.

    version: of whatever looks; a content is JSON data. The file keeps these contents and no others.
    """
    keys = [hashlib.sha256(f"{version}{json.dumps(each)}".encode()).hexdigest() for each in contents]
    known = _read(path)
    new = [number for number, key in enumerate(keys) if key not in known]
    for number, found in zip(new, look([contents[number] for number in new]), strict=True):
        known[keys[number]] = found
    kept = {key: known[key] for key in keys}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{hashlib.sha256(json.dumps(kept).encode()).hexdigest()[:8]}")
    part.write_text(json.dumps(kept))
    part.replace(path)
    return [kept[key] for key in keys]


def _read(path: Path) -> dict[str, Found]:
    try:
        found: Mapping[str, list[list[str]]] = json.loads(path.read_text())
        return {key: [tuple(each) for each in value] for key, value in found.items()}
    except (FileNotFoundError, ValueError):
        return {}
