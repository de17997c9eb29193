"""AWS clients: botocore's own, without the resource layer, made once per process."""

import random
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

THROTTLES = frozenset(
    {
        "InternalServerError",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingError",
        "ThrottlingException",
        "TransactionConflict",
    }
)
# All errors of a call to AWS. Most may pass: the network, a throttle, a service that is down.
Unavailable = (BotoCoreError, ClientError)


def is_away(error: Exception) -> bool:
    """Return whether an error says that a service is away or busy, so that no request is at fault."""
    if not isinstance(error, ClientError):
        return isinstance(error, BotoCoreError)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return error.response["Error"]["Code"] in THROTTLES or status >= 500


@cache
def _session() -> botocore.session.Session:
    return botocore.session.get_session()


@cache
def client(service: str, attempts: int = 6, answer_seconds: int = 5) -> Any:
    """Return the process's client of a service; endpoint and credentials come from the environment.

    attempts: 1 for calls that must not be made twice. answer_seconds: how long to wait for an answer.
    A function gets its clients from adapters.bootstrap, which puts that of DynamoDB behind a fence.
    """
    return free_client(service, attempts, answer_seconds)


def free_client(service: str, attempts: int = 6, answer_seconds: int = 5, region: str | None = None) -> Any:
    """Return a new client, which nobody else has. region: None: the one that the process is in.

    The client does not check requests against the service model. Our code makes them, not users, and the
    check costs a third of a call's CPU.
    """
    config = Config(
        connect_timeout=2,
        read_timeout=answer_seconds,
        retries={"mode": "standard", "total_max_attempts": attempts},
        parameter_validation=False,
        inject_host_prefix=False,
        disable_request_compression=True,
        account_id_endpoint_mode="disabled",
        user_agent="streakline",  # botocore's own is put together anew for every request
        max_pool_connections=16,
    )
    return _session().create_client(service, region_name=region, config=config)


def pauses(attempts: int, base_seconds: float = 0.02, longest_seconds: float = 1.0) -> Iterator[int]:
    """Yield attempt numbers, sleeping between them: exponential, with full jitter."""
    for attempt in range(attempts):
        if attempt:
            time.sleep(random.uniform(0, min(longest_seconds, base_seconds * 2 ** min(attempt, 32))))  # noqa: S311 (no secret)
        yield attempt
