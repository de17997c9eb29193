"""What stays in the lake of a person who was erased: numbers and dates under a random name (rule 10).

A residue keeps what sums of past days are made of. It has no key, no property but amounts, no zone, no word
that somebody wrote. Its instants say the hour alone. The names are hashes with a salt that is drawn for the
erasure and forgotten with it, so rows of one person still belong together and nothing leads back.
"""

import hmac
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from rules.engagement.ledger import OPENED_AT
from rules.engagement.seals import HIDDEN_FIELDS, commitment, encoded_fields, entry_salt, fields_of, tag_of
from rules.lake.entities import ENTITIES, FIRST_STORED
from rules.privacy.inventory import BY_NAME, Fate

# No user id has a slash, so nobody is called so.
PREFIX = "erased/"
NAME_CHARACTERS = 32
TAG_CHARACTERS = 16
OPENED = datetime.fromisoformat(OPENED_AT)
HOUR, TICK = timedelta(hours=1), timedelta(microseconds=1)
# The version of a row that was changed once it was stored: when, it does not say.
CHANGED = "1"
AMOUNTS = ("amount", "quantity")  # of an event's properties: sql/models/facts/events.sql
NUMBER = re.compile(r"-?\d{1,12}(\.\d{1,6})?", re.ASCII)
Row = Mapping[str, Any]
# Returns the seq of the ledger entry at an instant of the same account; None if it is not known.
SeqOf = Callable[[datetime], int | None]
# By entity, the column that says whose row it is.
PERSONS: Mapping[str, str] = {
    store.name: (store.user_key or store.lead_key)
    for store in BY_NAME.values()
    if store.name in ENTITIES and store.fate is not Fate.IMPERSONAL
}


def is_residue(name: str) -> bool:
    """Whether a user's or person's name in the lake is that of a residue."""
    return name.startswith(PREFIX)


@dataclass(frozen=True, slots=True)
class ErasureNames:
    """The random names of one erasure."""

    salt: str  # a secret text, drawn for it
    # Where the person's chains of hashes begin, each with its salt (rule 19), in order
    seals: tuple[tuple[int, bytes], ...] = ()

    def of(self, value: str) -> str:
        """Return the name that takes the place of a person's id."""
        return PREFIX + self._hash("name", value)

    def tag(self) -> str:
        """Return the mark of the erasure on files that it has changed."""
        return self._hash("tag", "")[:TAG_CHARACTERS]

    def event_id(self, event_id: str) -> str:
        """Return an event's new id: it begins with the hour in which the event occurred."""
        moment, _, rest = event_id.partition("#")
        hashed = self._hash("event", event_id)
        try:
            at = datetime.fromisoformat(moment)
        except ValueError:
            return hashed
        return f"{_text(hour_of(at))}#{hashed}" if rest else hashed

    def seal(self, row: Row) -> str | None:
        """Return the commitment to what is taken from a ledger entry; where a chain begins, its name, too."""
        if not self.seals:
            return None
        begun = [salt for seq, salt in self.seals if seq <= row["seq"]]
        salt = begun[-1] if begun else self.seals[0][1]
        made = commitment(entry_salt(salt, row["seq"]), encoded_fields(fields_of(row, HIDDEN_FIELDS))).hex()
        begins = any(seq == row["seq"] for seq, _ in self.seals)
        return f"{made} {tag_of(self.seals[0][1], row['account_id']).hex()}" if begins else made

    def _hash(self, kind: str, value: str) -> str:
        return hmac.digest(self.salt.encode(), f"{kind}\x1f{value}".encode(), "sha256").hex()[
            :NAME_CHARACTERS
        ]


def seals_of(texts: Iterable[str]) -> tuple[tuple[int, bytes], ...]:
    """Read where chains begin, as an erasure keeps it: `12 SALT`."""
    pairs = (text.split(" ") for text in texts)
    return tuple(sorted((int(seq), bytes.fromhex(salt)) for seq, salt in pairs))


@dataclass(frozen=True, slots=True)
class Residue:
    """Which columns of an entity stay."""

    person: str  # whose row it is
    same: tuple[str, ...]  # kept as they are
    hours: tuple[str, ...] = ()  # instants of which the hour stays
    # Columns that get another value, from the row
    made: Mapping[str, Callable[[Row, ErasureNames, SeqOf], Any]] = field(default_factory=dict)
    # Words of senders, which stay if a file has them of others, too; the text that takes their place
    # otherwise
    shared: Mapping[str, str | None] = field(default_factory=dict)


def hour_of(at: datetime) -> datetime:
    """Return the beginning of an instant's hour. An opening entry has no time, and keeps that."""
    at = at.astimezone(UTC)
    return at if at == OPENED else at.replace(minute=0, second=0, microsecond=0)


def _place(at: datetime, seq: int) -> datetime:
    """Return a ledger entry's new place: in its hour, in the order of the entries."""
    return at if at == OPENED else min(hour_of(at) + seq * TICK, hour_of(at) + HOUR - TICK)


