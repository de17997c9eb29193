"""What an error of the Data API means, by its code and by the SQLSTATE at the end of its text."""

import pytest
from botocore.exceptions import ClientError

from adapters.postgresql.rds_data import LostConnection, error_meaning
from adapters.postgresql.sql import PostgresRefused, PostgresUnavailable


def error(code: str, message: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "ExecuteStatement")


@pytest.mark.parametrize(
    "message",
    [
        "ERROR: change 5 is no merge; SQLState: P0002",
        "ERROR: change 5 is no merge\n  Where: PL/pgSQL function unmerge(bigint) line 3 at RAISE; SQLState: P0002",
        "ERROR: change 5 is no merge\n  Position: 16; SQLState: P0002",
        "ERROR: change 5 is no merge; Position: 16; SQLState: P0002",
        "change 5 is no merge; SQLState: P0002",
    ],
)
@pytest.mark.parametrize("code", ["DatabaseErrorException", "BadRequestException"])
def test_a_refusal_says_why_and_nothing_more(code: str, message: str) -> None:
    found = error_meaning(error(code, message))
    assert isinstance(found, PostgresRefused)
    assert (found.sqlstate, found.text) == ("P0002", "change 5 is no merge")


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        *((each, LostConnection) for each in ("40001", "40P01", "57P01", "57P02", "57P05", "25P03", "08006")),
        *((each, PostgresUnavailable) for each in ("40003", "53300", "57014", "57P03", "55P03", "28P01", "58030")),
        *((each, PostgresRefused) for each in ("23505", "42501", "42883", "22012", "55000", "P0001")),
    ],
)  # fmt: skip
def test_the_sqlstate_decides(state: str, kind: type[Exception]) -> None:
    assert type(error_meaning(error("DatabaseErrorException", f"ERROR: no; SQLState: {state}"))) is kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("TransactionNotFoundException", LostConnection),
        ("NotFoundException", LostConnection),
        ("StatementTimeoutException", PostgresUnavailable),
        ("DatabaseUnavailableException", PostgresUnavailable),
        ("SecretsErrorException", PostgresUnavailable),
        ("ThrottlingException", PostgresUnavailable),
        ("AccessDeniedException", ClientError),
        ("BadRequestException", ClientError),
        ("ValidationException", ClientError),
    ],
)
def test_without_one_the_code_decides(code: str, kind: type[Exception]) -> None:
    assert type(error_meaning(error(code, "no"))) is kind
