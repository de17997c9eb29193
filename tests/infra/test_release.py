"""A new version gets a tenth of the calls first, and no change stays behind an alias."""

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from infra.lint.expanded import expanded
from ingest.openapi import ROUTES
from tests.support.declared import logical_ids, properties
from tests.support.template import resources, template

ALIASED = {f"{each.api}Function" for each in ROUTES} | {"EngagementFunction"}
ROOT = Path(__file__).parents[2]


def on_aws(**parameters: str) -> dict[str, Any]:
    found: dict[str, Any] = expanded(ROOT / "template.yaml", parameters)["Resources"]
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
        assert each["Properties"]["Description"] == {"Ref": "Settings"}, "a change of it replaces the version"
        assert each["DeletionPolicy"] == each["UpdateReplacePolicy"] == "Delete"
    for name in ALIASED:  # AWS refuses to publish a version that equals the one before
        assert properties(name)["Environment"]["Variables"]["SETTINGS_DIGEST"] == {"Ref": "Settings"}


def test_the_settings_are_all_parameters_and_what_the_template_and_the_layers_are_made_of() -> None:
    settings = properties("Settings")
    assert settings["Parameters"].keys() == template()["Parameters"].keys()
    for name, value in settings["Parameters"].items():
        assert logical_ids(value) == {name}
    assert settings["Sources"]


def digest_of(monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]) -> str:
    """Run the function's code as Lambda does; return the resource's id that it answers with."""
    sent: list[Any] = []

    def urlopen(request: Any, timeout: float) -> Any:
        assert timeout < properties("SettingsFunction")["Timeout"]
        sent.append(request)
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    code: dict[str, Any] = {}
    exec(properties("SettingsFunction")["Code"]["ZipFile"], code)
    known = {"StackId": "stack", "RequestId": "request", "LogicalResourceId": "Settings"}
    code["handler"]({**known, "ResponseURL": "https://answer.example/", "ResourceProperties": asked}, None)
    (request,) = sent
    assert (request.full_url, request.method) == ("https://answer.example/", "PUT")
    answer = json.loads(request.data)
    assert answer["Status"] == "SUCCESS"
    assert answer.items() >= known.items()
    return str(answer["PhysicalResourceId"])


def test_the_digest_changes_with_any_value_and_not_with_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"Sources": "1", "Parameters": {"CreateCache": "true", "RedisUrl": ""}}
    digest = digest_of(monkeypatch, asked)
    assert len(digest) == hashlib.sha256().digest_size * 2
    turned = {"Parameters": {"RedisUrl": "", "CreateCache": "true"}, "Sources": "1"}
    assert digest_of(monkeypatch, turned) == digest
    others = [
        {**asked, "Sources": "2"},
        {**asked, "Parameters": {"CreateCache": "false", "RedisUrl": ""}},
        {**asked, "Parameters": {"CreateCache": "true", "RedisUrl": "redis://elsewhere"}},
    ]
    assert len({digest, *(digest_of(monkeypatch, each) for each in others)}) == len(others) + 1
