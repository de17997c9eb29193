"""The template has no fault that CloudFormation, IAM or Lambda would refuse, and each fault that is planted is found.

cfn-lint takes ten seconds of CPU for a deployment: `make test` does not ask it.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from infra.intrinsics import Refusal
from infra.stacks import Stack, resolve_stacks
from tests.support.effort import LEAVES_NONE, effort, only_soak
from tests.support.lint import cfn_lint_faults, faults, protection_faults, quota_faults
from tests.support.template import DEPLOYMENTS, ROOT, stacks_of, template

BY_CFN_LINT = only_soak(
    "tests/integration/test_lint.py::test_a_deployment_has_no_fault and test_a_planted_fault_is_found of our own faults,"
    " and make check has cfn-lint of the templates as they are written"
)


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_a_deployment_has_no_fault(deployment: str) -> None:
    stacks = stacks_of(deployment)
    assert [*faults(stacks), *protection_faults(stacks)] == []


def test_the_defaults_reserve_nothing() -> None:
    """A new account may have 10 executions at a time."""
    assert [*quota_faults(stacks_of("small")["/"], allowed=0)] == []


@cache
def looked_at() -> list[Stack]:
    """Return stacks that have each resource of any deployment: of one with two regions and a budget, and of the smallest."""
    regions = DEPLOYMENTS["large"] | DEPLOYMENTS["two regions"] | {"Size": "large"}
    most = resolve_stacks(regions | {"MonthlyBudgetDollars": "50", "AlarmEmail": "ops@example.com"})
    return [*most.values(), *stacks_of("small")["/"].nested.values()]


@BY_CFN_LINT
def test_cfn_lint_finds_no_fault() -> None:
    assert [fault for each in looked_at() for fault in cfn_lint_faults(each)] == []


@BY_CFN_LINT
def test_each_resource_of_a_deployment_is_looked_at() -> None:
    def places(*some: Stack) -> set[tuple[str, str]]:
        return {(each.path, name) for each in some for name in each.resources}

    assert places(*looked_at()) >= places(
        *(each for name in DEPLOYMENTS for each in stacks_of(name).values())
    )


@BY_CFN_LINT
@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_cfn_lint_finds_no_fault_in_a_deployment(deployment: str) -> None:
    assert [fault for each in stacks_of(deployment).values() for fault in cfn_lint_faults(each)] == []


# By parameter: what somebody may answer in each size. Rules may refuse it.
ANSWERS = {name: value for each in DEPLOYMENTS.values() for name, value in each.items() if name != "Size"} | {
    "AlarmEmail": "ops@example.com",
    "AvailabilityZones": "us-east-1a,us-east-1b,us-east-1c",
    "CreateIdempotencyIndex": "true",
    "DeletionProtection": "true",
    "GradualDeployment": "false",
    "JwtGroupsClaim": "groups",
    "LogRetentionDays": "1",
    "NightlyAt": "cron(0 4 * * ? *)",
    "Role": "standby",
    "Settings": "Currency=EUR",
}
# These make or take away little: they are answered at once, too.
AT_ONCE = {
    *("AlarmEmail", "CreateIdempotencyIndex", "DeletionProtection", "JwtGroupsClaim", "LogRetentionDays"),
    *("NightlyAt", "Settings", "AllowedOrigins", "AvailabilityZones", "GradualDeployment", "JwtAudience"),
    *("OutgoingWebhooks", "PlatformApplicationArn"),
}
# Rules refuse these without another one, in one size at least.
NEED_ANOTHER = {
    *("JwtIssuer", "SignInClientId", "MonthlyBudgetDollars", "Role", "WitnessRegion", "PeerBuckets"),
    *("RedisUrl", "IdentityUrl"),
}


def test_each_parameter_has_an_answer() -> None:
    assert ANSWERS.keys() | {"Size"} == template()["Parameters"].keys(), "say what may be answered"


@pytest.mark.parametrize(
    "size",
    ["small", "large"][: effort(1, soak=2)],
)
def test_answers_at_once_make_no_fault(size: str) -> None:
    together = {name: ANSWERS[name] for name in AT_ONCE}
    assert faults(resolve_stacks({"Size": size, **together})) == []


@only_soak(
    "tests/integration/test_lint.py::test_answers_at_once_make_no_fault, test_a_deployment_has_no_fault, whose"
    " deployments give other answers together, and tests/integration/test_template_sizes.py for those that rules refuse"
)
@pytest.mark.parametrize("size", ["small", "large"])
def test_no_answer_makes_a_fault(size: str) -> None:
    for answers in [*({name: value} for name, value in ANSWERS.items()), {"OwnWarehouse": "none"}]:
        try:
            assert faults(resolve_stacks({"Size": size, **answers})) == [], answers
        except Refusal:
            assert answers.keys() <= NEED_ANOTHER


@pytest.mark.parametrize(
    "name", ["template.yaml", *(f"infra/{each.name}" for each in (ROOT / "infra").glob("*.yaml"))]
)
def test_no_resource_is_of_one_partition_only(name: str) -> None:
    assert partitions(str(template(name)["Resources"])) == []


def test_no_state_machine_is_of_one_partition_only() -> None:
    assert partitions((ROOT / "infra" / "nightly.asl.json").read_text()) == []


def partitions(text: str) -> list[str]:
    """Return ARNs that are neither China's nor the government's: ${AWS::Partition} is."""
    return re.findall(r"arn:aws[a-z-]*:[^\s\"']*", text)


# ---- a small sound template, in which faults are planted

SOUND = """
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31
Parameters:
  OnAws: {Type: String, Default: "true", AllowedValues: ["true", "false"]}
  CreateCache: {Type: String, Default: "false", AllowedValues: ["true", "false"]}
  CacheUrl: {Type: String, Default: "", Description: "redis:// URL of a cache that you run"}
  Issuer: {Type: String, Default: ""}
  Audience: {Type: String, Default: ""}
