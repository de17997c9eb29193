"""A deployed stack, for the command line and the tests: the laptop's, or one on AWS, found by its name."""

import json
import os
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from adapters.platform.fence import Fence, RegisterStore, guard_client
from adapters.settings.choices import ModelSettings, model_settings, settings_of
from local.paths import STACK, folder_id, refuse_other_checkout
from rules.parts import Part, parts_of
from rules.regions.register import may_write

REGION = "us-east-1"
# The emulator's root credentials. They are valid nowhere else.
EMULATOR_KEY = EMULATOR_SECRET = "test"
# A client waits for an answer as long as a function may run.
LAPTOP_SECONDS_MAX, AWS_SECONDS_MAX = 130, 910
TABLE_SUFFIX = "Table"  # of the outputs that name tables
REGISTER = "RegisterTableName"  # an output that only a deployment of two regions has
UNKNOWN_STACK = "ValidationError"  # CloudFormation's code for a stack that is not there


@dataclass(frozen=True, slots=True)
class Stack:
    """A deployed stack. The laptop's is stored in .local/stack.json."""

    api_url: str
    endpoint_url: str  # the emulator's; "" on AWS, where botocore finds endpoint and credentials
    region: str
    outputs: dict[str, str]
    tables: dict[str, str]  # names by logical id
    redis_url: str  # the laptop's; "" on AWS
    name: str = "streakline"
    # On AWS all of them, `****` where the template hides one; of a laptop those that `up` was given
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def is_laptop(self) -> bool:
        """Whether this is the laptop cloud."""
        return bool(self.endpoint_url)

    @property
    def parts(self) -> frozenset[Part]:
        """The parts that are deployed, of those that may be left out."""
        return parts_of(self.parameters)

    @property
    def settings(self) -> dict[str, str]:
        """Each setting's value by its name: as the parameter Settings has it, else its default."""
        return settings_of(self.parameters.get("Settings", ""))

    @property
    def model_settings(self) -> ModelSettings:
        """The settings that SELECTs of models name."""
        return model_settings(self.settings)

    def save(self) -> None:
        """Write .local/stack.json."""
        STACK.write_text(json.dumps(asdict(self) | {"folder": folder_id(STACK.parent)}, indent=2) + "\n")

    def client(self, service: str, attempts: int = 4) -> Any:
        """Return a client of the emulator or of AWS; the same one for the same arguments.

        attempts: how often a call is tried. In a deployment of two regions a client of DynamoDB has a fence:
        it writes only while its region is the writer (rule 23), and raises RegionFenced otherwise.
        """
        if service == "dynamodb" and REGISTER in self.outputs:
            return _cached_fenced_client(self.endpoint_url, self.region, attempts, self.outputs[REGISTER])
        return self.free_client(service, attempts)

    def free_client(self, service: str, attempts: int = 4) -> Any:
        """Return a client without a fence: to promote a region, or to let it return."""
        return _cached_client(self.endpoint_url, self.region, service, attempts)

    def output(self, name: str, part: str) -> str:
        """Return an output. part: the part of a deployment that has it, for the error.

        Raises RuntimeError if the stack was deployed without that part.
        """
        if name not in self.outputs:
            raise RuntimeError(f"the stack {self.name} has no {part}: its outputs lack {name}")
        return self.outputs[name]


@cache
def _cached_fenced_client(endpoint_url: str, region: str, attempts: int, register: str) -> Any:
    registers = RegisterStore(_cached_client(endpoint_url, region, "dynamodb", attempts), register)
    client = fresh_client(endpoint_url, region, "dynamodb", attempts)
    return guard_client(client, Fence(registers.read, region), may_write)


@cache
def _cached_client(endpoint_url: str, region: str, service: str, attempts: int) -> Any:
    return fresh_client(endpoint_url, region, service, attempts)


def fresh_client(endpoint_url: str, region: str, service: str, attempts: int = 4) -> Any:
    """Return a client that is not cached. endpoint_url: "" for AWS."""
    config = Config(
        read_timeout=LAPTOP_SECONDS_MAX if endpoint_url else AWS_SECONDS_MAX,
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=80,
    )
    emulator = {
        "aws_access_key_id": EMULATOR_KEY,
        "aws_secret_access_key": EMULATOR_SECRET,
        "endpoint_url": endpoint_url,
    }
    return boto3.client(  # type: ignore[call-overload]  # the service is a parameter
        service, region_name=region or None, config=config, **(emulator if endpoint_url else {})
    )


def tables_in(outputs: dict[str, str]) -> dict[str, str]:
    """Return the tables that a stack's outputs name, by logical id."""
    return {
        name.removesuffix(TABLE_SUFFIX): value
        for name, value in outputs.items()
        if name.endswith(TABLE_SUFFIX)
    }


def load() -> Stack:
    """Return the running laptop cloud.

    If there is none, or its file is damaged, another version's or a copy, raises SystemExit with what to do.
    """
    refuse_other_checkout()
    if not STACK.exists():
        raise SystemExit(
            "no laptop cloud is up: run `streakline up` first, or name a stack on AWS: --stack-name"
        )
    try:
        described = json.loads(STACK.read_text())
        folder = described.pop("folder", []) if isinstance(described, dict) else []
        stack = Stack(**described)
    except (TypeError, ValueError) as error:
        raise SystemExit(f"{STACK} cannot be read ({error}): `streakline up` writes it anew") from None
    if folder not in ([], folder_id(STACK.parent)):
        raise SystemExit(
            f"{STACK.parent} is a copy of another folder, whose laptop cloud is not this one's: "
            "`streakline up` starts one here"
        )
    return stack


def find(name: str, region: str | None = None) -> Stack:
    """Return a deployed stack on AWS.

    Credentials and region come from where botocore always takes them; AWS_REGION counts too, as in other
    tools. Raises RuntimeError if there is no such stack or if it is not of this template, and AWS_ERRORS.
    """
    client = fresh_client("", region or os.environ.get("AWS_REGION", ""), "cloudformation")
    region_name: str = client.meta.region_name
    try:
        description = client.describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        if error.response["Error"]["Code"] != UNKNOWN_STACK:
            raise
        raise RuntimeError(
            f"there is no stack {name} in {region_name}, in the account of these credentials: "
            "is --stack-name right, --region, AWS_PROFILE?"
        ) from None
    return _stack(description, name, region_name)


def _stack(description: dict[str, Any], name: str, region: str) -> Stack:
    outputs = {output["OutputKey"]: output["OutputValue"] for output in description.get("Outputs", ())}
    if "ApiUrl" not in outputs:
        raise RuntimeError(
            f"the stack {name} in {region} is {description['StackStatus']} and has no output ApiUrl: "
            "it is not deployed completely, or is no stack of this template"
        )
    parameters = {
        parameter["ParameterKey"]: parameter.get("ParameterValue", "")
        for parameter in description.get("Parameters", ())
    }
    return Stack(
        api_url=outputs["ApiUrl"].rstrip("/"),
        endpoint_url="",
        region=region,
        outputs=outputs,
        tables=tables_in(outputs),
        redis_url="",
        name=name,
        parameters=parameters,
    )
