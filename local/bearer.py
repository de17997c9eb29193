"""Where a token comes from: the laptop's own issuer, a stack's Cognito pool, or another issuer."""

import base64
import json
import os

from local.aws.pool_users import PoolUsers
from local.cloud import tokens
from local.stack import Stack

GIVEN = "STREAKLINE_TOKEN"


def bearer(stack: Stack, user_id: str, *groups: str) -> str:
    """Return an access token of a user who is a member of these groups.

    On AWS a token in STREAKLINE_TOKEN is taken as it is, whoever it names. Raises RuntimeError if the stack
    takes tokens of another issuer and there is no such token.
    """
    if stack.is_laptop:
        return tokens.token(stack, user_id, *groups)
    if given := os.environ.get(GIVEN):
        return given
    users = users_of(stack)
    if users is None:
        issuer = stack.parameters.get("JwtIssuer") or "an issuer of your own"
        needs = f" of a member of {' and '.join(groups)}" if groups else ""
        raise RuntimeError(
            f"the stack {stack.name} takes tokens of {issuer}: get one{needs} there, and put it into {GIVEN}"
        )
    return users.token(user_id, *groups)


def users_of(stack: Stack) -> PoolUsers | None:
    """Return the users of a stack's pool; None if the stack has no pool."""
    pool, app = (stack.outputs.get(name) for name in ("UserPoolId", "UserPoolClientId"))
    return PoolUsers(stack.client("cognito-idp"), pool, app) if pool and app else None


def subject(token: str) -> str:
    """Return whom a token names: the API's user id. The API verifies tokens, this does not.

    Raises RuntimeError for a text that is no JWT.
    """
    try:
        middle = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
        return str(claims["sub"])
    except (IndexError, KeyError, TypeError, ValueError):
        raise RuntimeError("the token is no JWT that names somebody (sub)") from None