def _text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def _event_id(column: str) -> Callable[[Row, ErasureNames, SeqOf], str | None]:
    return lambda row, names, _: names.event_id(row[column]) if row[column] is not None else None


def _reverses(row: Row, _names: ErasureNames, seq_of: SeqOf) -> str | None:
    try:
        at = datetime.fromisoformat(row["reverses"] or "")
    except ValueError:
        return None
    if at.tzinfo is None:
        return None
    seq = seq_of(at)
    return None if seq is None else _text(_place(at, seq))


def _amounts(row: Row, _names: ErasureNames, _seq_of: SeqOf) -> str | None:
    """Return an event's amounts: of a property that is no number, nothing stays."""
    try:
        given = json.loads(row["properties"] or "")
    except (TypeError, ValueError, RecursionError):
        return None
    if not isinstance(given, dict):
        return None
    found = {name: given[name] for name in AMOUNTS if _is_amount(given.get(name))}
    return json.dumps(found) if found else None


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float, str) and NUMBER.fullmatch(str(value)) is not None


def _end_of_hour(row: Row, _names: ErasureNames, _seq_of: SeqOf) -> datetime:
    """Return the last instant of the hour: an answer stays behind its question."""
    return hour_of(row["created_at"]) + HOUR - TICK


RESIDUES: Mapping[str, Residue] = {
    "events": Residue(
        "user_id",
        (
            *("event_type", "activity_date", "points_awarded", "rules_version", "cap", "is_passive"),
            *("expiry", "measures"),
        ),
        ("occurred_at", "created_at"),
        {
            "event_id": _event_id("event_id"),
            "idempotency_key": lambda row, names, _: names.event_id(row["event_id"]),
            "occurred_local": lambda row, *_: _text(hour_of(row["occurred_at"])),
            "zone": lambda *_: "UTC",
            "properties": _amounts,
            "version": lambda row, *_: FIRST_STORED if row["version"] == FIRST_STORED else CHANGED,
        },
        {"source": "erased"},
    ),
    "daily_activity": Residue(
        "user_id",
        ("activity_date", "events_count", "points_earned", "points_by_type"),
        ("ledger_head", "created_at"),
        {"first_event_id": _event_id("first_event_id")},
    ),
    "ledger": Residue(
        "account_id",
        (
            *("seq", "kind", "points", "balance", "event_type", "activity_date", "freeze", "freeze_date"),
            *("rules_version", "cap", "is_passive", "expires_on", "brand", "measures"),
        ),
        (),
        {
            "created_at": lambda row, *_: _place(row["created_at"], row["seq"]),
            "event_id": _event_id("event_id"),
            "reverses": _reverses,
            "seal": lambda row, names, _: names.seal(row),
        },
        {"reward_id": None},
    ),
    "streaks": Residue(
        "user_id",
        (
            *("version", "current_streak", "longest_streak", "last_activity_date", "active_days"),
            *("freezes_spent", "total_bestie_points", "balance", "ledger_seq", "freezes", "pauses"),
            *("skipped_dates", "tz_review", "freezes_archived", "archived_until", "opening"),
        ),
        ("ledger_head", "updated_at"),
        {"timezone": lambda *_: "UTC"},
    ),
    "responses": Residue(
        "person",
        (
            *("question_id", "agent_id", "question_type", "category", "number", "selected_option"),
            *("confidence", "points", "activity_date", "is_signed_in", "day_points_max"),
        ),
        (),
        {"created_at": _end_of_hour},
    ),
    "answer_stats": Residue(
        "person",
        (
            *("version", "total_answers", "total_points", "streak_days", "longest_streak_days"),
            *("streak_last_date", "badges", "answers_by_category"),
        ),
        ("updated_at", "first_answer_at", "newest_answer_at"),
        {"moved_to": lambda row, names, _: names.of(row["moved_to"]) if row["moved_to"] else None},
    ),
    "notifications": Residue(
        "phone", ("message", "question_id", "outcome", "version"), ("claimed_at", "settled_at")
    ),
}


def residue_of(
    entity: str, row: Row, names: ErasureNames, seq_of: SeqOf, others: Mapping[str, Collection[str]]
) -> dict[str, Any] | None:
    """Return what stays of a row of the lake, with all columns; None if nothing does.

    others: by column that may be shared, the words that others' rows have.
    """
    form = RESIDUES.get(entity)
    if form is None:
        return None
    found: dict[str, Any] = dict.fromkeys(row)
    found |= {name: row[name] for name in form.same}
    found |= {name: row[name] and hour_of(row[name]) for name in form.hours}
    found |= {name: make(row, names, seq_of) for name, make in form.made.items()}
    for name, instead in form.shared.items():
        found[name] = row[name] if row[name] in others.get(name, ()) else instead
    found[form.person] = names.of(row[form.person])
    return found
