"""Policy documents as IAM reads them: what is planted into a sound statement is named."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.lint import iam
from infra.lint.stacks import Stack

TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/rows"
BUCKET = "arn:aws:s3:::lake"
READ = {"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": TABLE}
TRUST = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}


def document(*statements: Mapping[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def stacks(kind: str, properties: Mapping[str, Any], *, on_aws: bool = True) -> dict[str, Stack]:
    resource = {"Type": kind, "Properties": properties, "DependsOn": []}
    held = {"OnAws": on_aws}
    return {"/": Stack("/", Path("t.yaml"), {}, held, {"It": resource}, {}, {"It": kind}, {})}


def role(policy: Any = None, trust: Any = None, *, on_aws: bool = True) -> dict[str, Stack]:
    inline = [{"PolicyName": "own", "PolicyDocument": policy or document(READ)}]
    trusts = trust or document(TRUST)
    return stacks("AWS::IAM::Role", {"Policies": inline, "AssumeRolePolicyDocument": trusts}, on_aws=on_aws)


def refused(found: Mapping[str, Stack]) -> list[str]:
    return [each.reason for each in iam.document_faults(found)]


def mismatched(*statements: Mapping[str, Any], on_aws: bool = True) -> list[str]:
    return [each.reason for each in iam.action_faults(role(document(*statements), on_aws=on_aws))]


def test_a_sound_role_is_not_refused() -> None:
    assert refused(role()) == []
    assert mismatched(READ) == []


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (document(), "has no statement: IAM refuses an empty list"),
        ({"Statement": [READ]}, 'has no Version "2012-10-17"'),
        ({"Version": "2008-10-17", "Statement": READ}, 'has no Version "2012-10-17"'),
        (document({**READ, "Effect": "allow"}), "has a statement without an Effect of Allow or Deny"),
        (document({**READ, "Action": []}), "has a statement without Action"),
        (document({**READ, "Resource": []}), "has a statement without Resource"),
        (document({**READ, "Resource": [TABLE, ""]}), "has a statement with an empty Resource"),
        (document({**READ, "NotAction": "s3:*"}), "has a statement with both Action and NotAction"),
        (document({**READ, "Resource": "rows"}), "has a Resource that is no ARN: rows"),
        (
            document({**READ, "Resource": "arn:aws:dynamodb::"}),
            "has a Resource that is no ARN: arn:aws:dynamodb::",
        ),
        (document({**READ, "Ressource": TABLE}), "has a key that IAM does not know: Ressource"),
        (document({**READ, "Principal": "*"}), "has a Principal, which a role's own policy may not have"),
        (document({**READ, "Sid": "a"}, {**READ, "Sid": "a"}), "has a Sid twice: a, a"),
        (
            document({**READ, "Condition": {"StringEqual": {"aws:SourceAccount": "1"}}}),
            "has a condition operator that does not exist: StringEqual",
        ),
        (
            document({**READ, "Condition": {"StringEquals": {"SourceAccount": "1"}}}),
            "has a condition on SourceAccount, which names no service: aws:SourceAccount?",
        ),
        (
            document({**READ, "Condition": {"StringLike": {"s3:prefix": ""}}}),
            "has a condition that compares s3:prefix with nothing",
        ),
    ],
)
def test_what_iam_calls_malformed_is_refused(policy: Any, reason: str) -> None:
    assert refused(role(policy)) == [f"its policy own {reason}"]


@pytest.mark.parametrize(
    "condition",
    [
        {"ForAllValues:StringLikeIfExists": {"dynamodb:LeadingKeys": ["a*"]}},
        {"Null": {"aws:TokenIssueTime": "true"}},
        {"Bool": {"aws:SecureTransport": "false"}},
        {"ArnLike": {"aws:SourceArn": "arn:aws:s3:::x"}},
        {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}},
        {"NumericLessThanEquals": {"s3:max-keys": "10"}},
    ],
)
def test_operators_that_exist_are_let_be(condition: dict[str, Any]) -> None:
    assert refused(role(document({**READ, "Condition": condition}))) == []


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ({key: TRUST[key] for key in ("Effect", "Action")}, "has a statement without Principal"),
        ({**TRUST, "Resource": "*"}, "has a Resource, which a trust policy may not have"),
    ],
)
def test_a_trust_policy_has_a_principal_and_no_resource(statement: Any, reason: str) -> None:
    assert refused(role(trust=document(statement))) == [f"its policy AssumeRolePolicyDocument {reason}"]


def test_policies_of_queues_buckets_and_keys_need_a_principal() -> None:
    statement = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}
    queue = stacks("AWS::SQS::QueuePolicy", {"PolicyDocument": document(statement)})
    assert refused(queue) == ["its policy PolicyDocument has a statement without Principal"]
    key = stacks("AWS::KMS::Key", {"KeyPolicy": document({**statement, "Principal": {"AWS": "x"}})})
    assert refused(key) == []
    assert list(iam.action_faults(key)) == []


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ({**READ, "Action": "dynamodb:GetItems"}, "names an action that does not exist: dynamodb:GetItems"),
        ({**READ, "Action": "dynamo:GetItem"}, "names an action that does not exist: dynamo:GetItem"),
        ({**READ, "Action": "dynamodb:Fetch*"}, "names an action that does not exist: dynamodb:Fetch*"),
        ({**READ, "Resource": "*"}, 'allows dynamodb:GetItem on "*", although it could name the resource'),
        (
            {**READ, "Action": "xray:PutTraceSegments"},
            f'allows xray:PutTraceSegments on {TABLE}, but it acts on nothing narrower than "*"',
        ),
        (
            {"Effect": "Allow", "Action": "s3:GetObject", "Resource": BUCKET},
            f"allows s3:GetObject on {BUCKET}, which is nothing that it acts on",
        ),
        (
            {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": f"{BUCKET}/*"},
            f"allows s3:ListBucket on {BUCKET}/*, which is nothing that it acts on",
        ),
        (
            {"Effect": "Allow", "Action": ["s3:GetObject", "sqs:SendMessage"], "Resource": f"{BUCKET}/*"},
            f"allows sqs:SendMessage on {BUCKET}/*, which is nothing that it acts on",
        ),
        (
            {**READ, "Resource": [TABLE, f"{TABLE}/stream/2026"]},
            f"names {TABLE}/stream/2026, on which none of its actions acts: dynamodb:GetItem",
        ),
    ],
)
def test_an_action_does_not_exist_or_does_not_match(statement: Any, reason: str) -> None:
    assert f"its policy own {reason}" in mismatched(statement)


@pytest.mark.parametrize(
    "statement",
    [
        {**READ, "Action": ["dynamodb:Query", "dynamodb:GetItem"], "Resource": [TABLE, f"{TABLE}/index/*"]},
        {**READ, "Action": "dynamodb:get*"},
        {
            "Effect": "Allow",
            "Action": ["s3:GetObject", "s3:ListBucket"],
            "Resource": [BUCKET, f"{BUCKET}/a/*"],
        },
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::lake*"},
        {"Effect": "Allow", "Action": "dynamodb:ListStreams", "Resource": "*"},
        {
            "Effect": "Allow",
            "Action": "sns:DeleteEndpoint",
            "Resource": "arn:aws:sns:us-east-1:123456789012:endpoint/*",
        },
        {"Effect": "Deny", "Action": "dynamodb:DeleteItem", "Resource": "*"},
        {**READ, "Resource": "*", "Condition": {"StringEquals": {"aws:ResourceTag/of": "us"}}},
    ],
)
def test_what_matches_is_let_be(statement: Any) -> None:
    assert mismatched(statement) == []


def test_the_emulators_own_actions_are_let_be() -> None:
    statement = {**READ, "Action": "dynamodb:BatchExecuteStatement", "Resource": "*"}
    assert len(mismatched(statement)) == 1
    assert mismatched(statement, on_aws=False) == []
