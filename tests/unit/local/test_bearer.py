"""Where tokens come from on AWS: the stack's pool, or somebody else's issuer."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from local.sign_in import MARK, PoolUsers, bearer, subject
from local.stack import Stack
from tests.support.aws_stack import token_of

ADMIN, AGENTS = "streakline/admin", "streakline/agents"


class UserNotFoundException(Exception):
    """As Cognito raises it."""


class GroupExistsException(Exception):
    """As Cognito raises it."""


class Cognito:
    """A pool: users with attributes, groups and a password."""

    def __init__(self) -> None:
        self.exceptions = SimpleNamespace(
            UserNotFoundException=UserNotFoundException, GroupExistsException=GroupExistsException
        )
        self.groups = {ADMIN, AGENTS}
        self.users: dict[str, dict[str, Any]] = {}
        self.challenge = ""

    def admin_get_user(self, UserPoolId: str, Username: str) -> Any:  # noqa: N803
        if Username not in self.users:
            raise UserNotFoundException
        return {"UserAttributes": self.users[Username]["attributes"]}

    def admin_create_user(self, Username: str, UserAttributes: Any, **_: Any) -> None:  # noqa: N803
        self.users[Username] = {"attributes": UserAttributes, "groups": set(), "password": None}

    def admin_delete_user(self, UserPoolId: str, Username: str) -> None:  # noqa: N803
        del self.users[Username]

    def admin_set_user_password(self, Username: str, Password: str, Permanent: bool, **_: Any) -> None:  # noqa: N803
        self.users[Username]["password"] = Password if Permanent else None

    def admin_list_groups_for_user(self, Username: str, **_: Any) -> Any:  # noqa: N803
        return {"Groups": [{"GroupName": each} for each in sorted(self.users[Username]["groups"])]}

    def create_group(self, UserPoolId: str, GroupName: str) -> None:  # noqa: N803
        if GroupName in self.groups:
            raise GroupExistsException
        self.groups.add(GroupName)

    def admin_add_user_to_group(self, Username: str, GroupName: str, **_: Any) -> None:  # noqa: N803
        assert GroupName in self.groups
        self.users[Username]["groups"].add(GroupName)

    def admin_remove_user_from_group(self, Username: str, GroupName: str, **_: Any) -> None:  # noqa: N803
        self.users[Username]["groups"].remove(GroupName)

    def admin_initiate_auth(self, AuthParameters: dict[str, str], AuthFlow: str, **_: Any) -> Any:  # noqa: N803
        assert AuthFlow == "ADMIN_USER_PASSWORD_AUTH"
        user = self.users[AuthParameters["USERNAME"]]
        assert user["password"] == AuthParameters["PASSWORD"]
        if self.challenge:
            return {"ChallengeName": self.challenge}
        return {"AuthenticationResult": {"AccessToken": token_of(AuthParameters["USERNAME"])}}


@pytest.fixture
def cognito() -> Cognito:
    return Cognito()


def test_who_first_needs_an_organization_s_group_makes_it(cognito: Cognito, users: PoolUsers) -> None:
    both = {"streakline/leads/acme", "streakline/leads/other"}
    for _ in range(2):
        users.token("crm", *sorted(both))
        assert cognito.users["crm"]["groups"] == both
    users.token("crm", "streakline/leads/acme")
    assert cognito.users["crm"]["groups"] == {"streakline/leads/acme"}


@pytest.fixture
def users(cognito: Cognito) -> PoolUsers:
    return PoolUsers(cognito, "pool", "app")


def test_a_user_is_made_once_and_is_in_the_asked_group_alone(cognito: Cognito, users: PoolUsers) -> None:
    assert subject(users.token("ann", ADMIN)) == "ann"
    first = cognito.users["ann"]["password"]
    cognito.users["ann"]["groups"].add("somebody/else")
    users.token("ann", AGENTS)
    assert cognito.users["ann"]["groups"] == {AGENTS, "somebody/else"}
    users.token("ann")
    assert cognito.users["ann"]["groups"] == {"somebody/else"}
    assert cognito.users["ann"]["password"] != first
    users.remove("ann")
    users.remove("ann")
    assert cognito.users == {}


def test_a_person_s_own_user_keeps_password_and_groups(
    cognito: Cognito, users: PoolUsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STREAKLINE_PASSWORD", raising=False)
    own = cognito.users["bob"] = {"attributes": [], "groups": {AGENTS}, "password": "bob's"}
    before = json.dumps(own, default=sorted)
    with pytest.raises(RuntimeError, match="STREAKLINE_PASSWORD"):
        users.token("bob", AGENTS)
    with pytest.raises(RuntimeError, match="is not in streakline/admin"):
        users.token("bob", ADMIN)
    monkeypatch.setenv("STREAKLINE_PASSWORD", "bob's")
    assert subject(users.token("bob", AGENTS)) == "bob"
    users.remove("bob")
    assert json.dumps(cognito.users["bob"], default=sorted) == before


def test_a_challenge_is_a_sentence(cognito: Cognito, users: PoolUsers) -> None:
    cognito.challenge = "SOFTWARE_TOKEN_MFA"
    with pytest.raises(RuntimeError, match="Cognito asks for SOFTWARE_TOKEN_MFA"):
        users.token("ann")
    assert MARK in cognito.users["ann"]["attributes"]


def stack(**parameters: str) -> Stack:
    return Stack("https://api", "", "eu-west-1", {"ApiUrl": "https://api"}, {}, "", "live", parameters)


def test_another_issuer_s_tokens_come_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAKLINE_TOKEN", raising=False)
    with pytest.raises(RuntimeError, match=r"takes tokens of https://id\.example: .* STREAKLINE_TOKEN"):
        bearer(stack(JwtIssuer="https://id.example"), "ann", ADMIN)
    monkeypatch.setenv("STREAKLINE_TOKEN", "given")
    assert bearer(stack(), "ann") == "given"


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "a.e30.c"])
def test_what_is_no_token_is_told(text: str) -> None:
    with pytest.raises(RuntimeError, match="no JWT"):
        subject(text)
