"""How template.yaml is assembled: what follows from a resource is there, and what is stale or unknown is named."""

import pytest

from infra.alarms import alarm_marks
from infra.assemble import (
    FRAGMENTS,
    stale_message,
)
from infra.resources import complete_resources, output
from infra.template_text import ROOT, fill, parse, replace_marks
from ingest.openapi import ROUTES

A_FUNCTION = """\
  # what it does
  {name}Function: # and why
    Type: AWS::Serverless::Function
    Properties:
      Handler: ingest.new.handler # where it is
      Timeout: {timeout}
      Environment:
        Variables: {{{variables}}}
      Policies: []
"""


def a_function(name: str = "New", timeout: int = 15, variables: str = "") -> str:
    return A_FUNCTION.format(name=name, timeout=timeout, variables=variables)


def test_every_fragment_is_assembled() -> None:
    assert {each.stem for each in (ROOT / "infra/app").glob("*.yaml")} == {*FRAGMENTS, "alarms"}


def test_a_function_s_log_group_alarms_output_and_dashboard_follow_from_its_block() -> None:
    resources = list(complete_resources(a_function()))
    assert [each.logical_id for each in resources] == ["NewFunction", "NewLogs"]
    text = "".join(each.text for each in resources)
    assert text.startswith("  # what it does\n  NewFunction: # and why\n")
    function = parse(text)["NewFunction"]
    assert function["Metadata"] == {"BuildMethod": "makefile"}
    assert function["Properties"]["LoggingConfig"] == {"LogGroup": {"Ref": "NewLogs"}}
    assert "".join(map(output, resources)) == "  NewFunctionName: {Value: !Ref NewFunction}\n"
    found = alarm_marks(resources)
    assert found["watched_parameters"] == "NewFunction: {Type: String}\n"
    assert set(parse(found["alarms"])) == {"NewErrors", "NewThrottles"}
    assert "${NewFunction}" in found["errors_and_throttles"]


def test_what_leads_to_a_function_follows_from_its_routes() -> None:
    resources = parse("".join(each.text for each in complete_resources(a_function("UsersApi", 28))))
    of_users = [each for each in ROUTES if each.api == "UsersApi"]
    own = {f"{each.name}Route" for each in of_users}
    own |= {f"Head{each.name}Route" for each in of_users if each.method == "get"}
    assert own
    assert set(resources) == own | {
        f"UsersApi{each}" for each in ("Function", "Logs", "Integration", "Permission")
    }
    assert resources["UsersApiIntegration"]["Properties"]["TimeoutInMillis"] == 29_000


@pytest.mark.parametrize(
    ("variables", "condition"),
    [
        ("REDIS_URL: a", "CacheInVpc"),
        ("IDENTITY_URL: a, OTHER: b", "IdentityInVpc"),
        ("REDIS_URL: a, IDENTITY_URL: b", "LeadsInVpc"),
    ],
)
def test_a_function_is_in_the_network_that_its_variables_lead_into(variables: str, condition: str) -> None:
    text = a_function(variables=variables).replace("Policies: []", "Policies:\n        - own")
    function = parse(next(complete_resources(text)).text)["NewFunction"]["Properties"]
    assert function["VpcConfig"]["Fn::If"][0] == condition
    assert function["Policies"] == ["own"], "SAM adds the policy of the VPC"


def test_what_follows_from_a_function_under_a_condition_is_under_it_too() -> None:
    kind = "    Type: AWS::Serverless::Function\n"
    text = a_function().replace(kind, f"{kind}    Condition: Wanted\n")
    following = [parse(each.text) for each in complete_resources(text)]
    assert len(following) > 1
    assert all(each["Condition"] == "Wanted" for found in following for each in found.values())
    assert "Condition: Wanted" in output(next(complete_resources(text)))


def test_what_a_resource_says_itself_stays_and_what_is_common_is_added() -> None:
    queue = "  Waiting:\n    Type: AWS::SQS::Queue\n"
    (bare,) = complete_resources(queue)
    (named,) = complete_resources(f"{queue}    Condition: OnAws\n    Properties:\n      QueueName: waiting\n")
    common = {"MessageRetentionPeriod": 1209600, "SqsManagedSseEnabled": True}
    assert parse(bare.text)["Waiting"]["Properties"] == common
    assert parse(named.text)["Waiting"] == {
        "Type": "AWS::SQS::Queue",
        "Condition": "OnAws",
        "Properties": {**common, "QueueName": "waiting"},
    }


def test_a_line_that_belongs_to_no_resource_is_refused() -> None:
    with pytest.raises(ValueError, match="indented by two blanks"):
        list(complete_resources(" Waiting:\n    Type: AWS::SQS::Queue\n"))


def test_an_unknown_mark_and_an_unknown_placeholder_are_refused() -> None:
    assert replace_marks("a:\n  # @list\n", {"list": "- b\n- c\n"}) == "a:\n  - b\n  - c\n"
    with pytest.raises(ValueError, match="# @lists stands for nothing; known are list"):
        replace_marks("a:\n  # @lists\n", {"list": ""})
    with pytest.raises(KeyError, match="other"):
        fill("<name> <other>", name="a")


def test_a_stale_template_is_named_with_what_to_do_and_a_short_diff() -> None:
    wanted = "".join(f"{number}\n" for number in range(1000))
    assert not stale_message("template.yaml", wanted, wanted)
    message = stale_message("template.yaml", wanted.replace("7\n", "x\n"), wanted)
    assert "template.yaml is stale: run `make template`" in message
    assert "-x\n+7\n" in message
    assert len(message.splitlines()) <= 21
