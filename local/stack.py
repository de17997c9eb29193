"""A deployed stack, for the command line and the tests: the laptop's, or one on AWS, found by its name.

It also turns the errors of AWS into sentences that say what to do.
"""

import json
import os
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import boto3
from botocore import exceptions
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from adapters.platform.fence import Fence, RegisterStore, guard_client
from adapters.settings.choices import settings_of
from local.paths import STACK
from rules.regions.register import may_write

REGION = "us-east-1"
# The emulator's root credentials. They are valid nowhere else.
KEY = SECRET = "test"
# A client waits for an answer as long as a function may run.
LAPTOP_SECONDS_MAX, AWS_SECONDS_MAX = 130, 910
TABLE = "Table"
REGISTER = "RegisterTableName"  # an output, in a deployment of two regions
UNKNOWN_STACK = "ValidationError"  # CloudFormation's code for a stack that is not there
AwsError = (BotoCoreError, ClientError)
CREDENTIALS = "set AWS_PROFILE or AWS_ACCESS_KEY_ID, or sign in with `aws sso login`"
ERROR_TEXTS: tuple[tuple[tuple[type[BotoCoreError], ...], str], ...] = (
    (
        (exceptions.NoCredentialsError, exceptions.PartialCredentialsError),
        f"there are no credentials of AWS: {CREDENTIALS}",
    ),
    ((exceptions.NoRegionError,), "no region is known: say --region, or set AWS_REGION"),
    ((exceptions.ProfileNotFound,), f"the profile is not there: {CREDENTIALS}"),
    (
        (
            exceptions.SSOError,
            exceptions.TokenRetrievalError,
            exceptions.CredentialRetrievalError,
        ),
        f"the credentials cannot be had: {CREDENTIALS}",
    ),
    (
        (exceptions.EndpointConnectionError, exceptions.ConnectTimeoutError, exceptions.InvalidRegionError),
        "AWS cannot be reached: is the region's name right (--region), and the network there?",
    ),
)
LOOPBACK = "127.0.0.1"  # stands in errors of the laptop cloud
REFUSED_CREDENTIALS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


@dataclass(frozen=True, slots=True)
class Stack:
    """A deployed stack. The laptop's is stored in .local/stack.json."""

    api_url: str
    endpoint_url: str  # the emulator's; "" on AWS, where botocore finds endpoint and credentials
    region: str
    outputs: dict[str, str]
    tables: dict[str, str]  # logical id -> name
    redis_url: str  # the laptop's; "" on AWS
    name: str = "streakline"
    parameters: dict[str, str] = field(default_factory=dict)  # on AWS; `****` where the template hides them

    @property
    def is_laptop(self) -> bool:
        """Whether this is the laptop cloud."""
        return bool(self.endpoint_url)

    @property
    def settings(self) -> dict[str, str]:
        """Each setting's value by its name: as the parameter Settings has it, else its default."""
        return settings_of(self.parameters.get("Settings", ""))

    @property
    def campaign_grace_days(self) -> int:
        """The number of dates after which an unanswered campaign counts as ignored."""
        return int(self.settings["CampaignGraceDays"])

    def save(self) -> None:
        """Write .local/stack.json."""
        STACK.write_text(json.dumps(asdict(self), indent=2) + "\n")

    def client(self, service: str, attempts: int = 4) -> Any:
        """Return a client of the emulator or of AWS; the same one for the same arguments.

        In a deployment of two regions a client of DynamoDB writes only while its region is the writer (rule
        23), and raises RegionFenced otherwise. attempts: how often a call is tried.
        """
        if service == "dynamodb" and REGISTER in self.outputs:
            return _fenced_client(self.endpoint_url, self.region, attempts, self.outputs[REGISTER])
        return self.free_client(service, attempts)

    def free_client(self, service: str, attempts: int = 4) -> Any:
        """Return a client that no fence stops: for whoever promotes a region, or lets it return."""
        return _client(self.endpoint_url, self.region, service, attempts)

    def output(self, name: str, what: str) -> str:
        """Return an output; raises RuntimeError if there is none: the stack was deployed without `what`."""
        if name not in self.outputs:
            raise RuntimeError(f"the stack {self.name} has no {what}: its outputs lack {name}")
        return self.outputs[name]


