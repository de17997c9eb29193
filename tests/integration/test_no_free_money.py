"""What a user gains by lying, through the real handlers on a real engine: nothing."""

import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rules.book.book import Declarer
from tests.support.books import TYPES, most
from tests.support.effort import effort
from tests.support.examples import examples
from tests.support.site import ADMIN, FULFILMENT, PRODUCERS, Site

NUMBERS = count()


def event(kind: str = "LESSON_COMPLETED", at: str | None = None, **more: Any) -> dict[str, Any]:
    when = at or datetime.now(UTC).isoformat()
    return {"idempotency_key": f"k{next(NUMBERS)}", "event_type": kind, "occurred_at": when, **more}


def rich(api: Site, user: str, lessons: int = 10) -> None:
    """10 points a lesson."""
    api.send(user, *[event() for _ in range(lessons)])


def redeem(api: Site, user: str, points: int, key: str = "r") -> tuple[int, Any]:
    body = {"points": points, "reward_id": "mug", "idempotency_key": key}
    return api.call(user, "POST", f"/v1/users/{user}/redemptions", body, FULFILMENT)


def test_a_user_reverses_no_redemption_and_fulfilment_and_admins_do(api: Site, user: str) -> None:
    rich(api, user)
    for number, group in enumerate((FULFILMENT, ADMIN)):
        status, entry = redeem(api, user, 100, f"r{number}")
        assert status == 201
        path = f"/v1/users/{user}/redemptions/{entry['entry_id']}/reversal"
        for stranger in ((), (PRODUCERS,), ("streakline/agents",), ("streakline/leads",)):
            assert api.call(user, "POST", path, {}, *stranger)[0] == 403
        assert redeem(api, user, 1, "more")[1]["error"]["code"] == "insufficient_balance"
        assert api.call("desk", "POST", path, {}, group)[0] == 201
        assert api.call("desk", "POST", path, {}, group)[1]["error"]["code"] == "already_reversed"


def test_freezes_for_nothing_end_with_the_month_s_allowance(api: Site, user: str) -> None:
    path = f"/v1/users/{user}/freezes"
    told = [api.call(user, "POST", path, {"idempotency_key": f"f{n}"}) for n in range(4)]
    assert [status for status, _ in told] == [201, 201, 409, 409]
    assert told[2][1]["error"]["code"] == "insufficient_balance"
    rich(api, user)
    status, bought = api.call(user, "POST", path, {})
    assert (status, bought["points"], bought["balance"]) == (201, -100, 0)
    assert api.call(user, "POST", path, {})[1]["error"]["code"] == "insufficient_balance"
    assert api.call(user, "POST", path, {"idempotency_key": "f0"})[1]["duplicate"] is True
    assert api.profile(user)["freezes_available"] == 3


def test_a_returned_free_freeze_does_not_come_back_into_the_allowance(api: Site, user: str) -> None:
    path = f"/v1/users/{user}/freezes"
    for _ in range(2):
        entry = api.call(user, "POST", path, {})[1]["entry_id"]
        reversal = f"/v1/users/{user}/redemptions/{entry}/reversal"
        assert api.call("desk", "POST", reversal, {}, FULFILMENT)[0] == 201
    assert api.call(user, "POST", path, {})[1]["error"]["code"] == "insufficient_balance"


def test_many_freezes_given_and_returned_leave_the_profile_as_small_as_it_was(api: Site, user: str) -> None:
    rich(api, user, 1)
    for _ in range(effort(30, soak=150)):
        status, entry = api.admin("POST", f"/v1/users/{user}/freezes", {})
        assert status == 201
        path = f"/v1/users/{user}/redemptions/{entry['entry_id']}/reversal"
        assert api.admin("POST", path, {})[0] == 201
    stored = api.engine.client("dynamodb").get_item(TableName="UserStreaks", Key={"user_id": {"S": user}})[
        "Item"
    ]
    assert "freezes" not in stored
    assert api.profile(user)["freezes_available"] == 0


