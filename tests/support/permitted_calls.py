"""Whether a call that a function is known to make is allowed by its role, and gets out of its network."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from infra.intrinsics import REGION, references
from infra.stacks import ACCOUNT, PARTITION, Stack
from tests.support.declared import listed

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
# A driver's URL of the stack's own database: the name of its proxy or cluster.
SIGNS_IN = re.compile(r"postgresql://streakline_leads@((.*-Proxy-)?[\w-]+)")
# A call that names no resource -> the variable without which it is not made.
ONLY_WITH = {"redshift-serverless:UpdateUsageLimit": "WAREHOUSE_WORKGROUP_ARN"}
# A condition that a function fulfils by itself: it asks for its own statements.
OWN = "redshift-data:statement-owner-iam-userid"
Calls = Mapping[str, list[str]]


def faults(root: Stack, calls: Calls, former: Stack | None = None) -> Iterator[str]:
    """Give a sentence for each call that a role does not allow, or that a network does not let out.

    former: the stack as it was, to judge versions of functions from before. They have that stack's variables and
    network, but the roles of now.
    """
    of_versions = former or root
    for function in sorted(calls.keys() & root.resources.keys() & of_versions.resources.keys()):
        made = of_versions.resources[function]["Properties"]
        variables = of_versions.flat(made["Environment"]["Variables"])
        allowed = statements_of(root, root.resources[function]["Properties"]["Role"])
        endpoints = endpoints_of(of_versions, made.get("VpcConfig", {}).get("SubnetIds", []))
        for call in [*calls[function], *sign_ins(variables)]:
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
            if (
                endpoints is not None
                and service != "rds-db"
                and ENDPOINTS.get(service, service) not in endpoints
            ):
                yield f"{function} calls {call}: its network has no endpoint of {service}"


def sign_ins(variables: Mapping[str, str]) -> list[str]:
    """Return what a function needs that signs in to PostgreSQL by IAM; no request of a client shows it."""
    return ["rds-db:connect IDENTITY_URL"] if SIGNS_IN.match(str(variables.get("IDENTITY_URL"))) else []


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
    # A secret that CloudFormation reads, and not the function.
    text = re.sub(r"\{\{resolve:.+?\}\}", "", text)
    if service == "rds-db":
        found = SIGNS_IN.match(text)
        assert found, text
        return [f"arn:{PARTITION}:rds-db:{AT}:dbuser:{'prx-' * bool(found[2])}{found[1]}/streakline_leads"]
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
