"""What of a deployment would fail in an account, by canned answers of AWS. Each is held against its service's own model."""

from collections.abc import Callable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.validate import validate_parameters

from infra.stacks import Stack, resolve_stacks
from local import cli
from local.operate import needs, preflight
from local.operate.needs import NAMED, needs_of
from local.operate.preflight import FINDS, Findings, lines, look_at_account
from local.stack import fresh_client
from tests.support.template import DEPLOYMENTS, resources

REGION = "eu-west-1"
ZONES = [f"{REGION}{letter}" for letter in "abc"]
SECRET = f"arn:aws:secretsmanager:{REGION}:123456789012:secret:mine-a1b2c3"
# What a call gets: an answer, one that follows from its arguments, the code of a refusal, or an error of botocore.
Answer = Mapping[str, Any] | Callable[[Mapping[str, Any]], Any] | str | Exception


def zones(*names: str) -> dict[str, Any]:
    return {"AvailabilityZones": [{"ZoneName": each, "ZoneType": "availability-zone"} for each in names]}


def endpoints(*lacking: str, of: str = "") -> Callable[[Mapping[str, Any]], Any]:
    """All services that are asked for, in all zones but some that one service lacks."""

    def answer(asked: Mapping[str, Any]) -> dict[str, Any]:
        names = asked["Filters"][0]["Values"]
        found = {name: [zone for zone in ZONES if name != of or zone not in lacking] for name in names}
        return {"ServiceDetails": [{"ServiceName": name, "AvailabilityZones": found[name]} for name in found]}

    return answer


def concurrency(most: int, reserved: int = 0) -> dict[str, Any]:
    return {"AccountLimit": {"ConcurrentExecutions": most, "UnreservedConcurrentExecutions": most - reserved}}


def vpcs(number: int) -> dict[str, Any]:
    return {"Vpcs": [{"VpcId": f"vpc-{each}"} for each in range(number)]}


def stack(state: str, **parameters: str) -> dict[str, Any]:
    given = [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()]
    about = {"StackName": "streakline", "CreationTime": 0, "StackStatus": state, "Parameters": given}
    return {"Stacks": [about]}


def offered(*names: str) -> dict[str, Any]:
    option = {"AvailabilityZones": [{"Name": each} for each in names]}
    return {"OrderableDBInstanceOptions": [option] if names else []}


def role(asked: Mapping[str, Any]) -> dict[str, Any]:
    arn = f"arn:aws:iam::123456789012:role/{asked['RoleName']}"
    return {"Role": {**asked, "Arn": arn, "Path": "/", "RoleId": "AROA0123456789ABCDEF", "CreateDate": 0}}


# An account of usual quotas in which nothing is yet.
SOUND: Mapping[str, Answer] = {
    "account GetRegionOptStatus": {"RegionName": REGION, "RegionOptStatus": "ENABLED_BY_DEFAULT"},
    "cloudformation DescribeStacks": "ValidationError",
    "ec2 DescribeAvailabilityZones": zones(*ZONES),
    "ec2 DescribeVpcEndpoints": {"VpcEndpoints": []},
    "ec2 DescribeVpcEndpointServices": endpoints(),
    "ec2 DescribeVpcs": vpcs(1),
    "iam GetAccountSummary": {"SummaryMap": {"Roles": 20, "RolesQuota": 1000}},
    "iam GetRole": role,
    "lambda GetAccountSettings": concurrency(1000),
    "rds DescribeOrderableDBInstanceOptions": offered(*ZONES),
    "redshift-serverless ListWorkgroups": {"workgroups": []},
    "secretsmanager DescribeSecret": {"ARN": SECRET},
    "service-quotas GetServiceQuota": {"Quota": {"Value": 5.0}},
    "athena GetWorkGroup": "InvalidRequestException",
    "dynamodb DescribeTable": "ResourceNotFoundException",
    "glue GetDatabase": "EntityNotFoundException",
    "sqs GetQueueUrl": "AWS.SimpleQueueService.NonExistentQueue",
    "elasticache DescribeServerlessCaches": "ServerlessCacheNotFoundFault",
    "rds DescribeDBProxies": "DBProxyNotFoundFault",
}