def test_purchases_and_invited_friends_are_not_for_a_user_to_declare(api: Site, user: str) -> None:
    for kind in ("PURCHASE_COMPLETED", "FRIEND_INVITED", "QUESTION_ANSWERED"):
        told = api.send(user, event(kind))
        assert told["error"]["code"] == "forbidden"
        mixed = api.send(user, event(kind), event("CHECK_IN"))
        assert mixed["results"][0]["status"] == "rejected"
        assert kind in mixed["results"][0]["error"]["message"]
    assert api.profile(user)["total_bestie_points"] == 5
    api.send("shop", event("PURCHASE_COMPLETED", user_id=user), groups=(PRODUCERS,))
    assert api.profile(user)["total_bestie_points"] == 25
    assert api.call("shop", "GET", f"/v1/users/{user}", None, PRODUCERS)[0] == 403


def test_nine_years_of_pauses_are_refused(api: Site, user: str) -> None:
    taken = 0
    for year in range(2027, 2037):
        for month in (1, 4, 7, 10):
            span = {"first": f"{year}-{month:02}-01", "last": f"{year}-{month + 2:02}-28"}
            taken += api.call(user, "POST", f"/v1/users/{user}/pauses", span)[0] == 201
    assert taken <= 1


def test_one_instant_in_three_zones_is_one_date_and_redemptions_wait_for_a_release(
    api: Site, user: str
) -> None:
    rich(api, user)
    # At 11:00 these zones have three dates, and two days ago none of them is today.
    at = (datetime.now(UTC) - timedelta(days=2)).replace(hour=11, minute=0)
    for zone in ("-12:00", "+00:00", "+14:00"):
        api.send(user, event("CONTRIBUTION", at.isoformat(), timezone=zone))
    days = api.admin("GET", f"/v1/users/{user}/activity")[1]["activity"]
    assert len(days) == 2  # that instant's, and today's
    ledger = api.admin("GET", f"/v1/users/{user}/ledger?limit=100")[1]["entries"]
    assert {each["activity_date"] for each in ledger if each["kind"] == "EARN"} == {
        each["activity_date"] for each in days
    }
    status, told = redeem(api, user, 50)
    assert (status, told["error"]["code"]) == (409, "under_review")
    assert api.call(user, "GET", "/v1/review")[0] == 403
    assert api.call(user, "POST", f"/v1/review/{user}/release")[0] == 403
    (mine,) = [each for each in api.admin("GET", "/v1/review")[1]["accounts"] if each["user_id"] == user]
    assert any("claimed" in reason for reason in mine["evidence"])
    rich(api, user, 1)
    assert api.profile(user)["balance"] == 140
    assert api.admin("POST", f"/v1/review/{user}/release")[1]["under_review"] is False
    status, told = redeem(api, user, 50)
    assert (status, told["balance"]) == (201, 90)
    assert user not in [each["user_id"] for each in api.admin("GET", "/v1/review")[1]["accounts"]]


def test_the_review_list_comes_in_pages(api: Site, user: str) -> None:
    users = sorted(f"{user}-{n}" for n in range(5))
    for each in users:
        for zone in ("Asia/Tokyo", "Europe/Rome", "Asia/Dubai"):
            api.call(each, "PUT", f"/v1/users/{each}/timezone", {"timezone": zone})
    found, cursor = list[str](), ""
    while True:
        page = api.admin("GET", f"/v1/review?limit=2{cursor}")[1]
        found += [each["user_id"] for each in page["accounts"]]
        if not page["cursor"]:
            break
        cursor = f"&cursor={page['cursor']}"
    assert [each for each in found if each in users] == users
    assert len(found) == len(set(found))


