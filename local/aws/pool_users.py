"""Users of a stack's Cognito pool, as the command line makes and signs them in.

A user that the command line made carries a mark. Only of such a user it sets password and groups. Anybody
else signs in with a password of their own, and keeps their groups.
"""

import contextlib
import os
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ingest.web.caller import AUDIENCE, LEADS

GROUPS = "streakline/"
# Groups of organizations and audiences come and go with these: who first needs one makes it.
MADE_WHEN_NEEDED = (LEADS, AUDIENCE)
MARK = {"Name": "nickname", "Value": "made by streakline"}
PASSWORD = "STREAKLINE_PASSWORD"


@dataclass(frozen=True, slots=True)
class PoolUsers:
    """cognito: a client of cognito-idp. pool, app: the ids of the pool and of its client."""

    cognito: Any
    pool: str
    app: str

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
            found = self._call("admin_get_user", user)
        except self.cognito.exceptions.UserNotFoundException:
            return
        if MARK in found["UserAttributes"]:
            self._call("admin_delete_user", user)

    def _call(self, operation: str, user: str, **more: Any) -> Any:
        return getattr(self.cognito, operation)(UserPoolId=self.pool, Username=user, **more)

    def _is_ours(self, user: str) -> bool:
        try:
            return MARK in self._call("admin_get_user", user)["UserAttributes"]
        except self.cognito.exceptions.UserNotFoundException:
            self._call("admin_create_user", user, MessageAction="SUPPRESS", UserAttributes=[MARK])
            return True

    def _groups(self, user: str) -> set[str]:
        listed = self._call("admin_list_groups_for_user", user)["Groups"]
        return {each["GroupName"] for each in listed if each["GroupName"].startswith(GROUPS)}

    def _keep_only(self, user: str, wanted: set[str]) -> None:
        held = self._groups(user)
        for each in held - wanted:
            self._call("admin_remove_user_from_group", user, GroupName=each)
        for each in wanted - held:
            if each.startswith(MADE_WHEN_NEEDED):
                self._make_group(each)
            self._call("admin_add_user_to_group", user, GroupName=each)

    def _make_group(self, group: str) -> None:
        with contextlib.suppress(self.cognito.exceptions.GroupExistsException):
            self.cognito.create_group(UserPoolId=self.pool, GroupName=group)

    def _own_password(self, user: str, groups: Collection[str]) -> str:
        if missing := sorted(set(groups) - self._groups(user)):
            raise RuntimeError(
                f"{user} is a person's own user, and is not in {missing[0]}: add the user to it first"
            )
        password = os.environ.get(PASSWORD)
        if not password:
            raise RuntimeError(f"{user} is a person's own user: put the password into {PASSWORD}")
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
