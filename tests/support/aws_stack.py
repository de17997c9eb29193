"""A stack on AWS as the command line finds it: CloudFormation answers from here, everything else is moto's."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local import stack


class CloudFormation:
    """Knows one stack."""

    def __init__(self, name: str, region: str, described: dict[str, Any]) -> None:
        self.name, self.described = name, described
        self.meta = type("Meta", (), {"region_name": region})

    def describe_stacks(self, StackName: str) -> Any:  # noqa: N803
        if StackName != self.name:
            error: Any = {"Code": "ValidationError", "Message": f"Stack with id {StackName} does not exist"}
            raise ClientError({"Error": error}, "DescribeStacks")
        return {"Stacks": [self.described]}


def token_of(user: str) -> str:
    """A token as far as anybody here reads one."""
    claims = base64.urlsafe_b64encode(json.dumps({"sub": user}).encode()).decode().rstrip("=")
    return f"x.{claims}.x"


def described(outputs: dict[str, str], **parameters: str) -> dict[str, Any]:
    """A stack as CloudFormation describes it."""
    return {
        "StackStatus": "UPDATE_COMPLETE",
        "Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()],
        "Parameters": [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
    }


@contextmanager
def known(monkeypatch: pytest.MonkeyPatch, name: str, found: dict[str, Any]) -> Iterator[None]:
    """There is this stack, in eu-west-1. Clients of an earlier test are forgotten."""
    others = stack.fresh_client

    def fresh_client(endpoint_url: str, region: str, service: str, *more: int) -> Any:
        if service == "cloudformation":
            return CloudFormation(name, region or "eu-west-1", found)
        return others(endpoint_url, region, service, *more)

    monkeypatch.setattr(stack, "fresh_client", fresh_client)
    stack._cached_client.cache_clear()
    yield
    stack._cached_client.cache_clear()
