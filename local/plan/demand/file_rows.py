"""How long the rows of a file's events are: what a row has besides, and the texts that its sender chose."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from local.plan.given.measured_units import MeasuredUnits
from local.replay.event_sources import DEFAULT_TYPE, Body


@dataclass(frozen=True, slots=True)
class FileTexts:
    """The mean length, in bytes, of each text that a sender chooses."""

    user_id: float
    idempotency_key: float
    event_type: float
    zone: float
    occurred_at: float
    properties: float

    @classmethod
    def of(cls, bodies: Sequence[Body]) -> "FileTexts":
        """Return the means of a file."""
        count = max(1, len(bodies))

        def mean(texts: list[str]) -> float:
            return sum(len(each.encode()) for each in texts) / count

        return cls(
            mean([body["user_id"] for body in bodies]),
            mean([body["idempotency_key"] for body in bodies]),
            mean([body.get("event_type", DEFAULT_TYPE) for body in bodies]),
            mean([body.get("timezone") or _offset(body["occurred_at"]) for body in bodies]),
            mean([body["occurred_at"] for body in bodies]),
            mean([_properties(body) for body in bodies]),
        )


def _offset(occurred_at: str) -> str:
    """Return the offset that a time was written with; it is the zone where an event names none."""
    return "UTC" if occurred_at.endswith(("Z", "z")) else occurred_at[-6:]


def _properties(body: Body) -> str:
    """Return the field of properties as it stands in a row, JSON text within JSON; "" without properties."""
    if not body.get("properties"):
        return ""
    text = json.dumps(body["properties"], sort_keys=True, separators=(",", ":"))
    return f'"properties":{json.dumps(text)},'


def row_bytes(table: str, texts: FileTexts, units: MeasuredUnits) -> float:
    """Return the mean bytes of a table's rows, as this file leads to them."""
    row = units.rows[table]
    lengths: dict[str, float] = {**asdict(texts), "bytes": 1.0}
    return sum(times * lengths[name] for name, times in row.items())
