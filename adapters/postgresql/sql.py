"""What both ways to PostgreSQL have in common, the driver and the Data API: how to use them, what they raise.

A connection has `execute(statement, values)`, which returns rows with fetchone() and fetchall(), and the
context manager `transaction()`. Values stand for the `%s` of a statement, which casts them: the Data API
sends lists, JSON and times as text. So `%s::jsonb`, `%s::text[]`, `%s::timestamptz`, `%s::int`.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
URL_FORMS = (
    "IDENTITY_URL must be postgresql://user[:password]@host:port/database"
    " or rds-data://DATABASE?cluster=CLUSTER_ARN&secret=SECRET_ARN"
)
# Another transaction was preferred: serialization failure, deadlock.
LOST_RACES = ("40001", "40P01")
# Classes: connection, refused sign-in (a password may just be changing), lost race, resources, intervention
# or timeout, system. Codes: a lock is not free, a transaction was idle for too long.
PASSING_CLASSES = ("08", "28", "40", "53", "57", "58")
PASSING_CODES = ("55P03", "25P03")
# No connection or no sign-in, no disk or memory, being stopped, a system error.
AWAY = ("08", "28", "53", "57P", "58")


class PostgresUnavailable(Exception):
    """PostgreSQL cannot be reached, or could not do it now; a later attempt may succeed.

    sqlstate: its code; "" if it gave no answer.
    """

    def __init__(self, text: str, sqlstate: str = "") -> None:
        super().__init__(text)
        self.sqlstate = sqlstate

    @property
    def is_away(self) -> bool:
        """Whether PostgreSQL is away for everybody: a statement that took too long may be slow for good."""
        return not self.sqlstate or self.sqlstate.startswith(AWAY)


class PostgresRefused(Exception):
    """PostgreSQL refused a statement, and will refuse it again. sqlstate: its code; text: the reason."""

    def __init__(self, sqlstate: str, text: str) -> None:
        super().__init__(f"{text} (SQLSTATE {sqlstate})")
        self.sqlstate, self.text = sqlstate, text


class Database(Protocol):
    """A database that the process may use."""

    def run(self, work: Callable[[Any], T], attempts: int = 2) -> T:
        """Return work(connection).

        work must be safe to repeat: if a connection breaks, nobody knows what it did. After a lost
        connection, a deadlock or a lost race, run repeats it at once.
        Raises PostgresUnavailable if a later attempt may succeed, else PostgresRefused.
        """
        ...

    def close(self) -> None:
        """Drop what is open; the next use opens it again."""
        ...


def may_pass(sqlstate: str) -> bool:
    """Whether a later attempt may succeed."""
    return sqlstate[:2] in PASSING_CLASSES or sqlstate in PASSING_CODES
