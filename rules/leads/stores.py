"""The stores of leads, and what an erasure does to each (rules/privacy/inventory.py)."""

from rules.parts import Part
from rules.privacy.stores import (
    DATABASE,
    DELETED,
    ENTITY,
    FAILED_RECORDS,
    LEAF,
    QUEUE,
    REFUSED,
    TABLE,
    TOPIC,
    Store,
)

LEADS = Part.LEADS

STORES = (
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
    *(
        Store(name, QUEUE, FAILED_RECORDS, REFUSED, expires_days=14, part=LEADS)
        for name in ("LeadIngestionFailures", "LeadEventsFailures", "MemoryFailures", "FeatureFailures")
    ),
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
    Store("LeadEvents", TOPIC, "events of leads on their way to queues", REFUSED, part=LEADS),
    Store(
        "PostgreSQL",
        DATABASE,
        "who is who: addresses, numbers, ids at WhatsApp and in shops of leads, and the evidence of merges",
        DELETED,
        lead_key="lead_id",
        part=LEADS,
    ),
    Store("lead_events", ENTITY, "events of leads, without the integration's own words", DELETED, "", LEAF),
    Store("lead_memory", ENTITY, "versions of memory", DELETED, "", LEAF),
    Store("lead_features", ENTITY, "versions of features", DELETED, "", LEAF),
)
