"""A deployed stack, for the command line and the tests: the laptop's, or one on AWS, found by its name.

Also the errors of AWS, as sentences that say what to do.
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
UNKNOWN = "ValidationError"  # what CloudFormation answers for a stack that is not there


@dataclass(frozen=True, slots=True)
class Stack:
    """What .local/stack.json holds. tables: logical id -> name.

    endpoint_url: the emulator's; "" on AWS, where clients find endpoint and credentials as botocore does.
    parameters: of a stack on AWS, by name; those that the template hides are `****`.
    """

    api_url: str
    endpoint_url: str
    region: str
    outputs: dict[str, str]
    tables: dict[str, str]
    redis_url: str
    name: str = "streakline"
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def is_laptop(self) -> bool:
        """Whether this is the laptop cloud."""
        return bool(self.endpoint_url)

    @property
    def settings(self) -> dict[str, str]:
        """The value of each setting by its name: of the parameter Settings, else its default."""
        return settings_of(self.parameters.get("Settings", ""))

    @property
    def campaign_grace_days(self) -> int:
        """After so many dates an unanswered campaign is ignored."""
        return int(self.settings["CampaignGraceDays"])

    def save(self) -> None:
        """Write .local/stack.json."""
        STACK.write_text(json.dumps(asdict(self), indent=2) + "\n")

    def client(self, service: str, attempts: int = 4) -> Any:
        """Return a client of the emulator or of AWS; the same one for the same arguments.

        In a deployment of two regions it writes to DynamoDB only while its region is the writer (rule 23):
        raises RegionFenced.
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
    made = fresh_client(endpoint_url, region, "dynamodb", attempts)
    return guard_client(made, Fence(registers.read, region), may_write)


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
    ours = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "endpoint_url": endpoint_url}
    return boto3.client(  # type: ignore[call-overload]  # the service is a parameter
        service, region_name=region or None, config=config, **(ours if endpoint_url else {})
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


AwsError = (BotoCoreError, ClientError)
CREDENTIALS = "set AWS_PROFILE or AWS_ACCESS_KEY_ID, or sign in with `aws sso login`"
KINDS: tuple[tuple[tuple[type[BotoCoreError], ...], str], ...] = (
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
LOOPBACK = "127.0.0.1"  # in the error of whoever asks the laptop cloud
REFUSED = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


def sentence(error: Exception) -> str:
    """Return what went wrong, and what to do about it if that is known."""
    if isinstance(error, ClientError):
        return _answered(error)
    if LOOPBACK in str(error) or isinstance(error, HTTPError):
        where = "laptop cloud" if LOOPBACK in str(error) else "service"
        return f"the {where} does not answer: `streakline status` says why ({_cause(error)})"
    for kinds, text in KINDS:
        if isinstance(error, kinds):
            return f"{text} ({error})"
    return f"{error}" or type(error).__name__


def _cause(error: Exception) -> str:
    """Return an error in a line, without the object that it happened to."""
    return str(error).rpartition(">: ")[2] or type(error).__name__


def _answered(error: ClientError) -> str:
    reason = error.response.get("Error", {})
    code, message = reason.get("Code", "unknown"), reason.get("Message", "")
    if code in REFUSED:
        return f"AWS does not accept these credentials ({code}): {CREDENTIALS}"
    if code.startswith("AccessDenied") or code == "UnauthorizedOperation":
        return f"these credentials may not do {error.operation_name}: {message}"
    return f"{error.operation_name}: {code}: {message}"
