"""The exceptions of this package."""

from typing import Any


class StreaklineError(Exception):
    """The base of this package's own exceptions."""


class Unreachable(StreaklineError):
    """No answer came: the network, a timeout, or bytes that are no answer."""


class Refused(StreaklineError):
    """The service answered with an error: HTTP status, code, message, and details that name fields.

    Its text has the first three.
    """

    def __init__(self, status: int, code: str, message: str, details: Any = None) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message, self.details = status, code, message, details
