"""The residue of an erased person's rows in the lake: numbers and dates under a random name (rule 10).

The residue keeps sums of past days as they were. It has no key, no zone and no word that a person wrote. Of
an event's properties it has the amounts alone. Its instants are cut to the hour. Its names are hashes with a
salt that is drawn for the erasure and forgotten with it. So rows of one person still belong together, and
nothing leads back to the person.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from rules.engagement.ledger import Setting
from rules.lake.entities import ENTITIES, FIRST_STORED
from rules.lake.residues import HOUR, OPENED, TICK, ErasureNames, Residue, Row, SeqOf, hour_of
from rules.parts import said
from rules.privacy.inventory import BY_NAME, Fate

# Settings whose texts stay: they have dates and weekdays alone.
STREAK_SETTINGS = (Setting.PAUSE, Setting.REST_DAYS)
# The version of a row that was changed after it was stored. Its own version would tell when that was.
CHANGED = "1"
AMOUNTS = ("amount", "quantity")  # the properties that sql/models/facts/events.sql reads as amounts
NUMBER = re.compile(r"-?\d{1,12}(\.\d{1,6})?", re.ASCII)
# The column with the person whose row it is, by entity.
PERSONS: Mapping[str, str] = {
    store.name: (store.user_key or store.lead_key)
    for store in BY_NAME.values()
    if store.name in ENTITIES and store.fate is not Fate.IMPERSONAL
}


def _entry_place(at: datetime, seq: int) -> datetime:
    """Return a ledger entry's new created_at: its hour, plus microseconds that keep the entries in order."""
    return at if at == OPENED else min(hour_of(at) + seq * TICK, hour_of(at) + HOUR - TICK)


def _text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def _event_id(column: str) -> Callable[[Row, ErasureNames, SeqOf], str | None]:
    return lambda row, names, _: names.event_id(row[column]) if row[column] is not None else None


def _reverses(row: Row, _names: ErasureNames, seq_of: SeqOf) -> str | None:
    """Return the new place of the entry that an entry reverses; None if that is not known."""
    try:
        at = datetime.fromisoformat(row["reverses"] or "")
    except ValueError:
        return None
    if at.tzinfo is None:
        return None
    seq = seq_of(at)
    return None if seq is None else _text(_entry_place(at, seq))


def _amounts(row: Row, _names: ErasureNames, _seq_of: SeqOf) -> str | None:
    """Return an event's amounts as JSON text. Properties that are no numbers are left out."""
    try:
        properties = json.loads(row["properties"] or "")
    except (TypeError, ValueError, RecursionError):
        return None
    if not isinstance(properties, dict):
        return None
    amounts = {name: properties[name] for name in AMOUNTS if _is_amount(properties.get(name))}
    return json.dumps(amounts) if amounts else None


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float, str) and NUMBER.fullmatch(str(value)) is not None


RESIDUES: Mapping[str, Residue] = {
    "events": Residue(
        person="user_id",
        unchanged=(
            *("event_type", "activity_date", "points_awarded", "rules_version", "cap", "is_passive"),
            *("expiry", "measures"),
        ),
        instants=("occurred_at", "created_at"),
        computed={
            "event_id": _event_id("event_id"),
            "idempotency_key": lambda row, names, _: names.event_id(row["event_id"]),
            "occurred_local": lambda row, *_: _text(hour_of(row["occurred_at"])),
            "zone": lambda *_: "UTC",
            "properties": _amounts,
            "version": lambda row, *_: FIRST_STORED if row["version"] == FIRST_STORED else CHANGED,
        },
        words={"source": "erased"},
    ),
    "daily_activity": Residue(
        person="user_id",
        unchanged=("activity_date", "events_count", "points_earned", "points_by_type"),
        instants=("ledger_head", "created_at"),
        computed={"first_event_id": _event_id("first_event_id")},
    ),
    "ledger": Residue(
        person="account_id",
        unchanged=(
            *("seq", "kind", "points", "balance", "event_type", "activity_date", "freeze", "freeze_date"),
            *("rules_version", "cap", "is_passive", "expires_on", "brand", "measures", "setting"),
        ),
        computed={
            "created_at": lambda row, *_: _entry_place(row["created_at"], row["seq"]),
            "event_id": _event_id("event_id"),
            "reverses": _reverses,
            # Dates stay: those of pauses and rest days are part of what streaks were made of.
            "set_to": lambda row, *_: row["set_to"] if row["setting"] in STREAK_SETTINGS else None,
            "seal": lambda row, names, _: names.seal(row),
        },
        words={"reward_id": None},
    ),
    "streaks": Residue(
        person="user_id",
        unchanged=(
            *("version", "current_streak", "longest_streak", "last_activity_date", "active_days"),
            *("freezes_spent", "total_bestie_points", "balance", "ledger_seq", "freezes", "pauses"),
            *("skipped_dates", "tz_review", "freezes_before", "begins_after", "opening"),
        ),
        instants=("ledger_head", "updated_at"),
        computed={"timezone": lambda *_: "UTC"},
    ),
    **{name: form for forms in said("residues") for name, form in forms.items()},
}


def residue_of(
    entity: str, row: Row, names: ErasureNames, seq_of: SeqOf, others_words: Mapping[str, Collection[str]]
) -> dict[str, Any] | None:
    """Return the residue of a row of the lake, with all columns; None if nothing of the row stays.

    others_words: the words that rows of other people have, by column with words.
    """
    form = RESIDUES.get(entity)
    if form is None:
        return None
    residue: dict[str, Any] = dict.fromkeys(row)
    residue |= {name: row[name] for name in form.unchanged}
    residue |= {name: row[name] and hour_of(row[name]) for name in form.instants}
    residue |= {name: compute(row, names, seq_of) for name, compute in form.computed.items()}
    for name, substitute in form.words.items():
        residue[name] = row[name] if row[name] in others_words.get(name, ()) else substitute
    residue[form.person] = names.name_of(row[form.person])
    return residue
