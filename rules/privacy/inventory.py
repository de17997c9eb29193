"""Every store, what it holds of a person, how that is found, and what an erasure does to it (rule 10).

A test holds this list against the template's tables, buckets, queues, streams and topics, and against the
lake's entities. So nobody can add a store and forget the persons in it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from rules.parts import Part, is_deployed

LEAF = "lead_organization_id"


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
LEADS, QUESTIONS = Part

INVENTORY = (
    Store("UserStreaks", TABLE, "the profile: streaks, balance, zones, alias, reviews", DELETED, "user_id"),
    Store(
        "BPEvents", TABLE, "events with the sender's properties, keys and zones, 90 days", DELETED, "user_id"
    ),
    Store(
        "DailyActivity",
        TABLE,
        "active dates; what is settled of goals and achievements",
        DELETED,
        "user_id",
    ),
    Store("RewardsLedger", TABLE, "all entries, with reasons in people's words", DELETED, "account_id"),
    Store(
        "Rewards",
        TABLE,
        "redemptions of rewards, and how many of a reward the user has",
        DELETED,
        "holder",
        found="an id with a slash stands behind user/, which keeps it apart from a stock's holders",
    ),
    Store(
        "IdempotencyKeys",
        TABLE,
        "clients' keys of events and commands; hashes of devices, and when they were offline, a year;"
        " of leads the ids that integrations gave, and orders",
        DELETED,
        "user_id",
        "user_id",
        found="of a lead: {source}#{external_event_id} of each of its events and orders",
    ),
    Store(
        "Boards",
        TABLE,
        "user ids in the first rows of leaderboards",
        DELETED,
        found="the first rows of each board, which are put again without the user",
    ),
    Store("RuleBooks", TABLE, "books of rules, amnesties", IMPERSONAL),
    Store("WebhookEndpoints", TABLE, "addresses of the customer's systems", IMPERSONAL),
    Store(
        "Notifications",
        TABLE,
        "what the customer's systems were told of the person, a month of it, and what waits for them",
        DELETED,
        "holder",
        found="of a lead: lead/ and its id; of questions, tests and workers it has a slash, too",
    ),
    Store(
        "Erasures",
        TABLE,
        "keyed hashes and certificates, which name nobody; the id while an erasure is under way",
        IMPERSONAL,
    ),
    Store(
        "Limits",
        TABLE,
        "how much a caller did in a minute, and places that an agent or a subscriber holds",
        DELETED,
        "counter",
        found="the counter's name ends in the user id, and perhaps a minute",
        expires_days=2,
    ),
    Store(
        "Event",
        TABLE,
        "what a lead did, with the integration's own words",
        DELETED,
        lead_key=LEAF,
        part=LEADS,
    ),
    Store("Memory", TABLE, "what is remembered of a lead", DELETED, lead_key=LEAF, part=LEADS),
    Store(
        "Feature", TABLE, "features of a lead, and the state behind them", DELETED, lead_key=LEAF, part=LEADS
    ),
    Store(
        "GroupEvents",
        TABLE,
        "which events of leaves a root reads",
        DELETED,
        lead_key="root_id",
        found="all leaves of a person are erased with their root",
        part=LEADS,
    ),
    Store(
        "Questions", TABLE, "what agents ask; agents are organizations' programs", IMPERSONAL, part=QUESTIONS
    ),
    Store(
        "Responses",
        TABLE,
        "answers and their texts, under the keyed hash of who answered",
        DELETED,
        "fingerprint_hash",
        found="ByFingerprint, under each of the person's hashes (adapters/platform/keyed_hash.py)",
        part=QUESTIONS,
    ),
    Store(
        "Subscriptions",
        TABLE,
        "phones, zones and quiet hours, and which messages went to them",
        DELETED,
        "owner",
        found="the places that the user's phones hold in Limits; claims of messages name nobody, and expire",
        part=QUESTIONS,
    ),
    Store(
        "UserStats",
        TABLE,
        "stats of a person's answers",
        DELETED,
        "fingerprint_hash",
        found="as Responses",
        part=QUESTIONS,
    ),
    Store(
        "PayloadBucket",
        BUCKET,
        "exports, webhooks as they came, failed messages that are large",
        DELETED,
        "exports/{digest}/",
        "leads/{event_id}/",
        found="leads/inbox/ and failures/ are deleted by age",
        expires_days=30,
    ),
    Store("LakeBucket", BUCKET, "the lake: see its entities and parts", RESIDUE),
    Store("RootsBucket", BUCKET, "a digest of each night over all ledgers; under a lock", IMPERSONAL),
    *(
        Store(
            name,
            QUEUE,
            "records that failed, as they came, 14 days at most",
            REFUSED,
            expires_days=14,
            part=part,
        )
        for part, names in (
            (None, ("EventsStreamFailures", "EngagementFailures", "FulfilmentFailures", "ShipmentFailures")),
            (LEADS, ("LeadIngestionFailures", "LeadEventsFailures", "MemoryFailures", "FeatureFailures")),
            (QUESTIONS, ("AnswersFailures", "NotifyFailures", "AnnouncementFailures")),
            (None, ("PublisherFailures", "NotificationFailures", "DeliveryFailures")),
        )
        for name in names
    ),
    Store("Shipments", QUEUE, "redemptions to be shipped, for whoever ships them", REFUSED, expires_days=14),
    *(
        Store(
            name,
            QUEUE,
            "work under way: webhooks, events and ids of leads",
            REFUSED,
            expires_days=14,
            part=LEADS,
        )
        for name in ("LeadIngestion", "MemoryProcessing", "FeatureProcessing", "FeatureRefresh")
    ),
    Store(
        "Announcements",
        QUEUE,
        "pages of those who are to hear of a question",
        REFUSED,
        expires_days=14,
        part=QUESTIONS,
    ),
    Store("Events", STREAM, "events as producers put them, a day", REFUSED, expires_days=1),
    Store("AlarmTopic", TOPIC, "alarms on their way to an operator; they name resources", IMPERSONAL),
    Store("LeadEvents", TOPIC, "events of leads on their way to queues", REFUSED, part=LEADS),
    Store("Redis", CACHE, "profiles, days, ranks", DELETED, "user_id"),
    Store(
        "PostgreSQL",
        DATABASE,
        "who is who: addresses, numbers, ids at WhatsApp and in shops of leads, and the evidence of merges",
        DELETED,
        lead_key="lead_id",
        part=LEADS,
    ),
    Store("events", ENTITY, "as BPEvents, for good", RESIDUE, "user_id"),
    Store("daily_activity", ENTITY, "as DailyActivity's dates", RESIDUE, "user_id"),
    Store("ledger", ENTITY, "as RewardsLedger", RESIDUE, "account_id"),
    Store("streaks", ENTITY, "versions of profiles", RESIDUE, "user_id"),
    Store("user_goals", ENTITY, "streaks of the book and achievements, by night", DELETED, "user_id"),
    Store("lead_events", ENTITY, "events of leads, without the integration's own words", DELETED, "", LEAF),
    Store("lead_memory", ENTITY, "versions of memory", DELETED, "", LEAF),
    Store("lead_features", ENTITY, "versions of features", DELETED, "", LEAF),
    Store("questions", ENTITY, "what agents asked", IMPERSONAL),
    Store(
        "responses",
        ENTITY,
        "answers without their texts, under a pseudonym",
        RESIDUE,
        "person",
        found="the lake's pseudonym of each of the person's hashes (rules/lake/question_entities.py)",
    ),
    Store("answer_stats", ENTITY, "stats of answers, under the same pseudonym", RESIDUE, "person"),
    Store(
        "notifications", ENTITY, "messages to phones, under a pseudonym of the subscription", RESIDUE, "phone"
    ),
    Store("rules", ENTITY, "books of rules", IMPERSONAL),
    Store(
        "table_items",
        ENTITY,
        "what a restore needs of a user's profile, claims, redemptions and phones; of phones that are gone"
        " their ids; tombstones, which name nobody",
        DELETED,
        "user_id",
    ),
    Store(
        "raw, quarantine, errors",
        LAKE,
        "lines as they were published",
        DELETED,
        "user_id",
        LEAF,
        found="raw objects that curated files with the person are from, or of which nothing is curated",
    ),
    Store(
        "state, runs, reports",
        LAKE,
        "what is settled of all users; names of users whose accounts differ, or would under another book",
        DELETED,
        found="every object that has the id is deleted, and the same night makes state anew",
    ),
    Store("Warehouse", DATABASE, "tables lake.* and every mart", RESIDUE, "user_id", LEAF),
    Store(
        "Logs",
        LOG,
        "hashes of ids beside errors, 30 days; nothing that somebody has sent",
        EXPIRES,
        expires_days=30,
    ),
)
BY_NAME = {store.name: store for store in INVENTORY}


def stores_lacking(deployed: Collection[Part]) -> tuple[str, ...]:
    """Return the names of the stores that a deployment lacks, because it leaves their parts out."""
    return tuple(store.name for store in INVENTORY if not is_deployed(store.part, deployed))
