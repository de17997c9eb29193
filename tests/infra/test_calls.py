"""Each call that a function is known to make is allowed by its role and reaches AWS from its network, in every size.

What functions call is in calls.json: tests/support/calls.py notes it while the integration tests run.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from infra.intrinsics import REGION, references
from infra.stacks import ACCOUNT, PARTITION, Stack
from tests.support.calls import declared, known
from tests.support.declared import FUNCTIONS, listed, statements
from tests.support.template import DEPLOYMENTS, stacks_of

# The endpoint's name, where it is not the service's prefix in policies.
ENDPOINTS = {"firehose": "kinesis-firehose", "kinesis": "kinesis-streams"}
# By the service of a call: the ARNs of the resource that a variable names, without "arn:aws:".
AT = f"{REGION}:{ACCOUNT}"
ARNS = {
    "dynamodb": [f"dynamodb:{AT}:table/{{}}"],
    "events": [f"events:{AT}:event-bus/{{}}"],
    "firehose": [f"firehose:{AT}:deliverystream/{{}}"],
    "glue": [f"glue:{AT}:catalog", f"glue:{AT}:database/{{}}", f"glue:{AT}:table/{{}}/x"],
    "lambda": [f"lambda:{AT}:function:{{}}"],
    "redshift-data": [f"redshift-serverless:{AT}:workgroup/{{}}"],
    "s3": ["s3:::{}"],
    "secretsmanager": [f"secretsmanager:{AT}:secret:{{}}-a1b2c3"],
    "sns": [f"sns:{AT}:{{}}"],
}
RESOURCE = re.compile(r"(?P<variable>[A-Z_]*)(\.(?P<key>\w+))?(?P<more>[^\[]*)(\[(?P<leading>.*)\])?")
QUEUE = re.compile(r"https://sqs\.([^./]+)\.[^/]+/(\d+)/([^\"]+)")
# A call that names no resource -> the variable without which it is not made.
ONLY_WITH = {"redshift-serverless:UpdateUsageLimit": "WAREHOUSE_WORKGROUP_ARN"}
# A condition that a function fulfils by itself: it asks for its own statements.
OWN = "redshift-data:statement-owner-iam-userid"
Calls = Mapping[str, list[str]]


def faults(root: Stack, calls: Calls) -> Iterator[str]:
    """Give a sentence for each call that a role does not allow, or that a network does not let out."""
    for function in sorted(calls.keys() & root.resources.keys()):
        made = root.resources[function]["Properties"]
        variables = root.flat(made["Environment"]["Variables"])
        allowed = statements_of(root, made["Role"])
        endpoints = endpoints_of(root, made.get("VpcConfig", {}).get("SubnetIds", []))
        for call in calls[function]:
            action, _, resource = call.partition(" ")
            service = action.partition(":")[0]
            ways = [(arns(service, each, variables), leading_of(each)) for each in resource.split("|")]
            if not any(found for found, _ in ways) or not variables.get(ONLY_WITH.get(action), True):
                continue  # the variable is empty: this deployment has no such thing
            if not any(
                found and all(any(allows(each, action, arn, leading) for each in allowed) for arn in found)
                for found, leading in ways
            ):
                yield f"{function} calls {call}: its role does not allow it"
            if endpoints is not None and ENDPOINTS.get(service, service) not in endpoints:
                yield f"{function} calls {call}: its network has no endpoint of {service}"


def statements_of(root: Stack, role: Any) -> list[dict[str, Any]]:
    name = next(each for each, _ in references(role))
    policies = root.flat(root.resources[name]["Properties"].get("Policies", []))
    return [one for each in policies for one in listed(each["PolicyDocument"]["Statement"])]


def endpoints_of(root: Stack, subnets: Any) -> set[str] | None:
    """Return the endpoints in the network of a function; None if it has another way out."""
    networks = [root.nested[each] for each, _ in references(subnets) if each in root.nested]
    if not networks:
        return None
    services = (each["Properties"].get("ServiceName", "") for each in networks[0].resources.values())
    return {str(networks[0].flat(each)).rpartition(".")[2] for each in services}


def arns(service: str, resource: str, variables: Mapping[str, str]) -> list[str]:
    """Return what a call's resource stands for in a deployment; ["*"] for nothing narrower, [] for nothing."""
    found = RESOURCE.fullmatch(resource)
    assert found, resource
    variable, more = found["variable"], found["more"].replace("*", "x")
    if not variable:
        return [f"arn:{PARTITION}:{form.format(more)}" for form in ARNS[service]] if more else ["*"]
    text = variables.get(variable, "") + "x" * variable.endswith("_PREFIX")
    if not variables.get(variable):
        return []
    if found["key"]:
        of_json = json.loads(text)
        text = of_json.get(found["key"], text)
    text = re.sub(
        r"\{\{resolve:.+?\}\}", "", text
    )  # a secret that CloudFormation reads, and not the function
    whole = [each for each in re.findall(r"arn:[^&\"]+", text) if each.split(":")[2] in service]
    whole += [f"arn:{PARTITION}:sqs:{':'.join(each)}" for each in QUEUE.findall(text)]
    if whole or (variable.endswith("_URL") and service != "redshift-data"):
        return [each + more for each in whole]  # none: the URL of a database that is reached by its own port
    name = re.sub("redshift://([^/]+).*", r"\1", text)
    return [f"arn:{PARTITION}:{form.format(name)}{more}" for form in ARNS.get(service, ())]


def leading_of(resource: str) -> str:
    found = RESOURCE.fullmatch(resource)
    return (found["leading"] or "") if found else ""


def allows(statement: Mapping[str, Any], action: str, arn: str, leading: str) -> bool:
    actions, patterns = listed(statement["Action"]), listed(statement["Resource"])
    return (
        any(_like(action.lower(), each.lower()) for each in actions)
        and any(_like(arn, each) for each in patterns)
        and all(
            key == OWN
            or (key == "dynamodb:LeadingKeys" and any(_like(leading, each) for each in listed(values)))
            for condition in statement.get("Condition", {}).values()
            for key, values in condition.items()
        )
    )


def _like(text: str, pattern: str) -> bool:
    """Whether a text is what IAM takes a pattern for."""
    return bool(re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), text))


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
        ("NotifyFunction", "sqs:ReceiveMessage FAILURE_QUEUE_URL|ANNOUNCEMENT_QUEUE_URL", ""),
    ],
)
def test_a_call_that_fails_on_aws_is_noticed(function: str, call: str, fault: str) -> None:
    found = [*faults(stacks_of("standard")["/"], planted(function, call))]
    assert (f"{function} calls {call}: {fault}" in found) == bool(fault), found
