"""What both ways to PostgreSQL have in common, the driver and the RDS Data API: how to use them, what they
raise, and how to call the functions of sql/identity, whose answers are JSON.
"""

import json
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
# A character has up to four bytes. Without OFFSET a STABLE function would be called once for each piece.
IN_PIECES = """
SELECT substr(whole, place, 16000) FROM (SELECT identity.CALL::text AS whole OFFSET 0) AS answer,
generate_series(1, length(whole), 16000) AS place ORDER BY place
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


def call_function(connection: Any, call: str, values: list[Any]) -> Any:
    """Call a function of sql/identity in one statement; returns its answer parsed, None if it is null.

    call: its name, and a `%s` with its type for each value, such as `forget(%s::text)`. A row of the Data API
    holds 64 KB at most, so an answer that may be longer needs call_in_pieces.
    """
    return connection.execute(f"SELECT identity.{call}", values).fetchone()[0]


def call_in_pieces(connection: Any, call: str, values: list[Any]) -> Any:
    """Call a function whose answer may be long, as call_function does; returns None if it is null or void.

    PostgreSQL sends the answer in pieces of text, which costs a third more.
    """
    pieces = connection.execute(IN_PIECES.replace("CALL", call), values).fetchall()
    return json.loads("".join(text for (text,) in pieces)) if pieces else None
