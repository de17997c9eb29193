"""What a restore cannot have, by name (rule 21)."""

from dataclasses import dataclass

# What the lake does not have. Of tables, point-in-time recovery has it (--from-table).
NOT_IN_THE_LAKE = {
    "Event": "events of leads: the lake's rows lack the integrations' own words",
    "Memory": "memory of leads: the lake's rows lack the evidence",
    "Feature": "features of leads: streakline rebuild features makes them from Event",
    "GroupEvents": "which events of leaves a root reads",
    "PostgreSQL": "identities of leads: its own backups",
    "Questions": "questions: the lake's rows lack what is needed to close them",
    "Responses": "answers: the lake has neither their texts nor whose they are",
    "UserStats": "stats of answers: the lake has them under pseudonyms",
    "Subscriptions": "phones: they subscribe again",
    "WebhookEndpoints": "addresses of the customer's systems: to be declared again",
    "Notifications": "what the customer's systems were told: they may be told again",
    "Erasures": "erasures under way and certificates: erase again whom these were of; tombstones are there",
    "IdempotencyKeys": "claims of leads' events and orders, counts of hooks, notes of imports",
    "PayloadBucket": "large properties of events, unless the bucket still has them",
    "Boards": "nothing: the next snapshot makes them anew",
    "Limits": "nothing that lasts longer than a minute",
    "Redis": "nothing: rounds fill it",
}


@dataclass(frozen=True, slots=True, order=True)
class Lack:
    """One thing that could not be had. key: whose, or which; reason: why, in words."""

    store: str
    key: str
    reason: str
