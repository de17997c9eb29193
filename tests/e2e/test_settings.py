"""The parameter Settings on the deployed cloud: each function gets its own, and a bad one fails the deployment."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from adapters.settings.choices import SETTINGS
from local.stack import Stack
from tests.support.effort import only_soak

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")

SECONDS_MAX = 120


def variables(stack: Stack, function: str, alias: str = "$LATEST") -> dict[str, str]:
    asked = {"FunctionName": stack.outputs[f"{function}FunctionName"], "Qualifier": alias}
    found = stack.client("lambda").get_function_configuration(**asked)
    values: dict[str, str] = found["Environment"]["Variables"]
    return values


@pytest.mark.parametrize("alias", ["$LATEST", "live"])
def test_functions_have_their_settings_and_no_others(stack: Stack, alias: str) -> None:
    door, users = (variables(stack, name, alias) for name in ("EventsApi", "UsersApi"))
    assert door["RATE_LIMIT_PER_MINUTE"] == SETTINGS["RateLimitPerMinute"].default
    assert users["COMMANDS_PER_MINUTE"] == SETTINGS["CommandsPerMinute"].default
    assert "RATE_LIMIT_PER_MINUTE" not in users
    assert "COMMANDS_PER_MINUTE" not in door


@pytest.fixture
def other(stack: Stack) -> Iterator[str]:
    """The name of a stack that exists during one test."""
    name = f"settings-{time.time_ns()}"
    yield name
    stack.client("cloudformation").delete_stack(StackName=name)


def template(stack: Stack, settings: str) -> str:
    """A stack of one resource, which the deployed function answers for as it does for the whole template."""
    function = stack.client("lambda").get_function(FunctionName=stack.outputs["ReleaseFunctionName"])
    properties = {
        "ServiceToken": function["Configuration"]["FunctionArn"],
        "Parameters": {"Settings": settings},
    }
    resource = {"Type": "AWS::CloudFormation::CustomResource", "Properties": properties}
    return json.dumps({"Resources": {"CheckedSettings": resource}})


def finished(stack: Stack, name: str) -> dict[str, Any]:
    """Wait until a stack is no longer in progress; return it."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        found: dict[str, Any] = stack.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        if not found["StackStatus"].endswith("_IN_PROGRESS"):
            return found
        time.sleep(0.2)
    raise AssertionError(f"{name} is still in progress")


def reasons(stack: Stack, name: str) -> str:
    events = stack.client("cloudformation").describe_stack_events(StackName=name)["StackEvents"]
    return "\n".join(each.get("ResourceStatusReason", "") for each in events)


def test_a_bad_setting_fails_the_first_deployment_with_a_sentence(stack: Stack, other: str) -> None:
    wrong = template(stack, "RateLimitPerMinute=0; Curency=EUR")
    stack.client("cloudformation").create_stack(StackName=other, TemplateBody=wrong)
    assert finished(stack, other)["StackStatus"] in ("ROLLBACK_COMPLETE", "CREATE_FAILED")
    assert "RateLimitPerMinute must be a whole number, 1 or more, unlike '0'" in reasons(stack, other)
    assert "there is no setting Curency; did you mean Currency?" in reasons(stack, other)


def redeployed(stack: Stack, settings: str) -> str:
    """Deploy the cloud's stack again with other settings; return its status."""
    client = stack.client("cloudformation")
    known = [each["ParameterKey"] for each in finished(stack, stack.name)["Parameters"]]
    client.update_stack(
        StackName=stack.name,
        UsePreviousTemplate=True,
        Parameters=[
            {"ParameterKey": name, "ParameterValue": settings}
            if name == "Settings"
            else {"ParameterKey": name, "UsePreviousValue": True}
            for name in known
        ],
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
    )
    return str(finished(stack, stack.name)["StackStatus"])


def seen(stack: Stack) -> tuple[str, str, str]:
    """What callers of the API meet, behind an alias, and what a consumer has."""
    users, leads = variables(stack, "UsersApi", "live"), variables(stack, "Leads")
    return users["READS_PER_MINUTE"], users["COMMANDS_PER_MINUTE"], leads["CURRENCY"]


@only_soak(
    "tests/infra/test_release.py for each setting's way to its functions and a bad one at an update, the test above for one"
    " at a deployment"
)
def test_other_settings_reach_every_function_and_bad_ones_none(stack: Stack) -> None:
    usual = seen(stack)
    assert usual == tuple(
        SETTINGS[each].default for each in ("ReadsPerMinute", "CommandsPerMinute", "Currency")
    )
    try:
        changed = "ReadsPerMinute=107; Currency=EUR"
        assert redeployed(stack, changed) == "UPDATE_COMPLETE"
        assert seen(stack) == ("107", usual[1], "EUR")
        assert redeployed(stack, f"{changed}; OpenQuestionsMax=1001") == "UPDATE_ROLLBACK_COMPLETE"
        assert "OpenQuestionsMax must be a whole number, 1 to 1000, unlike '1001'" in reasons(
            stack, stack.name
        )
        assert seen(stack) == ("107", usual[1], "EUR")
    finally:
        redeployed(stack, "")
    assert seen(stack) == usual
