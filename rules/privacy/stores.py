"""How a store is declared (inventory.py): what it holds of a person, how that is found, what is erased."""

from dataclasses import dataclass
from enum import StrEnum

from rules.parts import Part


class StoreKind(StrEnum):
    """What kind of store. A table's indexes belong to the table."""

    TABLE = "table"
    BUCKET = "bucket"
    QUEUE = "queue"
    STREAM = "stream"
    TOPIC = "topic"
    ENTITY = "entity of the lake"
    LAKE = "part of the lake"
    CACHE = "cache"
    DATABASE = "database"
    LOG = "log"


class Fate(StrEnum):
    """What an erasure does to what a store holds of the person.

    DELETED: nothing stays. RESIDUE: numbers and dates stay, under a random name that leads back to nobody.
    REFUSED: what passes through is not looked at; its consumers refuse what the tombstone forbids.
    EXPIRES: it ends by itself, after `expires_days`. IMPERSONAL: there is nothing of a person.
    """

    DELETED = "deleted"
    RESIDUE = "residue"
    REFUSED = "refused"
    EXPIRES = "expires"
    IMPERSONAL = "impersonal"


@dataclass(frozen=True, slots=True)
class Store:
    """One store."""

    name: str  # the template's logical id, or the entity's name
    kind: StoreKind
    holds: str  # what is there of a person
    fate: Fate
    # user_key, lead_key: the attribute, column or prefix whose value is a user's, or a lead's, own; empty for
    # a store that has none of them
    user_key: str = ""
    lead_key: str = ""
    found: str = ""  # how the rows are found, where the key alone does not find them
    expires_days: int = 0
    part: Part | None = None  # the part that it belongs to, if a deployment may leave it out


TABLE, BUCKET, QUEUE, STREAM, TOPIC, ENTITY, LAKE, CACHE, DATABASE, LOG = StoreKind
DELETED, RESIDUE, REFUSED, EXPIRES, IMPERSONAL = Fate
LEAF = "lead_organization_id"  # the key of a lead, which is the leaf of a group
FAILED_RECORDS = "records that failed, as they came, 14 days at most"
