"""What the lake holds: one declared schema per entity (DESIGN section 6), and where an item's row belongs.

The publisher writes rows of this shape, curation checks them, the warehouse's tables have the same columns.
A schema only grows: new fields are optional and come last, a type is only ever widened, and nothing
is renamed. What a row has beyond its schema is kept as JSON text in the column `extra`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from rules.days import stamp, unstamp
from rules.ledger import OPENED_AT

EXTRA = "extra"


class Type(StrEnum):
    """A field's type. Timestamps are UTC, to the microsecond; JSON carries both as ISO 8601 text."""

    TEXT = "text"
    INTEGER = "integer"  # 64 bits
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class Field:
    """One column. required: a row without it is quarantined."""

    name: str
    type: Type
    doc: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Entity:
    """One kind of row.

    key: by which rows are the same. version: the field that tells which of two rows with one key is
    the newer; between equals the first one stays. occurred: the field that decides day and hour (UTC).
    order: how rows are sorted in a file.
    """

    name: str
    fields: tuple[Field, ...]
    key: tuple[str, ...]
    occurred: str
    order: tuple[str, ...]
    version: str | None = None

    def field(self, name: str) -> Field:
        """Return a field by name; raises KeyError."""
        return {each.name: each for each in self.fields}[name]


TEXT, INTEGER, BOOLEAN, DATE, TIMESTAMP = Type

EVENTS = Entity(
    "events",
    (
        Field("event_id", TEXT, "`{occurred, UTC}#{uuid}`: the same for every attempt to send it", True),
        Field("user_id", TEXT, "whose event it is", True),
        Field("idempotency_key", TEXT, "the sender's key; unique per user", True),
        Field("event_type", TEXT, "a type of the rule table (rules/points.py)", True),
        Field("occurred_at", TIMESTAMP, "when it happened", True),
        Field("occurred_local", TEXT, "the same as its sender wrote it, offset included", True),
        Field("activity_date", DATE, "the date it counts for, fixed when it was stored (rule 1)", True),
        Field("zone", TEXT, "the zone that activity_date was read in", True),
        Field("timezone", TEXT, "the zone that the event itself named"),
        Field("points_awarded", INTEGER, "points, after the daily cap", True),
        Field("source", TEXT, "the door or integration it came from", True),
        Field("properties", TEXT, "the sender's properties, JSON text"),
        Field("properties_ref", TEXT, "where large properties are: an s3:// URL"),
        Field("created_at", TIMESTAMP, "when it was stored", True),
        Field("version", INTEGER, "0; 1 once a daily cap has cut its points", True),
    ),
    key=("event_id", "user_id"),
    occurred="occurred_at",
    order=("event_id", "user_id"),  # so, by time
    version="version",
)

DAILY_ACTIVITY = Entity(
    "daily_activity",
    (
        Field("user_id", TEXT, "whose day it is", True),
        Field("activity_date", DATE, "the date", True),
        Field("first_event_id", TEXT, "the day's earliest event", True),
        Field("events_count", INTEGER, "events that count for the date", True),
        Field("points_earned", INTEGER, "points earned by them", True),
        Field("points_by_type", TEXT, "the same by event type, JSON text"),
        Field("ledger_head", TIMESTAMP, "place of the newest ledger entry counted in", True),
        Field("created_at", TIMESTAMP, "when the date was first credited", True),
    ),
    key=("user_id", "activity_date"),
    occurred="activity_date",
    order=("user_id", "activity_date"),
    version="ledger_head",
)

LEDGER = Entity(
    "ledger",
    (
        Field("account_id", TEXT, "the user", True),
        Field("created_at", TIMESTAMP, "place in the account; strictly increasing in it", True),
        Field("seq", INTEGER, "0, 1, 2 ... without a gap", True),
        Field("kind", TEXT, "OPEN, EARN, REDEEM, REVERSE, EXPIRE or ADJUST", True),
        Field("points", INTEGER, "signed: what the entry adds to the balance", True),
        Field("balance", INTEGER, "balance after the entry", True),
        Field("event_id", TEXT, "EARN: the event"),
        Field("event_type", TEXT, "EARN: its type"),
        Field("activity_date", DATE, "EARN: the date it counts for"),
        Field("reward_id", TEXT, "REDEEM: what was bought"),
        Field("reverses", TEXT, "REVERSE: created_at of the entry that it undoes"),
        Field("freeze", TEXT, "freeze_granted, freeze_revoked, freeze_spent or freeze_refunded"),
        Field("freeze_date", DATE, "the date of that freeze"),
    ),
    key=("account_id", "created_at"),
    occurred="created_at",
    order=("account_id", "created_at"),
)

