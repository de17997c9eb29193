"""Boards never tell a user id, and what issuers put into `sub` is one everywhere."""

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from typing import Any
from urllib.parse import quote

import pytest

from adapters.engagement.boards import LeaderboardIndex
from adapters.engagement.engagement_cache import EngagementCache
from processors.ranks import RankBuilder
from tests.support.engine import Engine
from tests.support.gateway import GROUP_AGENTS
from tests.support.memory import forget
from tests.support.site import FULFILMENT, PRODUCERS, Site, site

NUMBERS = count()
SUBS = (
    "auth0|5f7c8ec7c33c6c004bbafe82",
    "google-oauth2|103547",
    "a@b.example",
    "x=y+z~1",
    "samlp|acme|ann@x.io",
    # Entra and AD FS issue hashes, in either alphabet of Base64.
    "_5Z0uBkq0i8q/PmSsbtpD5AFVy2Tdz1ghd2pjlrlSbw=",
    "-3fX9kZq_a+b/c==",
    "https://issuer.example/users/7",
    "mug/2",  # also the name of a part of a reward's stock
    "lead/7",  # also the holder of a lead's notifications
    "CN=Ann,OU=[x]{y}~!$&'()*;<z>^`",
    "x" * 255,
    "_" * 200,
    "/" * 255,
    "--help",
    "//a/",
    "user/mug/2",  # as a user with a slash is written where other things have names, too
    "+/+/=",
    "S-1-5-21-3623811015-3361044348-30300820-1013",
    "did:web:example.com:u:7",
    "__proto__",
    "events",
)


def in_path(sub: str) -> str:
    """As the clients write it: a slash twice, since the gateway decodes a path before it looks for the route."""
    return quote(sub, safe="").replace("%2F", "%252F")


def twice(sub: str) -> str:
    return quote(quote(sub, safe=""), safe="")


@pytest.fixture(scope="module", params=["index or snapshot", "redis"])
def api(engine: Engine, lone_redis_url: str, request: pytest.FixtureRequest) -> Iterator[Site]:
    with site(engine, lone_redis_url if request.param == "redis" else "") as prepared:
        yield prepared


@pytest.fixture
def user() -> str:
    return f"auth0|n{time.time_ns()}-{next(NUMBERS)}"


def event(**more: Any) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat()
    return {
        "idempotency_key": f"k{next(NUMBERS)}",
        "event_type": "LESSON_COMPLETED",
        "occurred_at": now,
        **more,
    }


def built(api: Site, redis_url: str) -> None:
    dynamodb = api.engine.client("dynamodb")
    index = LeaderboardIndex(dynamodb, "UserStreaks", 2)
    builder = RankBuilder(dynamodb, "UserStreaks", "Boards", index, EngagementCache(redis_url))
    builder.build(datetime.now(UTC))


def test_boards_show_a_pseudonym_until_the_user_has_chosen_an_alias(
    api: Site, user: str, lone_redis_url: str, request: pytest.FixtureRequest
) -> None:
    redis_url = lone_redis_url if "redis" in request.node.name else ""
    path = f"/v1/users/{quote(user, safe='')}"
    api.send(user, *[event(timezone="Antarctica/Troll") for _ in range(20)])

    def shown() -> tuple[Any, str]:
        told = []
        for board in ("streaks", "points"):
            status, top = api.call(user, "GET", f"/v1/leaderboards/{board}?region=antarctica&limit=100")
            assert status == 200, top
            told.append(top)
            assert "auth0" not in json.dumps(top)
            assert all(set(each) == {"rank", "alias", "score", "is_me"} for each in top["entries"])
        (mine,) = [each for each in told[0]["entries"] if each["is_me"]]
        own = api.call(
            user, "GET", f"/v1/leaderboards/points/users/{quote(user, safe='')}?region=antarctica"
        )[1]
        assert own["alias"] == mine["alias"]
        return told, mine["alias"]

    built(api, redis_url)
    _, pseudonym = shown()
    assert re.fullmatch("[A-Z][a-z]+ [A-Z][a-z]+ [1-9][0-9]", pseudonym)
    status, told = api.call(user, "PUT", f"{path}/alias", {"alias": "Ann of Oslo"})
    assert (status, told["shown_as"]) == (200, "Ann of Oslo")
    built(api, redis_url)
    forget()  # a process keeps a snapshot's manifest for half a minute
    assert shown()[1] == "Ann of Oslo"
    stranger = api.call("somebody", "GET", "/v1/leaderboards/streaks?region=antarctica&limit=100")[1]
    assert not any(each["is_me"] for each in stranger["entries"])
    assert api.call(user, "PUT", f"{path}/alias", {"alias": None})[1]["shown_as"] == pseudonym
    built(api, redis_url)
    forget()
    assert shown()[1] == pseudonym


