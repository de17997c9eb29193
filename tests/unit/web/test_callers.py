"""Who is calling, as the authorizer's claims tell, and whose data that caller may reach."""

import base64
import json
import re
from typing import Any

import pytest

from ingest.web.caller import ApiError, Caller, caller_of
from tests.support.template import template


def with_claims(**claims: Any) -> dict[str, Any]:
    named = {name.replace("groups", "cognito:groups"): value for name, value in claims.items()}
    return {"requestContext": {"authorizer": {"jwt": {"claims": named}}}}


@pytest.mark.parametrize(
    ("claims", "is_admin"),
    [
        ({}, False),
        ({"groups": ["streakline/admin"]}, True),
        ({"groups": ["other", "streakline/admin"]}, True),
        ({"groups": "[streakline/none streakline/admin]"}, True),
        ({"groups": "[streakline/admin]"}, True),
        ({"groups": "streakline/admin"}, True),
        ({"groups": "other,streakline/admin"}, True),
        ({"groups": "not,streakline/admin,x"}, True),
        ({"groups": ["not,streakline/admin"]}, False),
        ({"groups": "[other streakline/admin]"}, False),  # one group with a blank in its name, perhaps
        ({"groups": ["not streakline/admin"]}, False),
        ({"groups": "not streakline/admin"}, False),
        ({"groups": "[not streakline/admin]"}, False),
        ({"groups": "[x streakline/admin"}, False),
        ({"groups": ["[x streakline/admin"]}, False),
        ({"groups": ["streakline/admin]"]}, False),
        ({"groups": ["streakline/admin\n"]}, False),
        ({"groups": [["streakline/admin"], {"a": "streakline/admin"}]}, False),
        ({"groups": {"streakline/admin": True}}, False),
        ({"scope": "openid streakline/admin"}, False),
        ({"scope": "streakline/admin"}, False),
        ({"scp": ["streakline/admin"]}, False),
        ({"roles": ["streakline/admin"]}, False),
        ({"groups": []}, False),
        ({"groups": None}, False),
        ({"groups": "[streakline/administrator]"}, False),
        ({"groups": "[my-streakline/admin]"}, False),
        ({"scope": "streakline/admin.read"}, False),
        ({"scope": "streakline admin"}, False),
        ({"username": "streakline/admin"}, False),
    ],
)
def test_the_admin_is_known_by_a_group_alone(claims: dict[str, Any], is_admin: bool) -> None:
    assert caller_of(with_claims(sub="u", **claims)) == Caller("u", is_admin)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"requestContext": {}},
        {"requestContext": {"authorizer": {}}},
        {"requestContext": {"authorizer": {"jwt": {}}}},
        with_claims(),
        with_claims(sub=""),
        with_claims(scope="streakline/admin"),
    ],
)
def test_without_a_verified_sub_nobody_is_calling(event: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refused:
        caller_of(event)
    assert (refused.value.status, refused.value.code) == (401, "unauthorized")


def test_a_producer_is_believed_what_happened_and_reads_nothing_of_others() -> None:
    shop = caller_of(with_claims(sub="shop", groups="[streakline/producers]"))
    assert shop.is_server
    assert not shop.is_admin
    with pytest.raises(ApiError) as refused:
        shop.check("ann")
    assert refused.value.status == 403
    assert not caller_of(with_claims(sub="u", groups="[streakline/producer]")).is_server


def test_a_caller_reaches_their_own_data_and_an_admin_all() -> None:
    Caller("u", False).check("u")
    Caller("u", True).check("v")
    with pytest.raises(ApiError) as refused:
        Caller("u", False).check("v")
    assert refused.value.status == 403


@pytest.mark.parametrize(
    ("claims", "organizations"),
    [
        ({"groups": ["streakline/leads/acme"]}, {"acme"}),
        ({"groups": "[streakline/leads/acme streakline/leads/other]"}, {"acme", "other"}),
        ({"groups": ["streakline/leads/acme"], "scope": "openid streakline/leads/third"}, {"acme"}),
        ({"groups": "[streakline/leads]"}, set()),
        ({"groups": "[streakline/leads/]"}, set()),
        ({"groups": "[streakline/leadsacme my-streakline/leads/acme]"}, set()),
        ({"groups": "[streakline/leads/ACME]"}, {"ACME"}),
        ({"username": "streakline/leads/acme"}, set()),
    ],
)
def test_a_caller_belongs_to_the_organizations_that_its_groups_name(
    claims: dict[str, Any], organizations: set[str]
) -> None:
    assert caller_of(with_claims(sub="u", **claims)) == Caller("u", False, frozenset(organizations))


def test_an_organization_s_caller_reaches_its_leads_and_no_others() -> None:
    ours = Caller("u", False, frozenset({"acme"}))
    ours.check_leads()
    ours.check_organization("acme")
    for caller, check in (
        (ours, lambda each: each.check_organization("acm")),
        (ours, lambda each: each.check_admin()),
        (Caller("u", False), Caller.check_leads),
    ):
        with pytest.raises(ApiError) as refused:
            check(caller)
        assert refused.value.status == 403
    assert Caller("u", True).reaches("whoever")


def with_token(header: str, **claims: Any) -> dict[str, Any]:
    """As the gateway hands on what it has verified: lists as texts, and the header as it came."""
    texts = {
        name: f"[{' '.join(map(str, value))}]" if isinstance(value, list) else str(value)
        for name, value in claims.items()
    }
    return {
        "headers": {"authorization": header},
        "requestContext": {"authorizer": {"jwt": {"claims": texts}}},
    }


def token_of(**claims: Any) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


@pytest.mark.parametrize(
    ("groups", "is_admin"),
    [
        (["other", "streakline/admin"], True),
        (["a b", "streakline/admin"], True),
        ("streakline/admin", True),
        (["not streakline/admin"], False),
        (["[x streakline/admin"], False),
        (["x", "not streakline/admin", "y"], False),
        (["streakline/agents streakline/admin"], False),
        ("not streakline/admin", False),
        ("[streakline/agents streakline/admin]", False),
        ("[streakline/admin]", False),
        (["streakline/admin streakline/admin"], False),
    ],
)
def test_a_group_is_matched_whole_as_the_token_itself_lists_it(groups: Any, is_admin: bool) -> None:
    claims = {"sub": "u", "cognito:groups": groups}
    for scheme in ("Bearer ", "bearer ", ""):
        assert caller_of(with_token(scheme + token_of(**claims), **claims)).is_admin is is_admin


def test_a_header_that_may_be_another_than_the_verified_token_grants_nothing() -> None:
    claims = {"sub": "u", "cognito:groups": ["not streakline/admin"]}
    forged = token_of(sub="u", **{"cognito:groups": ["streakline/admin"]})
    other = token_of(sub="v", **{"cognito:groups": ["streakline/admin"]})
    for header in (
        f"Bearer {token_of(**claims)},Bearer {forged}",
        f"Bearer {token_of(**claims)}, {forged}",
        f"Bearer {other}",
        f"Basic {forged} x",
        f"Bearer {forged}.x",
        "Bearer e30.bm8.x",
        f"Bearer e30.{base64.urlsafe_b64encode(b'[' * 9999).decode()}.x",
        "",
    ):
        assert not caller_of(with_token(header, **claims)).is_admin, header


@pytest.mark.parametrize("claim", ["groups", "roles", "https://app.example.com/groups"])
@pytest.mark.parametrize("value", [["streakline/admin", "b c"], "streakline/admin"])
def test_another_issuer_s_claim_of_groups_is_named_by_a_setting(
    claim: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = {"sub": "u", claim: value}
    event = with_token(f"Bearer {token_of(**claims)}", **claims)
    assert not caller_of(event).is_admin
    monkeypatch.setenv("GROUPS_CLAIM", claim)
    assert caller_of(event).is_admin
    cognito = {"sub": "u", "cognito:groups": ["streakline/admin"]}
    assert not caller_of(with_token(f"Bearer {token_of(**cognito)}", **cognito)).is_admin


@pytest.mark.parametrize(
    ("claim", "claims", "is_admin"),
    [
        ("realm_access.roles", {"realm_access": {"roles": ["x", "streakline/admin"]}}, True),
        ("realm_access.roles", {"realm_access": {"roles": ["x streakline/admin"]}}, False),
        ("realm_access.roles", {"realm_access": {"other": ["streakline/admin"]}}, False),
        ("realm_access.roles", {"realm_access": "[streakline/admin]"}, False),
        ("realm_access.roles", {"realm_access": [{"roles": ["streakline/admin"]}]}, False),
        ("realm_access.roles", {"roles": ["streakline/admin"]}, False),
        ("realm_access", {"realm_access": {"roles": ["streakline/admin"]}}, False),
        (
            "resource_access.my.app.roles",
            {"resource_access": {"my.app": {"roles": ["streakline/admin"]}}},
            True,
        ),
        ("resource_access.my.app.roles", {"resource_access": {"my": {"roles": ["streakline/admin"]}}}, False),
        ("https://a.example/roles", {"https://a.example/roles": ["streakline/admin"]}, True),
        ("a.roles", {"a.roles": ["x"], "a": {"roles": ["streakline/admin"]}}, False),
        ("a.roles", {"a.roles": None, "a": {"roles": ["streakline/admin"]}}, False),
    ],
)
def test_a_claim_within_a_claim_is_named_by_its_path(
    claim: str, claims: dict[str, Any], is_admin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUPS_CLAIM", claim)
    said = {"sub": "u", **claims}
    assert caller_of(with_token(f"Bearer {token_of(**said)}", **said)).is_admin is is_admin
    assert re.fullmatch(template()["Parameters"]["JwtGroupsClaim"]["AllowedPattern"], claim)


@pytest.mark.parametrize("claim", ["scope", "scp"])
@pytest.mark.parametrize("value", ["streakline/admin", "openid streakline/admin", ["streakline/admin"]])
def test_scopes_never_grant_groups_even_if_a_setting_names_them(
    claim: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUPS_CLAIM", claim)
    claims = {"sub": "u", claim: value}
    assert caller_of(with_token(f"Bearer {token_of(**claims)}", **claims)) == Caller("u", False)
    pattern = template()["Parameters"]["JwtGroupsClaim"]["AllowedPattern"]
    assert not re.fullmatch(pattern, claim)
    assert re.fullmatch(pattern, "https://app.example.com/groups")
