"""Whether a store is away for everybody, or a statement failed that may be one message's fault."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from adapters.platform.aws import is_away
from adapters.postgresql.rds_data import error_meaning
from adapters.postgresql.sql import PostgresUnavailable


@pytest.mark.parametrize("state", ["", "08006", "28P01", "53300", "57P01", "58030"])
def test_postgresql_is_away(state: str) -> None:
    assert PostgresUnavailable("x", state).is_away


@pytest.mark.parametrize("state", ["57014", "55P03", "40001", "40P01", "25P03"])
def test_a_statement_that_took_too_long_or_lost_a_race_is_nobody_s_absence(state: str) -> None:
    assert not PostgresUnavailable("x", state).is_away


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        ("DatabaseUnavailableException", "not now", True),
        ("StatementTimeoutException", "too long", False),
        ("DatabaseErrorException", "ERROR: canceling statement; SQLState: 57014", False),
        ("DatabaseErrorException", "FATAL: the database system is shutting down; SQLState: 57P01", True),
    ],
)
def test_the_data_api_tells_the_same(code: str, message: str, expected: bool) -> None:
    error = error_meaning(ClientError({"Error": {"Code": code, "Message": message}}, "ExecuteStatement"))
    assert isinstance(error, PostgresUnavailable)
    assert error.is_away is expected


def answered(code: str, status: int) -> ClientError:
    told: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(told, "PutItem")


def test_aws_is_away_or_refuses() -> None:
    assert is_away(EndpointConnectionError(endpoint_url="https://x"))
    assert is_away(answered("ThrottlingException", 400))
    assert is_away(answered("Whatever", 503))
    assert not is_away(answered("ValidationException", 400))
    assert not is_away(answered("AccessDeniedException", 400))
    assert not is_away(KeyError("bug"))
