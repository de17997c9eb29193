"""Commands of a shell that call an operation."""

import json
import re
import shlex
from typing import Any

from ingest.reference.samples import filled, valid_sample
from ingest.web.json_schema import Schema

SETTINGS = (
    "export STREAKLINE_URL=https://...  # the address of this page, up to /v1\n"
    "export STREAKLINE_TOKEN=...        # a JWT of the user"
)
LINE_MAX = 60
A_DATE = "2026-11-20"
NOW = """'"$(date -u +%FT%TZ)"'"""


def curl(method: str, path: str, operation: dict[str, Any], parts: dict[str, Schema]) -> str:
    """Return a command that a reader may paste into a shell. parts: the schemas that `$ref` names."""
    needed = [each["name"] for each in operation["parameters"] if each["in"] == "query" and each["required"]]
    query = "&".join(f"{name}={A_DATE if name == 'date' else name.upper()}" for name in needed)
    target = filled(path) + (f"?{query}" if query else "")
    lines = [f'curl {"" if method == "get" else f"-X {method.upper()} "}"$STREAKLINE_URL{target}"']
    if operation["security"]:
        lines.append('  -H "Authorization: Bearer $STREAKLINE_TOKEN"')
    if body := operation.get("requestBody"):
        media, content = next(iter(body["content"].items()))
        made = valid_sample(content["schema"], parts)
        data = "@body.json" if made is None else _written(made)
        lines += [f"  -H 'Content-Type: {media}'", f"  -d {shlex.quote(data)}"]
    return " \\\n".join(lines)


def _written(body: Any) -> str:
    short = json.dumps(body, ensure_ascii=False)
    return short if len(short) <= LINE_MAX else json.dumps(body, ensure_ascii=False, indent=2)


def of_now(command: str) -> str:
    """Return a command whose event happens when it is run: an old one would be refused (rule 3)."""
    return re.sub(r'("occurred_at": ")[^"]*', lambda found: found[1] + NOW, command)
