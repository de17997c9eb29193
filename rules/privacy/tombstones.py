"""Names that do not reveal whose they are (rule 10): tombstones say whose data must not come back, and logs
have of a person a name that does not lead back to them.
"""

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

DIGEST_CHARACTERS = 32
# What is said about a person: what the key is used for keeps hashes and signatures apart.
USER, LEAD, IDENTITY, ORGANIZATION = "user", "lead", "identity", "organization"
NAME_CHARACTERS = 16


class Act(StrEnum):
    """What an entry of the journal says of a digest."""

    ERASED = "erased"
    LIFTED = "lifted"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What is said of a digest at an instant."""

    at: str  # a stamp
    digest: str
    act: Act
    erasure_id: str  # of the erasure that it belongs to, the same for all its digests

    @property
    def place(self) -> str:
        """Its sort key: journals are read from a moment on."""
        return f"{self.at}#{self.digest}#{self.act}"


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Who is under it was erased at erased_at."""

    erased_at: str
    erasure_id: str
    lifted_at: str = ""  # a stamp; "" while it stands

    @property
    def stands(self) -> bool:
        """Whether it refuses everything."""
        return not self.lifted_at

    def forbids(self, happened_at: str) -> bool:
        """Whether it refuses what happened then (a stamp)."""
        return self.stands or happened_at < self.lifted_at


def user_subject(user_id: str) -> str:
    """Return what is hashed of a user."""
    return f"{USER}\x1f{user_id}"


def lead_subject(lead_organization_id: str) -> str:
    """Return what is hashed of a lead."""
    return f"{LEAD}\x1f{lead_organization_id}"


def identity_subject(organization_id: str, channel: str, external_id: str) -> str:
    """Return what is hashed of an identity of a lead, which would find or make the lead again."""
    return f"{IDENTITY}\x1f{organization_id}\x1f{channel}\x1f{external_id}"


def organization_subject(erasure_id: str, organization_id: str) -> str:
    """Return what is hashed of the organization of an erased lead.

    It differs by erasure, so it does not reveal which erasures are of one organization.
    """
    return f"{ORGANIZATION}\x1f{erasure_id}\x1f{organization_id}"


def digest_of(key: str, subject: str) -> str:
    """Return the keyed hash of a subject, as hexadecimal digits."""
    text = f"tombstone\x1f{subject}".encode()
    return hmac.digest(key.encode(), text, "sha256").hex()[:DIGEST_CHARACTERS]


def with_entries(
    tombstones: Mapping[str, Tombstone], entries: Iterable[JournalEntry]
) -> dict[str, Tombstone]:
    """Return the tombstones by digest after further entries. Entries may come twice and in any order.

    Of one digest the newest entry decides; a person may be erased again after a tombstone was lifted. What
    happened before the newest lift stays refused.
    """
    found = dict(tombstones)
    for entry in sorted(entries, key=lambda journal_entry: journal_entry.place):
        before = found.get(entry.digest)
        if entry.act is Act.ERASED:
            if before is None or entry.at > max(before.erased_at, before.lifted_at):
                found[entry.digest] = Tombstone(entry.at, entry.erasure_id)
        elif before is not None and entry.at > max(before.erased_at, before.lifted_at):
            found[entry.digest] = Tombstone(before.erased_at, before.erasure_id, entry.at)
    return found


def lift_entries(tombstones: Mapping[str, Tombstone], digest: str, at: str) -> Iterator[JournalEntry]:
    """Yield what lifts a tombstone, with all others of the same erasure: one person has several identities.

    Nothing if none stands.
    """
    found = tombstones.get(digest)
    if found is None or not found.stands:
        return
    for each, tombstone in tombstones.items():
        if tombstone.stands and tombstone.erasure_id == found.erasure_id:
            yield JournalEntry(at, each, Act.LIFTED, found.erasure_id)


class SafeToLog:
    """Marks an exception whose text holds nothing that somebody has sent, so that a log may have it."""


def name_in_logs(an_id: str) -> str:
    """Return the name under which logs have an id: whoever has the id finds the lines, but not the other way.

    It is a hash without a key: whoever has the log and a list of ids can compare them. So logs end by age.
    """
    text = f"log\x1f{an_id}".encode(errors="surrogatepass")
    return "~" + hashlib.sha256(text).hexdigest()[:NAME_CHARACTERS]
