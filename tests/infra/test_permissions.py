"""What functions and other services may do, and on what."""

import json

import pytest

from rules.regions.changes import KEYS as FOLLOWED
from tests.support.declared import (
    FUNCTIONS,
    MAPPINGS,
    NIGHTLY,
    QUEUE_MAPPINGS,
    QUEUES,
    TABLES,
    WORK,
    listed,
    logical_ids,
    properties,
    statements,
)
from tests.support.parts import modules_of_parts
from tests.support.template import resources

# Statements that may say "*", by function and action, and why.
STARS = {
    (
        "HooksApiFunction",
        "secretsmanager:ListSecrets",
    ): "AWS knows no narrower one; it tells names, no values",
    **{
        (function, "dynamodb:ListStreams"): "AWS knows no narrower resource for it"
        for each in MAPPINGS
        for function in logical_ids(properties(each)["FunctionName"])
        if logical_ids(properties(each)["EventSourceArn"]) & set(TABLES)
    },
    **{
        (f"{name}Function", f"redshift-data:{action}"): "AWS knows no narrower one; a condition narrows it"
        for name in ("Warehouse", "Reconcile")
        for action in ("CancelStatement", "DescribeStatement", "GetStatementResult")
    },
    **{
        (
            "WarehouseFunction",
            f"redshift-serverless:{action}UsageLimit{plural}",
        ): "AWS knows no resource for it"
        for action, plural in (("Create", ""), ("List", "s"), ("Update", ""))
    },
}
# What other services' roles may do, and on what.
ROLES = {
    "ScheduleRole": {"lambda:InvokeFunction", "sqs:SendMessage", "states:StartExecution"},
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
    "CurateJobRole": {
        *("s3:DeleteObject", "s3:GetObject", "s3:ListBucket", "s3:PutObject"),
        *("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"),
    },
    "CopyingRole": {
        *("s3:GetReplicationConfiguration", "s3:ListBucket", "s3:GetObjectVersionAcl"),
        *("s3:GetObjectVersionForReplication", "s3:GetObjectVersionTagging"),
        *("s3:ReplicateDelete", "s3:ReplicateObject", "s3:ReplicateTags"),
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
# Where items may be deleted: a day that no ledger entry knows; what users ask of each other; subscriptions, with what marks them;
# an erasure that is finished. ErasureFunction deletes persons
# from all tables but those that know none (dynamodb:BatchWriteItem).
DELETED = {
    "ReceiverFunction": set(FOLLOWED),  # what the other region has deleted
    "ReconcileFunction": {"DailyActivity"},
    "UsersApiFunction": {"Friends"},  # requests that are taken back or declined, blocks that are lifted
    "ErasureFunction": {"Erasures"},
    "EndpointsApiFunction": {"WebhookEndpoints"},
    "WebhookDeliveryFunction": {"Notifications"},  # lanes in which nothing waits
    **{name: tables for module in modules_of_parts("tables") for name, tables in module.DELETERS.items()},
}

# Who reads a whole table, besides the nightly run. Boards has some thousand rows, of a day.
SCANNED = {"RanksFunction": {"UserStreaks"}, "ErasureFunction": {"Boards"}}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_statement_says_star_but_those_that_are_listed(name: str) -> None:
    for statement, _ in statements(name):
        assert statement["Effect"] == "Allow"
        assert "NotAction" not in statement
        assert "NotResource" not in statement
        actions = listed(statement["Action"])
        assert not any("*" in action for action in actions)
        for resource in listed(statement["Resource"]):
            if resource == "*":
                assert all((name, action) in STARS for action in actions)
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
def test_a_function_names_no_managed_policy(name: str) -> None:
    """SAM adds the one for a VPC by itself; named twice, it makes the whole stack fail."""
    assert all("Statement" in policy for policy in properties(name)["Policies"])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_may_touch_the_tables_of_its_own_environment_and_no_others(name: str) -> None:
    environment = logical_ids(properties(name)["Environment"]["Variables"])
    if name == "SenderFunction":  # it knows all tables by their names, and touches none
        environment -= set(TABLES)
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
    assert allowed & set(QUEUES) == (environment | sources) & set(QUEUES)
    assert allowed & set(resources("AWS::S3::Bucket")) == environment & set(resources("AWS::S3::Bucket"))


def test_nothing_that_is_stored_may_be_deleted_and_the_ledger_is_never_scanned() -> None:
    deleted: dict[str, set[str]] = {}
    for name in FUNCTIONS:
        for statement, _ in statements(name):
            for action in listed(statement["Action"]):
                if action == "dynamodb:DeleteItem":
                    deleted.setdefault(name, set()).update(logical_ids(statement["Resource"]))
                elif action == "sns:DeleteEndpoint":  # a phone that nobody owns, or that is gone
                    assert logical_ids(statement["Resource"]) <= {
                        "AWS::Partition",
                        "AWS::Region",
                        "AWS::AccountId",
                    }
                elif action == "secretsmanager:DeleteSecret":  # of an endpoint that an admin ends
                    assert name == "EndpointsApiFunction"
                elif action == "sqs:DeleteMessage":  # what has been processed
                    assert logical_ids(statement["Resource"]) <= {*WORK, "Regions"}
                elif name == "WarehouseFunction":  # notes of what it has not loaded yet, once it has
                    unloaded = {"Fn::Sub": "${LakeBucket.Arn}/state/unloaded/*"}
                    assert "Delete" not in action or statement["Resource"] == unloaded
                elif name == "ReconcileFunction":
                    heads = {"Fn::Sub": "${LakeBucket.Arn}/state/heads/*"}
                    assert "Delete" not in action or statement["Resource"] == heads
                elif name == "ErasureFunction":
                    assert "Delete" not in action or "LakeBucket" not in json.dumps(statement["Resource"])
                elif name == "ForgetFunction":  # raw and curated objects are put again, without some persons
                    kept = "raw" in json.dumps(statement["Resource"]) or "curated" in json.dumps(
                        statement["Resource"]
                    )
                    assert action != "s3:DeleteObject" or not kept
                elif action == "dynamodb:PartiQLDelete":  # what the lake holds
                    assert (name, logical_ids(statement["Resource"])) == ("RetainFunction", {"BPEvents"})
                elif "Delete" in action:  # what is made of raw objects can be made again
                    assert name in {"CurateFunction", "CurateLargeFunction"}
                    assert action == "s3:DeleteObject"
                    assert "raw" not in json.dumps(statement["Resource"])
                if action == "dynamodb:Scan":
                    assert name in {*NIGHTLY, *SCANNED}, "nobody's request reads a whole table"
                    scanned = {"UserStreaks", "DailyActivity", "UserStats"}
                    scanned = scanned if name in NIGHTLY else SCANNED[name]
                    assert logical_ids(statement["Resource"]) <= scanned
    assert deleted == DELETED


# As SAM trusts Lambda for the roles of all other functions; and of services of which AWS does not say that they
# name the account for whom they take a role (replication of a bucket, a job of Glue).
UNCONDITIONED = {"lambda.amazonaws.com", "s3.amazonaws.com", "glue.amazonaws.com"}


@pytest.mark.parametrize("name", resources("AWS::IAM::Role"))
def test_a_role_of_another_service_may_do_what_is_listed_and_no_more(name: str) -> None:
    allowed = set()
    for policy in properties(name)["Policies"]:
        for each in policy["PolicyDocument"]["Statement"]:
            statement = each["Fn::If"][1] if "Fn::If" in each else each
            allowed |= set(listed(statement["Action"]))
            if statement["Resource"] == "*":
                assert all(action.startswith("xray:") for action in statement["Action"])
    assert allowed == ROLES[name]
    trust = properties(name)["AssumeRolePolicyDocument"]["Statement"]
    for each in trust:
        if each["Principal"]["Service"] in UNCONDITIONED:
            assert "Condition" not in each, "the service may not name the account, and then nothing works"
            continue
        assert set(each["Condition"]["StringEquals"]) <= {"aws:SourceAccount", "sts:ExternalId"}
        assert all(each["Condition"]["StringEquals"].values())