@cache
def _fenced_client(endpoint_url: str, region: str, attempts: int, register: str) -> Any:
    registers = RegisterStore(_client(endpoint_url, region, "dynamodb", attempts), register)
    client = fresh_client(endpoint_url, region, "dynamodb", attempts)
    return guard_client(client, Fence(registers.read, region), may_write)


@cache
def _client(endpoint_url: str, region: str, service: str, attempts: int) -> Any:
    return fresh_client(endpoint_url, region, service, attempts)


def fresh_client(endpoint_url: str, region: str, service: str, attempts: int = 4) -> Any:
    """Return a client that nobody else has. endpoint_url: "" for AWS."""
    config = Config(
        read_timeout=LAPTOP_SECONDS_MAX if endpoint_url else AWS_SECONDS_MAX,
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=80,
    )
    emulator = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "endpoint_url": endpoint_url}
    return boto3.client(  # type: ignore[call-overload]  # the service is a parameter
        service, region_name=region or None, config=config, **(emulator if endpoint_url else {})
    )


def tables_in(outputs: dict[str, str]) -> dict[str, str]:
    """Return the tables that a stack's outputs name, by logical id."""
    return {name.removesuffix(TABLE): value for name, value in outputs.items() if name.endswith(TABLE)}


def load() -> Stack:
    """Return the running laptop cloud.

    If there is none, or its file is damaged or another version's, raises SystemExit with what to do.
    """
    if not STACK.exists():
        raise SystemExit(
            "no laptop cloud is up: run `streakline up` first, or name a stack on AWS: --stack-name"
        )
    try:
        return Stack(**json.loads(STACK.read_text()))
    except (TypeError, ValueError) as error:
        raise SystemExit(f"{STACK} cannot be read ({error}): `streakline up` writes it anew") from None


def find(name: str, region: str | None = None) -> Stack:
    """Return a deployed stack on AWS.

    Credentials and region come from where botocore always takes them; AWS_REGION counts too, as in other
    tools. Raises RuntimeError if there is no such stack or if it is not of this template, and AwsError.
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
    """Return a stack as CloudFormation describes it. Raises RuntimeError if it has no API."""
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
    api_url = outputs["ApiUrl"].rstrip("/")
    return Stack(api_url, "", region, outputs, tables_in(outputs), "", name, parameters)


def sentence(error: Exception) -> str:
    """Return what went wrong, and what to do about it if that is known."""
    if isinstance(error, ClientError):
        return _client_error(error)
    if LOOPBACK in str(error) or isinstance(error, HTTPError):
        where = "laptop cloud" if LOOPBACK in str(error) else "service"
        return f"the {where} does not answer: `streakline status` says why ({_cause(error)})"
    for kinds, text in ERROR_TEXTS:
        if isinstance(error, kinds):
            return f"{text} ({error})"
    return f"{error}" or type(error).__name__


def _cause(error: Exception) -> str:
    """Return an error's last part: urllib3 puts the connection before it, as `<...>: `."""
    return str(error).rpartition(">: ")[2] or type(error).__name__


def _client_error(error: ClientError) -> str:
    reason = error.response.get("Error", {})
    code, message = reason.get("Code", "unknown"), reason.get("Message", "")
    if code in REFUSED_CREDENTIALS:
        return f"AWS does not accept these credentials ({code}): {CREDENTIALS}"
    if code.startswith("AccessDenied") or code == "UnauthorizedOperation":
        return f"these credentials may not do {error.operation_name}: {message}"
    return f"{error.operation_name}: {code}: {message}"
