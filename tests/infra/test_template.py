"""What the design demands of template.yaml and of the templates that it nests."""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import ingest.engagement.events_api
import ingest.engagement.users_api
import ingest.leads.leads_api
import ingest.operations_api
import ingest.questions.questions_api
from ingest import openapi
from rules.lake.entities import ENTITIES
from rules.leads.features import FEATURES
from rules.leads.lead_events import EVENT_TYPES, IDENTITY_TYPES, ORDER_REFUNDED
from tests.support.template import ROOT, resources, template

TEMPLATES = (
    "template.yaml",
    *(f"infra/{name}.yaml" for name in ("cache", "identity", "network", "observability", "warehouse")),
)
FUNCTIONS = resources("AWS::Serverless::Function")
TABLES = resources("AWS::DynamoDB::Table")
ALL_MAPPINGS = resources("AWS::Lambda::EventSourceMapping")
MAPPINGS = {name: each for name, each in ALL_MAPPINGS.items() if "StartingPosition" in each["Properties"]}
QUEUE_MAPPINGS = {name: each for name, each in ALL_MAPPINGS.items() if name not in MAPPINGS}
QUEUES = resources("AWS::SQS::Queue")
FAILURES = {name for name in QUEUES if name.endswith("Failures")}
WORK = set(QUEUES) - FAILURES
ROUTES = resources("AWS::ApiGatewayV2::Route")
ON_AWS = {"Condition": "OnAws"}
NO_VALUE = {"Ref": "AWS::NoValue"}
OPEN_ROUTES = {"GET /", "GET /app/{file}", "GET /v1/health", "GET /v1/openapi.json"}

