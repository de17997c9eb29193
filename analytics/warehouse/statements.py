"""What goes wrong with SQL, and values as SQL literals."""

from datetime import date, datetime

STATEMENT_SHOWN_MAX = 2000


class StatementFailed(RuntimeError):
    """A statement that the warehouse refused: its text and the engine's reason."""

    def __init__(self, statement: str, reason: str) -> None:
        super().__init__(f"{reason}\n{statement[:STATEMENT_SHOWN_MAX]}")
        self.statement, self.reason = statement, reason


def literal(value: str | int | date | None) -> str:
    """Return a value as it is written in SQL."""
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
