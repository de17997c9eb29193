"""The client for servers against the real handlers."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from streakline_client import Refused, Reply, Request, ServerEvent, StreaklineServer

from tests.support.api_stack import stack
from tests.support.engine import Engine
from tests.support.gateway import ask, token
from tests.support.pipeline import Pipeline
from tests.support.site import PRODUCERS

pytestmark = pytest.mark.xdist_group("server client")
ODD = ["auth0|5f7c", "https://issuer.example/users/7", "a,b", "x+y=", "_3fa9-b/Q+x="]


def over_gateway(request: Request) -> Reply:
    answered = ask(request.method, request.path, dict(request.headers), request.body or b"")
    return Reply(
        answered.status, answered.body, {name.lower(): text for name, text in answered.headers.items()}
    )


@pytest.fixture(scope="module")
def server(engine: Engine, lone_redis_url: str) -> Iterator[StreaklineServer]:
    with stack(engine, lone_redis_url), Pipeline(engine).running():
        yield StreaklineServer(
            "https://x.test", token("shop", PRODUCERS), transport=over_gateway, sleep=lambda _: None
        )


def test_events_of_many_users_and_their_profiles(server: StreaklineServer) -> None:
    users, now = [f"{each}-{uuid4()}" for each in ["ann", *ODD]], datetime.now(UTC)
    events = [
        ServerEvent(
            user=users[number % len(users)],
            event_type="PURCHASE_COMPLETED" if number else "NO_SUCH_TYPE",
            key=f"order:{number}",
            occurred_at=now - timedelta(days=number),  # a server may send what is older than 72 hours
            timezone="Europe/Berlin",
        )
        for number in range(130)
    ]
    sent = list(server.send_all(events))
    assert [each.code for each in sent if not each.is_stored] == ["unknown_type"]
    assert sent[0].field == "event_type"
    assert {each.status for each in server.send_all(events[1:])} == {"duplicate"}
    for user in users:
        done = server.send(user, "PURCHASE_COMPLETED", key="last", timezone="Europe/Berlin", wait=5)
        assert done.applied is not None
        earned = sum(event.user == user for event in events[1:]) + 1
        assert done.applied["profile"]["total_bestie_points"] == 20 * earned
    profiles = server.profiles([*users, "nobody-at-all"])
    assert list(profiles) == users
    assert all(each["timezone"] == "Europe/Berlin" for each in profiles.values())


def test_a_refusal_names_field_and_reason(server: StreaklineServer) -> None:
    with pytest.raises(Refused, match="422 in_the_future") as told:
        server.send(
            "ann", "PURCHASE_COMPLETED", key="later", occurred_at=datetime.now(UTC) + timedelta(days=1)
        )
    assert told.value.details == [{"field": "occurred_at"}]
