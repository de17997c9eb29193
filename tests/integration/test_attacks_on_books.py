"""Attacks on the book of rules through the real handlers."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters import clock
from rules.days import stamp
from tests.integration.test_rules_api import api, book, event, points, publish
from tests.support.site import Site

__all__ = ["api"]  # the fixture of a site that forgets its versions


@pytest.mark.parametrize(
    "said",
    [
        {"points": 5.0},
        {"points": 5, "cap": {"points": 10.0, "per": "day"}},
        {"points": 5, "cap": {"events": 2.0, "per": "day"}},
    ],
    ids=str,
)
def test_5_0_is_refused_or_is_5(api: Site, user: str, said: Any) -> None:
    if publish(api, book(READ=said))[0] == 201:
        assert api.send(user, event("READ"))["accepted"] == 1
        assert points(api, user) == 5


def test_a_boost_of_2_0_is_refused_or_is_2(api: Site, user: str) -> None:
    now = datetime.now(UTC)
    boost = {"since": stamp(now - timedelta(1)), "until": stamp(now + timedelta(1)), "factor": 2.0}
    if publish(api, book(READ=5) | {"boosts": [boost]})[0] == 201:
        assert api.send(user, event("READ"))["accepted"] == 1
        assert points(api, user) == 10


def test_freezes_of_5_0_are_refused_or_are_5(api: Site, user: str) -> None:
    document = book()
    document["freezes"] = {"held_max": 5.0, "free_a_month": 0, "price_points": 5.0}
    if publish(api, document)[0] == 201:
        api.send(user, event("CHECK_IN"))
        assert api.call(user, "POST", f"/v1/users/{user}/freezes")[0] == 201
        assert api.profile(user)["balance"] == 0


@pytest.mark.parametrize("then", ["gone", "server", "contract"])
def test_an_event_sent_again_after_another_version_gets_its_first_result(
    api: Site, user: str, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 4: the same body is the first result. Its phone's clock is two minutes fast."""
    publish(api, book(READ=5))
    early = event("READ", datetime.now(UTC) + timedelta(minutes=2))
    assert api.send(user, early)["results"][0]["status"] == "accepted"
    later = {"gone": {}, "server": {"READ": {"points": 5, "declared_by": "server"}}}
    if then == "contract":
        publish(api, book())
        later["contract"] = {"READ": {"points": 5, "properties": {"required": ["pages"]}}}
    assert publish(api, book(**later[then]))[0] == 201
    assert api.send(user, early)["results"][0]["status"] == "duplicate"


def test_an_event_that_a_dead_attempt_claimed_is_stored_after_another_version(
    api: Site, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its claim is written, its answer and its item are not; then its type leaves the book."""
    publish(api, book(READ=5))
    early = event("READ", datetime.now(UTC) + timedelta(minutes=2))
    with monkeypatch.context() as dying:
        dying.setattr("adapters.engagement.event_store.EventStore.put", _die)
        with pytest.raises(KeyboardInterrupt):
            api.send(user, early)
    assert publish(api, book())[0] == 201
    told = api.send(user, early)["results"][0]
    assert (told["status"], points(api, user)) == ("duplicate", 5)


def _die(*_: Any) -> None:
    raise KeyboardInterrupt


def test_a_version_is_as_wide_as_the_one_that_it_goes_before(
    api: Site, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 5: never less than the version before. Here the one before is published after."""
    now = datetime.now(UTC)
    strict = {"properties": {"pages": {"type": "integer", "minimum": 1}}}
    assert publish(api, book(READ={"points": 5, "properties": strict}))[0] == 201
    planned = book(READ={"points": 9, "properties": strict})
    assert publish(api, planned, stamp(now + timedelta(days=2)))[0] == 201
    status, told = publish(api, book(READ=5))
    assert (status, told["error"]["details"][0]["field"]) == (
        422,
        "event_types.READ.properties.properties.pages.type",
    )


def test_what_is_published_for_now_is_in_force(api: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two who publish, the later one's clock is a minute slow, or its request waited for a minute."""
    assert publish(api, book(READ=5))[0] == 201
    with monkeypatch.context() as slow:
        slow.setattr(clock, "now", lambda: datetime.now(UTC) - timedelta(minutes=1))
        status, told = publish(api, book(READ=9))
    assert status == 201
    assert api.admin("GET", "/v1/rules")[1]["version"] == told["version"]
