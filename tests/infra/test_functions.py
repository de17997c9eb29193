"""Functions: what they share, and what each has of its own."""

import importlib
import json

import pytest

from tests.support.declared import FUNCTIONS, NIGHTLY, NO_VALUE, logical_ids, properties
from tests.support.template import ROOT, resources, template

# Functions that go through many users, leads or subscribers at a time.
MASSES = {
    "MigrateFunction",
    "RanksFunction",
    "ExpiryFunction",
    "ErasureFunction",
    "RefreshFunction",
    "NotifyFunction",
    "RemindersFunction",
    "ExpireQuestionsFunction",
    "WhatIfFunction",
}
# Functions that speak to the identity database, or read telephone numbers.
IDENTITY = {
    *("HooksApiFunction", "IdentityApiFunction", "LeadsApiFunction", "LeadsFunction", "MigrateFunction"),
    *("PrivacyApiFunction", "ErasureFunction"),
}


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
def test_a_function_reserves_concurrency_only_if_asked_and_has_a_timeout(name: str) -> None:
    """A new account may have 10 executions at once, so a reservation by default makes the deployment fail."""
    if reserved := properties(name).get("ReservedConcurrentExecutions"):
        of_size = {"Fn::FindInMap": ["Sizes", "ApiReservedConcurrency", {"Ref": "Size"}]}
        assert reserved == {"Fn::If": ["HasReservedConcurrency", of_size, NO_VALUE]}
    assert template()["Mappings"]["Sizes"]["ApiReservedConcurrency"]["small"] == "0"
    assert 0 < properties(name)["Timeout"] <= (900 if name in {*NIGHTLY, *MASSES} else 120)


def test_functions_share_runtime_architecture_tracing_and_layer() -> None:
    shared = template()["Globals"]["Function"]
    assert shared["Tracing"] == "Active"
    assert shared["Runtime"] == "python3.13"
    assert shared["Architectures"] == ["arm64"]
    assert shared["Layers"] == [{"Ref": "DependenciesLayer"}]
    for name, each in FUNCTIONS.items():
        assert not set(each["Properties"]) & {"Tracing", "Runtime", "Architectures"}
        more = (
            [{"Ref": "AnalyticsLayer"}] if name in {*NIGHTLY, "PastEventsFunction", "WhatIfFunction"} else []
        )  # SAM adds them to the shared one
        more = [{"Ref": "IdentityLayer"}] if name in IDENTITY else more
        more = [*more, {"Ref": "HooksLayer"}] if name == "HooksApiFunction" else more
        assert each["Properties"].get("Layers", []) == more


def test_layers_are_for_the_runtime_and_the_architecture_of_the_functions() -> None:
    shared = template()["Globals"]["Function"]
    for each in resources("AWS::Serverless::LayerVersion").values():
        assert each["Properties"]["CompatibleRuntimes"] == [shared["Runtime"]]
        assert each["Properties"]["CompatibleArchitectures"] == shared["Architectures"]
        assert each["Metadata"]["BuildArchitecture"] == shared["Architectures"][0]


def test_what_is_deployed_is_what_aws_gets_unless_the_account_is_the_emulator_s() -> None:
    assert template()["Conditions"]["OnAws"] == {
        "Fn::Not": [{"Fn::Equals": [{"Ref": "AWS::AccountId"}, "000000000000"]}]
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_s_handler_exists(name: str) -> None:
    module, _, attribute = properties(name)["Handler"].rpartition(".")
    assert callable(getattr(importlib.import_module(module), attribute))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_speak_to_redis_or_postgresql_are_in_their_network(name: str) -> None:
    variables = set(properties(name)["Environment"]["Variables"])
    networks = {
        frozenset(): None,
        frozenset({"REDIS_URL"}): "CacheInVpc",
        frozenset({"IDENTITY_URL"}): "IdentityInVpc",
        frozenset({"REDIS_URL", "IDENTITY_URL"}): "LeadsInVpc",
    }
    expected = networks[frozenset(variables & {"REDIS_URL", "IDENTITY_URL"})]
    assert properties(name).get("VpcConfig", {}).get("Fn::If", [None])[0] == expected


@pytest.mark.parametrize("name", FUNCTIONS)
def test_there_is_a_sample_event_of_every_function(name: str) -> None:
    sample = ROOT / "tests" / "events" / f"{name}.json"
    assert sample.exists(), f"tests/events/{name}.json is missing: an event as AWS sends it to the function"
    json.loads(sample.read_text(encoding="utf-8"))


def test_every_sample_event_has_its_function() -> None:
    assert {each.stem for each in (ROOT / "tests" / "events").glob("*.json")} == set(FUNCTIONS)