@pytest.mark.parametrize(
    "alias", ["<b>x</b>", "a", "x" * 25, " ann", "ann\n", "", "Swift Heron 42", "swift-heron.7"]
)
def test_an_alias_is_plain(api: Site, user: str, alias: str) -> None:
    path = f"/v1/users/{quote(user, safe='')}/alias"
    status, told = api.call(user, "PUT", path, {"alias": alias})
    assert (status, told["error"]["details"][0]["field"]) == (422, "alias")


@pytest.mark.parametrize("sub", SUBS)
@pytest.mark.parametrize("written", [in_path, twice])
def test_a_sub_of_any_issuer_is_a_user_id_on_every_route(api: Site, sub: str, written: Any) -> None:
    api.send(sub, event())
    path = f"/v1/users/{written(sub)}"
    for ending in ("", "/events", "/activity", "/ledger", "/streak/explain?date=2026-01-01"):
        status, told = api.call(sub, "GET", f"{path}{ending}")
        assert status == 200, told
    assert api.call(sub, "GET", path)[1]["user_id"] == sub
    assert api.call(sub, "GET", f"{path}/ledger")[1]["entries"][0]["account_id"] == sub
    assert api.call(sub, "PUT", f"{path}/timezone", {"timezone": "Europe/Oslo"})[0] == 200
    assert api.call(sub, "POST", f"{path}/freezes", {})[0] in (201, 409)
    body = {"points": 1, "reward_id": "mug", "idempotency_key": f"r{next(NUMBERS)}"}
    entry = api.call(sub, "POST", f"{path}/redemptions", body, FULFILMENT)[1]["entry_id"]
    assert api.admin("POST", f"{path}/redemptions/{entry}/reversal", {})[0] == 201
    assert api.call("another", "GET", path)[0] == 403
    assert api.admin("POST", f"/v1/review/{written(sub)}/release")[0] == 200
    asked = {"idempotency_key": "q", "type": "text", "prompt": "?", "required_responses": 1}
    assert api.call(sub, "POST", "/v1/questions", asked, GROUP_AGENTS)[0] in (200, 201)
    assert api.call(sub, "GET", f"/v1/agents/{written(sub)}/questions", None, GROUP_AGENTS)[0] == 200


@pytest.mark.parametrize(
    "sub",
    [
        "a b",
        "a%7Cb",
        "x" * 256,
        "a\nb",
        "é",
        ".",
        "..",
        "a/../b",
        "./a",
        "a#b",
        "a?b",
        'a"b',
        "erased/7",
        "gone/7",
        " a",
        "a\x7f",
    ],
)
def test_a_sub_that_is_no_user_id_is_refused_and_stores_nothing(api: Site, sub: str) -> None:
    status, told = api.call(sub, "POST", "/v1/events", {"events": [event()]})
    assert (status, told["error"]["code"]) == (403, "forbidden")
    assert "sub" in told["error"]["message"]


@pytest.mark.parametrize("user_id", ["NULL", "undefined", "nan", "TRUE", "None", "4.91771E+12", "17.0", "0"])
def test_an_id_that_a_program_or_a_spreadsheet_made_up_has_no_events_and_can_be_read_and_erased(
    api: Site, user_id: str
) -> None:
    sent = {"events": [event(user_id=user_id), event(user_id="somebody")]}
    status, told = api.call("server", "POST", "/v1/events", sent, PRODUCERS)
    assert (status, told["accepted"], told["rejected"]) == (202, 1, 1)
    assert told["results"][0]["error"]["field"] == "user_id"
    assert user_id in told["results"][0]["error"]["message"]
    assert api.admin("GET", f"/v1/users/{user_id}")[0] in (200, 410)
    assert api.admin("DELETE", f"/v1/users/{user_id}")[0] == 202


def test_head_answers_where_get_does_without_a_body(api: Site, user: str) -> None:
    api.send(user, event())
    for path in ("", "/ledger", "/events"):
        assert api.call(user, "HEAD", f"/v1/users/{in_path(user)}{path}") == (200, None)
    assert api.call(user, "HEAD", "/v1/users/another") == (403, None)
    assert api.call(user, "HEAD", "/v1/nothing")[0] == 404
