"""What admins declare, apply and revoke over HTTP (rule 17)."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import click
import pytest

from adapters.engagement.amnesty_store import FRESH_SECONDS, AmnestyStore
from local import amnesty_command as command
from rules.days import AT_MIDNIGHT, DAY
from rules.engagement.account_state import Amnesty
from tests.support.engine import Engine
from tests.support.site import Site, site

SINCE = datetime(2026, 11, 5, 7, tzinfo=UTC)
AMNESTY = Amnesty(1, SINCE, SINCE + timedelta(hours=30), reason="the API was away")


@pytest.fixture(scope="module")
def api(engine: Engine) -> Iterator[Site]:
    with site(engine) as made:
        yield made


@pytest.fixture
def on() -> Callable[[int], datetime]:
    """An instant on the date so many days before the test's, a minute later in the day: three are not too old."""
    begun = datetime.now(UTC) + timedelta(minutes=1)
    return lambda ago: begun - ago * DAY


def sent(api: Site, user: str, *at: datetime) -> None:
    made = [
        {"idempotency_key": str(each), "event_type": "CHECK_IN", "occurred_at": each.isoformat()}
        for each in at
    ]
    api.send(user, *made)


def declare(api: Site, at: datetime, **said: Any) -> tuple[int, Any]:
    body = {"from": at.isoformat(), "to": (at + timedelta(microseconds=1)).isoformat(), "reason": "away"}
    return api.admin("POST", "/v1/amnesties", body | said)


def test_an_admin_declares_applies_and_revokes(api: Site, on: Callable[[int], datetime]) -> None:
    user = f"amnesty-{uuid4()}"
    sent(api, user, on(3), on(1))
    assert api.profile(user)["current_streak"] == 1
    status, said = declare(api, on(2))
    assert (status, said["reason"], said["zones"], said["revoked_at"]) == (201, "away", None, None)
    place = f"/v1/amnesties/{said['number']}"
    dry = api.admin("POST", f"{place}/apply", {"users": [user], "dry_run": True})[1]["users"][0]
    assert (dry["changed"], dry["streak_before"], dry["streak_after"]) == (True, 1, 2)
    assert api.profile(user)["current_streak"] == 1
    assert api.admin("POST", f"{place}/apply", {"users": [user]})[1]["users"] == [dry]
    assert api.admin("POST", f"{place}/apply", {"users": [user]})[1]["users"][0]["changed"] is False
    assert api.profile(user)["current_streak"] == 2
    why = api.call(user, "GET", f"/v1/users/{user}/streak/explain?date={on(2).date()}")[1]
    assert (why["reason"], why["amnesty"], why["counts"]) == ("amnesty", said["number"], False)
    assert [each["number"] for each in api.admin("GET", "/v1/amnesties")[1]["amnesties"]][-1] == said[
        "number"
    ]
    assert api.admin("POST", f"{place}/revoke")[1]["revoked_at"]
    assert api.admin("POST", f"{place}/apply", {"users": [user]})[1]["users"][0]["streak_after"] == 1
    assert api.profile(user)["current_streak"] == 1


def test_who_comes_back_after_it_was_declared_needs_no_application(
    api: Site, monkeypatch: pytest.MonkeyPatch, on: Callable[[int], datetime]
) -> None:
    user = f"amnesty-{uuid4()}"
    sent(api, user, on(3))
    number = declare(api, on(2))[1]["number"]
    monkeypatch.setattr("adapters.engagement.amnesty_store.FRESH_SECONDS", 0)
    forget_what_is_known(api)
    sent(api, user, on(1))
    assert api.profile(user)["current_streak"] == 2
    assert api.admin("POST", f"/v1/amnesties/{number}/revoke")[0] == 200
    forget_what_is_known(api)
    sent(api, user, on(0))
    assert api.profile(user)["current_streak"] == 2
    assert FRESH_SECONDS <= 30


def forget_what_is_known(api: Site) -> None:
    """A process asks for amnesties twice a minute; the test does not wait for that."""
    from processors import engagement

    engagement._parts.cache_clear()


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"to": "2026-01-01T00:00:00Z"}, "to"),
        ({"to": "2999-01-01T00:00:00Z"}, "to"),
        ({"from": "2026-01-01T00:00:00Z"}, "to"),
        ({"from": "2026-01-01T00:00:00"}, "from"),
        ({"zones": ["Mars/Olympus"]}, "zones"),
        ({"reason": ""}, "reason"),
        ({"users": []}, "users"),
    ],
)
def test_what_makes_no_sense_is_refused_by_field(
    api: Site, said: dict[str, Any], field: str, on: Callable[[int], datetime]
) -> None:
    status, told = declare(api, on(2), **said)
    assert status == 422
    assert field in str(told["error"]["details"])


def test_amnesties_are_for_admins(api: Site) -> None:
    body = {"users": ["ann"]}
    asked = [("GET", "", None), ("POST", "", {}), ("POST", "/1/apply", body), ("POST", "/1/revoke", None)]
    for method, path, sent_body in asked:
        for groups in ((), ("streakline/producers",), ("streakline/fulfilment", "streakline/leads/acme")):
            assert api.call("ann", method, f"/v1/amnesties{path}", sent_body, *groups)[0] == 403
    assert api.admin("POST", "/v1/amnesties/999999/revoke")[0] == 404
    assert api.admin("POST", "/v1/amnesties/999999/apply", body)[0] == 404


def test_two_who_declare_at_once_get_two_numbers(engine: Engine) -> None:
    store = AmnestyStore(engine.client("dynamodb"), "RuleBooks")
    made = [store.declare(AMNESTY, datetime.now(UTC)).number for _ in range(2)]
    assert made[1] == made[0] + 1


def test_the_options_name_instants_with_their_zone() -> None:
    words = ["--from", "2026-03-01T22:00:00+01:00", "--to", "2026-03-02T01:00:00Z", "--reason", "x"]
    assert command.declare.make_context("declare", words).params["since"] == datetime(
        2026, 3, 1, 21, tzinfo=UTC
    )
    with pytest.raises(click.BadParameter):
        command.declare.make_context(
            "declare", ["--from", "2026-03-01T22:00:00", "--to", "x", "--reason", "x"]
        )


def test_the_first_date_is_a_local_one() -> None:
    assert AMNESTY.dates_in("Pacific/Auckland", AT_MIDNIGHT) != AMNESTY.dates_in(
        "Pacific/Honolulu", AT_MIDNIGHT
    )
    assert all(isinstance(each, date) for each in AMNESTY.dates_in("UTC", AT_MIDNIGHT))
