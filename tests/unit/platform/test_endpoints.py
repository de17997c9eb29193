"""A request to DynamoDB goes where botocore's own would, and is signed for the same place."""

from typing import Any

import botocore.session
import pytest
from botocore.awsrequest import AWSPreparedRequest

from adapters.platform.aws import client

REGIONS = ("us-east-1", "eu-central-1", "ap-southeast-7", "cn-north-1", "us-gov-west-1", "zz-nowhere-1")
VARIANTS: tuple[dict[str, str], ...] = (
    {},
    {"AWS_USE_FIPS_ENDPOINT": "true"},
    {"AWS_USE_DUALSTACK_ENDPOINT": "true"},
    {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"},
    {"AWS_ENDPOINT_URL_DYNAMODB": "https://vpce-1.dynamodb.us-east-1.vpce.amazonaws.com"},
)


class _SeenError(Exception):
    pass


def _sent(dynamodb: Any) -> tuple[str, str]:
    """Return the URL that a request goes to, and for which place it is signed."""
    seen: list[AWSPreparedRequest] = []

    def stop(request: AWSPreparedRequest, **_: Any) -> None:
        seen.append(request)
        raise _SeenError

    dynamodb.meta.events.register_first("before-send.dynamodb", stop)
    key = {"user_id": {"S": "u"}}
    with pytest.raises(_SeenError):
        dynamodb.batch_get_item(RequestItems={"UserStreaks": {"Keys": [key]}})
    dynamodb.meta.events.unregister("before-send.dynamodb", stop)
    signed = str(seen[0].headers["Authorization"])
    scope = signed.partition("Credential=")[2].partition(",")[0].split("/")[2:]
    return seen[0].url, "/".join(scope)


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("variant", VARIANTS, ids=["plain", "fips", "dualstack", "endpoint", "own endpoint"])
def test_a_request_goes_where_botocores_own_goes(
    monkeypatch: pytest.MonkeyPatch, region: str, variant: dict[str, str]
) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": region,
        **variant,
    }.items():
        monkeypatch.setenv(name, value)
    client.cache_clear()
    own: Any = botocore.session.get_session().create_client("dynamodb")
    try:
        ours = client("dynamodb")
        assert type(ours._ruleset_resolver) is not type(own._ruleset_resolver)
        assert _sent(ours) == _sent(own) == _sent(ours)
    finally:
        client.cache_clear()
