"""The codes of refusals about leads, and their meanings (ingest/web/json_schema.py)."""

from rules.parts import Part

CODES = (
    Part.LEADS,
    {"kept_apart": "an operator has parted these leads; `unite` says that they belong together after all"},
)
