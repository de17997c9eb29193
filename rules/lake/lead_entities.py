"""The entities of leads: events, memory and features.

The lake keeps every written version of memory and features, as it does of streaks, so that one can ask what
was known at an earlier time. That is why the version is part of the key: curation keeps one row of each key
in a file, and a file holds one hour. A version of features lies in the hour in which it was written. A
version of memory lies in the hour of its newest evidence, which is the same at every attempt to publish it.
"""

from rules.lake.schema import Entity, Field, Type
from rules.leads.features import DECIMALS, FEATURES, Feature, Input, Unit

TEXT, INTEGER, BOOLEAN, DATE, TIMESTAMP = Type
LEAD_EVENTS = Entity(
    "lead_events",
    (
        Field("lead_organization_id", TEXT, "the leaf that the event belongs to, for good", True, 128),
        Field("event_id", TEXT, "a uuid, the same for every attempt to send it", True, 64),
        Field("organization_id", TEXT, "the organization", True, 256),
        Field("root_id", TEXT, "the root of that leaf when the event was stored", True, 128),
        Field("source", TEXT, "organization/integration: the scope of external_event_id", True, 512),
        Field("source_type", TEXT, "the decoder that read it", True, 128),
        Field("external_event_id", TEXT, "the integration's own id", True, 2048),
        Field("event_type", TEXT, "a type of rules/leads/lead_events.py", True, 64),
        Field("occurred_at", TIMESTAMP, "when it happened", True),
        Field("received_at", TIMESTAMP, "when it was received", True),
        Field("object_id", TEXT, "what it is about: an order, a message, a campaign", False, 2048),
        Field("object_id_ref", TEXT, "what kind of thing object_id names", False, 512),
        Field("payload", TEXT, "what rules/leads/lead_events.py lists for its type, JSON text", True),
        Field(
            "raw_payload_ref",
            TEXT,
            "where the integration's own words are, if large: an s3:// URL",
            False,
            1024,
        ),
        Field(
            "unreadable",
            TEXT,
            "why the live path could not read it; then all fields below are empty",
            False,
            2048,
        ),
        Field("amount_minor", INTEGER, "orders and refunds: the amount in minor units, not below 0"),
        Field("order_id", TEXT, "orders and refunds: the order", False, 2048),
        Field("currency", TEXT, "orders and refunds: currency of the amount", False, 2048),
        Field("sentiment_milli", INTEGER, "messages and forms: sentiment in thousandths, -1000 to 1000"),
        Field("campaign_id", TEXT, "campaign events: the campaign", False, 2048),
        Field("change_number", INTEGER, "merges: number of the change; the higher number is the newer state"),
        Field("change_groups", TEXT, "merges: roots with the leaves that came to them, a JSON list of lists"),
        Field("foreign_minor", INTEGER, "orders in another currency than the organization's: their amount"),
    ),
    key=("source", "external_event_id"),
    occurred="occurred_at",
    order=("source", "external_event_id"),
)

LEAD_MEMORY = Entity(
    "lead_memory",
    (
        Field("lead_organization_id", TEXT, "the root that it was written for", True, 128),
        Field("memory_type", TEXT, "preference, purchase, sentiment and so on", True, 128),
        Field("memory_key", TEXT, "which memory of that type", True, 2048),
        Field("version", INTEGER, "grows with each write of this memory, and never restarts", True),
        Field("value", TEXT, "what is remembered, JSON text"),
        Field("confidence_milli", INTEGER, "how sure it is, in thousandths"),
        Field("source", TEXT, "where its newest evidence came from", False, 512),
        Field("source_event_ids", TEXT, "the events that it follows from, separated by commas"),
        Field("created_at", TIMESTAMP, "the time of its earliest evidence, kept or not"),
        Field(
            "updated_at",
            TIMESTAMP,
            "the time of its newest evidence; once it was withdrawn, when that was",
            True,
        ),
        Field("expires_at", TIMESTAMP, "when it is forgotten; in the past once it was withdrawn"),
    ),
    key=("lead_organization_id", "memory_type", "memory_key", "version"),
    occurred="updated_at",
    order=("lead_organization_id", "memory_type", "memory_key", "version"),
)


def column_of(feature: Feature) -> str:
    """Return the name of a feature's column, with the unit at the end: `monetary_90d_minor`.

    Only amounts and thousandths have a unit in the name.
    """
    return f"{feature.name}_{feature.unit}" if feature.unit in DECIMALS else feature.name


def as_of_column(input_: Input) -> str:
    """Return the name of the column that has as of when an input's features were computed.

    Example: `purchases_as_of`.
    """
    return f"{input_}_as_of"


def state_column(input_: Input) -> str:
    """Return the name of the column that has an input's state (rules/lake/lead_states.py)."""
    return f"{input_}_state"


# A column keeps its place for good: there were so many features when states came. Later ones follow.
FEATURES_BEFORE_STATES = 14


def _feature_fields() -> tuple[Field, ...]:
    """Return a column for each feature, in whole units so that sums are exact, and for each state."""
    features = [
        Field(column_of(each), BOOLEAN if each.unit is Unit.FLAG else INTEGER, each.doc) for each in FEATURES
    ]
    states = [
        Field(state_column(each), TEXT, f"what {each} come to, by date", False, 65535) for each in Input
    ]
    return (*features[:FEATURES_BEFORE_STATES], *states, *features[FEATURES_BEFORE_STATES:])


LEAD_FEATURES = Entity(
    "lead_features",
    (
        Field("lead_organization_id", TEXT, "the root, or a leaf that was absorbed", True, 128),
        Field("version", INTEGER, "grows with each write of this lead's features, and never restarts", True),
        Field("changed_at", TIMESTAMP, "when this version was written", True),
        Field("computed_at", TIMESTAMP, "as of when any of its features was computed last"),
        Field(
            "merged_into", TEXT, "the root that absorbed this leaf: it has no features of its own", False, 128
        ),
        Field("leaves", TEXT, "of earlier rows: all leaves of a root, separated by commas"),
        Field("active_on", DATE, "the date of the lead's last activity"),
        Field("topology", INTEGER, "number of the change that last merged or unmerged it"),
        *(Field(as_of_column(each), TIMESTAMP, f"as of when {each} were computed") for each in Input),
        *_feature_fields(),
    ),
    key=("lead_organization_id", "version"),
    occurred="changed_at",
    order=("lead_organization_id", "version"),
)
