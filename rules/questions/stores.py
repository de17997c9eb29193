"""The stores of questions, and what an erasure does to each (rules/privacy/inventory.py)."""

from rules.parts import Part
from rules.privacy.stores import (
    DELETED,
    ENTITY,
    FAILED_RECORDS,
    IMPERSONAL,
    QUEUE,
    REFUSED,
    RESIDUE,
    TABLE,
    Store,
)

QUESTIONS = Part.QUESTIONS

STORES = (
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
    *(
        Store(
            name,
            QUEUE,
            FAILED_RECORDS,
            REFUSED,
            expires_days=14,
            part=QUESTIONS,
        )
        for name in ("AnswersFailures", "NotifyFailures", "AnnouncementFailures")
    ),
    Store(
        "Announcements",
        QUEUE,
        "pages of those who are to hear of a question",
        REFUSED,
        expires_days=14,
        part=QUESTIONS,
    ),
    Store("questions", ENTITY, "what agents asked", IMPERSONAL),
    Store(
        "responses",
        ENTITY,
        "answers without their texts, under a pseudonym",
        RESIDUE,
        "person",
        found="the lake's pseudonym of each of the person's hashes (rules/lake/pseudonyms.py)",
    ),
    Store("answer_stats", ENTITY, "stats of answers, under the same pseudonym", RESIDUE, "person"),
    Store(
        "notifications", ENTITY, "messages to phones, under a pseudonym of the subscription", RESIDUE, "phone"
    ),
)
