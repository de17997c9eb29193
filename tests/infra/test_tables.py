"""Tables, buckets and streams: what is stored is keyed as designed, protected and encrypted."""

import pytest

from local.cloud.laptop_cloud import expiry_attributes
from tests.support.declared import TABLES, indexes_of, properties
from tests.support.parts import modules_of_parts
from tests.support.template import ROOT, resources, table_definition, template

Key = tuple[str, str]
# table: (partition key, sort key), its indexes in the same way, the attribute that expires items, the stream
TABLE_KEYS: dict[str, tuple[Key, dict[str, Key], str, str]] = {
    "UserStreaks": (
        ("user_id", ""),
        {
            "StreakLeaderboard": ("leaderboard_partition", "current_streak"),
            "UnderReview": ("review_state", "user_id"),
            "ByExpiry": ("expiry_shard", "expires_next"),
        },
        "",
        "NEW_IMAGE",
    ),
    "BPEvents": (
        ("user_id", "event_id"),
        {"IdempotencyIndex": ("idempotency_key", "")},
        "ttl",
        "NEW_IMAGE",
    ),
    "DailyActivity": (("user_id", "activity_date"), {}, "", "NEW_IMAGE"),
    "RewardsLedger": (("account_id", "created_at"), {}, "", "NEW_IMAGE"),
    "Rewards": (("holder", "place"), {}, "", "NEW_IMAGE"),
    "Limits": (("counter", ""), {}, "expires_at", ""),
    "Friends": (("user_id", "friend_id"), {}, "expires_at", "NEW_IMAGE"),
    "RuleBooks": (("book", "version"), {}, "", "NEW_IMAGE"),
    "Erasures": (("part", "place"), {}, "", "NEW_IMAGE"),
    "IdempotencyKeys": (("user_id", "idempotency_key"), {}, "ttl", "NEW_IMAGE"),
    "Boards": (("board", "part"), {}, "expires_at", ""),
    "Event": (
        ("lead_organization_id", "occurred_at#id"),
        {
            "idempotency-index": ("source", "external_event_id"),
            "event-type-index": ("lead_organization_id", "event_type#occurred_at"),
        },
        "",
        "NEW_IMAGE",
    ),
    "Memory": (("lead_organization_id", "memory_type#key"), {}, "expires_at", "NEW_IMAGE"),
    "Feature": (("lead_organization_id", ""), {"ByActivity": ("active_shard", "active_on")}, "", "NEW_IMAGE"),
    "GroupEvents": (("root_id", "event_type#occurred_at#id"), {}, "", ""),
    "WebhookEndpoints": (("registry", "endpoint_id"), {}, "", ""),
    "Notifications": (("holder", "place"), {"ByDue": ("due_shard", "due_at")}, "expires_at", ""),
}
TABLE_KEYS |= {
    name: keys for module in modules_of_parts("tables") for name, keys in module.TABLE_KEYS.items()
}
NUMBERS = {"current_streak", "total_points", "version"}


def test_only_who_asks_for_it_has_an_index_of_keys() -> None:
    plain = table_definition("BPEvents", "BPEvents")
    assert "GlobalSecondaryIndexes" not in plain
    assert {each["AttributeName"] for each in plain["AttributeDefinitions"]} == {"user_id", "event_id"}
    asked = table_definition("BPEvents", "BPEvents", CreateIdempotencyIndex="true")
    (index,) = asked["GlobalSecondaryIndexes"]
    assert (index["IndexName"], keys_of(index["KeySchema"])) == ("IdempotencyIndex", ("idempotency_key", ""))
    assert {"AttributeName": "idempotency_key", "AttributeType": "S"} in asked["AttributeDefinitions"]


def test_the_tables_are_those_of_the_design() -> None:
    assert set(TABLES) == set(TABLE_KEYS)


def keys_of(schema: list[dict[str, str]]) -> Key:
    kinds = {each["KeyType"]: each["AttributeName"] for each in schema}
    assert len(kinds) == len(schema)
    return kinds["HASH"], kinds.get("RANGE", "")


@pytest.mark.parametrize("name", TABLE_KEYS)
def test_a_table_has_the_keys_and_indexes_of_the_design(name: str) -> None:
    keys, indexes, expires, stream = TABLE_KEYS[name]
    table = properties(name)
    assert keys_of(table["KeySchema"]) == keys
    found = {each["IndexName"]: keys_of(each["KeySchema"]) for each in indexes_of(table)}
    assert found == indexes
    used = {part for pair in (keys, *indexes.values()) for part in pair if part}
    attributes = [each.get("Fn::If", ["", each])[1] for each in table["AttributeDefinitions"]]
    assert {each["AttributeName"]: each["AttributeType"] for each in attributes} == {
        part: "N" if part in NUMBERS else "S" for part in used
    }
    ttl = table.get("TimeToLiveSpecification", {"AttributeName": "", "Enabled": True})
    # Events that leave once the lake holds them do not expire.
    enabled = {"Fn::GetAtt": "CheckedSettings.EventsExpire"} if name == "BPEvents" else True
    assert (ttl["AttributeName"], ttl["Enabled"]) == (expires, enabled)
    assert table.get("StreamSpecification", {}).get("StreamViewType", "") == stream


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_on_demand_recoverable_encrypted_and_protected_by_parameter(name: str) -> None:
    table = properties(name)
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert "ProvisionedThroughput" not in table
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["SSESpecification"]["SSEEnabled"] is True
    assert table["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}


@pytest.mark.parametrize(
    "name", [*TABLES, *resources("AWS::S3::Bucket"), *resources("AWS::Cognito::UserPool")]
)
def test_what_holds_data_survives_the_stack_but_not_a_failed_first_deployment(name: str) -> None:
    resource = template()["Resources"][name]
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


@pytest.mark.parametrize("name", resources("AWS::S3::Bucket"))
def test_a_bucket_is_private_and_encrypted(name: str) -> None:
    bucket = properties(name)
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert bucket["VersioningConfiguration"] == {"Status": {"Fn::If": ["OnAws", "Enabled", "Suspended"]}}
    rules = bucket["LifecycleConfiguration"]["Rules"]
    assert any("NoncurrentVersionExpiration" in each for each in rules), "former versions cost for ever"


@pytest.mark.parametrize("name", resources("AWS::S3::Bucket"))
def test_a_bucket_refuses_whoever_comes_without_tls(name: str) -> None:
    policy = properties(f"{name}Policy")
    assert policy["Bucket"] == {"Ref": name}
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "s3:*")
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert len(statement["Resource"]) == 2


@pytest.mark.parametrize("name", resources("AWS::Kinesis::Stream"))
def test_a_stream_is_encrypted_and_on_demand(name: str) -> None:
    assert properties(name)["StreamEncryption"]["EncryptionType"] == "KMS"
    assert properties(name)["StreamModeDetails"] == {"StreamMode": "ON_DEMAND"}


def test_what_expires_on_aws_expires_on_a_laptop() -> None:
    attributes = expiry_attributes((ROOT / "template.yaml").read_text())
    tables = resources("AWS::DynamoDB::Table")
    assert attributes.keys() == {name for name, table in tables.items() if "TimeToLive" in str(table)}
    assert (attributes["Notifications"], attributes["BPEvents"]) == ("expires_at", "ttl")
