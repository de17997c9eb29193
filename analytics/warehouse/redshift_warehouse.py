"""Redshift Serverless through its Data API: no driver, no connection, no network path into its VPC."""

import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from adapters.platform.aws import pauses
from analytics.warehouse.statements import StatementFailed, refuse_oversized

ATTEMPTS_MAX = 5  # for a transaction, if others conflict with it
POLLS_MAX = 1_000_000  # never reached: seconds_max ends the polls
POLL_SECONDS_MAX = 1.8
# A transaction may take this long, locks that it waits for included. A function has 900 s.
TRANSACTION_SECONDS_MAX = 780.0
ENDED_BADLY = frozenset({"FAILED", "ABORTED"})
# Errors that say that another transaction was first. Nothing of ours remains then, so a repetition is safe.
_CONFLICTS = ("1023", "serializable isolation violation", "could not serialize", "conflict with concurrent")
_READERS: dict[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "numeric": Decimal,
}


@dataclass(frozen=True, slots=True)
class RedshiftWarehouse:
    """A database of a workgroup."""

    data_api: Any  # a botocore client of redshift-data
    workgroup: str
    database: str
    secret_arn: str = ""  # the secret of the user who runs the SQL; "": the caller's IAM identity runs it
    seconds_max: float = TRANSACTION_SECONDS_MAX  # after which a transaction is cancelled

    def run(self, statements: Sequence[str]) -> None:
        """Execute statements in one transaction, again after a conflict. Raises StatementFailed."""
        refuse_oversized(statements)
        for attempt in pauses(ATTEMPTS_MAX, base_seconds=0.5, longest_seconds=10):
            try:
                self._wait(self._submit(statements), statements)
                return
            except StatementFailed as error:
                is_last = attempt == ATTEMPTS_MAX - 1
                if is_last or not any(conflict in error.reason.lower() for conflict in _CONFLICTS):
                    raise

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Return a query's rows, fetched page by page. Raises StatementFailed."""
        refuse_oversized([sql])
        batch_id = self._submit([sql])
        self._wait(batch_id, [sql])
        # `:1` is the batch's first statement, and its only one.
        pages = self.data_api.get_paginator("get_statement_result").paginate(Id=f"{batch_id}:1")
        return [
            {
                column["name"]: _value(field, column["typeName"])
                for column, field in zip(page["ColumnMetadata"], row, strict=True)
            }
            for page in pages
            for row in page["Records"]
        ]

    def kept_open(self) -> AbstractContextManager[None]:
        """Do nothing: there is no connection that could stay open."""
        return nullcontext()

    def _submit(self, statements: Sequence[str]) -> str:
        """Start statements as one batch, which is one transaction; returns its id."""
        secret = {"SecretArn": self.secret_arn} if self.secret_arn else {}
        # botocore repeats a request when the answer got lost. By the token Redshift runs the SQL only once.
        token = uuid.uuid4().hex
        answer = self.data_api.batch_execute_statement(
            WorkgroupName=self.workgroup,
            Database=self.database,
            Sqls=list(statements),
            ClientToken=token,
            **secret,
        )
        return str(answer["Id"])

    def _wait(self, batch_id: str, statements: Sequence[str]) -> None:
        """Wait until a batch has ended. Raises StatementFailed if it failed, or took too long."""
        end = time.monotonic() + self.seconds_max
        for _ in pauses(POLLS_MAX, base_seconds=0.05, longest_seconds=POLL_SECONDS_MAX):
            state = self.data_api.describe_statement(Id=batch_id)
            if state["Status"] == "FINISHED":
                return
            if state["Status"] in ENDED_BADLY:
                raise _failure(state, statements)
            if time.monotonic() > end:
                break
        self.data_api.cancel_statement(Id=batch_id)
        done = sum(part["Status"] == "FINISHED" for part in state.get("SubStatements", ()))
        reason = (
            f"cancelled after {self.seconds_max:.0f} s: it is too slow, or another transaction holds a lock"
        )
        raise StatementFailed(statements[min(done, len(statements) - 1)], reason)


def _failure(state: dict[str, Any], statements: Sequence[str]) -> StatementFailed:
    """Return the error of a batch that has failed, with the statement at fault, if Redshift names it."""
    parts = state.get("SubStatements") or [state]
    for index, part in enumerate(parts):
        if part["Status"] in ENDED_BADLY and part.get("Error"):
            return StatementFailed(statements[index], part["Error"])
    return StatementFailed(statements[0], state.get("Error") or state["Status"])


def _value(field: dict[str, Any], type_name: str) -> Any:
    """Return a field of the Data API as a Python value. It is `{"stringValue": text}` or of that form."""
    if field.get("isNull"):
        return None
    value = next(iter(field.values()))
    reader = _READERS.get(type_name)
    return reader(value) if reader and isinstance(value, str) else value
