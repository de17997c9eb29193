"""What docs/webhooks.schema.json says of the body of an outgoing webhook, with nothing that it does not name."""

import json
from typing import Any

import fastjsonschema

from tests.support.template import ROOT

SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "webhooks.schema.json").read_text())


def _closed(part: Any) -> Any:
    """The schema without room for more fields: whoever adds one adds it there."""
    if isinstance(part, list):
        return [_closed(each) for each in part]
    if not isinstance(part, dict):
        return part
    made = {name: _closed(each) for name, each in part.items()}
    if "required" in made and "allOf" not in made:
        made["additionalProperties"] = False
    return made


_check = fastjsonschema.compile({**SCHEMA, "$defs": _closed(SCHEMA["$defs"])})


def problems(body: bytes) -> list[str]:
    """What is wrong with a body; nothing is the answer."""
    try:
        _check(json.loads(body))
    except fastjsonschema.JsonSchemaException as error:
        return [str(error)]
    return []