STREAKS = Entity(
    "streaks",
    (
        Field("user_id", TEXT, "the user", True),
        Field("version", INTEGER, "counts the writes of the profile", True),
        Field("current_streak", INTEGER, "length of the run that ends on last_activity_date"),
        Field("longest_streak", INTEGER, "length of the longest run"),
        Field("last_activity_date", DATE, "the newest active date"),
        Field("active_days", INTEGER, "number of active dates"),
        Field("freezes_spent", TEXT, "dates that a freeze covered, separated by commas"),
        Field("total_bestie_points", INTEGER, "points ever earned", True),
        Field("balance", INTEGER, "points that can be redeemed", True),
        Field("ledger_head", TIMESTAMP, "place of the newest ledger entry counted in"),
        Field("ledger_seq", INTEGER, "seq of that entry"),
        Field("timezone", TEXT, "the zone in which the user's today is asked for", True),
        Field("timezone_chosen", TEXT, "the zone that the user has set"),
        Field("freezes", TEXT, "grants (+1) and reversed grants (-1): 2026-01-31+1, separated by commas"),
        Field("pauses", TEXT, "paused dates, both included: 2026-01-01/2026-01-31, separated by commas"),
        Field("skipped_dates", TEXT, "dates that the user's zone skipped, separated by commas"),
        Field("leaderboard_partition", TEXT, "region#shard"),
        Field("lapses_at", TIMESTAMP, "when the streak shows 0 if nothing more happens"),
        Field("tz_review", BOOLEAN, "too many time-zone changes: to be reviewed"),
        Field("updated_at", TIMESTAMP, "when this version was written", True),
    ),
    key=("user_id", "version"),
    occurred="updated_at",
    order=("user_id", "version"),
)

ENTITIES = {entity.name: entity for entity in (EVENTS, DAILY_ACTIVITY, LEDGER, STREAKS)}

# Table attributes whose columns have another name, and those that are not columns at all.
RENAMED = {
    "events": {"client_key": "idempotency_key", "occurred_at": "occurred_local"},
    "daily_activity": {},
    "ledger": {},
    "streaks": {"streak_updated_at": "updated_at"},
}
LEFT_OUT = {
    "events": {"idempotency_key", "ttl"},
    "daily_activity": set[str](),
    "ledger": {"active", "reversed_by", "folded"},
    "streaks": {"recent_tz_changes", "observed_zone", "observed_at"},
}


class Unplaceable(ValueError):
    """An item that belongs to no day: the attribute at fault, and the reason."""


def row_of(
    entity: Entity, attributes: Mapping[str, Any], arrived: datetime, corrected: bool
) -> dict[str, Any]:
    """Return a table item as a row of the lake, with the partition (dt, hour) that it belongs to.

    arrived: when its change came into the stream; where an account's opening entry belongs, which has
    no time of its own. corrected: whether an event was changed after it was stored.
    Values are not checked (curation does, and keeps what fails). Raises Unplaceable.
    """
    renamed, left_out = RENAMED[entity.name], LEFT_OUT[entity.name]
    row = {
        renamed.get(name, name): _flat(value) for name, value in attributes.items() if name not in left_out
    }
    if entity is EVENTS:
        row |= {"occurred_at": str(row.get("event_id", "")).partition("#")[0], "version": int(corrected)}
    if entity is STREAKS:
        row |= _streak(row)
    place = row.get(entity.occurred)
    if entity is LEDGER and place == OPENED_AT:
        moment = arrived
    else:
        try:
            moment = unstamp(str(place))
        except ValueError:
            raise Unplaceable(f"{entity.occurred} is no time: {place!r}") from None
    if entity is STREAKS:
        row[entity.occurred] = stamp(moment)
    # In the schema's order: curation reads lines of one shape fastest.
    known = {field.name: row.pop(field.name) for field in entity.fields if field.name in row}
    return {**known, **row, "dt": moment.strftime("%Y-%m-%d"), "hour": moment.strftime("%H")}


def _streak(row: dict[str, Any]) -> dict[str, Any]:
    """Undo what serves the table's index alone: a lapsed streak's 0, and the lapse in epoch seconds."""
    changed = {"current_streak": row.pop("run_length")} if "run_length" in row else {}
    lapse = row.get("lapses_at")
    return changed | ({"lapses_at": stamp(datetime.fromtimestamp(lapse, UTC))} if type(lapse) is int else {})


def _flat(value: Any) -> Any:
    """Lists of our items hold short texts without commas; maps become JSON text."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, Mapping):
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return value
