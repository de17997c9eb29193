"""PostgreSQL by the RDS Data API: signed HTTPS calls, so no driver, no network of ours, no open connection.

`RdsData.run` gives a `Connection` to its work, whose statements are a call each (`RdsData.call`). A cluster
that sleeps wakes up at the first call, which we then repeat. If the connection breaks during a call, `run`
repeats the whole work. If no answer comes in time, nobody repeats it.
"""

import contextlib
import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import starmap
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
    SSLError,
)

from adapters.platform import aws
from adapters.platform.aws import client, pauses
from adapters.postgresql.sql import LOST_RACES, URL_FORMS, PostgresRefused, PostgresUnavailable, may_pass

RESUMING = "DatabaseResumingException"
THROTTLES = aws.THROTTLES | {"TooManyRequestsException"}
# The transaction that the call names has ended.
ENDED = frozenset({"NotFoundException", "TransactionNotFoundException"})
# Errors of the service after which a later attempt may succeed.
PASSING = THROTTLES | {
    RESUMING,
    "DatabaseErrorException",  # without a SQLSTATE: between the service and the database
    "DatabaseUnavailableException",
    "InternalServerErrorException",
    "InvalidResourceStateException",
    "SecretsErrorException",
    "ServiceUnavailableError",
    "StatementTimeoutException",
}
QUERY_CANCELED = "57014"  # as PostgreSQL says of a statement that took too long
# The server closed the connection that the service used for us: it was stopped, or a transaction was idle.
CLOSED_CODES = ("57P01", "57P02", "57P05", "25P03")
# PostgreSQL's own errors come as text that ends with their SQLSTATE.
# Example: `ERROR: deadlock detected; SQLState: 40P01`.
MESSAGE = re.compile(
    r"(?:[A-Z]+: +)?(?P<text>.*?)(?:(?:\s*\n|; *Position:).*)?;\s*SQLState:\s*(?P<state>[0-9A-Z]{5})\W*$",
    re.DOTALL,
)
T = TypeVar("T")
logger = logging.getLogger(__name__)
ANSWER_SECONDS_MAX = 50  # the service ends a statement after 45 seconds
THROTTLED_ATTEMPTS = 6
# Waking up takes some 15 seconds, after a day of sleep 30 and more. These pauses are a minute together.
WAKING_PAUSES_SECONDS = (2, 3, *[5] * 11)
WAKING = (
    "the identity database is waking up: nothing is lost; if it takes longer than a minute, the message comes"
    " again"
)


class LostConnection(PostgresUnavailable):
    """The work was rolled back, or nobody knows whether it was. It may be repeated at once."""


class RdsData:
    """One database of a cluster; see adapters.postgresql.sql.Database."""

    def __init__(self, url: str) -> None:
        """url: rds-data://DATABASE?cluster=CLUSTER_ARN&secret=SECRET_ARN; else raises ValueError."""
        parts = urlsplit(url)
        arns = {}
        for argument in parts.query.split("&"):
            name, _, arn = argument.partition("=")
            arns[name] = unquote(arn)
        names_database = parts.scheme == "rds-data" and parts.netloc and parts.path in ("", "/")
        if not names_database or arns.keys() != {"cluster", "secret"}:
            raise ValueError(URL_FORMS)
        if not all(arn.startswith("arn:") for arn in arns.values()):
            raise ValueError(URL_FORMS)
        self._names = {"resourceArn": arns["cluster"], "secretArn": arns["secret"]}
        self.database = unquote(parts.netloc)

    def run(self, work: Callable[[Any], T], attempts: int = 2) -> T:
        """Return work(connection); see adapters.postgresql.sql.Database."""
        for attempt in range(attempts):
            try:
                return work(Connection(self))
            except LostConnection:
                if attempt == attempts - 1:
                    raise
        raise AssertionError("no attempt was allowed")

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def call(self, operation: str, **request: Any) -> Any:
        """Call the service; waits while the database wakes up, and when there are too many calls.

        Raises what `error_meaning` returns.
        """
        waking_pauses = iter(WAKING_PAUSES_SECONDS)
        throttled_attempts = pauses(THROTTLED_ATTEMPTS)
        next(throttled_attempts)  # this attempt; each further one begins with a pause
        api = getattr(client("rds-data", 1, ANSWER_SECONDS_MAX), operation)
        while True:
            try:
                return api(**self._names, **request)
            except (EndpointConnectionError, ConnectTimeoutError, ReadTimeoutError) as error:
                raise PostgresUnavailable(f"{type(error).__name__}: {error}") from error
            except (HTTPClientError, SSLError) as error:
                raise LostConnection(f"{type(error).__name__}: {error}") from error
            except ClientError as error:
                code = error.response["Error"]["Code"]
                if code == RESUMING and (seconds := next(waking_pauses, None)):
                    if seconds == WAKING_PAUSES_SECONDS[0]:
                        logger.warning(WAKING)
                    time.sleep(seconds)
                elif code not in THROTTLES or next(throttled_attempts, None) is None:
                    raise error_meaning(error) from error