Key = tuple[str, str]
# table: (partition key, sort key), its indexes in the same way, the attribute that expires items, the stream
DESIGN: dict[str, tuple[Key, dict[str, Key], str, str]] = {
    "UserStreaks": (
        ("user_id", ""),
        {"StreakLeaderboard": ("leaderboard_partition", "current_streak")},
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
    "IdempotencyKeys": (("user_id", "idempotency_key"), {}, "ttl", ""),
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
    "Questions": (
        ("question_id", ""),
        {"ByStatus": ("status", "created_at"), "ByAgentId": ("agent_id", "created_at")},
        "expires_at",
        "NEW_IMAGE",
    ),
    "Responses": (
        ("question_id", "response_id"),
        {"ByFingerprint": ("fingerprint_hash", "created_at")},
        "",
        "NEW_IMAGE",
    ),
    "Subscriptions": (
        ("subscription_id", ""),
        {"ByLastNotified": ("active", "last_notified_at")},
        "expires_at",
        "",
    ),
    "UserStats": (("fingerprint_hash", ""), {"ByTotalPoints": ("leaderboard", "total_points")}, "", ""),
}
NUMBERS = {"current_streak", "total_points"}

# Statements that may say "*", by function and action, and why.
STARS = {
    ("EventsApiFunction", "dynamodb:BatchExecuteStatement"): (
        "only off AWS: the emulator authorizes the call, AWS what its statements do"
    ),
    ("EventsStreamFunction", "dynamodb:BatchExecuteStatement"): (
        "only off AWS: the emulator authorizes the call, AWS what its statements do"
    ),
    ("EngagementFunction", "dynamodb:ListStreams"): "AWS knows no narrower resource for it",
    ("LeadEventsFunction", "dynamodb:ListStreams"): "AWS knows no narrower resource for it",
    ("AnswersFunction", "dynamodb:ListStreams"): "AWS knows no narrower resource for it",
    ("NotifyFunction", "dynamodb:ListStreams"): "AWS knows no narrower resource for it",
    ("PublisherFunction", "dynamodb:ListStreams"): "AWS knows no narrower resource for it",
    **{
        (f"{name}Function", f"redshift-data:{action}"): "AWS knows no narrower one; a condition narrows it"
        for name in ("Warehouse", "Reconcile")
        for action in ("CancelStatement", "DescribeStatement", "GetStatementResult")
    },
}
# What other services' roles may do, and on what.
ROLES = {
    "RanksScheduleRole": {"lambda:InvokeFunction"},
    "RefreshScheduleRole": {"lambda:InvokeFunction"},
    "AnnounceScheduleRole": {"sqs:SendMessage"},
    "RemindersScheduleRole": {"lambda:InvokeFunction"},
    "NightlyScheduleRole": {"states:StartExecution"},
    "NightlyRole": {
        "lambda:InvokeFunction",
        "s3:GetObject",
        "states:StartExecution",
        "states:DescribeExecution",
        "states:StopExecution",
        "xray:GetSamplingRules",
        "xray:GetSamplingTargets",
        "xray:PutTelemetryRecords",
        "xray:PutTraceSegments",
    },
    "DeliveryRole": {
        "s3:AbortMultipartUpload",
        "s3:GetBucketLocation",
        "s3:ListBucket",
        "s3:ListBucketMultipartUploads",
        "s3:PutObject",
        "logs:PutLogEvents",
    },
}
# Functions of the nightly run: they work on a lake, not for somebody who waits.
NIGHTLY = {"CurateFunction", "WarehouseFunction", "ReconcileFunction"}
# Where items may be deleted: a day that no ledger entry knows; subscriptions, with what marks them.
DELETED = {
    "ReconcileFunction": {"DailyActivity"},
    **{f"{name}Function": {"Subscriptions"} for name in ("QuestionsApi", "Notify", "Reminders")},
}
# Functions that go through many leads or subscribers at a time.
MASSES = {"RefreshFunction", "NotifyFunction", "RemindersFunction"}
# Functions that speak to the identity database.
POSTGRES = {"LeadsFunction", "MigrateFunction"}


def properties(logical_id: str) -> dict[str, Any]:
    found: dict[str, Any] = template()["Resources"][logical_id]["Properties"]
    return found


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def logical_ids(value: Any) -> set[str]:
    """Everything that a value names by Ref, GetAtt or Sub."""
    if isinstance(value, dict):
        found = set()
        for name, inner in value.items():
            if name == "Ref":
                found.add(str(inner))
            elif name == "Fn::GetAtt":
                found.add((inner if isinstance(inner, str) else inner[0]).split(".")[0])
            elif name == "Fn::Sub":
                found |= {
                    each.split(".")[0]
                    for text in listed(inner)
                    if isinstance(text, str)
                    for each in re.findall(r"\$\{([^}!]+)\}", text)
                }
            else:
                found |= logical_ids(inner)
        return found
    if isinstance(value, list):
        return set().union(*map(logical_ids, value))
    return set()


def statements(name: str) -> Iterator[tuple[dict[str, Any], str]]:
    """A function's statements, with where each holds: always, on AWS or off it."""
    for policy in properties(name).get("Policies", []):
        for statement in policy.get("Statement", []) if isinstance(policy, dict) else []:
            if "Fn::If" in statement:
                condition, then, otherwise = statement["Fn::If"]
                assert condition in ("OnAws", "HasIdentity", "HasPush", "HasWarehouse")
                yield then, "on"
                if otherwise != NO_VALUE:
                    yield otherwise, "off"
            else:
                yield statement, "always"


def test_the_tables_are_those_of_the_design() -> None:
    assert set(TABLES) == set(DESIGN)


def keys_of(schema: list[dict[str, str]]) -> Key:
    kinds = {each["KeyType"]: each["AttributeName"] for each in schema}
    assert len(kinds) == len(schema)
    return kinds["HASH"], kinds.get("RANGE", "")


@pytest.mark.parametrize("name", DESIGN)
def test_a_table_has_the_keys_and_indexes_of_the_design(name: str) -> None:
    keys, indexes, expires, stream = DESIGN[name]
    table = properties(name)
    assert keys_of(table["KeySchema"]) == keys
    found = {
        each["IndexName"]: keys_of(each["KeySchema"]) for each in table.get("GlobalSecondaryIndexes", [])
    }
    assert found == indexes
    used = {part for pair in (keys, *indexes.values()) for part in pair if part}
    assert {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]} == {
        part: "N" if part in NUMBERS else "S" for part in used
    }
    ttl = table.get("TimeToLiveSpecification", {"AttributeName": "", "Enabled": True})
    assert (ttl["AttributeName"], ttl["Enabled"]) == (expires, True)
    assert table.get("StreamSpecification", {}).get("StreamViewType", "") == stream


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_on_demand_recoverable_encrypted_and_protected_by_parameter(name: str) -> None:
    table = properties(name)
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert "ProvisionedThroughput" not in table
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["SSESpecification"]["SSEEnabled"] is True
    assert table["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}


def test_tables_are_protected_unless_somebody_says_otherwise() -> None:
    assert template()["Parameters"]["DeletionProtection"]["Default"] == "true"


@pytest.mark.parametrize(
    "name", [*TABLES, *resources("AWS::S3::Bucket"), *resources("AWS::Cognito::UserPool")]
)
def test_what_holds_data_survives_the_stack(name: str) -> None:
    resource = template()["Resources"][name]
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain")


@pytest.mark.parametrize("name", resources("AWS::S3::Bucket"))
def test_a_bucket_is_private_and_encrypted(name: str) -> None:
    bucket = properties(name)
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]


