"""Servers read the profiles of many users at once."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest

from ingest.engagement.user_services import services
from tests.support.api_stack import stack
from tests.support.engine import Engine
from tests.support.gateway import GROUP_ADMIN, ask, token
from tests.support.pipeline import Pipeline
from tests.support.site import PRODUCERS

pytestmark = pytest.mark.xdist_group("many users")
SECONDS_MAX = 30
ODD = ["auth0|5f7c", "https://issuer.example/users/7", "a,b", "x+y=", "_3fa9-b/Q+x="]


@pytest.fixture(scope="module")
def api(engine: Engine, lone_redis_url: str) -> Iterator[Engine]:
    with stack(engine, lone_redis_url), Pipeline(engine).running():
        sent = [
            {"idempotency_key": f"k{number}", "event_type": "LESSON_COMPLETED", "user_id": user}
            | {"occurred_at": datetime.now(UTC).isoformat()}
            for number, user in enumerate(["many-ann", "many-bob", *ODD])
        ]
        answered = called("server", "POST", "/v1/events", {"events": sent}, PRODUCERS)
        assert answered[1]["accepted"] == len(sent), answered
        until = time.monotonic() + SECONDS_MAX
        while len(read("many-ann", "many-bob", *ODD)["users"]) < len(sent):
            assert time.monotonic() < until
            time.sleep(0.05)
        yield engine


def called(user: str, method: str, path: str, body: Any = None, *groups: str) -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {token(user, *groups)}"}
    answered = ask(method, path, headers, b"" if body is None else json.dumps(body).encode())
    return answered.status, json.loads(answered.body)


def read(*ids: str) -> Any:
    text = ",".join(quote(each.replace(",", "%2C"), safe="") for each in ids)
    status, body = called("server", "GET", f"/v1/users?ids={text}", None, PRODUCERS)
    assert status == 200, body
    return body


def test_each_profile_is_as_it_is_alone_in_the_order_asked_for(api: Engine) -> None:
    found = read("many-bob", "nobody", "many-ann", "many-bob")
    assert [each["user_id"] for each in found["users"]] == ["many-bob", "many-ann"]
    assert found["missing"] == ["nobody"]
    for each in found["users"]:
        assert each == called("root", "GET", f"/v1/users/{each['user_id']}", None, GROUP_ADMIN)[1]
        assert each["total_bestie_points"] == 10


def test_ids_may_be_what_issuers_use(api: Engine) -> None:
    found = read(*ODD)
    assert [each["user_id"] for each in found["users"]] == ODD
    assert found["missing"] == []


def test_a_hundred_are_read_and_no_more(api: Engine) -> None:
    many = [f"nobody-{number}" for number in range(99)]
    assert read("many-ann", *many)["missing"] == many
    status, body = called("server", "GET", f"/v1/users?ids={','.join(many)},a,b", None, PRODUCERS)
    assert (status, body["error"]["code"]) == (400, "invalid_parameter")
    assert body["error"]["message"] == "ids has 101 ids; at most 100"


@pytest.mark.parametrize(
    "query",
    ["", "?ids=", "?ids=many-ann,,many-bob", "?ids=many-many-ann,b%20%22b", "?ids=..", "?ids=" + "a" * 256],
)
def test_what_is_no_list_of_ids_is_refused_by_name(api: Engine, query: str) -> None:
    status, body = called("server", "GET", f"/v1/users{query}", None, PRODUCERS)
    assert (status, body["error"]["code"]) == (400, "invalid_parameter"), body
    assert "ids" in body["error"]["message"]


@pytest.mark.parametrize("groups", [(), ("streakline/agents",), ("streakline/fulfilment",)])
def test_a_person_reads_nobody_by_it(api: Engine, groups: tuple[str, ...]) -> None:
    status, body = called("many-ann", "GET", "/v1/users?ids=many-ann", None, *groups)
    assert (status, body["error"]["code"]) == (403, "forbidden")


def test_the_erased_are_missing(api: Engine) -> None:
    assert called("root", "DELETE", "/v1/users/many-bob", None, GROUP_ADMIN)[0] == 202
    services().erased.look()  # as half a minute later
    found = read("many-ann", "many-bob")
    assert ([each["user_id"] for each in found["users"]], found["missing"]) == (["many-ann"], ["many-bob"])