def error_meaning(error: ClientError) -> Exception:
    """Return what to raise instead of an error of the service.

    It is LostConnection, PostgresUnavailable or PostgresRefused. If the database is not the reason (no
    permission, a bad request), it is the error itself.
    """
    code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
    text = f"{code}: {message}"
    match = MESSAGE.match(message)
    if match is None:
        if code in ENDED:
            return LostConnection(text)
        state = QUERY_CANCELED if code == "StatementTimeoutException" else ""
        return PostgresUnavailable(text, state) if code in PASSING else error
    state = match["state"]
    if state in LOST_RACES or state in CLOSED_CODES or state.startswith("08"):
        return LostConnection(text, state)
    return PostgresUnavailable(text, state) if may_pass(state) else PostgresRefused(state, match["text"])


class Connection:
    """The connection that `RdsData.run` gives to its work. Only that work may use it."""

    def __init__(self, api: RdsData) -> None:
        self._api = api
        self._transaction: dict[str, str] = {}  # the calls' argument while a transaction is open

    def execute(self, statement: str, values: Sequence[Any] = ()) -> "Rows":
        """Execute a statement, and return its rows. Each `%s` stands for a value, if there are any.

        Raises what `RdsData.call` raises.
        """
        first, *rest = statement.split("%s") if values else [statement]
        names = [f"p{number}" for number in range(len(values))]
        sql = first + "".join(f":{name}{text}" for name, text in zip(names, rest, strict=True))
        answer = self._api.call(
            "execute_statement",
            database=self._api.database,
            sql=sql,
            parameters=[
                {"name": name, "value": _encode_field(value)}
                for name, value in zip(names, values, strict=True)
            ],
            includeResultMetadata=True,
            **self._transaction,
        )
        types = [column["typeName"] for column in answer.get("columnMetadata", [])]
        records = answer.get("records", [])
        return Rows(tuple(starmap(_decode_field, zip(record, types, strict=True))) for record in records)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what is executed within, or roll it back if something is raised."""
        begun = self._api.call("begin_transaction", database=self._api.database)
        self._transaction = {"transactionId": begun["transactionId"]}
        try:
            yield
            self._api.call("commit_transaction", **self._transaction)
        except BaseException:
            # If this fails too, the database rolls back the transaction once it was idle (sql/identity).
            with contextlib.suppress(Exception):
                self._api.call("rollback_transaction", **self._transaction)
            raise
        finally:
            self._transaction = {}


class Rows:
    """The rows that a statement returned."""

    def __init__(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._rows = rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, if there is one."""
        return next(self._rows, None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows that are left."""
        return list(self._rows)


def _decode_field(field: dict[str, Any], type_name: str) -> Any:
    """Return the value of a field such as {"longValue": 5} or {"arrayValue": {"longValues": [5]}}."""
    if field.get("isNull"):
        return None
    (value,) = field.values()
    if "arrayValue" in field:
        return next(iter(value.values()), [])
    return json.loads(value) if type_name in ("json", "jsonb") else value


def _encode_field(value: Any) -> dict[str, Any]:
    """Return a value as the service takes it. Lists and times go as text: the statement casts them."""
    if value is None:
        return {"isNull": True}
    if isinstance(value, bool):
        return {"booleanValue": value}
    if isinstance(value, int):
        return {"longValue": value}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"stringValue": array_literal(value)}
    return {"stringValue": value.isoformat() if isinstance(value, datetime) else str(value)}


def array_literal(values: Sequence[str | int]) -> str:
    """Return an array as PostgreSQL reads it from text. Example: `["a", "b c"]` -> `{"a","b c"}`."""
    quoted = (str(value).replace("\\", "\\\\").replace('"', '\\"') for value in values)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"