@pytest.mark.parametrize("offset", ["+14:01", "-12:01", "+18:00", "-13:00"])
def test_nobody_lives_beyond_the_offsets_of_the_world(api: Site, user: str, offset: str) -> None:
    told = api.send(user, event(at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}Z", timezone=offset))
    assert told["results"][0]["error"]["field"] == "timezone"
    known = event(timezone=offset)  # its occurred_at has an offset, which counts in place of that zone
    assert api.send(user, known)["results"][0]["status"] == "accepted"
    day = api.call(user, "GET", f"/v1/users/{user}/activity")[1]["activity"][0]["activity_date"]
    assert day == known["occurred_at"][:10]
    at = datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + offset
    assert api.send(user, event(at=at))["results"][0]["error"]["field"] == "occurred_at"
    assert api.call(user, "PUT", f"/v1/users/{user}/timezone", {"timezone": offset})[0] == 422


KINDS = ("LESSON_COMPLETED", "CHECK_IN", "PURCHASE_COMPLETED", "QUESTION_ANSWERED")
CLAIMED_ZONES = ("-12:00", "-05:00", "Asia/Tokyo", "+14:00", "+18:00")
# What a user may try, and with what.
ATTEMPTS = st.one_of(
    st.tuples(st.just("event"), st.sampled_from(KINDS), st.integers(0, 70), st.sampled_from(CLAIMED_ZONES)),
    st.tuples(st.just("redeem"), st.integers(1, 60), st.integers(0, 4)),
    st.tuples(st.just("reverse"), st.integers(0, 9)),
    st.tuples(st.just("freeze"), st.integers(0, 2)),
    st.tuples(st.just("zone"), st.sampled_from(CLAIMED_ZONES)),
    st.tuples(st.just("release")),
)


class Stranger:
    """A user with a token of their own, who tries what they are told to."""

    def __init__(self, api: Site, user: str) -> None:
        self.api, self.user, self.entries = api, user, list[str]()

    def attempt(self, what: tuple[Any, ...]) -> None:
        kind, *given = what
        path, status, told = f"/v1/users/{self.user}", 0, dict[str, Any]()
        if kind == "event":
            at = (datetime.now(UTC) - timedelta(hours=given[1])).isoformat()
            self.api.send(self.user, event(given[0], at, timezone=given[2]))
        elif kind == "redeem":
            status, told = redeem(self.api, self.user, given[0], f"r{given[1]}")
        elif kind == "freeze":
            status, told = self.call("POST", f"{path}/freezes", {"idempotency_key": f"f{given[0]}"})
        elif kind == "zone":
            self.call("PUT", f"{path}/timezone", {"timezone": given[0]})
        elif kind == "release":
            assert self.call("POST", f"/v1/review/{self.user}/release", None)[0] == 403
        elif self.entries:
            entry = self.entries[given[0] % len(self.entries)]
            assert self.call("POST", f"{path}/redemptions/{entry}/reversal", {})[0] == 403
        if status == 201:
            self.entries.append(told["entry_id"])

    def call(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        return self.api.call(self.user, method, path, body)


@settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(ATTEMPTS, min_size=5, max_size=25))
def test_whatever_a_user_tries_the_points_redeemed_never_exceed_those_earned(
    api: Site, attempts: list[tuple[Any, ...]]
) -> None:
    stranger = Stranger(api, f"s{time.time_ns()}-{next(NUMBERS)}")
    for each in attempts:
        stranger.attempt(each)
    entries = api.admin("GET", f"/v1/users/{stranger.user}/ledger?limit=500")[1]["entries"]
    earned = [each for each in entries if each["kind"] == "EARN"]
    redeemed = -sum(each["points"] for each in entries if each["kind"] == "REDEEM")
    assert redeemed <= sum(each["points"] for each in earned)
    assert not [each for each in entries if each["kind"] == "REVERSE" and each["points"]]
    assert not [each for each in earned if TYPES[each["event_type"]].declared_by is Declarer.SERVER]
    by_day = Counter[tuple[str, str]]()
    for each in earned:
        by_day[each["activity_date"], each["event_type"]] += each["points"]
    assert all(points <= most(kind) for (_, kind), points in by_day.items())
    free = [each for each in entries if each.get("freeze") == "freeze_granted" and each["points"] == 0]
    assert len(free) <= 2
    # The instants of 70 hours touch at most five dates of one calendar, and eight hours open at most two.
    assert len({each["activity_date"] for each in earned}) <= 5
