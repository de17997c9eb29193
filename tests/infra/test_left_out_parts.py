"""A deployment without leads or questions: what it has, and what turning a part on and off does to a stack."""

import json
from collections.abc import Collection
from functools import cache

import pytest

from adapters.settings.parts import deployed_parts
from infra.parts import Conditions, guarded
from infra.stacks import Stack, resolve_stacks
from rules.parts import ALL_PARTS, Part, parameters_of
from rules.privacy.inventory import INVENTORY, StoreKind
from tests.support.stack_updates import differences

LEADS = Part.LEADS
NONE: frozenset[Part] = frozenset()
VARIANTS = [
    ("small", NONE),
    ("standard", NONE),
    *(("small", frozenset({part})) for part in Part if len(Part) > 1),
]
TABLES = {
    part: {store.name for store in INVENTORY if store.part is part and store.kind is StoreKind.TABLE}
    for part in Part
}
# What a version from before may fail to do while the update shifts calls to the new one, for ten minutes: the live view
# names queues that are gone, and the routes of leads' erasures go last.
OF_THE_SHIFT = ("/OperationsApiFunction calls sqs:GetQueueAttributes", "/PrivacyApiFunction calls ")
# It is asked first of all that are deleted, and its function answers without the database.
SCHEMA = "/Schema: its function is asked to delete it, and may no longer answer"


@cache
def deployed(size: str, parts: frozenset[Part] = ALL_PARTS) -> dict[str, Stack]:
    return resolve_stacks({"Size": size, **parameters_of(parts)})


@pytest.mark.parametrize(("size", "parts"), VARIANTS)
def test_every_reference_leads_to_something_that_is_made(size: str, parts: frozenset[Part]) -> None:
    for stack in deployed(size, parts).values():
        for resource in stack.resources.values():
            stack.flat(resource)


@pytest.mark.parametrize(("size", "parts"), VARIANTS)
def test_turning_a_part_on_takes_nothing_away(size: str, parts: frozenset[Part]) -> None:
    assert [*differences(deployed(size, parts), deployed(size))] == []


@pytest.mark.parametrize(("size", "parts"), VARIANTS)
def test_turning_a_part_off_keeps_its_tables(size: str, parts: frozenset[Part]) -> None:
    before, after = deployed(size), deployed(size, parts)
    found = [each for each in differences(before, after) if not each.startswith(OF_THE_SHIFT)]
    tables = {table for part in ALL_PARTS - parts for table in TABLES[part]}
    left_behind = {each for each in found if each.endswith("is left behind")}
    assert left_behind == {f"/{table}: AWS::DynamoDB::Table is left behind" for table in tables}
    gone = [each for each in found if each not in {*left_behind, SCHEMA}]
    assert all(" is deleted " in each for each in gone), gone
    names = {each.partition(":")[0].strip("/") for each in gone}
    assert not {name.partition("/")[0] for name in names} & after["/"].resources.keys()
    if LEADS not in parts:
        assert "/Identity/Cluster: AWS::RDS::DBCluster is deleted but for a snapshot" in gone


@pytest.mark.parametrize("size", ["small", "standard", "large"])
def test_without_both_there_are_no_database_and_fewer_of_all(size: str) -> None:
    every, less = deployed(size), deployed(size, NONE)
    assert "/Identity" not in less
    assert ("/Network" in less) == (size != "small"), "a cache needs a network"
    for kind in (
        "AWS::Lambda::Function",
        "AWS::DynamoDB::Table",
        "AWS::SQS::Queue",
        "AWS::ApiGatewayV2::Route",
    ):
        assert 0 < count(less, kind) < count(every, kind), kind
    assert 0 < count(less, "AWS::CloudWatch::Alarm") < count(every, "AWS::CloudWatch::Alarm")


def count(stacks: dict[str, Stack], kind: str) -> int:
    return sum(each["Type"] == kind for stack in stacks.values() for each in stack.resources.values())


@pytest.mark.parametrize(
    "parts", [ALL_PARTS, NONE, *({part} for part in Part)], ids=lambda parts: "-".join(sorted(parts))
)
def test_the_dashboard_is_json_and_shows_what_there_is(parts: Collection[Part]) -> None:
    stacks = deployed("standard", frozenset(parts))
    observability = stacks["/Observability"]
    body = observability.flat(observability.resources["Dashboard"]["Properties"]["DashboardBody"])
    shown = [metric for widget in json.loads(body)["widgets"] for metric in widget["properties"]["metrics"]]
    labels = {metric[-1]["label"] for metric in shown if isinstance(metric[-1], dict)}
    assert ("LeadEvents errors" in labels) == (LEADS in parts)
    assert not [metric for metric in shown if "none" in metric]


@pytest.mark.parametrize(("size", "parts"), VARIANTS)
def test_no_variable_asks_for_a_secret_without_a_name(size: str, parts: frozenset[Part]) -> None:
    root = deployed(size, parts)["/"]
    for name, resource in root.resources.items():
        assert "{{resolve:secretsmanager:}}" not in json.dumps(root.flat(resource)), name


def test_the_variable_parts_names_what_is_deployed() -> None:
    for size, parts in VARIANTS:
        root = deployed(size, parts)["/"]
        variables = root.flat(root.resources["PageFunction"]["Properties"]["Environment"]["Variables"])
        assert deployed_parts(variables) == parts


OF_PARTS = Conditions(
    {"Event": "HasLeads", "Answers": "HasQuestions"}, {"Both": {"Fn::And": [{"Condition": "HasLeads"}]}}
)
HEAD = "  F:\n    Type: T\n    Properties:\n"


@pytest.mark.parametrize(
    ("line", "guarded_line"),
    [
        ("      T: !Ref Event\n", '      T: !If [HasLeads, !Ref Event, ""]\n'),
        (
            "      L:\n        - !GetAtt Event.Arn # so\n",
            "      L:\n        - !If [HasLeads, !GetAtt Event.Arn, !Ref AWS::NoValue] # so\n",
        ),
        (
            "      L: [!Ref A, !Ref Event]\n",
            "      L: [!Ref A, !If [HasLeads, !Ref Event, !Ref AWS::NoValue]]\n",
        ),
        ("      T: !Ref Other\n", "      T: !Ref Other\n"),
    ],
)
def test_what_names_a_part_s_resource_is_guarded(line: str, guarded_line: str) -> None:
    assert guarded(HEAD + line, "", OF_PARTS) == HEAD + guarded_line
    assert guarded(HEAD + line, "HasLeads", OF_PARTS) == HEAD + line, "it is of the part itself"
    assert guarded(HEAD + line, "Both", OF_PARTS) == HEAD + line, "its condition implies the part's"


def test_a_statement_about_one_part_alone_is_left_out_with_it() -> None:
    text = HEAD + "      S:\n        - {Effect: Allow, Action: a, Resource: !GetAtt Event.Arn}\n"
    assert guarded(text, "", OF_PARTS) == HEAD + (
        "      S:\n        - !If\n          - HasLeads\n"
        "          - {Effect: Allow, Action: a, Resource: !GetAtt Event.Arn}\n          - !Ref AWS::NoValue\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        '      T: !Sub \'{"a": "${Event}"}\'\n',
        "      S:\n        - {Effect: Allow, Resource: [!GetAtt Event.Arn, !GetAtt Answers.Arn]}\n",
        "      D: {Deep: !Ref Event}\n",
    ],
)
def test_what_cannot_be_guarded_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"by hand|a statement for each"):
        guarded(HEAD + line, "", OF_PARTS)
