"""Processes that die, and calls that fail, at a call of the test's choice."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError, EndpointConnectionError

from adapters.platform.objects import FolderObjects

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

        def run(*names: Any, **arguments: Any) -> Any:
            self._left -= 1
            if self._left:
                return real(*names, **arguments)
            if self._how == "throttled":
                error = {"Error": {"Code": "ProvisionedThroughputExceededException", "Message": "slow down"}}
                raise ClientError(error, operation)  # type: ignore[arg-type]
            if self._how != "dies before":
                with contextlib.suppress(ClientError):  # A refusal is an answer too, and nobody gets it.
                    real(*names, **arguments)
            if self._how == "answer lost":
                raise EndpointConnectionError(endpoint_url="the answer was lost")
            raise Killed

        return run


class DyingFolder(FolderObjects):
    """A folder in which the process dies at a change, before it or after it; others may act then."""

    left: int
    how: str

    @classmethod
    def at(cls, root: Path, left: int, how: str) -> "DyingFolder":
        made = cls(root)
        object.__setattr__(made, "left", left)
        object.__setattr__(made, "how", how)
        return made

    def _change(self, real: Callable[..., Any], *arguments: Any) -> None:
        object.__setattr__(self, "left", self.left - 1)
        if self.left == 0 and self.how == "before":
            raise Killed
        real(*arguments)
        if self.left == 0:
            raise Killed

    def put(self, key: str, data: bytes) -> None:
        self._change(super().put, key, data)

    def put_if(self, key: str, data: bytes | Path, etag: str | None) -> None:
        self._change(super().put_if, key, data, etag)

    def delete(self, keys: Any) -> None:
        self._change(super().delete, list(keys))
