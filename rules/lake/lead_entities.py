"""The leads' side of the lake: their events, memory and features as entities.

Memory and features are kept in every written version, as streaks are. Were the version no part of the key,
versions of one key would lie in several hours, and a file holds one of each key within its hour only; and
what was known at an earlier time could not be asked for. A version of features lies at the time of its own
change, one of memory at that of its newest evidence, which no attempt to publish it changes.
"""

from rules.lake.schema import Entity, Field, Type
from rules.leads.features import DECIMALS, FEATURES, Feature, Input, Unit

TEXT, INTEGER, BOOLEAN, DATE, TIMESTAMP = Type
LEAD_EVENTS = Entity(
    "lead_events",
    (
        Field("lead_organization_id", TEXT, "the leaf whose event it is, for good", True),
        Field("event_id", TEXT, "a uuid, the same for every attempt to send it", True),
        Field("organization_id", TEXT, "the organization", True),
        Field("root_id", TEXT, "the root of that leaf when the event was stored", True),
        Field("source", TEXT, "organization/integration: the scope of external_event_id", True),
        Field("source_type", TEXT, "the decoder that read it", True),
        Field("external_event_id", TEXT, "the integration's own id", True),
        Field("event_type", TEXT, "a type of rules/leads/lead_events.py", True),
        Field("occurred_at", TIMESTAMP, "when it happened", True),
        Field("received_at", TIMESTAMP, "when it was received", True),
        Field("object_id", TEXT, "what it is about: an order, a message, a campaign"),
        Field("object_id_ref", TEXT, "what kind of thing that is"),
        Field("payload", TEXT, "what rules/leads/lead_events.py lists for its type, JSON text", True),
        Field("raw_payload_ref", TEXT, "where the integration's own words are, if large: an s3:// URL"),
        Field("unreadable", TEXT, "why nothing follows from it, as the live path said; then, none of these:"),
        Field("amount_minor", INTEGER, "orders and refunds: the amount in minor units, as sent, not below 0"),
        Field("order_id", TEXT, "orders and refunds: the order"),
        Field("currency", TEXT, "orders and refunds: currency of the amount"),
        Field("sentiment_milli", INTEGER, "messages and forms: sentiment in thousandths, -1000 to 1000"),
        Field("campaign_id", TEXT, "campaign events: the campaign"),
        Field("change_number", INTEGER, "merges: number of the change; of two, the higher one holds"),
        Field("change_groups", TEXT, "merges: leaves of each group after it, JSON text: lists in a list"),
    ),
    key=("source", "external_event_id"),
    occurred="occurred_at",
    order=("source", "external_event_id"),
)

LEAD_MEMORY = Entity(
    "lead_memory",
    (
        Field("lead_organization_id", TEXT, "the root that it was written for", True),
        Field("memory_type", TEXT, "preference, purchase, sentiment and so on", True),
        Field("memory_key", TEXT, "which one of that type", True),
        Field("version", INTEGER, "counts the writes of this memory", True),
        Field("value", TEXT, "what is remembered, JSON text"),
        Field("confidence_milli", INTEGER, "how sure it is, in thousandths"),
        Field("source", TEXT, "where it was learnt"),
        Field("source_event_ids", TEXT, "the events that it follows from, separated by commas"),
        Field("created_at", TIMESTAMP, "when it was first written"),
        Field(
            "updated_at",
            TIMESTAMP,
            "the time of its newest evidence; of one without, when it was written",
            True,
        ),
        Field("expires_at", TIMESTAMP, "when it is forgotten; in the past once it was withdrawn"),
    ),
    key=("lead_organization_id", "memory_type", "memory_key", "version"),
    occurred="updated_at",
    order=("lead_organization_id", "memory_type", "memory_key", "version"),
)


def column_of(feature: Feature) -> str:
    """Return the name of a feature's column: amounts and thousandths have their unit at the end."""
    return f"{feature.name}_{feature.unit}" if feature.unit in DECIMALS else feature.name


def as_of_column(input_: Input) -> str:
    """Return the name of the column that tells as of when the features of an input were computed."""
    return f"{input_}_as_of"


def _feature_fields() -> tuple[Field, ...]:
    """One column a feature: in whole units, so that sums and comparisons are exact."""
    return tuple(
        Field(column_of(each), BOOLEAN if each.unit is Unit.FLAG else INTEGER, each.doc) for each in FEATURES
    )


LEAD_FEATURES = Entity(
    "lead_features",
    (
        Field("lead_organization_id", TEXT, "the root, or a leaf that was absorbed", True),
        Field("version", INTEGER, "counts the writes of this lead's features", True),
        Field("changed_at", TIMESTAMP, "when this version was written", True),
        Field("computed_at", TIMESTAMP, "as of when anything was computed last"),
        Field("merged_into", TEXT, "the root that absorbed this leaf: it has no features of its own"),
        Field("leaves", TEXT, "of a root with several: all of them, separated by commas"),
        Field("active_on", DATE, "the date of the lead's last activity"),
        Field("topology", INTEGER, "number of the change that last merged or unmerged it"),
        *(Field(as_of_column(each), TIMESTAMP, f"as of when {each} were computed") for each in Input),
        *_feature_fields(),
    ),
    key=("lead_organization_id", "version"),
    occurred="changed_at",
    order=("lead_organization_id", "version"),
)
