"""Changes a stack's parameter Role: so consumers and schedules are on in the region that writes, and off in
the other.
"""

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from local.stack import Stack

NOTHING = "No updates are to be performed"
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]


def change_role(stack: Stack, role: str, say: Callable[[str], None]) -> bool:
    """Update a stack with another Role, its template and all else as they are; returns whether it had
    another.

    Waits for the end. Raises what CloudFormation raises.
    """
    if stack.parameters.get("Role") == role:
        return False
    client = stack.client("cloudformation")
    say(f"{stack.name} in {stack.region}: Role={role}; an update of the stack takes some minutes")
    try:
        client.update_stack(**update_of(stack, role))
    except ClientError as error:
        if NOTHING in str(error):
            return False
        raise
    client.get_waiter("stack_update_complete").wait(StackName=stack.name)
    return True


def update_of(stack: Stack, role: str) -> dict[str, Any]:
    """Return the request: every parameter but Role keeps its value."""
    return {
        "StackName": stack.name,
        "UsePreviousTemplate": True,
        "Capabilities": CAPABILITIES,
        "Parameters": [
            {"ParameterKey": "Role", "ParameterValue": role},
            *(
                {"ParameterKey": each, "UsePreviousValue": True}
                for each in sorted(stack.parameters)
                if each != "Role"
            ),
        ],
    }
