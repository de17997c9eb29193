"""The limits of statements and transactions, the error of a refused statement, and SQL literals."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime

STATEMENT_SHOWN_MAX = 2000  # characters of a statement in an error's message
# What Redshift's Data API takes: https://docs.aws.amazon.com/redshift/latest/mgmt/data-api.html
STATEMENT_BYTES_MAX = 100_000
STATEMENTS_MAX = 40  # in one batch, which is one transaction
LIST_BYTES_MAX = 50_000  # of literals in a statement


class StatementFailed(RuntimeError):
    """The warehouse refused a statement. It carries the statement's text and the engine's reason."""

    def __init__(self, statement: str, reason: str) -> None:
        super().__init__(f"{reason}\n{statement[:STATEMENT_SHOWN_MAX]}")
        self.statement, self.reason = statement, reason


def refuse_oversized(statements: Sequence[str]) -> None:
    """Raise StatementFailed if the Data API would not take these as one transaction."""
    for statement in statements:
        if (size := len(statement.encode())) > STATEMENT_BYTES_MAX:
            raise StatementFailed(statement, f"{size} bytes: a statement may have {STATEMENT_BYTES_MAX}")
    if len(statements) > STATEMENTS_MAX:
        reason = f"{len(statements)} statements: a transaction may have {STATEMENTS_MAX}"
        raise StatementFailed(statements[STATEMENTS_MAX], reason)


def literal_lists(values: Iterable[str]) -> Iterator[str]:
    """Yield lists of literals, each short enough for one statement: `'ann', 'bob'`. No values: no list."""
    texts: list[str] = []
    size = 0
    for text in map(literal, values):
        if texts and size + len(text.encode()) > LIST_BYTES_MAX:
            yield ", ".join(texts)
            texts, size = [], 0
        texts.append(text)
        size += len(text.encode()) + len(", ")
    if texts:
        yield ", ".join(texts)


def literal(value: str | int | date | None) -> str:
    """Return a value as SQL writes it. Example: O'Hara becomes 'O''Hara'."""
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    # Redshift reads a backslash in a literal as an escape.
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
