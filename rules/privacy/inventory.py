"""Every store, what it holds of a person, how that is found, and what an erasure does to it (rule 10).

A test holds this list against the template's tables, buckets, queues, streams and topics, and against the
lake's entities. So nobody can add a store and forget the persons in it.
"""

from collections.abc import Collection

from rules.parts import Part, is_deployed, said
from rules.privacy.stores import (
    BUCKET,
    CACHE,
    DATABASE,
    DELETED,
    ENTITY,
    EXPIRES,
    FAILED_RECORDS,
    IMPERSONAL,
    LAKE,
    LEAF,
    LOG,
    QUEUE,
    REFUSED,
    RESIDUE,
    STREAM,
    TABLE,
    TOPIC,
    Fate,
    Store,
    StoreKind,
)

__all__ = ["BY_NAME", "INVENTORY", "Fate", "Store", "StoreKind", "stores_lacking"]

INVENTORY = (
    Store("UserStreaks", TABLE, "the profile: streaks, balance, zones, alias, reviews", DELETED, "user_id"),
    Store(
        "BPEvents", TABLE, "events with the sender's properties, keys and zones, 90 days", DELETED, "user_id"
    ),
    Store(
        "DailyActivity",
        TABLE,
        "active dates; what is settled of goals and achievements; the place in the leagues",
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
        "user ids in rows of boards, also in final results for 400 days, and in cohorts of leagues",
        DELETED,
        found="rows of boards, which are put again without the user; in final results a row stays, nameless",
    ),
    Store(
        "Friends",
        TABLE,
        "who is whose friend, has asked whom, has blocked whom",
        DELETED,
        "user_id",
        found="also as the friend in items of those whom the user's own items name",
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
    *(store for stores in said("stores") for store in stores),
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
        Store(name, QUEUE, FAILED_RECORDS, REFUSED, expires_days=14)
        for name in (
            *("EventsStreamFailures", "EngagementFailures", "FulfilmentFailures", "ShipmentFailures"),
            *("PublisherFailures", "NotificationFailures", "DeliveryFailures"),
        )
    ),
    Store("Shipments", QUEUE, "redemptions to be shipped, for whoever ships them", REFUSED, expires_days=14),
    Store("Events", STREAM, "events as producers put them, a day", REFUSED, expires_days=1),
    Store("AlarmTopic", TOPIC, "alarms on their way to an operator; they name resources", IMPERSONAL),
    Store("Redis", CACHE, "profiles, days, ranks", DELETED, "user_id"),
    Store("events", ENTITY, "as BPEvents, for good", RESIDUE, "user_id"),
    Store("daily_activity", ENTITY, "as DailyActivity's dates", RESIDUE, "user_id"),
    Store("ledger", ENTITY, "as RewardsLedger", RESIDUE, "account_id"),
    Store("streaks", ENTITY, "versions of profiles", RESIDUE, "user_id"),
    Store("league_results", ENTITY, "what became of users in leagues, by week", DELETED, "user_id"),
    Store("user_goals", ENTITY, "streaks of the book and achievements, by night", DELETED, "user_id"),
    Store(
        "friendships", ENTITY, "since when the user was whose pair's, and how it ended", DELETED, "user_id"
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
