"""docs/retention.md says of each store what ends its data: a rule of the bucket, a time to live, a pass, or nobody."""

from dataclasses import dataclass
from typing import Any

import pytest

from adapters.settings.choices import BUCKET_SETTINGS, SETTINGS, attributes_of, settings_of
from analytics.retention import RetentionRule
from analytics.steps.retain_function import RetainSettings, retention_rules
from rules.privacy.inventory import BY_NAME, INVENTORY, Fate, StoreKind
from tests.support.declared import logical_ids, properties
from tests.support.template import ROOT

# Stores that follow others: they have nothing of these classes for longer than those.
FOLLOWING = {
    "Redis": "a cache: hours at most",
    "LakeBucket": "its entities and parts are told one by one",
    "state, runs, reports": "sums and ids; runs/ for 90 days",
    "LeadEvents": "a topic keeps nothing",
}
PASSES: dict[str, type[RetentionRule]] = {each.setting: each for each in RetentionRule.__subclasses__()}
IN_BUCKETS = ("leads/", "failures/", "raw/", "quarantine/", "what_if/")


@dataclass(frozen=True)
class Row:
    """A row of the document's table."""

    store: str
    holds: str
    setting: str
    gone: str

    @property
    def prefix(self) -> str:
        """Where a bucket has it; "" if no bucket's rule ends it."""
        if BY_NAME[self.store].kind is StoreKind.ENTITY:
            return f"curated/{self.store}/" if self.gone == "by age" else ""
        return self.holds.partition(":")[0] if self.holds.startswith(IN_BUCKETS) else ""


def rows() -> list[Row]:
    lines = (ROOT / "docs" / "retention.md").read_text().partition("|---|\n")[2].splitlines()
    cells = ([cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines)
    return [Row(store, holds, setting, gone) for _, store, holds, setting, gone in cells]


ROWS = rows()


def test_every_store_that_has_something_of_a_person_says_how_long() -> None:
    told = {each.store for each in ROWS} | set(FOLLOWING)
    needed = {each.name for each in INVENTORY if each.fate is not Fate.IMPERSONAL and not each.expires_days}
    assert needed <= told <= set(BY_NAME)


def test_a_bucket_has_the_rule_that_is_told() -> None:
    aged = [each for each in ROWS if each.prefix]
    assert {each for each in ROWS if each.gone == "by age"} <= set(aged)
    for each in aged:
        bucket = "PayloadBucket" if each.store == "PayloadBucket" else "LakeBucket"
        rules = properties(bucket)["LifecycleConfiguration"]["Rules"]
        (rule,) = [rule for rule in rules if rule.get("Prefix") == each.prefix and "ExpirationInDays" in rule]
        if not each.setting:
            assert (rule["Status"], f"{rule['ExpirationInDays']} days") == ("Enabled", each.gone)
            continue
        name = each.setting.removesuffix("Days")
        assert rule["Status"] == {"Fn::GetAtt": f"CheckedSettings.{name}Rule"}
        assert rule["ExpirationInDays"] == {"Fn::GetAtt": f"CheckedSettings.{name}RuleDays"}
        assert each.setting in BUCKET_SETTINGS


def test_a_table_has_a_time_to_live_for_what_expires() -> None:
    expiring = {"Questions", "Memory", "Notifications", "IdempotencyKeys", "Boards"}
    found = [each for each in ROWS if each.store in expiring]
    assert {each.store for each in found} == expiring
    for each in found:
        assert not each.setting and not each.gone.startswith("stays")
        assert properties(each.store)["TimeToLiveSpecification"]["Enabled"] is True


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.gone == "the night after"], ids=lambda row: row.holds
)
def test_the_nightly_pass_does_what_is_told(row: Row) -> None:
    variables = properties("RetainFunction")["Environment"]["Variables"]
    variable = {
        str(value.get("Fn::GetAtt")).removeprefix("CheckedSettings."): name
        for name, value in variables.items()
    }
    fields = RetainSettings.__dataclass_fields__
    days: dict[str, Any] = {name: name if name.endswith("_table") else 0 for name in fields}
    days |= {variable[row.setting].lower(): 7}
    found: Any = retention_rules(RetainSettings(**days), None)
    assert {each.name for each in found if each.days == 7} == {PASSES[row.setting].name}
    table = {"BPEvents": "BP_EVENTS"}.get(row.store, row.store.upper())
    assert logical_ids(variables[f"{table}_TABLE"]) == {row.store}


def test_every_setting_keeps_for_ever_unless_it_is_set() -> None:
    named = {each.setting for each in ROWS} - {""}
    assert {SETTINGS[each].default for each in named} == {"0"}
    assert {name for name in SETTINGS if name.endswith(("RetentionDays", "HotDays"))} == named
    assert not [each for each in ROWS if each.gone.startswith("stays") and each.setting]


def test_events_expire_by_time_to_live_only_while_nobody_asks_the_lake() -> None:
    enabled = properties("BPEvents")["TimeToLiveSpecification"]["Enabled"]
    assert enabled == {"Fn::GetAtt": "CheckedSettings.EventsExpire"}
    for function in ("UsersApiFunction", "RetainFunction"):
        days = properties(function)["Environment"]["Variables"]["EVENT_HOT_DAYS"]
        assert days == {"Fn::GetAtt": "CheckedSettings.EventHotDays"}
    for text, expire in (("", "true"), ("EventHotDays=0", "true"), ("EventHotDays=90", "false")):
        assert attributes_of(settings_of(text))["EventsExpire"] == expire
