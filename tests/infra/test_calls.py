"""Each call that a function is known to make is allowed by its role and reaches AWS from its network, in every size.

What functions call is in calls.json: tests/support/calls.py notes it while the integration tests run.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from cfnlint.data import AdditionalSpecs
from cfnlint.helpers import load_resource

from infra.stacks import PARTITION
from tests.support.calls import declared, known
from tests.support.declared import FUNCTIONS, listed, statements
from tests.support.parts import modules_of_parts
from tests.support.permitted_calls import AT, RESOURCE, Calls, arns, faults
from tests.support.template import DEPLOYMENTS, stacks_of

# Actions for which AWS's service authorization reference has no resource, so that only "*" would be allowed for certain,
# and what AWS checks them against all the same. SNS's refusals name the application of the phone ("is not authorized to
# perform: SNS:DeleteEndpoint on resource: arn:aws:sns:us-east-1:...:app/GCM/..."). No page says it of Publish, whose
# policies that are known to work name applications: so both are allowed.
PHONES = (f"arn:{PARTITION}:sns:{AT}:app/", f"arn:{PARTITION}:sns:{AT}:endpoint/")
CHECKED_AGAINST = {
    "sns:createplatformendpoint": PHONES[:1],
    "sns:deleteendpoint": PHONES,
    "sns:setendpointattributes": PHONES,
}


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_each_call_is_allowed_and_reaches_its_service(deployment: str) -> None:
    assert [*faults(stacks_of(deployment)["/"], known())] == []


def test_each_function_is_made_in_one_of_the_deployments() -> None:
    made = {name for each in DEPLOYMENTS for name in stacks_of(each)["/"].resources}
    assert set(FUNCTIONS) <= made


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_function_has_calls_whose_resources_its_variables_name(function: str) -> None:
    calls = known().get(function, [])
    assert bool(calls) == any(statements(function)), (
        "its role allows something, but no test saw a call, or none is allowed"
    )
    for call in calls:
        for each in call.partition(" ")[2].split("|"):
            found = RESOURCE.fullmatch(each)
            assert found and (found["variable"] in {"", *declared(function)}), (
                f"no variable of {function} holds {each}"
            )


def test_calls_of_no_function_are_gone() -> None:
    assert known().keys() <= FUNCTIONS.keys()


@cache
def reference() -> dict[str, Any]:
    """AWS's service authorization reference, as cfn-lint carries it: by service, its actions and ARNs."""
    found: dict[str, Any] = load_resource(AdditionalSpecs, "Policies.json")
    return found


def known_resources(action: str, resources: Iterable[str]) -> list[str]:
    """Those of some resources on which AWS may allow an action. Raises KeyError for an action that AWS has not."""
    service, _, name = action.lower().partition(":")
    known_types = reference()[service]["Actions"][name].get("Resources", ())
    types = {name.lower(): each for name, each in reference()[service]["Resources"].items()}
    forms = [form for each in known_types for form in types[each.lower()]["ARNFormats"]]
    patterns = [re.sub(r"\$\{\w+\}", "[^:]*", form) for form in forms]
    patterns += [re.escape(each) + ".*" for each in CHECKED_AGAINST.get(action.lower(), ())]
    patterns = patterns or [re.escape("*")]
    return [each for each in resources if any(re.fullmatch(one, each) for one in patterns)]


@pytest.mark.parametrize("function", known())
def test_each_call_is_of_a_resource_that_aws_s_own_reference_knows_for_it(function: str) -> None:
    deployment = next(each for each in DEPLOYMENTS if function in stacks_of(each)["/"].resources)
    root = stacks_of(deployment)["/"]
    variables = root.flat(root.resources[function]["Properties"]["Environment"]["Variables"])
    for call in known()[function]:
        action, _, resource = call.partition(" ")
        for each in resource.split("|"):
            found = arns(action.partition(":")[0], each, variables)
            # "*" is what AWS asks for where it knows no resource, whatever the call names.
            assert not found or known_resources(action, [*found, "*"]), call


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_a_policy_allows_an_action_on_what_aws_checks_it_against(deployment: str) -> None:
    root = stacks_of(deployment)["/"]
    for role, resource in root.resources.items():
        policies = resource["Properties"].get("Policies", ()) if resource["Type"] == "AWS::IAM::Role" else ()
        for policy in root.flat([*policies]):
            for statement in listed(policy["PolicyDocument"]["Statement"]):
                allowed = listed(statement["Resource"])
                for action in listed(statement["Action"]):
                    assert known_resources(action, allowed), f"{role}: {action} on {allowed}"
                    needed = CHECKED_AGAINST.get(action.lower(), ())
                    assert all(any(each.startswith(one) for each in allowed) for one in needed), (
                        f"{role}: {action} is checked against {needed}, and allowed on {allowed}"
                    )


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("sns:DeleteEndpoint", f"arn:aws:sns:{AT}:phones"),
        ("sns:ListTopics", f"arn:aws:sns:{AT}:phones"),
        ("dynamodb:Query", "arn:aws:s3:::bucket"),
        ("rds-data:ExecuteStatement", f"arn:aws:rds:{AT}:db:writer"),
    ],
)
def test_a_resource_that_aws_does_not_know_for_an_action_is_noticed(action: str, resource: str) -> None:
    assert known_resources(action, [resource]) == []


def planted(function: str, *calls: str) -> Calls:
    return {function: [*known()[function], *calls]}


@pytest.mark.parametrize(
    ("function", "call", "fault"),
    [
        # Nights of standard and large would all have failed: the function is in a network.
        (
            "ReconcileFunction",
            "redshift-serverless:GetNamespace",
            "its network has no endpoint of redshift-serverless",
        ),
        ("EngagementFunction", "dynamodb:Scan REWARDS_LEDGER_TABLE", "its role does not allow it"),
        (
            "LeadsFunction",
            "dynamodb:PutItem ERASURES_TABLE[closed]",
            "its role does not allow it",
        ),
        *(case for module in modules_of_parts("calls") for case in module.FAULTS),
    ],
)
def test_a_call_that_fails_on_aws_is_noticed(function: str, call: str, fault: str) -> None:
    found = [*faults(stacks_of("standard")["/"], planted(function, call))]
    assert (f"{function} calls {call}: {fault}" in found) == bool(fault), found
