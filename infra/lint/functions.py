"""Checks of functions: the network they reach things from, their layers, their queues, and reserved
concurrency.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from infra.lint.faults import Fault, Stacks, as_list, on_aws, referred_id, resources_of
from infra.lint.stacks import NESTED, Stack, references
from infra.template_text import ROOT

# The endpoint's name, where it is not the service's prefix in policies.
ENDPOINTS = {"firehose": "kinesis-firehose", "kinesis": "kinesis-streams"}
# Prefixes without an endpoint: Lambda does this for a function, or it is the database's own port.
NO_ENDPOINT_NEEDED = {"logs", "xray", "ec2", "rds-db"}
# What redshift-data does for whoever asks it, by the asker's role.
BY_REDSHIFT_DATA = {"redshift-serverless:GetCredentials"}
# What an event source mapping does, not the function.
BY_MAPPINGS = {
    *(
        "kinesis:DescribeStream",
        "kinesis:DescribeStreamSummary",
        "kinesis:GetRecords",
        "kinesis:GetShardIterator",
    ),
    *("kinesis:ListShards", "kinesis:ListStreams", "kinesis:SubscribeToShard"),
    *("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"),
}
DATABASE = re.compile(r"(rediss?|valkeys?|postgres(ql)?|mysql)://")
WAREHOUSE = "redshift://"
PRIVATE_TYPES = ("AWS::ElastiCache::", "AWS::RDS::")


def network_faults(stacks: Stacks) -> Iterator[Fault]:
    """Find functions that cannot reach a service, a database, a cache or a warehouse that they are given."""
    for stack, name, properties in resources_of(stacks, "AWS::Lambda::Function") if on_aws(stacks) else ():
        actions = _actions(stack, properties)
        for reason in (*_warehouse(stack, properties, actions), *_reach(stack, properties, actions)):
            yield Fault(stack.path, name, reason)


def _actions(stack: Stack, properties: Mapping[str, Any]) -> set[str]:
    role = next((name for name, _ in references(properties.get("Role"))), "")
    policies = stack.resources.get(role, {"Properties": {}})["Properties"].get("Policies", [])
    statements = [one for each in policies for one in as_list(each["PolicyDocument"]["Statement"])]
    return {action for each in statements for action in as_list(each.get("Action", []))}


def _variables(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = properties.get("Environment", {}).get("Variables", {})
    return found


def _warehouse(stack: Stack, properties: Mapping[str, Any], actions: set[str]) -> Iterator[str]:
    for key, value in _variables(properties).items():
        if str(stack.flat(value)).startswith(WAREHOUSE) and "redshift-data:ExecuteStatement" not in actions:
            yield f"its {key} is a warehouse, but its role may not call redshift-data:ExecuteStatement"


def _reach(stack: Stack, properties: Mapping[str, Any], actions: set[str]) -> Iterator[str]:
    subnets = properties.get("VpcConfig", {}).get("SubnetIds", [])
    network = _network_of(stack, subnets)
    inside = [key for key, value in _variables(properties).items() if _is_private(stack, value)]
    if not subnets:
        yield from (f"its {key} is in a network, but it is in none" for key in inside)
    if network is None or any(each["Type"] == "AWS::EC2::NatGateway" for each in network.resources.values()):
        return
    for key, value in _variables(properties).items():
        if key not in inside and DATABASE.match(str(stack.flat(value))):
            yield f"its {key} is outside, but its network has no way out: the function needs subnets of yours"
    there = {_endpoint(network, each["Properties"]) for each in network.resources.values()}
    for service in sorted(
        {each.partition(":")[0] for each in actions - BY_MAPPINGS - BY_REDSHIFT_DATA} - NO_ENDPOINT_NEEDED
    ):
        endpoint = ENDPOINTS.get(service, service)
        if endpoint not in there:
            yield f"it may call {service}, but its network has no endpoint of {endpoint}"


def _network_of(stack: Stack, subnets: Any) -> Stack | None:
    """Return the stack that makes a function's subnets; None if no template of ours does."""
    for name, _ in references(subnets):
        if stack.types.get(name) == NESTED:
            return stack.nested.get(name)
        if stack.types.get(name) == "AWS::EC2::Subnet":
            return stack
    return None


def _is_private(stack: Stack, value: Any) -> bool:
    """Tell whether a value is the URL of a database or cache that a nested stack makes."""
    made_by = [stack.nested[name] for name, _ in references(value) if name in stack.nested]
    kinds = [each["Type"] for nested in made_by for each in nested.resources.values()]
    return bool(DATABASE.match(str(stack.flat(value)))) and any(
        kind.startswith(PRIVATE_TYPES) for kind in kinds
    )


def _endpoint(network: Stack, properties: Mapping[str, Any]) -> str:
    return str(network.flat(properties.get("ServiceName", ""))).rpartition(".")[2]