Rules:
  IssuerNeedsAudience:
    RuleCondition: !Not [!Equals [!Ref Issuer, ""]]
    Assertions:
      - Assert: !Not [!Equals [!Ref Audience, ""]]
        AssertDescription: Issuer needs Audience
  OneCache:
    RuleCondition: !Equals [!Ref CreateCache, "true"]
    Assertions:
      - Assert: !Equals [!Ref CacheUrl, ""]
        AssertDescription: CreateCache and CacheUrl exclude each other
Conditions:
  OnAws: !Equals [!Ref OnAws, "true"]
  HasCache: !And [!Condition OnAws, !Equals [!Ref CreateCache, "true"]]
  HasIssuer: !Not [!Equals [!Ref Issuer, ""]]
Resources:
  Network:
    Type: AWS::CloudFormation::Stack
    Condition: HasCache
    DeletionPolicy: Delete
    UpdateReplacePolicy: Delete
    Properties: {TemplateURL: network.yaml}
  Table:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: RetainExceptOnCreate
    UpdateReplacePolicy: Retain
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
  Queue:
    Type: AWS::SQS::Queue
    Properties: {VisibilityTimeout: 60}
  Layer:
    Type: AWS::Serverless::LayerVersion
    Properties: {ContentUri: ., RetentionPolicy: Delete, CompatibleRuntimes: [python3.13], CompatibleArchitectures: [arm64]}
  Function:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: .
      Handler: main.handler
      Runtime: python3.13
      Architectures: [arm64]
      Timeout: 10
      Layers: [!Ref Layer]
      VpcConfig: !If
        - HasCache
        - SubnetIds: !Split [",", !GetAtt Network.Outputs.SubnetIds]
          SecurityGroupIds: [!GetAtt Network.Outputs.ClientId]
        - !Ref AWS::NoValue
      Environment:
        Variables:
          TABLE: !Ref Table
          REDIS_URL: !If [HasCache, !GetAtt Network.Outputs.Url, !Ref CacheUrl]
      Policies:
        - Version: "2012-10-17"
          Statement:
            - Effect: Allow
              Action: [dynamodb:GetItem, dynamodb:PutItem]
              Resource: !GetAtt Table.Arn
            - Effect: Allow
              Action: [sqs:ReceiveMessage, sqs:DeleteMessage, sqs:GetQueueAttributes]
              Resource: !GetAtt Queue.Arn
  Mapping:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !GetAtt Queue.Arn, FunctionName: !Ref Function}
  Api:
    Type: AWS::ApiGatewayV2::Api
    Properties: {Name: api, ProtocolType: HTTP}
  Authorizer:
    Type: AWS::ApiGatewayV2::Authorizer
    Condition: HasIssuer
    Properties:
      ApiId: !Ref Api
      Name: jwt
      AuthorizerType: JWT
      IdentitySource: [$request.header.Authorization]
      JwtConfiguration: {Issuer: !Ref Issuer, Audience: [!Ref Audience]}
  Permission:
    Type: AWS::Lambda::Permission
    Properties:
      FunctionName: !Ref Function
      Action: lambda:InvokeFunction
      Principal: apigateway.amazonaws.com
      SourceArn: !Sub arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${Api}/*
Outputs:
  TableName: {Value: !Ref Table}
"""
NETWORK = """
AWSTemplateFormatVersion: "2010-09-09"
Resources:
  Vpc: {Type: AWS::EC2::VPC, Properties: {CidrBlock: 10.0.0.0/16}}
  Subnet: {Type: AWS::EC2::Subnet, Properties: {VpcId: !Ref Vpc, CidrBlock: 10.0.0.0/20}}
  Client: {Type: AWS::EC2::SecurityGroup, Properties: {GroupDescription: functions, VpcId: !Ref Vpc}}
  Routes: {Type: AWS::EC2::RouteTable, Properties: {VpcId: !Ref Vpc}}
  DynamoDb:
    Type: AWS::EC2::VPCEndpoint
    Properties:
      VpcId: !Ref Vpc
      ServiceName: !Sub com.amazonaws.${AWS::Region}.dynamodb
      VpcEndpointType: Gateway
      RouteTableIds: [!Ref Routes]
  Valkey:
    Type: AWS::ElastiCache::ServerlessCache
    Properties:
      ServerlessCacheName: cache
      Engine: valkey
      SubnetIds: [!Ref Subnet]
      SecurityGroupIds: [!GetAtt Client.GroupId]
Outputs:
  SubnetIds: {Value: !Ref Subnet}
  ClientId: {Value: !GetAtt Client.GroupId}
  Url: {Value: !Sub "rediss://${Valkey.Endpoint.Address}:6379"}
"""


def planted(folder: Path, *changes: tuple[str, str], network: str = NETWORK) -> Path:
    """Write the sound template with some texts replaced; returns its path. Each text must be there."""
    text = SOUND
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (folder / "network.yaml").write_text(network)
    (folder / "template.yaml").write_text(text)
    return folder / "template.yaml"


def found_in(path: Path, **parameters: str) -> list[str]:
    """Return all faults of a template with these parameters; cfn-lint's where nothing is left to `make soak`."""
    stacks = resolve_stacks(parameters, path)
    found = [*faults(stacks), *protection_faults(stacks)]
    return found or [fault for each in stacks.values() if LEAVES_NONE for fault in cfn_lint_faults(each)]


CACHE = {"CreateCache": "true"}
CANARY = """      Timeout: 10
      AutoPublishAlias: live
      DeploymentPreference: {Type: Canary10Percent5Minutes}
"""
BY_ALIAS = [
    ("      Timeout: 10\n", CANARY),
    ("FunctionName: !Ref Function}", "FunctionName: !Ref Function.Alias}"),
]


@pytest.mark.parametrize("parameters", [{}, CACHE, {"Issuer": "https://a", "Audience": "b"}])
@pytest.mark.parametrize("changes", [[], BY_ALIAS])
def test_a_sound_template_has_no_fault(
    tmp_path: Path, changes: list[tuple[str, str]], parameters: dict[str, str]
) -> None:
    assert found_in(planted(tmp_path, *changes), **parameters) == []


VPC_POLICY = "!Sub 'arn:${AWS::Partition}:iam::aws:policy/service-role/AWSLambdaVPCAccessExecutionRole'"
MANAGED = "".join(
    f"        - !Sub arn:${{AWS::Partition}}:iam::aws:policy/P{number}\n" for number in range(9)
)
KEY_SCHEMA, POLICIES = "      KeySchema:", "      Policies:\n"
KEPT = "    DeletionPolicy: RetainExceptOnCreate"
FUNCTION_TIMEOUT = "      Timeout: 10\n"
OUTSIDE = ("          TABLE:", "          IDENTITY_URL: postgresql://db.example.com/x\n          TABLE:")
PLANTED = {
    "the policy that SAM adds itself is named again": (
        [(POLICIES, f"{POLICIES}        - !If [HasCache, {VPC_POLICY}, !Ref AWS::NoValue]\n")],
        CACHE,
        "AWSLambdaVPCAccessExecutionRole'] has non-unique elements (E3037)",
    ),
    "more managed policies than a role may have": (
        [(POLICIES, POLICIES + MANAGED)],
        {},
        "FunctionRole: it has 11 managed policies; 10 are allowed",
    ),
    "longer inline policies than a role may have": (
        [("Action: [dynamodb:GetItem,", f"Sid: {'x' * 10_240}\n              Action: [dynamodb:GetItem,")],
        {},
        "characters; 10240 are allowed",
    ),
    "a permission is for another service's ARN": (
        [("}:execute-api:", "}:sns:")],
        {},
        "Permission: it lets apigateway invoke the function for arn:aws:sns:",
    ),
    "more concurrency is reserved than an account has": (
        [(FUNCTION_TIMEOUT, FUNCTION_TIMEOUT + "      ReservedConcurrentExecutions: 901\n")],
        {},
        "functions reserve 901 concurrent executions; 900 can be reserved",
    ),
    "a layer is for another machine than its function": (
        [("[arm64]}", "[x86_64]}")],
        {},
        "Function: it runs on ('python3.13', 'arm64'), but its layer is for ('python3.13', 'x86_64')",
    ),
    "a layer is for another Python than its function": (
        [("Runtimes: [python3.13]", "Runtimes: [python3.12]")],
        {},
        "Function: it runs on ('python3.13', 'arm64'), but its layer is for ('python3.12', 'arm64')",
    ),
    "a failed deployment leaves something behind": (
        [("RetainExceptOnCreate", "Retain")],
        {},
        "Table: a failed first deployment leaves it behind",
    ),
    "what is kept has a fixed name": (
        [(KEY_SCHEMA, f"      TableName: rows\n{KEY_SCHEMA}")],
        {},
        "Table: it is kept, so the next deployment finds its TableName rows taken",
    ),
    "what is kept has a name of the stack's": (
        [(KEY_SCHEMA, f"      TableName: !Sub '${{AWS::StackName}}-rows'\n{KEY_SCHEMA}")],
        {},
        "Table: it is kept, so the next deployment finds its TableName streakline-rows taken",
    ),
    "deletion protection hinders the rollback": (
        [(KEY_SCHEMA, f"      DeletionProtectionEnabled: 'true'\n{KEY_SCHEMA}")],
        {},
        "Table: it has deletion protection",
    ),
    "a database outside is given to a function without a way out": (
        [OUTSIDE],
        CACHE,
        "Function: its IDENTITY_URL is outside, but its network has no way out",
    ),
    "a function outside is given a cache inside": (
        [("      VpcConfig: !If\n        - HasCache", "      VpcConfig: !If\n        - HasIssuer")],
        CACHE,
        "Function: its REDIS_URL is in a network, but it is in none",
    ),
    "an issuer comes without its audience, and no Rule refuses that": (
        [("Rules:\n", "Metadata:\n")],
        {"Issuer": "https://a"},
        "Authorizer: Audience has an empty text",
    ),
    "what a condition takes away is named": (
        [(KEPT, f"    Condition: HasCache\n{KEPT}")],
        {},
        "Function: Table names nothing that is made",
    ),
    "an output names what a condition takes away": (
        [("Value: !Ref Table", "Value: !Sub '${Network.Outputs.Url}/x'")],
        {},
        "TableName: Network.Outputs.Url names nothing that is made",
    ),
    "what nobody declares is named": (
        [("TABLE: !Ref Table", "TABLE: !Ref Tabel")],
        {},
        "Function: Tabel names nothing that is made",
    ),
    "something waits for what a condition takes away": (
        [("  Permission:\n", "  Permission:\n    DependsOn: Network\n")],
        {},
        "DependsOn.0: 'Network' is not one of",
    ),
    "a nested stack does not have the output": (
        [("Outputs.Url", "Outputs.Address")],
        CACHE,
        "Function: Network.Outputs.Address is no output of Network",
    ),
    "a property does not exist, under a condition": (
        [(KEY_SCHEMA, f"      Columns: !If [HasIssuer, 2, !Ref AWS::NoValue]\n{KEY_SCHEMA}")],
        {"Issuer": "https://a", "Audience": "b"},
        "Additional properties are not allowed ('Columns' was unexpected)",
    ),
    "a message is hidden for less than its function may run": (
        [("Timeout: 60", "Timeout: 9")],
        {},
        "Queue visibility timeout (9) is less than Function timeout (10) seconds",
    ),
    "too large an environment": (
        [("          TABLE:", f"          LONG: {'x' * 4096}\n          TABLE:")],
        {},
        "(E3697)",
    ),
    "too many layers": (
        [("Layers: [!Ref Layer]", f"Layers: [{', '.join(['!Ref Layer'] * 6)}]")],
        {},
        "Properties.Layers: expected maximum item count: 5, found: 6",
    ),
    "too many outputs": (
        [("Outputs:\n", "Outputs:\n" + "".join(f"  O{number}: {{Value: x}}\n" for number in range(200)))],
        {},
        "'Outputs' has more than 200 properties",
    ),
    "too many resources": (
        [
            (
                "Outputs:\n",
                "".join(f"  T{each}: {{Type: AWS::SNS::Topic}}\n" for each in range(500)) + "Outputs:\n",
            )
        ],
        {},
        "'Resources' has more than 500 properties",
    ),
}


FOUND_BY_CFN_LINT = {
    "the policy that SAM adds itself is named again",
    "something waits for what a condition takes away",
    "a property does not exist, under a condition",
    "a message is hidden for less than its function may run",
    "too large an environment",
    "too many layers",
    "too many outputs",
    "too many resources",
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[BY_CFN_LINT] * (each in FOUND_BY_CFN_LINT)) for each in PLANTED],
)
def test_a_planted_fault_is_found(tmp_path: Path, name: str) -> None:
    changes, parameters, sentence = PLANTED[name]
    found = found_in(planted(tmp_path, *changes), **parameters)
    assert any(sentence in each for each in found), found


@pytest.mark.parametrize(
    "changes",
    [
        [(KEY_SCHEMA, f"      TableName: !Select [2, !Split ['/', !Ref AWS::StackId]]\n{KEY_SCHEMA}")],
        [(KEY_SCHEMA, f"      TableName: rows\n{KEY_SCHEMA}"), ("RetainExceptOnCreate", "Delete")],
        [(FUNCTION_TIMEOUT, FUNCTION_TIMEOUT + "      ReservedConcurrentExecutions: 900\n")],
    ],
)
def test_what_is_no_fault_is_let_be(tmp_path: Path, changes: list[tuple[str, str]]) -> None:
    assert found_in(planted(tmp_path, *changes)) == []


def test_a_network_with_a_way_out_reaches_a_database_outside(tmp_path: Path) -> None:
    with_nat = NETWORK.replace("Resources:\n", "Resources:\n  Nat: {Type: AWS::EC2::NatGateway}\n")
    path = planted(tmp_path, OUTSIDE, network=with_nat)
    assert faults(resolve_stacks(CACHE, path)) == []
    assert faults(resolve_stacks({}, path)) == []


@BY_CFN_LINT
def test_cfn_lint_finds_it_in_the_template_as_it_is_written(tmp_path: Path) -> None:
    """As `make check` looks at it, with all ways in which conditions may turn out."""
    from cfnlint.api import lint_file

    changes = [
        ("Transform:", f"# {'x' * 1_000_000}\nTransform:"),
        ("  HasIssuer:", "  Never: !Equals [a, b]\n  HasIssuer:"),
        (KEPT, f"    Condition: HasCache\n{KEPT}"),
        ("      VpcConfig: !If\n        - HasCache", "      VpcConfig: !If\n        - OnAws"),
        ("  Permission:\n", "  Permission:\n    DependsOn: Network\n"),
    ]
    path = planted(tmp_path, *changes)
    found = {(each.rule.id, each.message.partition(" at ")[0]) for each in lint_file(path)}
    assert found >= {
        ("E1002", f"The template file size ({path.stat().st_size} bytes) exceeds the limit (1000000 bytes)"),
        ("W8003", "['a', 'b'] will always return False"),
        ("W1001", "Ref to resource 'Table' that may not be available when condition 'HasCache' is False"),
        (
            "W1001",
            (
                "GetAtt to resource 'Network' that may not be available when condition 'HasCache' is False"
                " and when condition 'OnAws' is True"
            ),
        ),
        ("E3005", "'Network' will not exist when condition 'HasCache' is False"),
    }


@BY_CFN_LINT
def test_cfn_lint_finds_nothing_in_the_sound_template_as_it_is_written(tmp_path: Path) -> None:
    from cfnlint.api import lint_file

    assert lint_file(planted(tmp_path)) == []


@pytest.mark.parametrize(
    "text", ["!Sub 'arn:aws:s3:::${Bucket}/*'", '"Resource": "arn:aws-cn:states:::lambda:invoke"']
)
def test_an_arn_of_one_partition_is_noticed(text: str) -> None:
    assert len(partitions(text)) == 1
    assert partitions("arn:${AWS::Partition}:s3:::x") == []


# ---- policies

TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/rows"
BUCKET = "arn:aws:s3:::lake"
READ = {"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": TABLE}
TRUST = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}


def document(*statements: Mapping[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def found_of(kind: str, **properties: Any) -> list[str]:
    stack = Stack("/", {}, {}, {"It": {"Type": kind, "Properties": properties, "DependsOn": []}}, {})
    return [*faults({"/": stack}), *(cfn_lint_faults(stack) if LEAVES_NONE else ())]


def found_by(policy: Any = None, trust: Any = None) -> list[str]:
    inline = [{"PolicyName": "own", "PolicyDocument": policy or document(READ)}]
    return found_of("AWS::IAM::Role", Policies=inline, AssumeRolePolicyDocument=trust or document(TRUST))


def by_cfn_lint(policy: Any, reason: str) -> Any:
    return pytest.param(policy, reason, marks=BY_CFN_LINT)


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (document(), "a policy has no statement"),
        ({"Statement": [READ]}, 'a policy has no Version "2012-10-17"'),
        ({"Version": "2008-10-17", "Statement": READ}, 'a policy has no Version "2012-10-17"'),
        by_cfn_lint(document({**READ, "Effect": "allow"}), "'allow' is not one of"),
        by_cfn_lint(document({**READ, "Action": []}), "Action: expected minimum item count: 1"),
        (document({**READ, "Resource": []}), "dynamodb:GetItem is allowed on [], on which it does not act"),
        by_cfn_lint(document({**READ, "Resource": [TABLE, ""]}), "Resource.1: '' does not match"),
        by_cfn_lint(document({**READ, "NotAction": "s3:*"}), "Only one of ['Action', 'NotAction']"),
        by_cfn_lint(document({**READ, "Resource": "rows"}), "'rows' does not match"),
        by_cfn_lint(
            document({**READ, "Resource": "arn:aws:dynamodb::"}), "'arn:aws:dynamodb::' does not match"
        ),
        by_cfn_lint(document({**READ, "Ressource": TABLE}), "'Ressource' was unexpected"),
        by_cfn_lint(document({**READ, "Principal": "*"}), "'Principal' was unexpected"),
        by_cfn_lint(document({**READ, "Sid": "a"}, {**READ, "Sid": "a"}), "not unique for keys ['Sid']"),
        by_cfn_lint(
            document({**READ, "Condition": {"StringEqual": {"aws:SourceAccount": "1"}}}),
            "'StringEqual' does not match",
        ),
        (
            document({**READ, "Condition": {"StringEquals": {"SourceAccount": "1"}}}),
            "a condition on SourceAccount names no service",
        ),
        (
            document({**READ, "Condition": {"StringLike": {"s3:prefix": ""}}}),
            "a condition compares s3:prefix with nothing",
        ),
        by_cfn_lint(document({**READ, "Action": "dynamodb:GetItems"}), "'getitems' is not one of"),
        by_cfn_lint(document({**READ, "Action": "dynamo:GetItem"}), "'dynamo' is not one of"),
        by_cfn_lint(document({**READ, "Action": "dynamodb:Fetch*"}), "'fetch*' is not one of"),
        (
            document({**READ, "Resource": "*"}),
            'dynamodb:GetItem is allowed on "*", although it could name the resource',
        ),
        (
            document({"Effect": "Allow", "Action": "s3:GetObject", "Resource": BUCKET}),
            f"s3:GetObject is allowed on ['{BUCKET}'], on which it does not act",
        ),
        (
            document({"Effect": "Allow", "Action": "s3:ListBucket", "Resource": f"{BUCKET}/*"}),
            f"s3:ListBucket is allowed on ['{BUCKET}/*'], on which it does not act",
        ),
        (
            document(
                {"Effect": "Allow", "Action": ["s3:GetObject", "sqs:SendMessage"], "Resource": f"{BUCKET}/*"}
            ),
            f"sqs:SendMessage is allowed on ['{BUCKET}/*'], on which it does not act",
        ),
        (
            document({**READ, "Resource": [TABLE, f"{TABLE}/stream/2026"]}),
            f"{TABLE}/stream/2026 is named, on which none of ['dynamodb:GetItem'] acts",
        ),
    ],
)
def test_a_policy_that_iam_refuses_or_that_allows_nothing_is_found(policy: Any, reason: str) -> None:
    assert any(reason in each for each in found_by(policy))


@BY_CFN_LINT
@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ({key: TRUST[key] for key in ("Effect", "Action")}, "Only one of ['Principal', 'NotPrincipal']"),
        ({**TRUST, "Resource": "*"}, "'Resource' was unexpected"),
    ],
)
def test_a_trust_policy_has_a_principal_and_no_resource(statement: Any, reason: str) -> None:
    assert any(reason in each for each in found_by(trust=document(statement)))


@BY_CFN_LINT
def test_policies_of_queues_and_keys_need_a_principal() -> None:
    statement = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}
    (fault,) = [
        each
        for each in found_of("AWS::SQS::QueuePolicy", Queues=["x"], PolicyDocument=document(statement))
        if "Principal" in each
    ]
    assert "Only one of ['Principal', 'NotPrincipal']" in fault
    assert found_of("AWS::KMS::Key", KeyPolicy=document({**statement, "Principal": {"AWS": "*"}})) == []


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
        {**READ, "Condition": {"ForAllValues:StringLikeIfExists": {"dynamodb:LeadingKeys": ["a*"]}}},
        {**READ, "Condition": {"Null": {"aws:TokenIssueTime": "true"}}},
        {**READ, "Condition": {"NumericLessThanEquals": {"s3:max-keys": "10"}}},
    ],
)
def test_a_statement_that_allows_what_it_says_is_let_be(statement: Any) -> None:
    assert found_by(document(statement)) == []