class Account:
    """Makes clients whose calls get canned answers, which are of the shapes that AWS gives."""

    def __init__(self, **answers: Answer) -> None:
        """answers: in place of the sound ones; ec2__DescribeVpcs for the call of ec2."""
        self.answers = {**SOUND, **{name.replace("__", " "): each for name, each in answers.items()}}
        self.asked: dict[str, Mapping[str, Any]] = {}

    def __call__(self, service: str) -> Any:
        made = client(service)
        ANSWERING[service] = self
        return made

    def answer(self, model: Any) -> Any:
        name = f"{model.service_model.service_name} {model.name}"
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer = answer(self.asked[model.name])
        if isinstance(answer, str):
            return SimpleNamespace(status_code=400), {"Error": {"Code": answer, "Message": "told so"}}
        validate_parameters(answer, model.output_shape)
        return SimpleNamespace(status_code=200), answer


ANSWERING: dict[str, Account] = {}  # by service: who answers now


@cache
def client(service: str) -> Any:
    made = fresh_client("", REGION, service)

    def keep(params: Mapping[str, Any], model: Any, **_: Any) -> None:
        ANSWERING[service].asked[model.name] = params

    made.meta.events.register("provide-client-params", keep)
    made.meta.events.register("before-call", lambda model, **_: ANSWERING[service].answer(model))
    return made


@cache
def resolved(*parameters: tuple[str, str]) -> dict[str, Stack]:
    return resolve_stacks(dict(parameters))


# 140 for each function behind the API that reserves some: six with all parts
RESERVED = 140 * sum(
    "ReservedConcurrentExecutions" in each["Properties"]
    for each in resources("AWS::Serverless::Function").values()
    if "ApiReservedConcurrency" in str(each["Properties"].get("ReservedConcurrentExecutions"))
)


@pytest.fixture(autouse=True)
def resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "resolve_stacks", lambda given: resolved(*sorted(given.items())))


def found(
    size: str = "small", name: str = "streakline", given: Mapping[str, str] = {}, **answers: Any
) -> Findings:
    return look_at_account(name, REGION, {**given, "Size": size}, Account(**answers))


def failing(size: str = "small", name: str = "streakline", **more: Any) -> str:
    """The one thing that would fail."""
    findings = found(size, name, **more)
    assert findings.unseen == {}
    (problem,) = findings.problems
    return f"{problem.what}: {problem.mend}"


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_nothing_fails_in_a_sound_account(deployment: str) -> None:
    given = {**DEPLOYMENTS[deployment], "RedisUrl": "", "IdentityUrl": ""}
    given |= {"PeerRegion": "eu-west-2", "WitnessRegion": "eu-west-3"} if "Role" in given else {}
    findings = found(given.get("Size", "small"), given=given)
    assert (findings.problems, findings.unseen) == ([], {})


def test_what_large_reserves_leaves_little_for_the_rest() -> None:
    assert needs_of({"Size": "large"}).reserved == RESERVED
    (note,) = [each for each in found("large").notes if "concurrent" in each]
    assert note.startswith(
        f"of the account's 1,000 concurrent executions {1000 - RESERVED} stay for functions that reserve none"
    )
    assert not [
        each
        for each in found("large", lambda__GetAccountSettings=concurrency(3000)).notes
        if "concurrent" in each
    ]


def test_too_few_executions_for_large() -> None:
    said = failing("large", lambda__GetAccountSettings=concurrency(1000, reserved=940 - RESERVED))
    assert (
        f"reserve {RESERVED} of Lambda's concurrent executions, and 100 must stay unreserved, but the account has 1000"
        in said
    )
    assert "Service Quotas" in said


def test_a_new_account_is_told_that_it_has_few_executions() -> None:
    assert "10 concurrent executions 10 stay" in found(lambda__GetAccountSettings=concurrency(10)).notes[0]


def test_what_a_stack_has_already_is_not_needed_again() -> None:
    """It is in large already: its networks and reservations are in the figures of the account."""
    there: dict[str, Any] = {
        "cloudformation__DescribeStacks": stack("UPDATE_COMPLETE", Size="large"),
        "lambda__GetAccountSettings": concurrency(1000, reserved=840),
        "ec2__DescribeVpcs": vpcs(5),
        "sqs__GetQueueUrl": {"QueueUrl": "https://sqs/mine"},
    }
    assert found("large", **there).problems == []
    del there["cloudformation__DescribeStacks"]
    assert len(found("large", **there).problems) > 2