# Layers and the functions that import from them: one Python, one architecture, and that is what is built.


BUILD = "infra/layer/build"
ARCHITECTURES = {"aarch64": "arm64", "x86_64": "x86_64"}


def layers_built(script: str) -> dict[str, str]:
    """Return what a build script builds for unless somebody says otherwise: Runtime and Architectures."""
    python = re.search(r"\$\{LAYER_PYTHON:-(\d\.\d+)\}", script)
    platform = re.search(r"\$\{LAYER_PLATFORM:-(aarch64|x86_64)", script)
    return {
        **({"Runtime": f"python{python[1]}"} if python else {}),
        **({"Architectures": ARCHITECTURES[platform[1]]} if platform else {}),
    }


def layer_faults(stacks: Stacks, script: str = "") -> Iterator[Fault]:
    """Find layers that are not for what a function runs on. script: what builds the layers, if not ours."""
    always = layers_built(script or (ROOT / BUILD).read_text()) if on_aws(stacks) else {}
    for stack, name, properties in resources_of(stacks, "AWS::Lambda::Function"):
        runs_on = {
            "Runtime": properties.get("Runtime", ""),
            "Architectures": properties.get("Architectures", ["x86_64"])[0],
        }
        for layer, declared in _layers(stack, properties):
            known_as = re.sub("[0-9a-f]{10}$", "", layer)  # SAM adds a digest
            for each, value in runs_on.items():
                if value not in declared.get(f"Compatible{each.removesuffix('s')}s", [value]):
                    yield Fault(stack.path, name, f"it runs on {value}, but its layer {known_as} does not")
                if always.get(each, value) != value:
                    reason = f"functions run on {value}, but {BUILD} builds it for {always[each]}"
                    yield Fault(stack.path, known_as, reason)


def _layers(stack: Stack, properties: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for layer, _ in references(properties.get("Layers", [])):
        if layer in stack.resources:
            yield layer, stack.resources[layer]["Properties"]


# Queues that functions read. Lambda wants a message hidden for as long as the function may run.


SECONDS = 30  # of visibility, and 3 of a function's time, where nothing is said


def queue_faults(stacks: Stacks) -> Iterator[Fault]:
    """Find queues whose visibility timeout is shorter than the timeout of a function that reads them."""
    for stack, _, properties in _mappings(stacks):
        queue = referred_id(stack, properties.get("EventSourceArn"), "AWS::SQS::Queue")
        function = _function_of_queue(stack, properties.get("FunctionName"))
        if queue in stack.resources and function in stack.resources:
            hidden = int(stack.resources[queue]["Properties"].get("VisibilityTimeout", SECONDS))
            runs = int(stack.resources[function]["Properties"].get("Timeout", 3))
            if hidden < runs:
                reason = f"a message is hidden for {hidden} s, but {function} may run for {runs} s"
                yield Fault(stack.path, queue, reason)


def _mappings(stacks: Stacks) -> Iterator[tuple[Stack, str, Any]]:
    """Return the mappings on AWS. The emulator takes any timeout, and a laptop does not wait for minutes."""
    return iter(resources_of(stacks, "AWS::Lambda::EventSourceMapping") if on_aws(stacks) else ())


def _function_of_queue(stack: Stack, value: Any) -> str:
    """Return the logical id of a function that a value names, be it by an alias."""
    alias = referred_id(stack, value, "AWS::Lambda::Alias")
    named = stack.resources[alias]["Properties"]["FunctionName"] if alias in stack.resources else value
    return referred_id(stack, named, "AWS::Lambda::Function")


# Reserved concurrency. A new account may have 10 executions, a usual one 1,000, of which 100 stay free.


PROPERTY = "ReservedConcurrentExecutions"
RESERVED_MAX = 900


def reserved_faults(stacks: Stacks) -> Iterator[Fault]:
    """Find reservations. They are for those who ask for them, so only the defaults are looked at."""
    reserved = _reservations(stacks)
    if sum(reserved.values()):
        where = f"{len(reserved)} functions reserve {sum(reserved.values())} concurrent executions"
        yield Fault("/", ", ".join(reserved), f"{where}; a new account may have 10, so nothing can be made")


def quota_faults(stacks: Stacks) -> Iterator[Fault]:
    """Find reservations that sum up to more than an account with the usual quota can reserve."""
    reserved = _reservations(stacks)
    if (total := sum(reserved.values())) > RESERVED_MAX:
        where = f"{len(reserved)} functions reserve {total} concurrent executions"
        yield Fault(
            "/", ", ".join(reserved), f"{where}; an account with the usual quota may reserve {RESERVED_MAX}"
        )


def _reservations(stacks: Stacks) -> dict[str, int]:
    return {
        name: int(properties[PROPERTY])
        for _, name, properties in resources_of(stacks, "AWS::Lambda::Function")
        if PROPERTY in properties
    }
