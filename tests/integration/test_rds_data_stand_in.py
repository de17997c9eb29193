"""The stand-in for the Data API is as strict as Aurora: what it lets through would work there."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from adapters.platform.aws import client
from adapters.postgresql.postgres import database
from tests.support.identity_server import Registry
from tests.support.rds_data_api import APP_SECRET, CLUSTER, RdsDataApi

pytestmark = [
    pytest.mark.xdist_group("identity"),
    pytest.mark.parametrize("registry", ["data_api"], indirect=True),
]


@pytest.mark.parametrize(
    "request_",
    [
        {"sql": "SELECT 1; SELECT 2"},
        {"sql": "SELECT identity.unmerge(1, :p0, now())", "parameters": [{"name": "p0", "value": {"stringValue": "{}"}}]},
        {"sql": "SELECT identity.apply('a', '{}', '{}', '{}', '{}', '{}', '{}', :p0)", "parameters": [{"name": "p0", "value": {"stringValue": "2026-03-10"}}]},
        {"sql": "SELECT ':p0'"},
        {"sql": "SELECT :p0::text", "parameters": [{"name": "p1", "value": {"stringValue": "a"}}]},
        {"sql": "SELECT :p0::text[]", "parameters": [{"name": "p0", "value": {"arrayValue": {"stringValues": ["a"]}}}]},
        {"sql": "SELECT identity.announced('{1}')"},
        {"sql": "SET statement_timeout = 0"},
        {"sql": "SELECT repeat('a', 70000)"},
        {"sql": "SELECT 1", "transactionId": "none"},
        {"sql": 1},
    ],
)  # fmt: skip
def test_the_stand_in_refuses_what_aurora_would(
    registry: Registry, data_api: RdsDataApi, request_: dict[str, Any]
) -> None:
    api = client("rds-data", 1)
    names = {"resourceArn": CLUSTER, "secretArn": APP_SECRET, "database": registry.database}
    with pytest.raises(ClientError):
        api.execute_statement(**names, **request_)
    assert database(registry.url).run(lambda each: each.execute("SELECT 1").fetchone()) == (1,)
