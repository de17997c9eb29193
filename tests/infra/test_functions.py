"""Functions: what they share, and what each has of its own."""

import importlib
import json

import pytest

from tests.support.declared import FUNCTIONS, NIGHTLY, NO_VALUE, logical_ids, properties
from tests.support.template import ROOT, resources, template

# Functions that go through many leads or subscribers at a time.
MASSES = {"RefreshFunction", "NotifyFunction", "RemindersFunction"}
# Functions that speak to the identity database.
POSTGRES = {"LeadsFunction", "MigrateFunction"}


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


@pytest.mark.parametrize("name", FUNCTIONS)
def test_there_is_a_sample_event_of_every_function(name: str) -> None:
    sample = ROOT / "tests" / "events" / f"{name}.json"
    assert sample.exists(), f"tests/events/{name}.json is missing: an event as AWS sends it to the function"
    json.loads(sample.read_text(encoding="utf-8"))


def test_every_sample_event_has_its_function() -> None:
    assert {each.stem for each in (ROOT / "tests" / "events").glob("*.json")} == set(FUNCTIONS)