@pytest.mark.parametrize("name", QUEUES)
def test_a_failure_queue_is_encrypted_and_waits_two_weeks(name: str) -> None:
    assert properties(name)["SqsManagedSseEnabled"] is True
    assert properties(name)["MessageRetentionPeriod"] == 14 * 24 * 3600


@pytest.mark.parametrize("name", resources("AWS::Kinesis::Stream"))
def test_a_stream_is_encrypted_and_on_demand(name: str) -> None:
    assert properties(name)["StreamEncryption"]["EncryptionType"] == "KMS"
    assert properties(name)["StreamModeDetails"] == {"StreamMode": "ON_DEMAND"}


def test_there_are_stream_consumers() -> None:
    assert len(MAPPINGS) == 12
    assert len(QUEUE_MAPPINGS) == 3
    assert not any("Events" in each["Properties"] for each in FUNCTIONS.values()), (
        "mappings are resources of their own, so that every one of them is seen here"
    )


@pytest.mark.parametrize("name", MAPPINGS)
def test_a_consumer_reports_partial_failures_bisects_gives_up_and_keeps_what_failed(name: str) -> None:
    mapping = properties(name)
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BisectBatchOnFunctionError"] is True
    assert 0 < mapping["MaximumRetryAttempts"] <= 100
    assert 0 < mapping["MaximumRecordAgeInSeconds"] <= 7 * 24 * 3600
    (queue,) = logical_ids(mapping["DestinationConfig"]["OnFailure"]["Destination"])
    assert queue in QUEUES
    (function,) = logical_ids(mapping["FunctionName"])
    sends = [each for each, _ in statements(function) if queue in logical_ids(each["Resource"])]
    assert [each["Action"] for each in sends] == [["sqs:SendMessage"]]
    assert properties(function)["Environment"]["Variables"]["FAILURE_QUEUE_URL"] == {"Ref": queue}


@pytest.mark.parametrize("name", QUEUE_MAPPINGS)
def test_a_queue_s_consumer_reports_partial_failures_and_what_fails_for_good_is_kept(name: str) -> None:
    mapping = properties(name)
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    (function,), (queue,) = logical_ids(mapping["FunctionName"]), logical_ids(mapping["EventSourceArn"])
    dead = properties(queue)["RedrivePolicy"]
    assert logical_ids(dead["deadLetterTargetArn"]) <= FAILURES
    assert dead["maxReceiveCount"] >= 5
    (failures,) = logical_ids(dead["deadLetterTargetArn"])
    assert properties(function)["Environment"]["Variables"]["FAILURE_QUEUE_URL"] == {"Ref": failures}
    assert properties(queue)["VisibilityTimeout"] == {"Ref": "QueueVisibilitySeconds"}
    visibility = template()["Parameters"]["QueueVisibilitySeconds"]["Default"]
    assert visibility >= 6 * properties(function)["Timeout"]  # AWS's advice
    reads = [each for each, _ in statements(function) if queue in logical_ids(each["Resource"])]
    assert [each["Action"] for each in reads] == [
        ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
    ]


def test_every_queue_of_work_has_a_consumer() -> None:
    assert {
        name for each in QUEUE_MAPPINGS for name in logical_ids(properties(each)["EventSourceArn"])
    } == WORK


def subscribed(name: str) -> set[str]:
    subscription = properties(name)
    assert subscription["RawMessageDelivery"] is True
    assert subscription["FilterPolicyScope"] == "MessageAttributes"
    return set(subscription["FilterPolicy"]["event_type"])


