"""Signs users in: a token comes from the laptop's own issuer, a stack's Cognito pool, or another issuer."""

import base64
import contextlib
import functools
import json
import os
import secrets
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ingest.web.caller import ADMIN, AGENTS, AUDIENCE, FULFILMENT, LEADS, PRODUCERS
from local.cloud import tokens
from local.command import Function, command, option
from local.stack import Stack

GROUPS = "streakline/"
# The groups of organizations and audiences are made when somebody first needs one.
MADE_WHEN_NEEDED = (LEADS, AUDIENCE)
# The attribute of users that the command line made.
MARK = {"Name": "nickname", "Value": "made by streakline"}
# Environment variables: the password of a person's own user, and a token to use as it is.
PASSWORD_VARIABLE = "STREAKLINE_PASSWORD"
TOKEN_VARIABLE = "STREAKLINE_TOKEN"
GROUPS_WITH_RIGHTS = {
    ADMIN: "reaches all users and may backfill",
    PRODUCERS: "sends events of any user, also those that only a server may declare",
    FULFILMENT: "undoes redemptions that cannot be fulfilled",
    AGENTS: "asks questions and reads the answers",
}


def user_options(function: Function) -> Function:
    """Give a command the options that name a user and its groups: the parameters `user` and `groups`."""

    @functools.wraps(function)
    def with_user(lead: Sequence[str], audience: Sequence[str], **values: Any) -> None:
        named_groups = [group for group in GROUPS_WITH_RIGHTS if values.pop(group.rpartition("/")[2])]
        organizations = [f"{LEADS}{organization}" for organization in lead]
        audiences = [f"{AUDIENCE}{tag}" for tag in audience]
        function(groups=[*organizations, *audiences, *named_groups], **values)

    decorators = [
        option("--user", required=True, metavar="ID"),
        *(
            option(f"--{name.removesuffix('s')}", name, is_flag=True, help=does)
            for group, does in GROUPS_WITH_RIGHTS.items()
            for name in [group.rpartition("/")[2]]
        ),
        option(
            "--lead",
            multiple=True,
            metavar="ORG",
            help="sends, reads and mends this organization's leads; repeatable",
        ),
        option(
            "--audience",
            multiple=True,
            metavar="TAG",
            help="sees and answers questions for this audience; repeatable",
        ),
    ]
    for decorate in reversed(decorators):
        with_user = decorate(with_user)
    return with_user


@command("token --user ann", "token --user ann --admin --stack-name streakline")
@user_options
def token_command(stack: Stack, user: str, groups: Sequence[str]) -> None:
    """Print an access token of a user, who is a member of the groups that the options name."""
    token = bearer(stack, user, *groups)
    if not stack.is_laptop:
        print(f"the API knows {user} as {subject(token)}", file=sys.stderr)
    print(token)


@command("page --user ann", "page --user ann --admin")
@user_options
def page_command(stack: Stack, user: str, groups: Sequence[str]) -> None:
    """Print the web page's address, with a user signed in."""
    print(page_link(stack, bearer(stack, user, *groups)))


def page_link(stack: Stack, bearer: str) -> str:
    """Return the page's address with a token. The slash before `#` matters: the page's links are relative.

    The token is in the fragment. Browsers send a fragment to no server, and the page removes it at once.
    """
    return f"{stack.api_url.rstrip('/')}/#token={bearer}"


def bearer(stack: Stack, user_id: str, *groups: str) -> str:
    """Return an access token of a user who is a member of these groups.

    On AWS a token in STREAKLINE_TOKEN is taken as it is, whoever it names. Raises RuntimeError if the stack
    takes tokens of another issuer and there is no such token.
    """
    if stack.is_laptop:
        return tokens.token(stack, user_id, *groups)
    if token := os.environ.get(TOKEN_VARIABLE):
        return token
    users = users_of(stack)
    if users is None:
        issuer = stack.parameters.get("JwtIssuer") or "an issuer of your own"
        needs = f" of a member of {' and '.join(groups)}" if groups else ""
        raise RuntimeError(
            f"the stack {stack.name} takes tokens of {issuer}: get one{needs} there, "
            f"and put it into {TOKEN_VARIABLE}"
        )
    return users.token(user_id, *groups)


