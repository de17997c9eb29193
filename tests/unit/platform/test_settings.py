"""Settings are read in one place, and the template gives each function exactly its own."""

import importlib
import pkgutil
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import adapters.privacy
import analytics.steps
import ingest
import processors
from adapters.settings import read_settings, variable_name
from ingest.engagement.events_api import EventsApiSettings
from processors.outgoing.delivery import WebhookDeliverySettings
from tests.support.declared import properties
from tests.support.template import resources, template

# By name: XFunction reads XSettings.
CLASSES: dict[str, type[Any]] = {
    name.removesuffix("Settings") + "Function": each
    for package in (adapters.privacy, analytics.steps, ingest, processors)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    for name, each in vars(importlib.import_module(module.name)).items()
    if isinstance(each, type) and is_dataclass(each) and name.endswith("Settings")
    if name not in {"ConsumerSettings", "IntakeSettings"} and not name.startswith("Own")
}
SHARED = {"PYTHONTZPATH", "POWERTOOLS_LOG_LEVEL", "REGION_REGISTER", "GROUPS_CLAIM", "PARTS"}
# Nobody reads this. It makes Lambda publish a function anew when a setting changes (infra/app/release.yaml).
PUBLISHES = "SETTINGS_DIGEST"
COMPLETE = {
    "USER_STREAKS_TABLE": "streaks",
    "BP_EVENTS_TABLE": "events",
    "IDEMPOTENCY_KEYS_TABLE": "keys",
    "REDIS_URL": "",
    "RULE_BOOKS_TABLE": "RuleBooks",
    "LIMITS_TABLE": "Limits",
    "READS_PER_MINUTE": "600",
    "RATE_LIMIT_PER_MINUTE": "60",
    "ERASURES_TABLE": "Erasures",
    "ERASURE_SECRET_ARN": "secret",
    "RECEIPT_SECRET_ARN": "secret",
    "DAILY_ACTIVITY_TABLE": "days",
    "REWARDS_LEDGER_TABLE": "ledger",
    "LEADERBOARD_SHARDS": "4",
}
OF_DELIVERY = {variable_name(each.name): "" for each in fields(WebhookDeliverySettings)}


def test_settings_are_read_with_their_types() -> None:
    config = read_settings(EventsApiSettings, COMPLETE)
    assert config.user_streaks_table == "streaks"
    assert config.rate_limit_per_minute == 60


@pytest.mark.parametrize(("text", "meant"), [("true", True), ("false", False)])
def test_true_and_false_are_read(text: str, meant: bool) -> None:
    assert (
        read_settings(WebhookDeliverySettings, {**OF_DELIVERY, "PRIVATE_ENDPOINTS": text}).private_endpoints
        is meant
    )


def test_another_word_for_true_is_refused() -> None:
    with pytest.raises(RuntimeError, match="PRIVATE_ENDPOINTS must be true or false"):
        read_settings(WebhookDeliverySettings, {**OF_DELIVERY, "PRIVATE_ENDPOINTS": "True"})


def test_an_empty_text_is_a_value() -> None:
    assert read_settings(EventsApiSettings, COMPLETE).redis_url == ""


@pytest.mark.parametrize("kind", [each for each in CLASSES.values() if fields(each)])
def test_an_empty_environment_is_told_with_every_variable_that_is_missing(kind: type[Any]) -> None:
    with pytest.raises(RuntimeError) as told:
        read_settings(kind, {})
    for each in fields(kind):
        assert f"{variable_name(each.name)} is not set" in str(told.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    wrong = {**COMPLETE, "RATE_LIMIT_PER_MINUTE": "many"}
    del wrong["BP_EVENTS_TABLE"]
    with pytest.raises(RuntimeError) as told:
        read_settings(EventsApiSettings, wrong)
    reasons = str(told.value).split("; ")
    assert [reason.split()[0] for reason in reasons] == [
        "BP_EVENTS_TABLE",
        "RATE_LIMIT_PER_MINUTE",
    ]


@pytest.mark.parametrize("text", ["", "1.5", "60 s"])
def test_a_number_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(RuntimeError, match="RATE_LIMIT_PER_MINUTE"):
        read_settings(EventsApiSettings, {**COMPLETE, "RATE_LIMIT_PER_MINUTE": text})


def test_what_a_function_does_not_ask_for_is_not_read() -> None:
    assert read_settings(EventsApiSettings, {**COMPLETE, "STATS_SHARDS": "none"}) == read_settings(
        EventsApiSettings, COMPLETE
    )


@pytest.mark.parametrize("name", resources("AWS::Serverless::Function"))
def test_each_function_of_the_template_has_a_settings_class(name: str) -> None:
    assert name in CLASSES or not properties(name)["Environment"]["Variables"], (
        f"there is no class {name.removesuffix('Function')}Settings: a handler's is beside it"
    )


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_the_template_sets_exactly_the_variables_that_a_function_reads(name: str) -> None:
    function = template()["Resources"].get(name)
    assert function, f"infra/app has no {name}, whose settings there are; or run `make template`"
    own = set(function["Properties"]["Environment"]["Variables"]) - {PUBLISHES}
    read_ = {variable_name(each.name) for each in fields(CLASSES[name])}
    assert own == read_, f"infra/app sets {sorted(own - read_)} for nothing and lacks {sorted(read_ - own)}"


def test_all_functions_share_the_time_zones_and_the_log_level_alone() -> None:
    shared = template()["Globals"]["Function"]["Environment"]["Variables"]
    assert set(shared) == SHARED
    assert shared["PYTHONTZPATH"] == ""
