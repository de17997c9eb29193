"""Processes that die, and calls that fail, at a call of the test's choice."""

import contextlib
from typing import Any

from botocore.exceptions import ClientError, EndpointConnectionError

FAILURES = ("dies before", "dies after", "throttled", "answer lost")


class Killed(BaseException):
    """The process is dead: no handler may catch this."""


class Dying:
    """A client whose nth call does not happen, or whose answer nobody gets."""

    def __init__(self, real: Any, dies_at: int, how: str) -> None:
        self._real, self._left, self._how = real, dies_at, how
        self.exceptions = real.exceptions

    def __getattr__(self, operation: str) -> Any:
        real = getattr(self._real, operation)

        def run(**arguments: Any) -> Any:
            self._left -= 1
            if self._left:
                return real(**arguments)
            if self._how == "throttled":
                error = {"Error": {"Code": "ProvisionedThroughputExceededException", "Message": "slow down"}}
                raise ClientError(error, operation)  # type: ignore[arg-type]
            if self._how != "dies before":
                with contextlib.suppress(ClientError):  # A refusal is an answer too, and nobody gets it.
                    real(**arguments)
            if self._how == "answer lost":
                raise EndpointConnectionError(endpoint_url="the answer was lost")
            raise Killed

        return run
