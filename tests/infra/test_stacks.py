"""Templates as CloudFormation sees them: expanded, conditions chosen, functions evaluated."""

import hashlib
from importlib.metadata import version
from pathlib import Path

import pytest

from infra.intrinsics import Refusal, Scope, references, resolve
from infra.stacks import resolve_stacks
from infra.template_text import ROOT as REPOSITORY

ROOT = """
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31
Parameters:
  Size: {Type: Number, Default: 3, MinValue: 1}
  Color: {Type: String, Default: red, AllowedValues: [red, blue]}
  Mode: {Type: String, Default: ""}
Rules:
  ModeNeedsBlue:
    RuleCondition: !Not [!Equals [!Ref Mode, ""]]
    Assertions:
      - Assert: !Contains [[blue], !Ref Color]
        AssertDescription: Mode works with blue only
Conditions:
  Blue: !Equals [!Ref Color, blue]
Resources:
  Bucket: {Type: AWS::S3::Bucket, Condition: Blue}
  Function:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: .
      Handler: main.handler
      Runtime: python3.13
      Environment:
        Variables:
          SIZE: !Ref Size
          BUCKET: !If [Blue, !Ref Bucket, !Ref AWS::NoValue]
  Inner:
    Type: AWS::CloudFormation::Stack
    Properties:
      TemplateURL: inner.yaml
      Parameters: {Arn: !If [Blue, !GetAtt Bucket.Arn, none]}
Outputs:
  Partition: {Value: !GetAtt Inner.Outputs.Partition}
"""
BUCKET = hashlib.sha256(b"Bucket").hexdigest()[:12]
INNER = """
Parameters:
  Arn: {Type: String}
Resources:
  Topic: {Type: AWS::SNS::Topic}
Outputs:
  Partition: {Value: !Sub "${Topic} of ${Arn}"}
"""


@pytest.fixture
def template(tmp_path: Path) -> Path:
    (tmp_path / "inner.yaml").write_text(INNER)
    (tmp_path / "template.yaml").write_text(ROOT)
    return tmp_path / "template.yaml"


def test_the_translator_is_the_one_that_sam_has() -> None:
    wanted = (REPOSITORY / "local" / "requirements" / "sam.txt").read_text()
    assert f"aws-sam-translator=={version('aws-sam-translator')}\n" in wanted


def test_conditions_choose_and_parameters_are_filled_in(template: Path) -> None:
    root = resolve_stacks({"Color": "blue", "Size": "5"}, template)["/"]
    variables = root.resources["Function"]["Properties"]["Environment"]["Variables"]
    assert variables == {"SIZE": 5, "BUCKET": {"Ref": "Bucket"}}
    assert root.flat(variables) == {"SIZE": 5, "BUCKET": f"streakline-bucket-{BUCKET}"}
    assert root.conditions == {"Blue": True}


def test_what_a_condition_takes_away_is_absent(template: Path) -> None:
    root = resolve_stacks({}, template)["/"]
    assert set(root.resources) == {"Function", "FunctionRole", "Inner"}
    assert "BUCKET" not in root.resources["Function"]["Properties"]["Environment"]["Variables"]


