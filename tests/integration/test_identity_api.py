"""Operators find a lead, see what happened to it, and mend: through the real handler, on a real PostgreSQL."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from adapters.platform.aws import client
from ingest.leads import identity_api
from ingest.web.paging import cursor_at
from rules.leads.identity import Identity
from tests.support.engine import Engine
from tests.support.http_requests import called
from tests.support.identity_server import NOW, Registry, undo
from tests.support.lead_requests import context
from tests.support.lead_site import Site

pytestmark = pytest.mark.xdist_group("identity")
ACME, OTHER, ADMIN = "streakline/leads/acme", "streakline/leads/other streakline/leads", "streakline/admin"
A, B = Identity("email", "ada@example.com"), Identity("phone", "16505551234")
C = Identity("email", "cat@example.com")


@pytest.fixture(autouse=True)
def served(engine: Engine, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    environment = engine.environment("") | {"LEAD_QUEUE_URL": engine.queue_url, "PHONE_REGIONS": "DE acme=US"}
    for name, value in {**environment, "IDENTITY_URL": registry.url}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("adapters.clock.now", lambda: NOW)
    client.cache_clear()
    identity_api._parts.cache_clear()
    engine.client("sqs").purge_queue(QueueUrl=engine.queue_url)
    yield engine
    identity_api._parts().identities._database.close()
    identity_api._parts.cache_clear()
    client.cache_clear()


def ask(
    path: str, body: Any = None, scope: str = ACME, query: dict[str, str] | None = None
) -> tuple[int, Any]:
    method = "GET" if body is None else "POST"
    event: dict[str, Any] = {"body": json.dumps(body), "requestContext": context(method, path, scope)}
    event["queryStringParameters"] = query
    answer = called(identity_api.handler, method, path, **event)
    return answer["statusCode"], json.loads(answer["body"])


def look(scope: str = ACME, organization: str = "acme", **what: Any) -> tuple[int, Any]:
    return ask("/v1/leads/lookup", {"organization_id": organization, **what}, scope)


def merge(*leads: str, scope: str = ACME, **more: Any) -> tuple[int, Any]:
    return ask("/v1/leads/merges", {"leads": leads, "reason": "one person", **more}, scope)


@pytest.mark.parametrize(
    "what", [{"email": " ADA@Example.com"}, {"phone": "(650) 555-1234"}, {"phone": "+1 650.555.1234"}]
)
def test_a_lead_is_found_however_its_address_or_number_is_written(what: Any, registry: Registry) -> None:
    lead = registry.see(A, B).leaf
    assert look(**what) == look(ADMIN, **what) == (200, {"lead_id": lead, "is_verified": True})
    assert look(OTHER, **what)[0] == look(OTHER, "other", **what)[0] == 404
    assert look(OTHER, **what) == look(email="zoe@example.com")


def test_a_lead_is_found_by_its_id_at_whatsapp(registry: Registry) -> None:
    lead = registry.see(Identity("whatsapp", "DE.9021")).leaf
    assert look(whatsapp=" DE.9021 ") == (200, {"lead_id": lead, "is_verified": True})
    assert look(whatsapp="DE.9022")[0] == 404
    assert look(whatsapp="DE.90 21")[0] == look(whatsapp="DE.9021", phone="+1 650 555 1234")[0] == 422


def test_what_is_claimed_says_so_and_a_merged_lead_is_its_root(registry: Registry) -> None:
    first = registry.see(A).leaf
    registry.see(Identity("email", "claim@example.com", is_verified=False))
    registry.see(C)
    registry.see(A, C)
    assert look(email="claim@example.com")[1]["is_verified"] is False
    assert look(email="cat@example.com")[1]["lead_id"] == first


@pytest.mark.parametrize(
    ("what", "field"),
    [
        ({}, "email"),
        ({"email": "a@b.de", "phone": "1"}, "email"),
        ({"email": "nobody"}, "email"),
        ({"phone": "12"}, "phone"),
        ({"email": "test@example.com"}, "email"),
        ({"organization_id": "a/b", "email": "a@b.de"}, "organization_id"),
    ],
)
def test_what_cannot_be_looked_up_says_why(what: dict[str, Any], field: str, registry: Registry) -> None:
    status, told = ask("/v1/leads/lookup", {"organization_id": "acme", **what}, ADMIN)
    assert (status, told["error"]["details"][0]["field"]) == (422, field)


@pytest.mark.parametrize("scope", ["", "openid", "streakline/leads"])
def test_who_is_of_no_organization_is_refused(scope: str, registry: Registry) -> None:
    assert look(scope, email="ada@example.com")[0] == 403
    assert ask("/v1/leads/x/changes", scope=scope)[0] == 403
    assert merge("x", "y", scope=scope)[0] == 403


def test_a_merge_by_hand_is_audited_announced_and_undone(
    registry: Registry, site: Site, served: Engine
) -> None:
    one, two = (
        registry.see(A, organization=site.organization),
        registry.see(C, organization=site.organization),
    )
    ours = f"streakline/leads/{site.organization}"
    assert merge(one.leaf, two.leaf, scope=OTHER)[0] == 404
    assert registry.see(C, organization=site.organization).root_id == two.leaf
    status, told = merge(one.leaf, two.leaf, scope=ours)
    assert status == 200
    assert merge(two.leaf, one.leaf, scope=ours) == (200, {"change": None}), "safe to repeat"
    (message, *_) = served.client("sqs").receive_message(QueueUrl=served.queue_url)["Messages"]
    site.consumer.handle(json.loads(message["Body"]), NOW)
    (event,) = site.of_source("identity")
    said = {"change": told["change"], "reason": "one person", "by": "crm"}
    assert {name: event.payload[name] for name in said} == said
    assert event.payload["groups"] == [{"root": one.leaf, "leaves": [one.leaf, two.leaf]}]
    undo(registry, told["change"])
    status, seen = ask(f"/v1/leads/{two.leaf}/changes", scope=ours)
    assert [(each["kind"], each["evidence"]["by"]) for each in seen["changes"]] == [
        ("unmerged", "operator"),
        ("merged", "crm"),
    ]
    assert seen["changes"][1]["reversed_by"] == seen["changes"][0]["number"]


@pytest.mark.parametrize("size", [None, 3])
def test_changes_come_in_pages_newest_first_and_each_once(registry: Registry, size: int | None) -> None:
    lead, other = registry.see(A).leaf, registry.see(C).leaf
    add_refusals(registry, [1], 7)
    add_refusals(registry, [2], 5)
    path, cursor, pages = f"/v1/leads/{lead}/changes", None, list[list[int]]()
    while not pages or cursor:
        query = {"limit": str(size)} if size else {}
        status, told = ask(path, query=query | ({"cursor": cursor} if cursor else {}))
        assert status == 200, told
        pages.append([each["number"] for each in told["changes"]])
        cursor = told["cursor"]
    seen = [number for each in pages for number in each]
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == len(set(seen)) == 7
    assert max(map(len, pages)) <= (size or 50)
    assert len(ask(f"/v1/leads/{other}/changes")[1]["changes"]) == 5


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "0"},
        {"limit": "501"},
        {"limit": "x"},
        {"cursor": "x"},
        {"cursor": cursor_at("2026-03-01T00:00:00Z")},
        {"cursor": cursor_at("9" * 19)},
    ],
)
def test_a_page_of_changes_that_there_is_not_is_refused(registry: Registry, query: dict[str, str]) -> None:
    lead = registry.see(A).leaf
    status, told = ask(f"/v1/leads/{lead}/changes", query=query)
    assert (status, told["error"]["code"]) == (400, "invalid_parameter")


def add_refusals(registry: Registry, leads: list[int], number: int) -> None:
    """Note so many changes of leads, as they were stored, without the events that lead to them."""
    registry.owner.execute(
        "INSERT INTO identity.identity_change (organization_id, kind, leads, evidence, announcement, at, announced_at)"
        " SELECT 'acme', 'refused', %s::bigint[], jsonb_build_object('reason', n), '{}', %s, %s"
        " FROM generate_series(1, %s) AS n",
        [leads, NOW, NOW, number],
    )


def test_what_was_kept_apart_is_united_only_by_who_says_so(registry: Registry) -> None:
    one, two = registry.see(A).leaf, registry.see(C).leaf
    undo(registry, registry.see(A, C).changes[-1].number)
    status, told = merge(one, two)
    assert (status, told["error"]["code"]) == (409, "kept_apart")
    assert registry.see(A, C).root_id == one
    assert registry.see(C).root_id == two
    assert merge(one, two, unite=True)[0] == 200
    assert registry.see(C).root_id == one
    evidence = ask(f"/v1/leads/{one}/changes")[1]["changes"][0]["evidence"]
    assert (evidence["reason"], len(evidence["united"])) == ("one person", 1)
    assert registry.rows("SELECT FROM identity.kept_apart") == []


def test_more_than_a_channel_allows_may_be_joined_by_hand_and_stays_findable(registry: Registry) -> None:
    one, two = (Identity("customer", f"acme/shop/{number}") for number in "12")
    first, second = registry.see(one, A), registry.see(two, C)
    assert merge(first.leaf, second.leaf)[0] == 200
    for event, leaf in (((one,), first), ((two, C), second), ((A,), first), ((A, C), first)):
        found = registry.see(*event)
        assert (found.leaf, found.root_id) == (leaf.leaf, first.leaf)
    assert len(registry.rows("SELECT FROM identity.lead")) == 2


def test_leads_of_two_organizations_are_never_one(registry: Registry) -> None:
    ours, theirs = registry.see(A).leaf, registry.see(A, organization="other").leaf
    for scope in (ACME, OTHER, ADMIN, f"{ACME} {OTHER}"):
        assert merge(ours, theirs, scope=scope)[0] == 404
        assert merge(ours, "no-such-lead", scope=scope)[0] == 404


@pytest.mark.parametrize(
    "body",
    [
        {"leads": ["a"], "reason": "r"},
        {"leads": ["a", "a"], "reason": "r"},
        {"leads": ["a", "b"]},
        {"leads": ["a", "b"], "reason": ""},
        {"leads": ["a", "b"], "reason": "r", "unite": 1},
    ],
)
def test_a_bad_merge(body: Any, registry: Registry) -> None:
    assert ask("/v1/leads/merges", body)[0] == 422


def test_history_is_the_organization_s_own(registry: Registry) -> None:
    lead = registry.see(A).leaf
    assert ask(f"/v1/leads/{lead}/changes") == (200, {"lead_id": lead, "changes": [], "cursor": None})
    assert ask(f"/v1/leads/{lead}/changes", scope=ADMIN)[0] == 200
    assert ask(f"/v1/leads/{lead}/changes", scope=OTHER) == ask("/v1/leads/none/changes")
    assert ask("/v1/leads/a%00/changes")[0] == 400


def test_while_postgresql_is_away_one_comes_again(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity_api._parts().identities._database.close()
    identity_api._parts.cache_clear()
    monkeypatch.setenv("IDENTITY_URL", "postgresql://u:p@127.0.0.1:9/d")
    assert look(email="ada@example.com")[0] == 503
