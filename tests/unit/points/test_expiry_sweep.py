"""What a sweep of expired points says of an account that could not be settled."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from adapters.engagement.account_store import AccountContended
from adapters.platform.tables import Unprocessed
from processors.expiry import ExpirySweep


class Accounts:
    """Two accounts are due. The first raises an error."""

    def __init__(self, error: Exception) -> None:
        self.error, self.settled = error, list[str]()

    def due(self, *_: Any) -> list[str]:
        return ["ada", "bob"]

    def settle(self, user: str, _now: datetime) -> str:
        if user == "ada":
            raise self.error
        return user

    def write_through(self, profiles: list[str]) -> None:
        self.settled += profiles


def answered(code: str, status: int = 400) -> ClientError:
    answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "TransactWriteItems")


@pytest.mark.parametrize(
    ("error", "failed"),
    [
        (EndpointConnectionError(endpoint_url="https://x"), 0),
        (answered("ThrottlingException"), 0),
        (answered("ServiceUnavailable", 503), 0),
        (AccountContended("ada"), 0),
        (Unprocessed("Ledger: keys left unread"), 0),
        (answered("AccessDeniedException"), 1),
        (answered("ResourceNotFoundException"), 1),
        (answered("ValidationException"), 1),
        (KeyError("a bug"), 1),
    ],
)
def test_only_what_may_pass_by_itself_is_no_failure(error: Exception, failed: int) -> None:
    accounts: Any = Accounts(error)
    counts = ExpirySweep(accounts, accounts, accounts).run(
        datetime(2027, 2, 1, tzinfo=UTC), time.monotonic() + 60
    )
    assert (counts, accounts.settled) == ({"settled": 1, "failed": failed, "is_whole": True}, ["bob"])
