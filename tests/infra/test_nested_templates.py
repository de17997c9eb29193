"""Nested templates, parameters, conditions and outputs."""

import json

import pytest

from infra.stacks import resolve_stacks
from tests.support.declared import FUNCTIONS, QUEUES, TABLES, logical_ids, properties
from tests.support.template import resources, template

TEMPLATES = (
    "template.yaml",
    *(
        f"infra/{name}.yaml"
        for name in ("cache", "domain", "identity", "network", "observability", "regions", "warehouse")
    ),
)
ON_AWS = {"Condition": "OnAws"}


@pytest.mark.parametrize("name", resources("AWS::CloudFormation::Stack"))
def test_a_nested_stack_gets_exactly_the_parameters_that_it_takes(name: str) -> None:
    nested = properties(name)
    takes = template(nested["TemplateURL"])["Parameters"]
    required = {each for each, shape in takes.items() if "Default" not in shape}
    assert required <= set(nested["Parameters"]) <= set(takes)


def test_the_watched_parameters_are_the_things_of_their_names() -> None:
    for name, value in properties("Observability")["Parameters"].items():
        if name in {*FUNCTIONS, *TABLES, *QUEUES}:
            assert logical_ids(value) == {name}
            if condition := template()["Resources"][name].get("Condition"):
                named = {"Fn::GetAtt": f"{name}.QueueName"} if name in QUEUES else {"Ref": name}
                assert value == {"Fn::If": [condition, named, "none"]}


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_parameter_and_condition_is_used(name: str) -> None:
    loaded = template(name)
    body = json.dumps([loaded["Resources"], loaded.get("Globals"), loaded.get("Outputs")])
    rules = loaded.get("Rules", {})
    conditions = json.dumps(loaded.get("Conditions", {}))
    names = logical_ids([loaded["Resources"], loaded.get("Globals"), loaded.get("Conditions", {}), rules])
    assert set(loaded.get("Parameters", {})) <= names
    for condition in loaded.get("Conditions", {}):
        assert f'"{condition}"' in body or f'{{"Condition": "{condition}"}}' in conditions


@pytest.mark.parametrize("name", TEMPLATES)
def test_everything_that_is_named_is_there(name: str) -> None:
    loaded = template(name)
    known = {*loaded["Resources"], *loaded.get("Parameters", {})}
    named = logical_ids([loaded["Resources"], loaded.get("Globals", {}), loaded.get("Outputs", {})])
    assert {each for each in named if not each.startswith("AWS::")} <= known


@pytest.mark.parametrize("name", template()["Parameters"])
def test_enter_answers_each_question_of_sam(name: str) -> None:
    """`sam deploy --guided` takes no default for a parameter with NoEcho, and asks until there is an answer."""
    shape = template()["Parameters"][name]
    assert "Default" in shape
    assert "NoEcho" not in shape, "name a secret of Secrets Manager by its ARN instead"


def test_the_outputs_name_every_table_and_function() -> None:
    named = logical_ids(template()["Outputs"])
    assert {*TABLES, *FUNCTIONS, *QUEUES} <= named


def test_what_only_aws_has_is_switched_by_conditions() -> None:
    conditions = ("HasCache", "HasDomain", "HasIdentity", "HasPeer", "HasWarehouse")
    for name in resources("AWS::CloudFormation::Stack"):
        assert template()["Resources"][name]["Condition"] in ("OnAws", "CreateNetwork", *conditions)
    for condition in conditions:
        assert template()["Conditions"][condition]["Fn::And"][0] == ON_AWS
    assert template()["Conditions"]["CreateNetwork"]["Fn::And"][0] == {"Condition": "NeedsVpc"}
    needs = template()["Conditions"]["NeedsVpc"]["Fn::Or"]
    assert needs == [{"Condition": "HasCache"}, {"Condition": "HasIdentity"}]


# Aurora PostgreSQL's minor versions that AWS offers for three years and more; others leave after some 20 months, and
# then the first deployment fails.
LONG_TERM = {"17.7"}


def test_the_database_s_version_has_long_term_support() -> None:
    made = resolve_stacks({})["/Identity"].resources
    version = made["Cluster"]["Properties"]["EngineVersion"]
    assert version in LONG_TERM
    (family,) = (
        each["Properties"]["Family"]
        for each in made.values()
        if each["Type"] == "AWS::RDS::DBClusterParameterGroup"
    )
    assert family == f"aurora-postgresql{version.partition('.')[0]}"