def smaller(before: str, after: str) -> Findings:
    return found(after, cloudformation__DescribeStacks=stack("CREATE_COMPLETE", Size=before))


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        ("standard", "small", {"LeaderboardShards", "StatsShards"}),
        ("large", "small", {"LeaderboardShards", "FeatureShards", "StatsShards"}),
        ("large", "standard", {"LeaderboardShards", "FeatureShards", "StatsShards"}),
        ("small", "standard", set()),
        ("standard", "large", set()),
    ],
)
def test_a_smaller_size_finds_less_and_loses_the_stream(before: str, after: str, rows: set[str]) -> None:
    findings = smaller(before, after)
    assert {each.what.split()[0] for each in findings.problems} == rows
    assert all("is no longer found" in each.what for each in findings.problems)
    told = [each for each in findings.notes if each.startswith("the Kinesis stream goes")]
    assert len(told) == (after == "small")


def test_too_many_networks() -> None:
    said = failing(ec2__DescribeVpcs=vpcs(4))
    assert said.startswith(
        "the account may have 5 VPCs in the region and has 4, and the deployment adds 2: ask for more"
    )


def test_too_many_roles() -> None:
    roles = {"SummaryMap": {"Roles": 990, "RolesQuota": 1000}}
    assert "may have 1,000 roles of IAM and has 990" in failing(iam__GetAccountSummary=roles)


def test_too_many_workgroups() -> None:
    group = {"workgroups": [{"workgroupName": f"group{each}"} for each in range(25)]}
    answers: dict[str, Any] = {"redshift-serverless__ListWorkgroups": group}
    assert "25 workgroups of Redshift Serverless in the region and has 25" in failing(**answers)
    assert found(given={"OwnWarehouse": "none"}, **answers).problems == []


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (
            "ROLLBACK_COMPLETE",
            "it is what a failed first deployment leaves: delete it: sam delete --stack-name streakline",
        ),
        (
            "ROLLBACK_FAILED",
            "delete it: sam delete --stack-name streakline; its events name what hinders that",
        ),
        ("DELETE_FAILED", "delete it"),
        ("CREATE_FAILED", "delete it"),
        ("UPDATE_ROLLBACK_FAILED", "aws cloudformation continue-update-rollback --stack-name streakline"),
        ("UPDATE_IN_PROGRESS", "wait until that has ended"),
    ],
)
def test_a_stack_that_takes_no_deployment(state: str, said: str) -> None:
    told = failing(cloudformation__DescribeStacks=stack(state))
    assert told.startswith(f"the stack streakline is {state}: ")
    assert said in told


