"""Finds a stack on AWS by its name. What commands need of it is in its outputs."""

import os
from typing import Any

from botocore.exceptions import ClientError

from local.stack import Stack, fresh_client, tables_in

UNKNOWN = "ValidationError"  # what CloudFormation answers for a stack that is not there


def find(name: str, region: str | None = None) -> Stack:
    """Return a deployed stack.

    Credentials and region come from where botocore always takes them; AWS_REGION counts too, as in other
    tools. Raises RuntimeError if there is no such stack or if it is none of this template, and what botocore
    raises.
    """
    client = fresh_client("", region or os.environ.get("AWS_REGION", ""), "cloudformation")
    where: str = client.meta.region_name
    try:
        described = client.describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        if error.response["Error"]["Code"] != UNKNOWN:
            raise
        raise RuntimeError(
            f"there is no stack {name} in {where}, in the account of these credentials: "
            "is --stack-name right, --region, AWS_PROFILE?"
        ) from None
    return _stack(described, name, where)


def _stack(described: dict[str, Any], name: str, region: str) -> Stack:
    outputs = {each["OutputKey"]: each["OutputValue"] for each in described.get("Outputs", ())}
    if "ApiUrl" not in outputs:
        raise RuntimeError(
            f"the stack {name} in {region} is {described['StackStatus']} and has no output ApiUrl: "
            "it is not deployed completely, or is no stack of this template"
        )
    parameters = {
        each["ParameterKey"]: each.get("ParameterValue", "") for each in described.get("Parameters", ())
    }
    api_url = outputs["ApiUrl"].rstrip("/")
    return Stack(api_url, "", region, outputs, tables_in(outputs), "", name, parameters)
