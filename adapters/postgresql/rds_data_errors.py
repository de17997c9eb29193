"""What the errors of the RDS Data API mean for the caller.

PostgreSQL's own come as text that ends with their SQLSTATE. Example: `ERROR: deadlock detected; SQLState:
40P01`.
"""

import re

from botocore.exceptions import ClientError

from adapters.platform import aws
from adapters.postgresql.sql import LOST_RACES, PostgresRefused, PostgresUnavailable, may_pass

RESUMING = "DatabaseResumingException"
THROTTLES = aws.THROTTLES | {"TooManyRequestsException"}
# The transaction has ended without us.
ENDED = frozenset({"NotFoundException", "TransactionNotFoundException"})
PASSING = THROTTLES | {
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
_MESSAGE = re.compile(
    r"(?:[A-Z]+: +)?(?P<text>.*?)(?:(?:\s*\n|; *Position:).*)?;\s*SQLState:\s*(?P<state>[0-9A-Z]{5})\W*$",
    re.DOTALL,
)


class LostConnection(PostgresUnavailable):
    """Nobody knows what became of the work, or it was rolled back: it may be repeated at once."""


def told(error: ClientError) -> Exception:
    """Return what to raise instead of an error of the service.

    LostConnection, PostgresUnavailable or PostgresRefused; or the error itself, if neither the database nor
    its state is the reason (no permission, a bad request).
    """
    code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
    text = f"{code}: {message}"
    found = _MESSAGE.match(message)
    if found is None:
        if code in ENDED:
            return LostConnection(text)
        state = QUERY_CANCELED if code == "StatementTimeoutException" else ""
        return PostgresUnavailable(text, state) if code in PASSING else error
    state = found["state"]
    if state in LOST_RACES or state in CLOSED_CODES or state.startswith("08"):
        return LostConnection(text, state)
    return PostgresUnavailable(text, state) if may_pass(state) else PostgresRefused(state, found["text"])