@pytest.mark.parametrize("state", ["CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "REVIEW_IN_PROGRESS"])
def test_a_stack_that_takes_one(state: str) -> None:
    assert found(cloudformation__DescribeStacks=stack(state, Size="small")).problems == []


@pytest.mark.parametrize("name", ["Streaks", "s" * 35])
def test_a_name_that_no_names_can_follow_from(name: str) -> None:
    assert "at most 34 characters" in failing(name=name)
    assert found(name=name, cloudformation__DescribeStacks=stack("CREATE_COMPLETE")).problems == [], (
        "it is there"
    )


def test_a_region_that_the_account_has_not_enabled() -> None:
    status = {"RegionName": REGION, "RegionOptStatus": "DISABLED"}
    assert "eu-west-1 is DISABLED: enable it" in failing(account__GetRegionOptStatus=status)


def test_a_region_with_two_zones() -> None:
    two = zones(*ZONES[:2])
    assert "the account has 2 zones in eu-west-1, and the networks need three" in failing(
        ec2__DescribeAvailabilityZones=two
    )


def test_zones_that_are_not_there() -> None:
    said = failing(given={"AvailabilityZones": "eu-west-1a,eu-west-1b,eu-west-1x"})
    assert (
        "eu-west-1x, which eu-west-1 has not: the account's zones are eu-west-1a, eu-west-1b, eu-west-1c"
        in said
    )


def test_a_zone_without_an_endpoint_of_a_service() -> None:
    service = f"com.amazonaws.{REGION}.sqs"
    said = failing("standard", ec2__DescribeVpcEndpointServices=endpoints(ZONES[1], of=service))
    assert said == f"eu-west-1b has no endpoint of {service}: name zones that have it by AvailabilityZones"
    assert found("small", ec2__DescribeVpcEndpointServices=endpoints(ZONES[1], of=service)).problems == []


def test_a_zone_and_a_region_without_the_database() -> None:
    said = failing(rds__DescribeOrderableDBInstanceOptions=offered(ZONES[0], ZONES[2]))
    assert said.startswith("eu-west-1b has no aurora-postgresql 17.7 as db.serverless: name zones")
    assert "eu-west-1 has no aurora" in failing(rds__DescribeOrderableDBInstanceOptions=offered())


def test_a_region_without_redshift_serverless() -> None:
    nowhere = EndpointConnectionError(endpoint_url="https://redshift-serverless")
    answers: dict[str, Any] = {"redshift-serverless__ListWorkgroups": nowhere}
    said = failing(**answers)
    assert said.startswith(
        "eu-west-1 has no Redshift Serverless: deploy in another region, or without a warehouse"
    )


def test_a_register_that_an_earlier_deployment_left() -> None:
    two = {"Role": "active", "PeerRegion": "eu-west-2", "WitnessRegion": "eu-west-3"}
    said = failing(
        "standard", given=two, dynamodb__DescribeTable={"Table": {"TableName": "streakline-register"}}
    )
    assert "there is already a AWS::DynamoDB::GlobalTable of the name streakline-register" in said
    assert "deploy without WitnessRegion" in said


def test_each_name_that_a_deployment_gives_is_looked_for_and_by_a_code_of_aws() -> None:
    assert FINDS.keys() == NAMED.keys()
    for service, call, argument, none in FINDS.values():
        made = client(service)
        model = made.meta.service_model.operation_model(made.meta.method_to_api_mapping[call])
        assert argument in model.input_shape.members
        codes = {shape.metadata.get("error", {}).get("code", shape.name) for shape in model.error_shapes}
        if service == "sqs":  # it answers with the code of its former protocol, too
            codes.add("AWS.SimpleQueueService.NonExistentQueue")
        assert none in codes


def test_a_secret_that_is_not_there() -> None:
    given = {"RedisUrl": SECRET, "OwnVpc": "vpc-1/sg-1/subnet-1,subnet-2"}
    said = failing(given=given, secretsmanager__DescribeSecret="ResourceNotFoundException")
    assert said == f"RedisUrl names the secret {SECRET}, which is not there: make it first"
    assert found(given=given).problems == []


def test_a_role_of_a_service_that_is_not_there_yet_is_told_of() -> None:
    findings = found("large", iam__GetRole="NoSuchEntity")
    assert findings.problems == []
    told = [each for each in findings.notes if "iam:CreateServiceLinkedRole" in each]
    assert [each.split()[5] for each in told] == [
        *("AWSServiceRoleForElastiCache", "AWSServiceRoleForRDS", "AWSServiceRoleForRedshift"),
    ]


def test_a_value_that_the_template_refuses() -> None:
    assert "RedisUrl must be redis://HOST:PORT" in failing(given={"RedisUrl": " "})
    assert "there is no parameter Colour" in failing(given={"Colour": "red"})


def test_what_may_not_be_read_is_told() -> None:
    findings = found(lambda__GetAccountSettings="AccessDeniedException")
    assert "these credentials may not do GetAccountSettings" in findings.unseen["Lambda's concurrency"]
    assert [*lines(findings)][1].startswith("- Lambda's concurrency could not be checked: ")


@pytest.mark.parametrize(
    ("answers", "ended", "said"),
    [
        ({}, 0, "streakline (Size=standard) in eu-west-1: nothing is seen that would fail"),
        ({"ec2__DescribeVpcs": vpcs(5)}, 1, "streakline (Size=standard) in eu-west-1: 1 thing would fail"),
        ({"iam__GetAccountSummary": "AccessDenied"}, 1, "nothing is seen that would fail"),
    ],
)
def test_the_command_fails_if_anything_would(
    answers: dict[str, Answer],
    ended: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    account = Account(**answers)
    monkeypatch.setattr(preflight, "fresh_client", lambda _, __, service: account(service))
    monkeypatch.setattr("sys.argv", ["streakline", "preflight", "--size", "standard", "--region", REGION])
    if ended:
        with pytest.raises(SystemExit) as exited:
            cli.main()
        assert exited.value.code == ended
    else:
        cli.main()
    assert said in capsys.readouterr().out.splitlines()[0]


def test_a_parameter_without_a_value_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["streakline", "preflight", "--parameter", "OwnVpc"])
    with pytest.raises(SystemExit) as exited:
        cli.main()
    assert exited.value.code == 2
    assert "OwnVpc is not NAME=VALUE" in capsys.readouterr().err