def test_features_are_told_of_the_events_that_trigger_them_and_memory_of_those_that_it_derives_from() -> None:
    assert subscribed("FeaturesSubscription") == {
        *(trigger for feature in FEATURES for trigger in feature.triggers),
        *IDENTITY_TYPES,
    }
    assert subscribed("MemorySubscription") == EVENT_TYPES - {ORDER_REFUNDED}


@pytest.mark.parametrize("name", MAPPINGS)
def test_a_consumer_loses_nothing_that_was_there_before_it_and_can_be_switched_off(name: str) -> None:
    mapping = properties(name)
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert mapping["Enabled"] == {"Fn::If": ["StreamMappingsEnabled", True, False]}


@pytest.mark.parametrize("name", MAPPINGS)
def test_a_consumer_may_read_its_source(name: str) -> None:
    (function,) = logical_ids(properties(name)["FunctionName"])
    (source,) = logical_ids(properties(name)["EventSourceArn"])
    actions = {
        action
        for statement, where in statements(function)
        if source in logical_ids(statement["Resource"]) and where == "always"
        for action in listed(statement["Action"])
    }
    service = "dynamodb" if source in TABLES else "kinesis"
    assert {f"{service}:GetRecords", f"{service}:GetShardIterator"} <= actions


@pytest.mark.parametrize("name", MAPPINGS)
def test_the_filters_of_a_consumer_are_json_that_the_poller_knows(name: str) -> None:
    from local.cloud.event_filters import matches

    for each in properties(name).get("FilterCriteria", {}).get("Filters", []):
        pattern = json.loads(each["Pattern"])
        assert matches(pattern, {"eventName": "INSERT"})
        assert not matches(pattern, {"eventName": "REMOVE"})


def test_a_table_s_stream_has_at_most_two_consumers() -> None:
    sources = [logical_ids(properties(name)["EventSourceArn"]) for name in MAPPINGS]
    for table in TABLES:
        assert sum(table in each for each in sources) <= 2


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_statement_says_star_but_those_that_are_listed(name: str) -> None:
    for statement, where in statements(name):
        assert statement["Effect"] == "Allow"
        assert "NotAction" not in statement
        assert "NotResource" not in statement
        actions = listed(statement["Action"])
        assert not any("*" in action for action in actions)
        for resource in listed(statement["Resource"]):
            if resource == "*":
                assert all((name, action) in STARS for action in actions)
                if any("only off AWS" in STARS[name, action] for action in actions):
                    assert where == "off"
            else:
                assert isinstance(resource, dict), "a resource is named by the template, not by text"


