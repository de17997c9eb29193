"""The lake: where rows are delivered to, what may write raw objects, and the steps of the nightly run."""

import json
from collections.abc import Iterator
from typing import Any

from rules.lake.entities import ENTITIES
from rules.parts import said
from tests.support.declared import FUNCTIONS, listed, logical_ids, properties, statements
from tests.support.template import ROOT, resources


def test_raw_objects_are_written_by_firehose_and_nights_and_archived_after_90_days() -> None:
    for name in FUNCTIONS:
        for statement, _ in statements(name):
            if name == "ForgetFunction":  # it puts them again without some persons' lines
                continue
            if "s3:PutObject" in listed(statement["Action"]) and "/raw/" in json.dumps(statement["Resource"]):
                assert (name, statement["Resource"]) in (
                    ("CurateFunction", {"Fn::Sub": "${LakeBucket.Arn}/raw/*/recovered/*"}),
                    ("ReconcileFunction", {"Fn::Sub": "${LakeBucket.Arn}/raw/user_goals/*"}),
                )
    rules = properties("LakeBucket")["LifecycleConfiguration"]["Rules"]
    (archive,) = [each for each in rules if "Transitions" in each]
    assert (archive["Prefix"], archive["Transitions"]) == (
        "raw/",
        [{"StorageClass": "GLACIER_IR", "TransitionInDays": 90}],
    )


def test_what_is_deleted_and_when_is_a_setting() -> None:
    """And nothing is, by default. What every recompute is made from stays in any case."""
    rules = properties("LakeBucket")["LifecycleConfiguration"]["Rules"]
    found = {}
    for rule in rules:
        if rule["Status"] != "Enabled":
            named = rule["Status"]["Fn::GetAtt"].removeprefix("CheckedSettings.")
            assert rule["ExpirationInDays"] == {"Fn::GetAtt": f"CheckedSettings.{named}Days"}
            found[rule["Prefix"]] = named.replace("Rule", "Days")
        elif "ExpirationInDays" in rule:
            assert rule["Prefix"] in ("runs/", "athena/", "what_if/")
    curated = {f"curated/{each}/" for each, entity in ENTITIES.items() if entity.may_age}
    assert found == {
        "raw/": "RawRetentionDays",
        "quarantine/": "QuarantineRetentionDays",
        **dict.fromkeys(curated, "CuratedRetentionDays"),
    }
    of_parts = {entity.name for entities in said("lake_entities") for entity in entities}
    kept = {each for each, entity in ENTITIES.items() if not entity.may_age} - of_parts
    assert kept == {"ledger", "streaks", "daily_activity", "rules", "table_items", "friendships"}, (
        "what nights and restores are made from"
    )


def test_every_entity_is_delivered_to_its_place_by_its_own_time() -> None:
    streams = resources("AWS::KinesisFirehose::DeliveryStream")
    prefixes = set()
    for each in streams.values():
        target = each["Properties"]["ExtendedS3DestinationConfiguration"]
        prefixes.add(target["Prefix"])
        assert target["CompressionFormat"] == "GZIP"
        assert target["DynamicPartitioningConfiguration"]["Enabled"] is True
        assert target["ErrorOutputPrefix"].startswith("errors/")
    partition = (
        "arrived=!{timestamp:yyyy-MM-dd}/dt=!{partitionKeyFromQuery:dt}/hour=!{partitionKeyFromQuery:hour}/"
    )
    delivered = (name for name, entity in ENTITIES.items() if not entity.is_of_nights)
    assert prefixes == {f"raw/{name}/{partition}" for name in delivered}


def machine() -> dict[str, Any]:
    text = (ROOT / "infra" / "nightly.asl.json").read_text()
    found: dict[str, Any] = json.loads(text.replace("${CurateConcurrency}", '"${CurateConcurrency}"'))
    return found


def test_every_step_of_the_nightly_run_is_retried_and_then_surfaces() -> None:
    assert logical_ids({"Fn::Sub": json.dumps(machine())}) == set(
        properties("Nightly")["DefinitionSubstitutions"]
    )
    states = machine()["States"]
    assert set(_surfaces({"Spark": states.pop("Spark")})) == {"Curate"}, "the functions do what it leaves"
    besides = {name: states.pop(name) for name in ("Forget", "Forgotten", "Retain")}
    assert set(_surfaces(besides)) == {"SideBySide", "Retain", "Report"}, "repair does not wait for them"
    assert set(_surfaces(states)) == {"Surface"}
    repair, warehouse = states["SideBySide"]["Branches"]
    assert set(_surfaces(repair["States"])) == {"NotRepaired"}
    assert set(_surfaces(warehouse["States"])) == {"WarehouseAway"}, "nothing of it ends the other branch"
    assert states["Surface"]["Next"] == states["IsAllDone"]["Default"] == "Failed"
    assert states["Failed"]["Type"] == "Fail"


def _surfaces(states: dict[str, Any]) -> Iterator[str]:
    """Yield where each working state goes when it has failed, its retries included."""
    for name, state in states.items():
        if state["Type"] in ("Task", "Map", "Parallel") and name != "Surface":
            (catch,) = state["Catch"]
            assert catch["ErrorEquals"] == ["States.ALL"], name
            yield catch["Next"]
        assert state["Type"] != "Task" or state["Retry"][0]["MaxAttempts"] >= 2, name


def test_a_share_that_fails_is_given_up_alone() -> None:
    """Whatever ends its function, the map goes on: only a share that cannot be noted fails it."""
    states = machine()["States"]["SideBySide"]["Branches"][0]["States"]["Shares"]["ItemProcessor"]["States"]
    assert states["Reconcile"]["Catch"][0]["Next"] == "GiveUpShare"
    assert states["GiveUpShare"]["Retry"][0]["MaxAttempts"] == 3
    (left,) = states["AreUsersLeft"]["Choices"]
    assert (left["BooleanEquals"], left["Next"]) == (True, "Reconcile")


def test_a_task_that_fails_gets_the_large_function_by_itself_and_is_then_given_up() -> None:
    """Whatever ends the functions, the map goes on: only a task that cannot be noted fails it."""
    batch = machine()["States"]["Curate"]["ItemProcessor"]["States"]
    assert batch["Size"]["Choices"] == [{"Variable": "$.large", "BooleanEquals": True, "Next": "OneByOne"}]
    assert batch["Size"]["Default"] == "CurateBatch"
    (caught,) = batch["CurateBatch"]["Catch"]
    assert (caught["ErrorEquals"], caught["Next"]) == (["States.ALL"], "OneByOne")
    assert batch["CurateBatch"]["Next"] == "OneByOne"
    assert "TolerateFailure" not in json.dumps(machine())
    one = batch["OneByOne"]["ItemProcessor"]["States"]
    assert one["CurateTask"]["Resource"] == "${CurateLarge}"
    assert {each["MaxAttempts"] for each in one["CurateTask"]["Retry"]} == {6, 1}
    assert [each["Next"] for each in one["CurateTask"]["Catch"]] == ["GiveUp"]
    assert one["GiveUp"]["Retry"][0]["MaxAttempts"] == 3


def test_a_large_partition_has_the_disk_and_memory_that_it_needs() -> None:
    large, ordinary = properties("CurateLargeFunction"), properties("CurateFunction")
    assert large["EphemeralStorage"] == {"Size": 10240}
    assert large["MemorySize"] == 3008 > ordinary["MemorySize"]
    assert "EphemeralStorage" not in ordinary
    assert "ProvisionedConcurrencyConfig" not in large