def test_a_nested_stack_has_its_parameters_and_gives_its_outputs(template: Path) -> None:
    stacks = resolve_stacks({"Color": "blue"}, template)
    assert stacks["/Inner"].parameters == {"Arn": f"arn:aws:s3:::streakline-bucket-{BUCKET}"}
    place = stacks["/"].flat(stacks["/"].outputs["Partition"])
    assert place.startswith("arn:aws:sns:us-east-1:123456789012:streakline-Topic-")
    assert place.endswith(f" of arn:aws:s3:::streakline-bucket-{BUCKET}")


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"Mode": "fast"}, "Mode works with blue only"),
        ({"Color": "green"}, "Color may be red, blue, not 'green'"),
        ({"Size": "0"}, "Size must be from 1"),
        ({"Size": "many"}, "Size must be a number"),
        ({"Colour": "red"}, "there is no parameter Colour"),
    ],
)
def test_what_cloudformation_refuses_is_refused(
    template: Path, parameters: dict[str, str], sentence: str
) -> None:
    with pytest.raises(Refusal, match=sentence):
        resolve_stacks(parameters, template)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ({"Fn::Sub": "${A}-${B.Arn}-${!C}"}, {"Fn::Sub": "a-${B.Arn}-${!C}"}),
        ({"Fn::Sub": "${A}-${!C}"}, "a-${C}"),
        (
            {"Fn::Sub": ["${X}/${Y}", {"X": {"Fn::Select": [0, {"Ref": "B"}]}, "Y": "y"}]},
            {"Fn::Sub": ["${X}/y", {"X": {"Fn::Select": [0, {"Ref": "B"}]}}]},
        ),
        ({"Fn::Sub": ["${X}/${Y}", {"X": {"Ref": "B"}, "Y": {"Ref": "A"}}]}, {"Fn::Sub": "${B}/a"}),
        ({"Fn::Sub": ["${!X}${!X}", {"X": "x"}]}, "${X}${X}"),
        ({"Fn::Sub": ["${ B }", {"X": "x"}]}, {"Ref": "B"}),
        ({"Fn::Join": [":", ["x", {"Fn::GetAtt": "B.Arn"}]]}, {"Fn::Sub": "x:${B.Arn}"}),
        ({"Fn::Join": ["", [{"Ref": "B"}]]}, {"Ref": "B"}),
        ({"Fn::Select": ["1", {"Fn::Split": [",", "x,y"]}]}, "y"),
        ({"Fn::FindInMap": ["Map", {"Ref": "A"}, "key"]}, "found"),
        ([{"Fn::If": ["No", 1, {"Ref": "AWS::NoValue"}]}, 2], [2]),
        ({"k": {"Fn::If": ["No", 1, {"Ref": "AWS::NoValue"}]}}, {}),
        ({"Fn::Select": [0, {"Fn::GetAZs": ""}]}, "us-east-1a"),
    ],
)
def test_functions(value: object, result: object) -> None:
    conditions = {"No": {"Fn::Not": [{"Fn::Equals": [{"Ref": "A"}, "a"]}]}}
    assert resolve(value, Scope({"A": "a"}, {"Map": {"a": {"key": "found"}}}, conditions)) == result


@pytest.mark.parametrize(
    "value",
    [{"Fn::Select": [2, ["x"]]}, {"Fn::FindInMap": ["Map", "b", "key"]}, {"Fn::If": ["Unknown", 1, 2]}],
)
def test_what_leads_nowhere_is_an_error(value: object) -> None:
    with pytest.raises(Refusal):
        resolve(value, Scope({}, {"Map": {"a": {"key": 1}}}))


def test_rules_see_no_conditions(template: Path) -> None:
    template.write_text(
        ROOT.replace('RuleCondition: !Not [!Equals [!Ref Mode, ""]]', "RuleCondition: {Condition: Blue}")
    )
    with pytest.raises(Refusal, match="Blue is not declared"):
        resolve_stacks({}, template)


@pytest.mark.parametrize("name", ["Bucket", "Bucket.Arn", "Tabel", "Inner.Outputs.Plaice"])
def test_a_reference_to_what_is_not_made_is_an_error(template: Path, name: str) -> None:
    root = resolve_stacks({}, template)["/"]
    with pytest.raises(Refusal, match=name.partition(".")[0]):
        root.flat({"Fn::Sub": f"${{{name}}}"})


def test_all_references_are_seen() -> None:
    value = [
        {"Ref": "A"},
        {"k": {"Fn::GetAtt": ["B", "Arn"]}},
        {"Fn::Sub": ["${C}${ D.Arn }${!E}${ F }", {"F": 1}]},
    ]
    assert list(references(value)) == [("A", ""), ("B", "Arn"), ("C", ""), ("D", "Arn")]
