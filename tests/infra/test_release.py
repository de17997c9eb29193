"""A new version gets a tenth of the calls first, and no change stays behind an alias."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.settings.choices import SETTINGS, VALUES_BYTES_MAX, attributes_of, settings_of
from infra.marks import SOURCES
from infra.stacks import expanded_template, resolve_stacks
from ingest import release
from ingest.openapi import ROUTES
from tests.support.declared import logical_ids, properties
from tests.support.template import DEPLOYMENTS, resources, template

ALIASED = {f"{each.api}Function" for each in ROUTES} | {"EngagementFunction"}
ROOT = Path(__file__).parents[2]
CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)
ALSO = {"SignInOrigins": ("OIDC_ORIGINS",)}  # where the pool is ours, the variable has its origin


def on_aws(**parameters: str) -> dict[str, Any]:
    found: dict[str, Any] = expanded_template(ROOT / "template.yaml", parameters)["Resources"]
    return found


def of_type(expanded_resources: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: each for name, each in expanded_resources.items() if each["Type"] == kind}


def test_what_callers_reach_is_an_alias_and_nothing_else() -> None:
    reached = [
        each["Properties"]["IntegrationUri"] for each in resources("AWS::ApiGatewayV2::Integration").values()
    ]
    permitted = [each["Properties"]["FunctionName"] for each in resources("AWS::Lambda::Permission").values()]
    called = [*reached, *permitted, properties("EngagementMapping")["FunctionName"]]
    assert {each["Ref"] for each in called} == {f"{name}.Alias" for name in ALIASED}


def test_gradual_deployment_is_on_by_default_and_watches_alarms_that_every_size_has() -> None:
    groups = of_type(on_aws(), "AWS::CodeDeploy::DeploymentGroup")
    assert {each.removesuffix("DeploymentGroup") for each in groups} == ALIASED
    observed = template("infra/observability.yaml")
    for each in groups.values():
        assert each["Properties"]["AutoRollbackConfiguration"]["Enabled"]
        condition, watched, _ = each["Properties"]["AlarmConfiguration"]["Fn::If"]
        assert condition == "IsGradual"
        names = [alarm["Name"]["Fn::GetAtt"].rpartition(".")[2] for alarm in watched["Alarms"]]
        assert names == ["ApiServerErrors", "EngagementIteratorAge"]
        for name in names:
            (alarm,) = logical_ids(observed["Outputs"][name])
            assert "Condition" not in observed["Resources"][alarm]
            minutes = observed["Resources"][alarm]["Properties"]
            assert minutes["Period"] * minutes["EvaluationPeriods"] <= 300, "it must see the ten minutes"


def test_without_gradual_deployment_nothing_of_codedeploy_is_made() -> None:
    made = on_aws(GradualDeployment="false")
    assert not [each for each in made.values() if each["Type"].startswith("AWS::CodeDeploy::")]
    assert len(of_type(made, "AWS::Lambda::Alias")) == len(ALIASED)


def test_a_version_is_published_again_whenever_the_settings_change() -> None:
    versions = of_type(on_aws(), "AWS::Lambda::Version")
    assert len(versions) == len(ALIASED)
    for each in versions.values():
        assert each["Properties"]["Description"] == {"Ref": "CheckedSettings"}, (
            "a change of it replaces the version"
        )
        assert each["DeletionPolicy"] == each["UpdateReplacePolicy"] == "Delete"
    for name in ALIASED:  # AWS refuses to publish a version that equals the one before
        assert properties(name)["Environment"]["Variables"]["SETTINGS_DIGEST"] == {"Ref": "CheckedSettings"}


def test_the_digest_is_of_all_parameters_and_of_what_the_template_and_the_layers_are_made_of() -> None:
    settings = properties("CheckedSettings")
    assert settings["Parameters"].keys() == template()["Parameters"].keys()
    for name, value in settings["Parameters"].items():
        assert logical_ids(value) == {name}
    assert settings["Sources"]


def test_each_setting_is_a_variable_of_its_name_and_no_variable_names_another() -> None:
    taken = set()
    for name, each in resources("AWS::Serverless::Function").items():
        for variable, value in each["Properties"]["Environment"]["Variables"].items():
            named = re.findall(r"'Fn::GetAtt': 'CheckedSettings\.(\w+)'", str(value))
            if named:
                spelled = re.sub(r"(?<!^)(?=[A-Z])", "_", named[0]).upper()
                assert variable in (spelled, *ALSO.get(named[0], ())), f"{name} has {variable} of {named[0]}"
            taken.update(named)
    buckets_and_tables = re.findall(
        r"'CheckedSettings\.(\w+)'",
        str({**resources("AWS::S3::Bucket"), **resources("AWS::DynamoDB::Table")}),
    )
    derived = attributes_of(settings_of("")).keys() - SETTINGS.keys()
    assert {*buckets_and_tables} == derived
    assert (
        taken | {f"{name.removesuffix('RuleDays')}Days" for name in derived if name.endswith("RuleDays")}
        == SETTINGS.keys()
    )


def test_a_new_default_reaches_the_functions() -> None:
    """CloudFormation asks for the settings again only if a property of the resource has changed."""
    assert "adapters/settings/choices.py" in SOURCES


def answered(kind: str, settings: str, about: Mapping[str, str] = {}, **others: str) -> dict[str, Any]:
    """Run the function as Lambda does, on the sample event; return what CloudFormation is told."""
    told: list[dict[str, Any]] = []

    class Heard(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            assert not self.headers["Content-Type"], "CloudFormation has signed the URL for none"
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Heard) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        event = json.loads((ROOT / "tests/events/ReleaseFunction.json").read_text())
        event |= about
        event["ResourceProperties"]["Parameters"] |= {"Settings": settings, **others}
        url = f"http://127.0.0.1:{server.server_port}/answer?signed"
        release.handler({**event, "RequestType": kind, "ResponseURL": url}, CONTEXT)
        thread.join(10)
    (answer,) = told
    assert (
        answer.items()
        >= {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}.items()
    )
    return answer


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_the_stack_gets_every_setting(kind: str) -> None:
    answer = answered(kind, "RateLimitPerMinute=600; Currency=EUR")
    assert answer["Status"] == "SUCCESS"
    wanted = attributes_of({name: each.default for name, each in SETTINGS.items()})
    assert answer["Data"] == {**wanted, "RateLimitPerMinute": "600", "Currency": "EUR"}


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_bad_setting_fails_the_deployment_with_its_name(kind: str) -> None:
    answer = answered(kind, "RateLimitPerMinute=0; Curency=EUR")
    assert answer["Status"] == "FAILED"
    assert "RateLimitPerMinute must be a whole number" in answer["Reason"]
    assert "no setting Curency; did you mean Currency?" in answer["Reason"]


def test_a_bad_setting_hinders_no_deletion() -> None:
    assert answered("Delete", "Curency=EUR")["Status"] == "SUCCESS"


def created(stack_name: str, kind: str = "Create") -> dict[str, Any]:
    stack = f"arn:aws:cloudformation:eu-west-1:123456789012:stack/{stack_name}/51af3dc0-da77-11e4-872e-1234567db123"
    return answered(kind, "", {"StackId": stack})


LONGEST = "x" * release.STACK_NAME_MAX


@pytest.mark.parametrize("name", [f"{LONGEST}y", "Streaks", "a--b", "a-", "1a"])
def test_a_stack_is_not_made_under_a_name_that_no_name_can_follow_from(name: str) -> None:
    answer = created(name)
    assert answer["Status"] == "FAILED"
    assert f"the stack's name {name} must be of small letters" in answer["Reason"]
    assert created(name, "Update")["Status"] == created(name, "Delete")["Status"] == "SUCCESS", "it is there"


@pytest.mark.parametrize("name", ["streakline", "a", "a-1-b", LONGEST])
def test_a_stack_may_have_any_other_name(name: str) -> None:
    assert created(name)["Status"] == "SUCCESS"


# How many characters AWS takes of a name; its property is that of the resource's type.
NAME_MAX = {
    ("AWS::ApiGatewayV2::Api", "Name"): 128,
    ("AWS::Athena::WorkGroup", "Name"): 128,
    ("AWS::CloudWatch::Dashboard", "DashboardName"): 255,
    ("AWS::Cognito::UserPool", "UserPoolName"): 128,
    ("AWS::DynamoDB::GlobalTable", "TableName"): 255,
    ("AWS::ElastiCache::ServerlessCache", "ServerlessCacheName"): 40,
    ("AWS::RDS::DBProxy", "DBProxyName"): 63,
    ("AWS::SNS::Topic", "TopicName"): 256,
    ("AWS::SQS::Queue", "QueueName"): 80,
}


def names_that_follow(stack_name: str) -> Iterator[tuple[str, str, str]]:
    """Yield type, property and name of what is called after the stack, in all deployments."""
    for deployment in DEPLOYMENTS.values():
        for stack in resolve_stacks({**deployment, "AWS::StackName": stack_name}).values():
            for each in stack.resources.values():
                names = {key: value for key, value in each["Properties"].items() if key.endswith("Name")}
                for key, name in names.items():
                    if isinstance(name, str) and name.startswith(stack_name):
                        yield each["Type"], key, name


def test_all_names_that_follow_from_the_longest_are_short_enough() -> None:
    found = [*names_that_follow(LONGEST)]
    assert {(kind, key) for kind, key, _ in found} == NAME_MAX.keys()
    room = [NAME_MAX[kind, key] - len(name) for kind, key, name in found]
    assert min(room) == 0, "no name is too long, and no longer name of a stack would do"


def test_an_answer_holds_as_much_as_settings_may_have() -> None:
    """CloudFormation takes 4,096 bytes."""
    regions = " ".join(f"organization{number}=DE" for number in range(110))
    answer = answered("Create", f"PhoneRegions={regions}")
    assert answer["Status"] == "SUCCESS"
    values = {name: answer["Data"][name] for name in SETTINGS}
    assert 2300 < len(json.dumps(values)) <= VALUES_BYTES_MAX
    assert len(json.dumps(answer)) - len(json.dumps(values)) + VALUES_BYTES_MAX < 4096
    assert answered("Create", f"PhoneRegions={regions} {regions}")["Status"] == "FAILED"


def test_the_digest_changes_with_any_value_and_not_with_their_order() -> None:
    asked = {"Sources": "1", "Parameters": {"Size": "large", "RedisUrl": ""}}
    digest = release.digest(asked)
    assert len(digest) == hashlib.sha256().digest_size * 2
    assert release.digest({"Parameters": {"RedisUrl": "", "Size": "large"}, "Sources": "1"}) == digest
    others = [
        {**asked, "Sources": "2"},
        {**asked, "Parameters": {"Size": "small", "RedisUrl": ""}},
        {**asked, "Parameters": {"Size": "large", "RedisUrl": "redis://elsewhere"}},
    ]
    assert len({digest, *map(release.digest, others)}) == len(others) + 1
    ids = {answered("Update", "", RedisUrl=url)["PhysicalResourceId"] for url in ("", "redis://elsewhere")}
    assert len(ids) == 2
