"""Who is calling, as the authorizer's claims tell, and whose data that caller may reach."""

from typing import Any

import pytest

from ingest.web.caller import ApiError, Caller, caller_of


def with_claims(**claims: Any) -> dict[str, Any]:
    named = {name.replace("groups", "cognito:groups"): value for name, value in claims.items()}
    return {"requestContext": {"authorizer": {"jwt": {"claims": named}}}}


@pytest.mark.parametrize(
    ("claims", "is_admin"),
    [
        ({}, False),
        ({"groups": ["streakline/admin"]}, True),
        ({"groups": ["other", "streakline/admin"]}, True),
        ({"groups": "[other streakline/admin]"}, True),
        ({"groups": "[streakline/admin]"}, True),
        ({"groups": "other,streakline/admin"}, True),
        ({"scope": "openid streakline/admin"}, True),
        ({"groups": []}, False),
        ({"groups": None}, False),
        ({"groups": "[streakline/administrator]"}, False),
        ({"groups": "[my-streakline/admin]"}, False),
        ({"scope": "streakline/admin.read"}, False),
        ({"scope": "streakline admin"}, False),
        ({"username": "streakline/admin"}, False),
    ],
)
def test_the_admin_is_known_by_group_or_scope(claims: dict[str, Any], is_admin: bool) -> None:
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
        ({"groups": ["streakline/leads/acme"], "scope": "openid streakline/leads/third"}, {"acme", "third"}),
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
