"""How the residue of an entity's rows is declared, and the random names in it (residue.py)."""

import hmac
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from rules.days import key_of_stamp, stamp, stamp_of_key, unstamp
from rules.engagement.ledger import OPENED_AT
from rules.engagement.proof import HIDDEN_FIELDS, commitment, encoded_fields, entry_salt, fields_of, tag_of
from rules.user_ids import ERASED

PREFIX = ERASED  # the names of residues begin with this, and no user id does
NAME_CHARACTERS = 32
TAG_CHARACTERS = 16
OPENED = datetime.fromisoformat(OPENED_AT)
HOUR, TICK = timedelta(hours=1), timedelta(microseconds=1)
Row = Mapping[str, Any]
# Returns the seq of the ledger entry of an account with this created_at; None if it is not known.
SeqOf = Callable[[datetime], int | None]


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
