"""What a restore cannot have, by name (rule 21)."""

from dataclasses import dataclass

# What the lake does not have. Of tables, point-in-time recovery has it (--from-table).
NOT_IN_THE_LAKE = {
    "Event": "the integrations' own words of leads' events, unless they are large: the bucket has these",
    "Memory": "nothing: it follows from Event",
    "Feature": "nothing: it follows from Event; streakline rebuild features makes sure",
    "GroupEvents": "nothing: it follows from Event",
    "PostgreSQL": "who is who: addresses, numbers and ids of leads. Its own backups have them;"
    " whoever sends from an address that they lack becomes another lead",
    "Questions": "digests of what was asked: another question under an old key gets the old one",
    "Responses": "answers and their texts: who has answered may answer once more, and earns nothing by it",
    "AnswerLines": "answers under way: their people are told that they are not taken",
    "UserStats": "stats of answers, which follow from Responses: the lake has them under pseudonyms",
    "Subscriptions": "messages under way: a phone may get one of them again; which polls wait",
    "WebhookEndpoints": "addresses of the customer's systems: to be declared again",
    "Notifications": "what the customer's systems were told: they may be told again",
    "Erasures": "erasures under way and certificates: erase again whom these were of; tombstones are there",
    "IdempotencyKeys": "digests of leads' events: another one under an old id is a duplicate; states of"
    " orders: a webhook of an old order is kept as a conflict; counts of hooks, notes of imports",
    "PayloadBucket": "webhooks that are large, unless the bucket still has them",
    "Boards": "nothing: the next snapshot makes them anew",
    "Limits": "nothing that lasts longer than a minute",
    "Redis": "nothing: rounds fill it",
    "Warehouse": "nothing: nights load from the lake what it lacks",
}


@dataclass(frozen=True, slots=True, order=True)
class Lack:
    """One thing that could not be had. key: whose, or which; reason: why, in words."""

    store: str
    key: str
    reason: str
