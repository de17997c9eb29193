"""AWS clients: botocore's own, without the resource layer, made once per process."""

import base64
import random
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.serialize import JSONSerializer

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


class _WireFormat(JSONSerializer):
    """Writes requests to DynamoDB. Our code gives their items in wire format already (items.py).

    botocore walks through each attribute's value by the service model. That is most of the cost of a call
    with many items, and only bytes are changed by it. botocore writes the rest of the request as usual.
    """

    def _serialize_type_map(self, serialized: Any, value: Any, shape: Any, key: Any) -> None:
        if shape.value.name != "AttributeValue":
            super()._serialize_type_map(serialized, value, shape, key)  # type: ignore[misc]
            return
        serialized[key] = {
            name: typed if "S" in typed or "N" in typed else _as_text(typed) for name, typed in value.items()
        }

    def _serialize_type_list(self, serialized: Any, value: Any, shape: Any, key: Any) -> None:
        if shape.member.name != "AttributeValue":
            super()._serialize_type_list(serialized, value, shape, key)  # type: ignore[misc]
            return
        serialized[key] = list(map(_as_text, value))


def _as_text(value: dict[str, Any]) -> dict[str, Any]:
    """Return an attribute's value with its bytes as text, at any depth."""
    ((type_name, inner),) = value.items()
    if type_name == "B":
        return {type_name: base64.b64encode(inner).decode()}
    if type_name == "BS":
        return {type_name: [base64.b64encode(data).decode() for data in inner]}
    if type_name == "L":
        return {type_name: list(map(_as_text, inner))}
    if type_name == "M":
        return {type_name: {name: _as_text(typed) for name, typed in inner.items()}}
    return value


class _OneEndpoint:
    """Evaluates botocore's rules for the endpoint of DynamoDB once, and not for each request.

    The endpoint depends on region and settings alone, because endpoints of accounts are disabled
    (`free_client`). For each evaluation botocore looks through all items of the request for names of tables.
    """

    def __init__(self, rules: Any) -> None:
        self._rules, self._endpoint = rules, None
        self.auth_schemes_to_signing_ctx = rules.auth_schemes_to_signing_ctx

    def construct_endpoint(self, **request: Any) -> Any:
        """Return URL, headers and properties of all requests' endpoint."""
        if self._endpoint is None:
            self._endpoint = self._rules.construct_endpoint(**request)
        return self._endpoint


@cache
def client(service: str, attempts: int = 6, answer_seconds: int = 5) -> Any:
    """Return the process's client of a service; endpoint and credentials come from the environment.

    attempts: 1 for calls that must not be made twice. answer_seconds: how long to wait for an answer.
    A function puts its client of DynamoDB behind a fence (adapters.platform.fence).
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
    new_client: Any = _session().create_client(service, region_name=region, config=config)
    if service == "dynamodb":
        # test_wire_format.py and test_endpoints.py compare both with botocore's own.
        new_client._serializer = _WireFormat()  # noqa: SLF001 (see above)
        new_client._ruleset_resolver = _OneEndpoint(new_client._ruleset_resolver)  # noqa: SLF001 (see above)
    return new_client


def pauses(attempts: int, base_seconds: float = 0.02, longest_seconds: float = 1.0) -> Iterator[int]:
    """Yield attempt numbers, sleeping between them: exponential, with full jitter."""
    for attempt in range(attempts):
        if attempt:
            time.sleep(random.uniform(0, min(longest_seconds, base_seconds * 2 ** min(attempt, 32))))  # noqa: S311 (no secret)
        yield attempt
