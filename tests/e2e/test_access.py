"""Who may do what: tokens, other people's data, backfill, rate limit."""

import base64
import json
from datetime import UTC, datetime, timedelta

import jwt
import pytest
import urllib3
from streakline_client import Queueing, Refused, Streakline

from local.api import Api
from local.cloud.tokens import KEY_FILE, KEY_ID, token
from local.stack import Stack
from tests.e2e.conftest import event

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")


def get(stack: Stack, path: str, bearer: str | None) -> int:
    headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
    return int(
        urllib3.request("GET", stack.api_url + path, headers=headers, retries=False, timeout=60).status
    )


def forged(genuine: str, **claims: object) -> str:
    """A token with other claims under the genuine one's signature."""
    head, body, signature = genuine.split(".")
    known = json.loads(base64.urlsafe_b64decode(body + "=="))
    text = base64.urlsafe_b64encode(json.dumps({**known, **claims}).encode()).decode().rstrip("=")
    return f"{head}.{text}.{signature}"


def unsigned(genuine: str) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
    return f"{head}.{genuine.split('.')[1]}."


def test_no_token_or_a_forged_one_is_401(stack: Stack, user: str) -> None:
    genuine = token(stack, user)
    path = f"/v1/users/{user}"
    assert get(stack, path, genuine) == 200
    assert get(stack, path, None) == 401
    assert get(stack, path, "nonsense") == 401
    assert get(stack, path, genuine[:-4] + "AAAA") == 401
    assert get(stack, path, forged(genuine, sub="somebody")) == 401
    assert get(stack, path, forged(genuine, **{"cognito:groups": ["streakline/admin"]})) == 401
    assert get(stack, path, unsigned(genuine)) == 401


def signed(stack: Stack, user: str, **claims: object) -> str:
    """A token of the laptop's issuer, with other claims."""
    known = jwt.decode(token(stack, user), options={"verify_signature": False})
    return jwt.encode({**known, **claims}, KEY_FILE.read_bytes(), "RS256", headers={"kid": KEY_ID})


@pytest.mark.parametrize(
    ("code", "claims"),
    [
        ("token_expired", {"exp": 1_700_000_000}),
        ("token_expired", {"exp": 1.5}),
        ("wrong_audience", {"aud": "another"}),
        ("wrong_audience", {"aud": ["one", "two"]}),
        ("unknown_issuer", {"iss": "https://issuer.example"}),
        ("malformed_token", "nonsense"),
        ("malformed_token", "a.b.c"),
        ("malformed_token", "a.W10.c"),
        ("unauthorized", "forged"),
    ],
)
def test_a_refusal_says_what_is_wrong_with_the_token(
    stack: Stack, user: str, code: str, claims: dict[str, object] | str
) -> None:
    """Over HTTP, as the client for apps reads it."""
    bearer = forged(token(stack, user), sub="x") if claims == "forged" else claims
    me = Streakline(
        stack.api_url,
        bearer if isinstance(bearer, str) else signed(stack, user, **bearer),
        user=user,
        queue=Queueing(is_sending=False),
    )
    with pytest.raises(Refused) as refused:
        me.profile()
    assert (refused.value.status, refused.value.code) == (401, code)
    me.close()


def test_health_and_openapi_need_no_token(stack: Stack) -> None:
    assert get(stack, "/v1/health", None) == 200
    assert get(stack, "/v1/openapi.json", None) == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/users/{}", None),
        ("GET", "/v1/users/{}/events", None),
        ("GET", "/v1/users/{}/activity", None),
        ("GET", "/v1/users/{}/ledger", None),
        ("GET", "/v1/users/{}/streak/explain?date=2026-01-01", None),
        ("POST", "/v1/users/{}/redemptions", {"points": 1, "reward_id": "x", "idempotency_key": "k"}),
        ("POST", "/v1/users/{}/redemptions/20260101T000000000000Z/reversal", {}),
        ("POST", "/v1/users/{}/freezes", {}),
        ("POST", "/v1/users/{}/pauses", {"first": "2026-01-01", "last": "2026-01-02"}),
        ("PUT", "/v1/users/{}/timezone", {"timezone": "Europe/Berlin"}),
        ("GET", "/v1/leaderboards/streaks/users/{}", None),
    ],
)
def test_another_users_data_is_403(me: Api, method: str, path: str, body: object) -> None:
    status, answer = me.call(method, path.format("somebody-else"), body)
    assert (status, answer["error"]["code"]) == (403, "forbidden")


def test_another_users_events_are_403_and_not_stored(me: Api, admin: Api, user: str) -> None:
    victim = f"{user}-victim"
    status, answer = me.call("POST", "/v1/events", {"events": [event(victim, "k")]})
    assert (status, answer["error"]["code"]) == (403, "forbidden")
    assert admin.get(f"/v1/users/{victim}/events")["events"] == []


def test_backfill_is_for_admins(me: Api, admin: Api, user: str) -> None:
    late = event(user, "late", (datetime.now(UTC) - timedelta(hours=73)).isoformat())
    status, answer = me.call("POST", "/v1/events", {"events": [late]})
    assert (status, answer["rejected"]) == (202, 1), "a wrong time is a fault of the event"
    assert answer["results"][0]["error"]["code"] == "backfill_forbidden"
    in_time = event(user, "in-time", (datetime.now(UTC) - timedelta(hours=71)).isoformat())
    status, answer = me.call("POST", "/v1/events", {"events": [late, in_time]})
    assert (status, answer["accepted"], answer["rejected"]) == (202, 1, 1)
    assert answer["results"][0]["error"]["code"] == "backfill_forbidden"
    assert admin.call("POST", "/v1/events", {"events": [late]})[1]["accepted"] == 1


def test_a_granted_date_of_a_freeze_is_for_admins(me: Api, user: str) -> None:
    assert me.call("POST", f"/v1/users/{user}/freezes", {"granted_on": "2026-01-01"})[0] == 403
    assert me.call("POST", f"/v1/users/{user}/freezes", {})[0] == 201
