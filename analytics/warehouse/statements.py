"""The error of a refused statement, and SQL literals."""

from datetime import date, datetime

STATEMENT_SHOWN_MAX = 2000


class StatementFailed(RuntimeError):
    """The warehouse refused a statement. It carries the statement's text and the engine's reason."""

    def __init__(self, statement: str, reason: str) -> None:
        super().__init__(f"{reason}\n{statement[:STATEMENT_SHOWN_MAX]}")
        self.statement, self.reason = statement, reason


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
