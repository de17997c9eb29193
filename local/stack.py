"""The deployed stack, for the command line and the tests."""

import json
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import boto3
from botocore.config import Config

from local.paths import STACK

REGION = "us-east-1"
# The emulator's root credentials. They are valid nowhere else.
KEY = SECRET = "test"


@dataclass(frozen=True, slots=True)
class Stack:
    """What .local/stack.json holds. tables: logical id -> name."""

    api_url: str
    endpoint_url: str
    region: str
    outputs: dict[str, str]
    tables: dict[str, str]
    redis_url: str

    def save(self) -> None:
        """Write .local/stack.json."""
        STACK.write_text(json.dumps(asdict(self), indent=2) + "\n")

    def client(self, service: str, attempts: int = 4) -> Any:
        """Return a client of the emulator. It waits for an answer as long as a function may run."""
        return _client(self.endpoint_url, service, attempts)


@cache
def _client(endpoint_url: str, service: str, attempts: int) -> Any:
    config = Config(
        read_timeout=130,
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=80,
    )
    return boto3.client(  # type: ignore[call-overload]  # the service is a parameter
        service,
        endpoint_url=endpoint_url,
        region_name=REGION,
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        config=config,
    )


def load() -> Stack:
    """Return the running stack. If there is none, raises SystemExit with what to do."""
    if not STACK.exists():
        raise SystemExit("no laptop cloud is up: run `streakline up` first")
    return Stack(**json.loads(STACK.read_text()))
