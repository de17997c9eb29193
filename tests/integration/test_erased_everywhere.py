"""Every route of the OpenAPI document answers 410 about somebody who was erased, and no answer names them."""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.engagement.account_items import UNDER_REVIEW
from adapters.platform.items import encode_item
from adapters.privacy.erasure_jobs import ErasureJobs
from ingest.openapi import ROUTES
from ingest.web.routes import Route
from tests.support import site as users_site
from tests.support.engine import Engine
from tests.support.gateway import GROUP_AGENTS
from tests.support.memory import forget
from tests.support.moved_site import event, send
from tests.support.site import ADMIN, FULFILMENT, Site

BRAND = f"{FULFILMENT}/acme"
# What somebody who was erased is still answered, and whoever asks for them.
FOR_THE_ERASED = {"DeleteUser", "PostUserLift", "GetErasure"}
# No user's: they name nobody. Leads have tombstones of their own.
NOBODYS = ("/v1/rules", "/v1/operations", "/v1/webhook-endpoints", "/v1/leads", "/v1/events")
NAMED = {
    "name": "day",
    "board": "points",
    "board_name": "weekly",
    "friend_id": "somebody",
    "number": "1",
    "fingerprint": "me",
    "erasure_id": "0" * 32,
    "subscription_id": str(uuid.uuid4()),
    "hold_id": "h" * 26,
    "entry_id": "20260301T000000000000Z",
    "question_id": "q" * 26,
}
OF_PEOPLE = [each for each in ROUTES if {"{user_id}", "{agent_id}"} & set(each.path.split("/"))]


@pytest.fixture(scope="module")
def site(engine: Engine) -> Iterator[Site]:
    secret = engine.client("secretsmanager").create_secret(
        Name=f"erase-{uuid.uuid4()}", SecretString="k" * 32
    )
    with users_site.site(engine, ERASURE_SECRET_ARN=secret["ARN"]) as prepared:
        yield prepared


@pytest.fixture(scope="module")
def erased(site: Site) -> Iterator[str]:
    """Somebody who had points, is under review and was erased; the sweep has not come yet."""
    user = f"gone{uuid.uuid4().hex}"
    send(site, user, event("CHECK_IN", datetime.now(UTC)))
    site.engine.client("dynamodb").update_item(
        TableName="UserStreaks",
        Key=encode_item({"user_id": user}),
        UpdateExpression="SET review_state = :open, tz_review = :yes",
        ExpressionAttributeValues=encode_item({":open": UNDER_REVIEW, ":yes": True}),
    )
    assert user in json.dumps(site.admin("GET", "/v1/review"))
    assert site.call(user, "DELETE", f"/v1/users/{user}")[0] == 202
    forget()  # as half a minute later, when every process reads the journal again
    yield user
    jobs = ErasureJobs(site.engine.client("dynamodb"), "Erasures")
    for each in jobs.opened():  # so that no other module's erasures are counted with it
        jobs.finish(each, {}, "")


def asked(route: Route, user: str) -> tuple[str, str, Any]:
    path = route.path.format(**NAMED, user_id=user, agent_id=user)
    return route.method.upper(), path, route.body and {}


@pytest.mark.parametrize("route", OF_PEOPLE, ids=lambda each: each.name)
def test_whoever_may_reach_the_erased_is_told_410_and_strangers_403(
    site: Site, erased: str, route: Route
) -> None:
    callers = {"own": (erased, ()), "admin": ("operator", (ADMIN,)), "shop": ("shop", (FULFILMENT,))}
    for sub, groups in (*callers.values(), ("brand", (BRAND,))):
        status, told = site.call(sub, *asked(route, erased), *groups)
        if route.name in FOR_THE_ERASED:
            assert status in (202, 200, 403, 409), told
        else:
            assert (status, told["error"]["code"]) == (410, "erased"), (route.path, sub, told)
            assert erased not in json.dumps(told)
    for path in (erased, f"never{uuid.uuid4().hex}"):
        method, target, body = asked(route, path)
        status, told = site.call("stranger", method, target, body)
        assert status == 403, (route.path, told)  # as for somebody who was never there


@pytest.mark.parametrize("route", [each for each in ROUTES if not each.is_open], ids=lambda each: each.name)
def test_the_erased_are_answered_410_whatever_they_ask(site: Site, erased: str, route: Route) -> None:
    if route.name in FOR_THE_ERASED or route.path.startswith(NOBODYS) or route.api == "PollsApi":
        return
    status, told = site.call(erased, *asked(route, erased), GROUP_AGENTS)
    assert (status, told["error"]["code"]) == (410, "erased"), (route.path, told)


def test_lists_do_not_name_the_erased(site: Site, erased: str) -> None:
    living = f"here{uuid.uuid4().hex}"
    send(site, living, event("CHECK_IN", datetime.now(UTC)))
    for path in ("/v1/review", "/v1/review?limit=1"):
        status, told = site.admin("GET", path)
        assert (status, erased in json.dumps(told)) == (200, False), told
    now = datetime.now(UTC).isoformat()
    amnesty = {"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T01:00:00Z", "reason": f"outage {now}"}
    status, made = site.admin("POST", "/v1/amnesties", amnesty)
    assert status == 201, made
    path = f"/v1/amnesties/{made['number']}/apply"
    status, told = site.admin("POST", path, {"users": [erased, living], "dry_run": True})
    assert (status, [each["user_id"] for each in told["users"]]) == (200, [living])
    status, told = site.admin("POST", path, {"users": [erased]})
    assert (status, told["error"]["code"], erased in json.dumps(told)) == (410, "erased", False)
