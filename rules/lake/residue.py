"""The residue of an erased person's rows in the lake: numbers and dates under a random name (rule 10).

The residue keeps sums of past days as they were. It has no key, no zone and no word that a person wrote. Of
an event's properties it has the amounts alone. Its instants are cut to the hour. Its names are hashes with a
salt that is drawn for the erasure and forgotten with it. So rows of one person still belong together, and
nothing leads back to the person.
"""

import hmac
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from rules.days import key_of_stamp, stamp, stamp_of_key, unstamp
from rules.engagement.ledger import OPENED_AT, Setting
from rules.engagement.proof import HIDDEN_FIELDS, commitment, encoded_fields, entry_salt, fields_of, tag_of
from rules.lake.entities import ENTITIES, FIRST_STORED
from rules.privacy.inventory import BY_NAME, Fate
from rules.user_ids import ERASED

# Settings whose texts stay: they have dates and weekdays alone.
STREAK_SETTINGS = (Setting.PAUSE, Setting.REST_DAYS)
PREFIX = ERASED  # the names of residues begin with this, and no user id does
NAME_CHARACTERS = 32
TAG_CHARACTERS = 16
OPENED = datetime.fromisoformat(OPENED_AT)
HOUR, TICK = timedelta(hours=1), timedelta(microseconds=1)
# The version of a row that was changed after it was stored. Its own version would tell when that was.
CHANGED = "1"
AMOUNTS = ("amount", "quantity")  # the properties that sql/models/facts/events.sql reads as amounts
NUMBER = re.compile(r"-?\d{1,12}(\.\d{1,6})?", re.ASCII)
Row = Mapping[str, Any]
# Returns the seq of the ledger entry of an account with this created_at; None if it is not known.
SeqOf = Callable[[datetime], int | None]
# The column with the person whose row it is, by entity.
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

    salt: str  # a secret text, drawn for the erasure
    # The person's chains of hashes (rule 19), oldest first: the seq of each one's first entry, and its salt
    chains: tuple[tuple[int, bytes], ...] = ()

    def name_of(self, person_id: str) -> str:
        """Return the name that takes the place of a person's id."""
        return PREFIX + self._hash("name", person_id)

    def tag(self) -> str:
        """Return the mark of the erasure on files that it has changed."""
        return self._hash("tag", "")[:TAG_CHARACTERS]

    def event_id(self, event_id: str) -> str:
        """Return an event's new id: it begins with the hour in which the event occurred."""
        moment, _, rest = event_id.partition("#")
        hashed = self._hash("event", event_id)
        try:
            at = unstamp(stamp_of_key(moment))
        except ValueError:
            return hashed
        return f"{key_of_stamp(stamp(hour_of(at)))}#{hashed}" if rest else hashed

    def seal(self, row: Row) -> str | None:
        """Return the commitment to the fields that are taken from a ledger entry; None if there is no chain.

        The first entry of a chain also gets the chain's name, behind the commitment.
        """
        if not self.chains:
            return None
        _, first_salt = self.chains[0]
        salts = [salt for first_seq, salt in self.chains if first_seq <= row["seq"]]
        salt = salts[-1] if salts else first_salt
        hidden = encoded_fields(fields_of(row, HIDDEN_FIELDS))
        seal = commitment(entry_salt(salt, row["seq"]), hidden).hex()
        begins_chain = any(first_seq == row["seq"] for first_seq, _ in self.chains)
        return f"{seal} {tag_of(first_salt, row['account_id']).hex()}" if begins_chain else seal

    def _hash(self, kind: str, value: str) -> str:
        return hmac.digest(self.salt.encode(), f"{kind}\x1f{value}".encode(), "sha256").hex()[
            :NAME_CHARACTERS
        ]


def chains_of(texts: Iterable[str]) -> tuple[tuple[int, bytes], ...]:
    """Read the beginnings of chains. An erasure keeps each as the text `12 SALT`: the first seq, the salt."""
    pairs = (text.split(" ") for text in texts)
    return tuple(sorted((int(seq), bytes.fromhex(salt)) for seq, salt in pairs))


@dataclass(frozen=True, slots=True)
class Residue:
    """The columns of an entity that keep a value. All others become null."""

    person: str  # the column with the person, which gets a random name
    unchanged: tuple[str, ...]
    instants: tuple[str, ...] = ()  # these are cut to the hour
    # Columns whose new value is computed from the row
    computed: Mapping[str, Callable[[Row, ErasureNames, SeqOf], Any]] = field(default_factory=dict)
    # Columns with words of senders, each with a substitute. A word stays if rows of other people in the file
    # have it, too. Otherwise the substitute takes its place.
    words: Mapping[str, str | None] = field(default_factory=dict)


def hour_of(at: datetime) -> datetime:
    """Return the beginning of an instant's hour. An opening entry's instant stays: it stands for no time."""
    at = at.astimezone(UTC)
    return at if at == OPENED else at.replace(minute=0, second=0, microsecond=0)


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


def _end_of_hour(row: Row, _names: ErasureNames, _seq_of: SeqOf) -> datetime:
    """Return the last instant of an answer's hour, so that the answer stays after its question."""
    return hour_of(row["created_at"]) + HOUR - TICK


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
    "responses": Residue(
        person="person",
        unchanged=(
            *("question_id", "agent_id", "question_type", "category", "number", "selected_option"),
            *("confidence", "points", "activity_date", "is_signed_in", "day_points_max"),
        ),
        computed={"created_at": _end_of_hour},
    ),
    "answer_stats": Residue(
        person="person",
        unchanged=(
            *("version", "total_answers", "total_points", "streak_days", "longest_streak_days"),
            *("streak_last_date", "badges", "answers_by_category"),
        ),
        instants=("updated_at", "first_answer_at", "newest_answer_at"),
        computed={
            "moved_to": lambda row, names, _: names.name_of(row["moved_to"]) if row["moved_to"] else None
        },
    ),
    "notifications": Residue(
        person="phone",
        unchanged=("message", "question_id", "outcome", "version"),
        instants=("claimed_at", "settled_at"),
    ),
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
