"""Hashes in place of persons' ids (docs/rules.md, rule 10).

Tombstones say by keyed hashes whose data must not come back. Logs name a person by a hash, too.
"""

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from rules.days import key_of_stamp

DIGEST_CHARACTERS = 32
# How a subject begins: it keeps the hashes of users, leads, identities and organizations apart.
USER, LEAD, IDENTITY, ORGANIZATION = "user", "lead", "identity", "organization"
NAME_CHARACTERS = 16


class Act(StrEnum):
    """What an entry of the erasure log does to a digest's tombstone."""

    ERASED = "erased"
    LIFTED = "lifted"


@dataclass(frozen=True, slots=True)
class ErasureLogEntry:
    """One act on a digest's tombstone."""

    at: str  # a stamp
    digest: str  # of a subject (digest_of)
    act: Act
    erasure_id: str  # of the erasure that it belongs to, the same for all its digests

    @property
    def place(self) -> str:
        """Its sort key. It begins with the time, because the erasure log is read from an instant on."""
        return f"{key_of_stamp(self.at)}#{self.digest}#{self.act}"


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Says that a person was erased, and perhaps that this was lifted."""

    erased_at: str  # a stamp
    erasure_id: str
    lifted_at: str = ""  # a stamp; "" while it stands

    @property
    def stands(self) -> bool:
        """Whether it refuses all events of the person."""
        return not self.lifted_at

    def forbids(self, happened_at: str) -> bool:
        """Return whether it refuses an event. happened_at: its stamp."""
        return self.stands or happened_at < self.lifted_at


def user_subject(user_id: str) -> str:
    """Return a user's subject, the text that is hashed."""
    return f"{USER}\x1f{user_id}"


def lead_subject(lead_organization_id: str) -> str:
    """Return a lead's subject."""
    return f"{LEAD}\x1f{lead_organization_id}"


def identity_subject(organization_id: str, channel: str, external_id: str) -> str:
    """Return the subject of a lead's identity, by which an event would find or make the lead again."""
    return f"{IDENTITY}\x1f{organization_id}\x1f{channel}\x1f{external_id}"


def organization_subject(erasure_id: str, organization_id: str) -> str:
    """Return the subject of the organization of an erased lead.

    It differs by erasure, so that its hash does not reveal which erasures are of one organization.
    """
    return f"{ORGANIZATION}\x1f{erasure_id}\x1f{organization_id}"


def digest_of(key: str, subject: str) -> str:
    """Return the keyed hash of a subject, as hexadecimal digits."""
    text = f"tombstone\x1f{subject}".encode()
    return hmac.digest(key.encode(), text, "sha256").hex()[:DIGEST_CHARACTERS]


def with_entries(
    tombstones: Mapping[str, Tombstone], entries: Iterable[ErasureLogEntry]
) -> dict[str, Tombstone]:
    """Return the tombstones by digest after further entries. Entries may come twice and in any order.

    Of one digest the newest entry decides; a person may be erased again after a tombstone was lifted. Events
    of before the newest lift stay refused.
    """
    after = dict(tombstones)
    for entry in sorted(entries, key=lambda log_entry: log_entry.place):
        before = after.get(entry.digest)
        if before is not None and entry.at <= max(before.erased_at, before.lifted_at):
            continue
        if entry.act is Act.ERASED:
            after[entry.digest] = Tombstone(entry.at, entry.erasure_id)
        elif before is not None:
            after[entry.digest] = Tombstone(before.erased_at, before.erasure_id, entry.at)
    return after


def lift_entries(tombstones: Mapping[str, Tombstone], digest: str, at: str) -> Iterator[ErasureLogEntry]:
    """Yield the entries that lift a tombstone and all others of its erasure, which are of the same person.

    It yields nothing if the tombstone does not stand.
    """
    lifted = tombstones.get(digest)
    if lifted is None or not lifted.stands:
        return
    for other_digest, tombstone in tombstones.items():
        if tombstone.stands and tombstone.erasure_id == lifted.erasure_id:
            yield ErasureLogEntry(at, other_digest, Act.LIFTED, lifted.erasure_id)


class SafeToLog:
    """Marks an exception whose text has nothing that a person has sent, so that logs may have the text."""


def name_in_logs(person_id: str) -> str:
    """Return the name under which logs have a person: by the id the lines are found, but not the id by them.

    It is a hash without a key, so anybody who has a log and a list of ids can compare them. So logs expire.
    """
    text = f"log\x1f{person_id}".encode(errors="surrogatepass")
    return "~" + hashlib.sha256(text).hexdigest()[:NAME_CHARACTERS]