def subject(token: str) -> str:
    """Return whom a token names: the API's user id. The API verifies tokens, this does not.

    Raises RuntimeError for a text that is no JWT.
    """
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return str(claims["sub"])
    except (IndexError, KeyError, TypeError, ValueError):
        raise RuntimeError("the token is no JWT that names somebody (sub)") from None


@dataclass(frozen=True, slots=True)
class PoolUsers:
    """Users of a stack's Cognito pool, as the command line makes and signs them in.

    A user that the command line made carries a mark. Only of such a user it sets password and groups. Anybody
    else signs in with a password of their own, and keeps their groups.
    """

    cognito: Any  # a client of cognito-idp
    pool: str  # its id
    app: str  # the id of the pool's client

    def token(self, user: str, *groups: str) -> str:
        """Return an access token of a user who is a member of these groups; makes the user if there is none.

        Raises RuntimeError for a person's own user: without the password, or without one of the groups.
        """
        if self._is_ours(user):
            password = f"Aa1!{secrets.token_urlsafe(24)}"  # what any policy of a pool wants
            self._call("admin_set_user_password", user, Password=password, Permanent=True)
            self._keep_only(user, set(groups))
            return self._sign_in(user, password)
        return self._sign_in(user, self._own_password(user, groups))

    def remove(self, user: str) -> None:
        """Delete a user that the command line made; does nothing to anybody else."""
        try:
            description = self._call("admin_get_user", user)
        except self.cognito.exceptions.UserNotFoundException:
            return
        if MARK in description["UserAttributes"]:
            self._call("admin_delete_user", user)

    def _call(self, operation: str, user: str, **more: Any) -> Any:
        return getattr(self.cognito, operation)(UserPoolId=self.pool, Username=user, **more)

    def _is_ours(self, user: str) -> bool:
        """Whether the command line has made a user; makes the user if there is none."""
        try:
            return MARK in self._call("admin_get_user", user)["UserAttributes"]
        except self.cognito.exceptions.UserNotFoundException:
            self._call("admin_create_user", user, MessageAction="SUPPRESS", UserAttributes=[MARK])
            return True

    def _groups(self, user: str) -> set[str]:
        groups = self._call("admin_list_groups_for_user", user)["Groups"]
        return {group["GroupName"] for group in groups if group["GroupName"].startswith(GROUPS)}

    def _keep_only(self, user: str, wanted: set[str]) -> None:
        groups = self._groups(user)
        for group in groups - wanted:
            self._call("admin_remove_user_from_group", user, GroupName=group)
        for group in wanted - groups:
            if group.startswith(MADE_WHEN_NEEDED):
                self._make_group(group)
            self._call("admin_add_user_to_group", user, GroupName=group)

    def _make_group(self, group: str) -> None:
        with contextlib.suppress(self.cognito.exceptions.GroupExistsException):
            self.cognito.create_group(UserPoolId=self.pool, GroupName=group)

    def _own_password(self, user: str, groups: Collection[str]) -> str:
        """Return the password of a person's own user, who must be in all of these groups already."""
        if missing := sorted(set(groups) - self._groups(user)):
            raise RuntimeError(
                f"{user} is a person's own user, and is not in {missing[0]}: add the user to it first"
            )
        password = os.environ.get(PASSWORD_VARIABLE)
        if not password:
            raise RuntimeError(f"{user} is a person's own user: put the password into {PASSWORD_VARIABLE}")
        return password

    def _sign_in(self, user: str, password: str) -> str:
        answer = self.cognito.admin_initiate_auth(
            UserPoolId=self.pool,
            ClientId=self.app,
            AuthFlow="ADMIN_USER_PASSWORD_AUTH",
            AuthParameters={"USERNAME": user, "PASSWORD": password},
        )
        if "AuthenticationResult" not in answer:
            raise RuntimeError(f"{user} cannot sign in here: Cognito asks for {answer.get('ChallengeName')}")
        return str(answer["AuthenticationResult"]["AccessToken"])


def users_of(stack: Stack) -> PoolUsers | None:
    """Return the users of a stack's pool; None if the stack has no pool."""
    pool, app = (stack.outputs.get(name) for name in ("UserPoolId", "UserPoolClientId"))
    return PoolUsers(stack.client("cognito-idp"), pool, app) if pool and app else None
