"""Each class of data in each store has somebody who ends it, or a reason why it stays (rule 22)."""

from typing import Any

import pytest

from adapters.settings.choices import BUCKET_SETTINGS, SETTINGS, attributes_of, settings_of
from analytics.retention import RetentionRule as Leaving
from analytics.steps import forget_function
from analytics.steps.retain_function import RetainSettings, retention_rules
from rules.privacy.inventory import BY_NAME, INVENTORY, Fate, StoreKind
from rules.privacy.retention import (
    GONE_PHONES_STAY,
    RETENTION_RULES,
    DataClass,
    Enforcer,
    RetentionRule,
    retention_table,
)
from tests.support.declared import properties
from tests.support.template import ROOT

# Stores that follow others: they have nothing of these classes for longer than those.
FOLLOWING = {
    "Redis": "a cache: hours at most",
    "Boards": "rows of a snapshot, made anew each five minutes",
    "LakeBucket": "its entities and parts are told one by one",
    "state, runs, reports": "sums and ids; runs/ for 90 days",
    "LeadEvents": "a topic keeps nothing",
}
# What has no setting, and which function sees to it.
FORGETTING = {"gone_phones": ("ForgetFunction", forget_function)}
PASSES: dict[str, type[Leaving]] = {each.name: each for each in Leaving.__subclasses__()}
BUCKETS = {"PayloadBucket": "PayloadBucket"}


def of(enforcer: Enforcer) -> list[RetentionRule]:
    found = [each for each in RETENTION_RULES if each.enforcer is enforcer]
    assert found
    return found


def test_every_store_that_has_something_of_a_person_says_how_long() -> None:
    told = {each.store for each in RETENTION_RULES} | set(FOLLOWING)
    needed = {
        each.name
        for each in INVENTORY
        if each.fate is not Fate.IMPERSONAL and not each.expires_days and each.name not in told
    }
    assert needed == set()
    assert told <= set(BY_NAME)
    assert {each.data for each in RETENTION_RULES} == set(DataClass)


@pytest.mark.parametrize("keeping", of(Enforcer.LIFECYCLE), ids=lambda each: each.by)
def test_a_bucket_has_the_rule_that_is_told(keeping: RetentionRule) -> None:
    bucket = "PayloadBucket" if keeping.store == "PayloadBucket" else "LakeBucket"
    rules = {each["Id"]: each for each in properties(bucket)["LifecycleConfiguration"]["Rules"]}
    rule = rules[keeping.by]
    entity = keeping.store if BY_NAME[keeping.store].kind is StoreKind.ENTITY else ""
    prefix = f"curated/{entity}/" if entity else keeping.holds.partition(":")[0]
    assert rule["Prefix"] == prefix
    if not keeping.setting:
        assert (rule["Status"], f"{rule['ExpirationInDays']} days") == ("Enabled", keeping.until)
        return
    name = keeping.setting.removesuffix("Days")
    assert rule["Status"] == {"Fn::GetAtt": f"CheckedSettings.{name}Rule"}
    assert rule["ExpirationInDays"] == {"Fn::GetAtt": f"CheckedSettings.{name}RuleDays"}
    assert keeping.setting in BUCKET_SETTINGS


@pytest.mark.parametrize("keeping", of(Enforcer.TTL), ids=lambda each: f"{each.store} {each.data}")
def test_a_table_has_the_time_to_live_that_is_told(keeping: RetentionRule) -> None:
    told = properties(keeping.store)["TimeToLiveSpecification"]
    assert (told["AttributeName"], told["Enabled"]) == (keeping.by, True)


@pytest.mark.parametrize("keeping", of(Enforcer.PASS), ids=lambda each: f"{each.by} {each.data}")
def test_the_nightly_pass_does_what_is_told(keeping: RetentionRule) -> None:
    if not keeping.setting:
        function, module = FORGETTING[keeping.by]
        assert properties(function)["Handler"] == f"{module.__name__}.handler"
        assert str(GONE_PHONES_STAY.days) in keeping.until
        return
    made = PASSES[keeping.by]
    assert made.setting == keeping.setting
    variables = properties("RetainFunction")["Environment"]["Variables"]
    variable = {
        str(value.get("Fn::GetAtt")).removeprefix("CheckedSettings."): name
        for name, value in variables.items()
    }
    days = dict.fromkeys(RetainSettings.__dataclass_fields__, 0) | {variable[keeping.setting].lower(): 7}
    found: Any = retention_rules(RetainSettings(**days), None)
    assert {each.name for each in found if each.days == 7} == {keeping.by}
    assert variables[f"{_variable(keeping.store)}_TABLE"] == {"Ref": keeping.store}


def _variable(store: str) -> str:
    return {"BPEvents": "BP_EVENTS"}.get(store, store.upper())


def test_every_setting_keeps_for_ever_unless_it_is_set() -> None:
    named = {each.setting for each in RETENTION_RULES} - {""}
    assert {SETTINGS[each].default for each in named} == {"0"}
    assert {name for name in SETTINGS if name.endswith(("RetentionDays", "HotDays"))} == named


def test_what_stays_has_a_reason_and_no_setting() -> None:
    for each in of(Enforcer.NOBODY):
        assert each.until
        assert not each.setting
        assert not each.by


def test_events_expire_by_time_to_live_only_while_nobody_asks_the_lake() -> None:
    enabled = properties("BPEvents")["TimeToLiveSpecification"]["Enabled"]
    assert enabled == {"Fn::GetAtt": "CheckedSettings.EventsExpire"}
    for function in ("UsersApiFunction", "RetainFunction"):
        days = properties(function)["Environment"]["Variables"]["EVENT_HOT_DAYS"]
        assert days == {"Fn::GetAtt": "CheckedSettings.EventHotDays"}
    for text, expire in (("", "true"), ("EventHotDays=0", "true"), ("EventHotDays=90", "false")):
        assert attributes_of(settings_of(text))["EventsExpire"] == expire


def test_the_docs_have_the_table() -> None:
    assert retention_table() in (ROOT / "docs" / "retention.md").read_text()