def test_every_listed_star_is_needed() -> None:
    said = {
        (name, action)
        for name in FUNCTIONS
        for statement, _ in statements(name)
        if "*" in listed(statement["Resource"])
        for action in listed(statement["Action"])
    }
    assert said == set(STARS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_no_managed_policy_but_the_one_for_its_network(name: str) -> None:
    for policy in properties(name)["Policies"]:
        if "Statement" not in policy:
            condition, arn, otherwise = policy["Fn::If"]
            assert condition == properties(name)["VpcConfig"]["Fn::If"][0]
            assert arn.endswith("AWSLambdaVPCAccessExecutionRole")
            assert otherwise == NO_VALUE


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_may_touch_the_tables_of_its_own_environment_and_no_others(name: str) -> None:
    environment = logical_ids(properties(name)["Environment"]["Variables"])
    allowed = set().union(*(logical_ids(each["Resource"]) for each, _ in statements(name)))
    streams = {
        table
        for each in MAPPINGS
        if name in logical_ids(properties(each)["FunctionName"])
        for table in logical_ids(properties(each)["EventSourceArn"])
    }
    assert allowed & set(TABLES) - streams == environment & set(TABLES) - streams
    sources = {
        queue
        for each in QUEUE_MAPPINGS
        if name in logical_ids(properties(each)["FunctionName"])
        for queue in logical_ids(properties(each)["EventSourceArn"])
    }
    assert allowed & set(QUEUES) == environment & set(QUEUES) | sources
    assert allowed & set(resources("AWS::S3::Bucket")) == environment & set(resources("AWS::S3::Bucket"))


def test_nothing_that_is_stored_may_be_deleted_and_the_ledger_is_never_scanned() -> None:
    for name in FUNCTIONS:
        for statement, _ in statements(name):
            for action in listed(statement["Action"]):
                if action == "dynamodb:DeleteItem":
                    assert logical_ids(statement["Resource"]) == DELETED[name]
                elif action == "sns:DeleteEndpoint":  # a phone that nobody owns, or that is gone
                    assert logical_ids(statement["Resource"]) <= {
                        "AWS::Partition",
                        "AWS::Region",
                        "AWS::AccountId",
                    }
                elif action == "sqs:DeleteMessage":  # what has been processed
                    assert logical_ids(statement["Resource"]) <= WORK
                elif "Delete" in action:  # what is made of raw objects can be made again
                    assert (name, action) == ("CurateFunction", "s3:DeleteObject")
                    assert "raw" not in json.dumps(statement["Resource"])
                if action == "dynamodb:Scan":
                    scanned = {"UserStreaks", "DailyActivity"} if name in NIGHTLY else {"UserStreaks"}
                    assert logical_ids(statement["Resource"]) <= scanned


def test_raw_objects_are_written_by_firehose_alone_and_archived_after_90_days() -> None:
    for name in FUNCTIONS:
        for statement, _ in statements(name):
            if "s3:PutObject" in listed(statement["Action"]) and "/raw/" in json.dumps(statement["Resource"]):
                assert (name, statement["Resource"]) == (
                    "CurateFunction",
                    {"Fn::Sub": "${LakeBucket.Arn}/raw/*/recovered/*"},
                )
    rules = properties("LakeBucket")["LifecycleConfiguration"]["Rules"]
    (archive,) = [each for each in rules if each.get("Prefix") == "raw/"]
    assert archive["Transitions"] == [{"StorageClass": "GLACIER_IR", "TransitionInDays": 90}]
    assert not any(
        each.get("Prefix") in (None, "", "raw/", "curated/") for each in rules if "ExpirationInDays" in each
    )


def test_every_entity_is_delivered_to_its_place_by_its_own_time() -> None:
    streams = resources("AWS::KinesisFirehose::DeliveryStream")
    prefixes = set()
    for each in streams.values():
        target = each["Properties"]["ExtendedS3DestinationConfiguration"]
        prefixes.add(target["Prefix"])
        assert target["CompressionFormat"] == "GZIP"
        assert target["DynamicPartitioningConfiguration"]["Enabled"] is True
        assert target["ErrorOutputPrefix"].startswith("errors/")
    partition = "dt=!{partitionKeyFromQuery:dt}/hour=!{partitionKeyFromQuery:hour}/"
    assert prefixes == {f"raw/{entity}/{partition}" for entity in ENTITIES}
    assert watched("AWS/Firehose", "DeliveryToS3.DataFreshness", "DeliveryStreamName") == set(streams)


def test_the_nightly_run_s_failures_and_differences_raise_an_alarm() -> None:
    assert watched("AWS/States", "ExecutionsFailed", "StateMachineArn") == {"Nightly"}
    found = {each["MetricName"] for each in alarms().values() if each["Namespace"] == "Streakline"}
    assert found == {"Differences", "Unrepaired", "LakeDisagreements", "TestFailures", "Unconfirmed"}


def test_every_step_of_the_nightly_run_is_retried_and_then_surfaces() -> None:
    machine = json.loads(
        (ROOT / "infra" / "nightly.asl.json")
        .read_text()
        .replace("${CurateConcurrency}", '"${CurateConcurrency}"')
    )
    assert logical_ids({"Fn::Sub": json.dumps(machine)}) == set(
        properties("Nightly")["DefinitionSubstitutions"]
    )
    for name, state in machine["States"].items():
        if name in ("Surface", "Failed"):
            continue
        assert [catch["Next"] for catch in state["Catch"]] == ["Surface"], name
        worker = state["ItemProcessor"]["States"]["CurateBatch"] if state["Type"] == "Map" else state
        assert worker["Retry"][0]["MaxAttempts"] >= 2, name
    assert machine["States"]["Surface"]["Next"] == "Failed"
    assert machine["States"]["Failed"]["Type"] == "Fail"


@pytest.mark.parametrize("name", resources("AWS::IAM::Role"))
def test_a_role_of_another_service_may_do_what_is_listed_and_no_more(name: str) -> None:
    allowed = set()
    for policy in properties(name)["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            allowed |= set(listed(statement["Action"]))
            if statement["Resource"] == "*":
                assert all(action.startswith("xray:") for action in statement["Action"])
    assert allowed == ROLES[name]
    trust = properties(name)["AssumeRolePolicyDocument"]["Statement"]
    for each in trust:
        assert set(each["Condition"]["StringEquals"]) <= {"aws:SourceAccount", "sts:ExternalId"}
        assert all(each["Condition"]["StringEquals"].values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_a_log_group_of_its_own_with_retention(name: str) -> None:
    (group,) = logical_ids(properties(name)["LoggingConfig"]["LogGroup"])
    assert template()["Resources"][group]["Type"] == "AWS::Logs::LogGroup"
    others = [each for each in FUNCTIONS if each != name]
    assert all(group not in logical_ids(properties(each)["LoggingConfig"]) for each in others)


@pytest.mark.parametrize("name", resources("AWS::Logs::LogGroup"))
def test_a_log_group_has_retention(name: str) -> None:
    assert properties(name)["RetentionInDays"] == {"Ref": "LogRetentionDays"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_reserved_concurrency_on_aws_and_a_timeout(name: str) -> None:
    condition, reserved, otherwise = properties(name)["ReservedConcurrentExecutions"]["Fn::If"]
    assert (condition, otherwise) == ("OnAws", NO_VALUE)
    assert isinstance(reserved, int)
    assert reserved >= 1
    assert 0 < properties(name)["Timeout"] <= (900 if name in {*NIGHTLY, *MASSES} else 120)


def test_functions_share_runtime_architecture_tracing_and_layer() -> None:
    shared = template()["Globals"]["Function"]
    assert shared["Tracing"] == "Active"
    assert shared["Runtime"] == {"Ref": "Runtime"}
    assert shared["Architectures"] == [{"Ref": "Architecture"}]
    assert shared["Layers"] == [{"Ref": "DependenciesLayer"}]
    for name, each in FUNCTIONS.items():
        assert not set(each["Properties"]) & {"Tracing", "Runtime", "Architectures"}
        more = [{"Ref": "AnalyticsLayer"}] if name in NIGHTLY else []  # SAM adds them to the shared one
        more = [{"Ref": "IdentityLayer"}] if name in POSTGRES else more
        assert each["Properties"].get("Layers", []) == more


def test_runtime_and_architecture_are_parameters_with_the_defaults_of_aws() -> None:
    parameters = template()["Parameters"]
    assert parameters["Runtime"]["Default"] == "python3.13"
    assert parameters["Architecture"]["Default"] == "arm64"
    assert "python3.13" in parameters["Runtime"]["AllowedValues"]
    assert set(parameters["Architecture"]["AllowedValues"]) == {"arm64", "x86_64"}
    for each in resources("AWS::Serverless::LayerVersion").values():
        assert each["Properties"]["CompatibleRuntimes"] == [{"Ref": "Runtime"}]
        assert each["Properties"]["CompatibleArchitectures"] == [{"Ref": "Architecture"}]


def test_what_is_deployed_by_default_is_what_aws_gets() -> None:
    parameters = template()["Parameters"]
    assert parameters["OnAws"]["Default"] == "true"
    assert parameters["StreamMappingsEnabled"]["Default"] == "true"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_s_handler_exists(name: str) -> None:
    import importlib

    module, _, attribute = properties(name)["Handler"].rpartition(".")
    assert callable(getattr(importlib.import_module(module), attribute))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_speak_to_redis_or_postgresql_are_in_their_network(name: str) -> None:
    variables = set(properties(name)["Environment"]["Variables"])
    networks = {
        frozenset(): None,
        frozenset({"REDIS_URL"}): "HasCache",
        frozenset({"IDENTITY_URL"}): "HasIdentity",
        frozenset({"REDIS_URL", "IDENTITY_URL"}): "HasNetwork",
    }
    expected = networks[frozenset(variables & {"REDIS_URL", "IDENTITY_URL"})]
    assert properties(name).get("VpcConfig", {}).get("Fn::If", [None])[0] == expected
    assert ("VPCAccess" in json.dumps(properties(name)["Policies"])) is (expected is not None)


def test_every_route_has_the_authorizer_but_health_and_the_description() -> None:
    for each in ROUTES.values():
        route = each["Properties"]
        if route["RouteKey"] in OPEN_ROUTES:
            assert route["AuthorizationType"] == "NONE"
        else:
            assert route["AuthorizationType"] == "JWT"
            assert route["AuthorizerId"] == {"Ref": "Authorizer"}
        assert "$default" not in route["RouteKey"]
        assert "ANY" not in route["RouteKey"]
    authorizer = properties("Authorizer")
    assert authorizer["AuthorizerType"] == "JWT"
    assert authorizer["IdentitySource"] == ["$request.header.Authorization"]


def keys_by_function() -> dict[str, set[str]]:
    keys: dict[str, set[str]] = {}
    for each in ROUTES.values():
        route = each["Properties"]
        (integration,) = logical_ids(route["Target"])
        (function,) = logical_ids(properties(integration)["IntegrationUri"])
        keys.setdefault(function, set()).add(route["RouteKey"])
    return keys


def registered(app: Any) -> set[str]:
    routes = [*app._static_routes, *app._dynamic_routes]
    return {f"{each.method} {each.path.replace('<', '{').replace('>', '}')}" for each in routes}


def test_each_route_leads_to_the_function_that_has_it() -> None:
    assert keys_by_function() == {
        "EventsApiFunction": registered(ingest.engagement.events_api.app),
        "UsersApiFunction": registered(ingest.engagement.users_api.app),
        "LeadsApiFunction": registered(ingest.leads.leads_api.app),
        "QuestionsApiFunction": registered(ingest.questions.questions_api.app),
        "OperationsApiFunction": registered(ingest.operations_api.app),
        "PageFunction": {"GET /", "GET /app/{file}"},
    }


def test_the_routes_of_the_template_are_those_that_are_described() -> None:
    keys = [each["Properties"]["RouteKey"] for each in ROUTES.values()]
    described = [each.key for each in openapi.ROUTES]
    assert sorted(keys) == sorted(described)
    assert {each.key for each in openapi.ROUTES if each.is_open} == OPEN_ROUTES


def test_the_gateway_may_invoke_what_it_leads_to_and_waits_longer_than_it_runs() -> None:
    permitted = {
        name
        for each in resources("AWS::Lambda::Permission").values()
        for name in logical_ids(each["Properties"]["FunctionName"])
    }
    for integration in resources("AWS::ApiGatewayV2::Integration").values():
        (function,) = logical_ids(integration["Properties"]["IntegrationUri"])
        assert function in permitted
        assert integration["Properties"]["PayloadFormatVersion"] == "2.0"
        assert integration["Properties"]["TimeoutInMillis"] >= 1000 * properties(function)["Timeout"]


def test_the_api_is_throttled_and_logs_who_asked_for_what() -> None:
    stage = properties("ApiStage")
    assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] > 0
    logged = json.loads(stage["AccessLogSettings"]["Format"])
    assert {"route", "status", "sub"} <= set(logged)


def alarms() -> dict[str, dict[str, Any]]:
    found = template("infra/observability.yaml")["Resources"].items()
    return {name: each["Properties"] for name, each in found if each["Type"] == "AWS::CloudWatch::Alarm"}


def watched(namespace: str, metric: str, dimension: str) -> set[str]:
    return {
        each["Value"]["Ref"]
        for alarm in alarms().values()
        if (alarm["Namespace"], alarm["MetricName"]) == (namespace, metric)
        for each in alarm["Dimensions"]
        if each["Name"] == dimension
    }


@pytest.mark.parametrize("metric", ["Errors", "Throttles"])
def test_each_function_s_errors_and_throttles_raise_an_alarm(metric: str) -> None:
    assert watched("AWS/Lambda", metric, "FunctionName") == set(FUNCTIONS)


def test_a_stream_function_that_falls_behind_raises_an_alarm() -> None:
    consumers = {
        name for each in MAPPINGS.values() for name in logical_ids(each["Properties"]["FunctionName"])
    }
    assert watched("AWS/Lambda", "IteratorAge", "FunctionName") == consumers


def test_whatever_waits_in_a_failure_queue_raises_an_alarm() -> None:
    assert watched("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName") == FAILURES
    assert watched("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName") == WORK
    depths = [each for each in alarms().values() if each["MetricName"].endswith("MessagesVisible")]
    assert all((each["Threshold"], each["EvaluationPeriods"]) == (1, 1) for each in depths)


def test_a_table_that_throttles_and_an_api_that_fails_raise_an_alarm() -> None:
    assert watched("AWS/DynamoDB", "WriteThrottleEvents", "TableName") == set(TABLES)
    assert watched("AWS/ApiGateway", "5xx", "ApiId") == {"ApiId"}


@pytest.mark.parametrize("name", alarms())
def test_an_alarm_can_be_raised_tells_somebody_and_is_quiet_without_traffic(name: str) -> None:
    alarm = alarms()[name]
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
    assert alarm["Threshold"] >= 1
    assert alarm["Statistic"] in ("Sum", "Maximum")
    assert alarm["TreatMissingData"] == "notBreaching"
    assert alarm["AlarmActions"] == {"Fn::If": ["HasTopic", [{"Ref": "AlarmTopicArn"}], NO_VALUE]}
    assert alarm["AlarmDescription"]


def test_the_dashboard_is_json_and_shows_every_function_queue_and_table() -> None:
    found = template("infra/observability.yaml")["Resources"].values()
    (dashboard,) = [each for each in found if each["Type"] == "AWS::CloudWatch::Dashboard"]
    text = dashboard["Properties"]["DashboardBody"]["Fn::Sub"]
    body = json.loads(re.sub(r"\$\{[^}]+\}", "x", text))
    assert all(each["properties"]["metrics"] for each in body["widgets"])
    assert {*FUNCTIONS, *QUEUES, *TABLES, "ApiId"} <= set(re.findall(r"\$\{([^}]+)\}", text))
    places = [(each["x"], each["y"]) for each in body["widgets"]]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("name", resources("AWS::CloudFormation::Stack"))
def test_a_nested_stack_gets_exactly_the_parameters_that_it_takes(name: str) -> None:
    nested = properties(name)
    takes = template(nested["TemplateURL"])["Parameters"]
    required = {each for each, shape in takes.items() if "Default" not in shape}
    assert required <= set(nested["Parameters"]) <= set(takes)


def test_the_watched_parameters_are_the_things_of_their_names() -> None:
    for name, value in properties("Observability")["Parameters"].items():
        if name in {*FUNCTIONS, *TABLES, *QUEUES}:
            assert logical_ids(value) == {name}


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_parameter_and_condition_is_used(name: str) -> None:
    loaded = template(name)
    body = json.dumps([loaded["Resources"], loaded.get("Globals"), loaded.get("Outputs")])
    conditions = json.dumps(loaded.get("Conditions", {}))
    names = logical_ids([loaded["Resources"], loaded.get("Globals"), loaded.get("Conditions", {})])
    assert set(loaded.get("Parameters", {})) <= names
    for condition in loaded.get("Conditions", {}):
        assert f'"{condition}"' in body or f'{{"Condition": "{condition}"}}' in conditions


@pytest.mark.parametrize("name", TEMPLATES)
def test_everything_that_is_named_is_there(name: str) -> None:
    loaded = template(name)
    known = {*loaded["Resources"], *loaded.get("Parameters", {})}
    named = logical_ids([loaded["Resources"], loaded.get("Globals", {}), loaded.get("Outputs", {})])
    assert {each for each in named if not each.startswith("AWS::")} <= known


def test_secrets_are_not_echoed() -> None:
    assert template()["Parameters"]["RedisUrl"]["NoEcho"] is True
    assert template()["Parameters"]["IdentityUrl"]["NoEcho"] is True


def test_the_schema_is_brought_up_to_date_whenever_its_sql_changes() -> None:
    files = sorted((ROOT / "sql" / "identity").glob("*.sql"))
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in files)).hexdigest()[:16]
    assert properties("Schema")["Digest"] == digest


def test_the_outputs_name_every_table_and_function() -> None:
    named = logical_ids(template()["Outputs"])
    assert {*TABLES, *FUNCTIONS, *QUEUES} <= named


def test_what_only_aws_has_is_switched_by_conditions() -> None:
    conditions = ("HasCache", "HasIdentity", "HasWarehouse")
    for name in resources("AWS::CloudFormation::Stack"):
        assert template()["Resources"][name]["Condition"] in ("OnAws", "HasNetwork", *conditions)
    for condition in conditions:
        assert template()["Conditions"][condition]["Fn::And"][0] == ON_AWS
    network = template()["Conditions"]["HasNetwork"]["Fn::Or"]
    assert network == [{"Condition": "HasCache"}, {"Condition": "HasIdentity"}]
