"""PostgreSQL, by the driver or by the RDS Data API: the interface, its errors, and calls of functions.

The functions are those of sql/identity. They answer in JSON.
"""

import json
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
URL_FORMS = (
    "IDENTITY_URL must be postgresql://user[:password]@host:port/database"
    " or rds-data://DATABASE?cluster=CLUSTER_ARN&secret=SECRET_ARN"
)
# SQLSTATEs of a transaction that the server ended in favour of another one.
LOST_RACES = (
    "40001",  # serialization failure
    "40P01",  # deadlock
)
# How the SQLSTATEs begin of errors that may not come again.
PASSING_CLASSES = (
    "08",  # connection
    "28",  # refused sign-in: a password may just be changing
    "40",  # lost race
    "53",  # no memory, disk or connections
    "57",  # stopped by an operator, or by a time limit
    "58",  # system error
)
# SQLSTATEs of such errors in other classes.
PASSING_CODES = (
    "55P03",  # a lock is not free
    "25P03",  # the transaction was idle for too long
)
# How the SQLSTATEs begin that any other statement would get now, too. 57P: the server is being stopped.
AWAY = ("08", "28", "53", "57P", "58")
# A row of the Data API holds 64 KB, so a piece has 16,000 characters, of up to four bytes each. `OFFSET 0`
# lets PostgreSQL call a function once, and not once for each piece.
IN_PIECES = """
SELECT substr(whole, start, 16000) FROM (SELECT identity.CALL::text AS whole OFFSET 0) AS answer,
generate_series(1, length(whole), 16000) AS start ORDER BY start
"""


class PostgresUnavailable(Exception):
    """PostgreSQL cannot be reached, or could not do it now; a later attempt may succeed.

    sqlstate: its code; "" if it gave no answer.
    """

    def __init__(self, text: str, sqlstate: str = "") -> None:
        super().__init__(text)
        self.sqlstate = sqlstate

    @property
    def is_away(self) -> bool:
        """Whether other work would fail too. It would not after a time limit: one statement was too slow."""
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

        After a lost connection, a deadlock or a lost race, run repeats the work at once. So work must be safe
        to repeat: nobody knows what it did before the connection broke.
        Raises PostgresUnavailable if a later attempt may succeed, else PostgresRefused.
        """
        ...

    def close(self) -> None:
        """Drop what is open; the next use opens it again."""
        ...


def may_pass(sqlstate: str) -> bool:
    """Return whether a statement that failed with this code may succeed later."""
    return sqlstate[:2] in PASSING_CLASSES or sqlstate in PASSING_CODES


def call_function(connection: Any, call: str, values: list[Any]) -> Any:
    """Call a function of sql/identity; returns its answer parsed, None if it is null or void.

    call: its name, and a `%s` with its type for each value, such as `forget(%s::text)`.
    """
    pieces = connection.execute(IN_PIECES.replace("CALL", call), values).fetchall()
    return json.loads("".join(text for (text,) in pieces)) if pieces else None
