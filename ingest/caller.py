"""Who is calling, and what they are told when they may not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ADMIN = "streakline/admin"


class ApiError(Exception):
    """An answer other than success: HTTP status, code, message, and details for the caller."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        details: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.details = status, code, message, details
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling, by the token that the gateway has verified."""

    user_id: str
    is_admin: bool

    def check(self, user_id: str) -> None:
        """Raise 403 unless the caller may reach this user's data."""
        if not self.is_admin and user_id != self.user_id:
            raise ApiError(403, "forbidden", "this token reaches only its own user's data")


def caller_of(event: Mapping[str, Any]) -> Caller:
    """Read the authorizer's verified claims; raises 401 where there are none."""
    claims = event.get("requestContext", {}).get("authorizer", {}).get("jwt", {}).get("claims", {})
    if not claims.get("sub"):
        raise ApiError(401, "unauthorized", "a bearer token with a sub is needed")
    return Caller(str(claims["sub"]), ADMIN in _names(claims, "cognito:groups") | _names(claims, "scope"))


def _names(claims: Mapping[str, Any], claim: str) -> set[str]:
    """A claim with several values arrives as a list, as "[a b]" or as "a b"."""
    value = claims.get(claim) or ""
    return set(value) if isinstance(value, list) else set(str(value).strip("[]").replace(",", " ").split())
