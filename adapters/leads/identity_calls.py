"""Calls the functions of sql/identity, each in one statement. Their answers are JSON.

A row of the Data API holds 64 KB at most, and some answers grow with what they list: these leave PostgreSQL
in pieces of text. An event's answer does not, because pieces cost a third more. It grows only with what is
still to be announced of its own lead.
"""

import json
from typing import Any

# A character has up to four bytes. Without OFFSET a STABLE function would be called once for each piece.
IN_PIECES = """
SELECT substr(whole, place, 16000) FROM (SELECT identity.CALL::text AS whole OFFSET 0) AS answer,
generate_series(1, length(whole), 16000) AS place ORDER BY place
"""


def ask(connection: Any, call: str, values: list[Any]) -> Any:
    """Call a function; returns its answer parsed, None if it is null.

    connection and values: see adapters.postgresql.sql.
    Example: `ask(connection, "facts(%s::text[])", [...])`.
    """
    return connection.execute(f"SELECT identity.{call}", values).fetchone()[0]


def ask_for_many(connection: Any, call: str, values: list[Any]) -> Any:
    """Call a function whose answer may be long, as `ask` does; returns None if it is null or void."""
    pieces = connection.execute(IN_PIECES.replace("CALL", call), values).fetchall()
    return json.loads("".join(piece for (piece,) in pieces)) if pieces else None
