"""Friends through the real handlers: consent, streaks, blocks, bounds, erasure, and what an attacker learns."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.book_store import shipped_document
from rules.engagement.friends import ASKED_MAX, REQUESTS_MAX
from tests.support.memory import forget
from tests.support.moved_site import KEYS, Move, event, published, send
from tests.support.site import Site

NOON = datetime(2026, 3, 6, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def move(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Move]:
    document = shipped_document()
    with published(api, document, datetime(2026, 3, 1, tzinfo=UTC), monkeypatch) as moved:
        moved(NOON)
        yield moved


def names(*people: str) -> list[str]:
    number = next(KEYS)
    return [f"{person}-f{number}" for person in people]


def put(api: Site, user: str, other: str) -> tuple[int, Any]:
    return api.call(user, "PUT", f"/v1/users/{user}/friends/{other}")


def delete(api: Site, user: str, other: str) -> tuple[int, Any]:
    return api.call(user, "DELETE", f"/v1/users/{user}/friends/{other}")


def friends(api: Site, user: str) -> Any:
    status, told = api.call(user, "GET", f"/v1/users/{user}/friends")
    assert status == 200, told
    return told


def pair(api: Site, one: str, other: str) -> None:
    status, told = put(api, one, other)
    assert (status, told.get("state")) == (200, "asked"), told
    assert put(api, other, one)[1]["state"] == "friend"


def ids(listed: list[dict[str, Any]]) -> list[str]:
    return [each["user_id"] for each in listed]


def test_a_server_says_since_when_a_pair_is(api: Site, move: Move) -> None:
    ann, bob = names("ann", "bob")
    for user in (ann, bob):
        send(api, user, *(event("CHECK_IN", NOON - number * DAY) for number in range(3)))
    path, server = f"/v1/users/{ann}/friends/{bob}", "streakline/producers"
    for since, refusal in (("soon", 422), ((NOON + DAY).isoformat(), 422), ("1969-12-31T00:00:00Z", 422)):
        status, told = api.call("shop", "PUT", path, {"since": since}, server)
        assert (status, told["error"]["details"][0]["field"]) == (refusal, "since")
    assert api.call(ann, "PUT", path, {"since": (NOON - DAY).isoformat()})[0] == 403
    status, told = api.call("shop", "PUT", path, {"since": (NOON - DAY).isoformat()}, server)
    assert (status, told["since"]) == (200, "2026-03-05T12:00:00.000000Z")
    assert friends(api, bob)["friends"][0]["streak"] == 2


def test_two_become_friends_and_part(api: Site, move: Move) -> None:
    ann, bob = names("ann", "bob")
    status, told = put(api, ann, bob)
    assert (status, told["state"]) == (200, "asked")
    assert put(api, ann, bob)[1] == told, "the same again changes nothing"
    assert (ids(friends(api, ann)["asked"]), ids(friends(api, bob)["requests"])) == ([bob], [ann])
    assert put(api, bob, ann)[1]["state"] == "friend"
    for me, other in ((ann, bob), (bob, ann)):
        shown = friends(api, me)
        assert (ids(shown["friends"]), shown["asked"], shown["requests"]) == ([other], [], [])
        assert shown["friends"][0]["streak"] == 0
    assert delete(api, bob, ann)[1]["state"] == "none"
    assert delete(api, bob, ann)[0] == 200
    assert friends(api, ann)["friends"] == friends(api, bob)["friends"] == []
    put(api, ann, bob)
    assert delete(api, bob, ann)[1]["state"] == "none", "a request is declined"
    assert friends(api, ann)["asked"] == []


def test_the_streak_counts_dates_of_both_and_a_late_event_repairs_it(api: Site, move: Move) -> None:
    ann, bob = names("ann", "bob")
    pair(api, ann, bob)
    for number in range(3):
        move(NOON + number * DAY)
        send(api, ann, event("CHECK_IN", NOON + number * DAY))
        if number != 1:
            send(api, bob, event("CHECK_IN", NOON + number * DAY))
    (shown,) = friends(api, ann)["friends"]
    assert (shown["streak"], shown["at_risk"], shown["today"]) == (1, False, "2026-03-08")
    assert (shown["active_today"], shown["friend_active_today"]) == (True, True)
    send(api, bob, event("CHECK_IN", NOON + DAY))
    assert friends(api, ann)["friends"][0]["streak"] == friends(api, bob)["friends"][0]["streak"] == 3
    move(NOON + 3 * DAY)
    (shown,) = friends(api, bob)["friends"]
    assert (shown["streak"], shown["at_risk"], shown["active_today"]) == (3, True, False)
    move(NOON + 4 * DAY)
    assert friends(api, bob)["friends"][0]["streak"] == 0
    assert set(shown) == {
        *("user_id", "since", "alias", "streak", "at_risk", "today", "active_today", "friend_active_today")
    }, "no time and no event of the other"


def test_a_freeze_of_one_covers_that_one_s_miss(api: Site, move: Move) -> None:
    ann, bob = names("ann", "bob")
    pair(api, ann, bob)
    for user in (ann, bob):
        send(api, user, event("CHECK_IN", NOON))
    status, told = api.admin("POST", f"/v1/users/{bob}/freezes", {"idempotency_key": f"f{next(KEYS)}"})
    assert status == 201, told
    move(NOON + DAY)
    send(api, ann, event("CHECK_IN", NOON + DAY))
    move(NOON + 2 * DAY)
    for user in (ann, bob):
        send(api, user, event("CHECK_IN", NOON + 2 * DAY))
    assert friends(api, ann)["friends"][0]["streak"] == 2


def test_today_lasts_until_the_later_midnight(api: Site, move: Move) -> None:
    east, west = names("east", "west")
    pair(api, east, west)
    for user, zone in ((east, "Asia/Tokyo"), (west, "America/Los_Angeles")):
        assert api.call(user, "PUT", f"/v1/users/{user}/timezone", {"timezone": zone})[0] == 200
    move(NOON + timedelta(hours=8))  # the 7th, 05:00 in Tokyo; the 6th, noon in Los Angeles
    send(api, west, event("CHECK_IN", NOON + timedelta(hours=8)) | {"timezone": "America/Los_Angeles"})
    send(api, east, event("CHECK_IN", NOON) | {"timezone": "Asia/Tokyo"})
    send(api, east, event("CHECK_IN", NOON + timedelta(hours=8)) | {"timezone": "Asia/Tokyo"})
    (shown,) = friends(api, west)["friends"]
    assert (shown["today"], shown["streak"], shown["at_risk"]) == ("2026-03-06", 1, False)
    move(NOON + timedelta(hours=20))  # midnight in Los Angeles
    (shown,) = friends(api, east)["friends"]
    assert (shown["today"], shown["streak"]) == ("2026-03-07", 1)
    assert (shown["active_today"], shown["friend_active_today"]) == (True, False)


def test_who_is_active_today_is_shown_before_the_pair_s_first_date(api: Site, move: Move) -> None:
    """A pair of the 6th in UTC, where it is still the 5th in New York, and already the 6th in Tokyo."""
    east, west = names("east", "west")
    move(datetime(2026, 3, 6, 1, tzinfo=UTC))
    pair(api, east, west)
    for occurred in (datetime(2026, 3, 5, 12, tzinfo=UTC), datetime(2026, 3, 6, 0, 30, tzinfo=UTC)):
        send(api, east, event("CHECK_IN", occurred) | {"timezone": "Asia/Tokyo"})
    send(api, west, event("CHECK_IN", datetime(2026, 3, 6, tzinfo=UTC)) | {"timezone": "America/New_York"})
    (shown,) = friends(api, west)["friends"]
    assert (shown["today"], shown["streak"], shown["at_risk"]) == ("2026-03-05", 0, False)
    assert (shown["active_today"], shown["friend_active_today"]) == (True, True)


def erase(api: Site, user: str) -> None:
    assert api.admin("DELETE", f"/v1/users/{user}")[0] == 202
    forget()  # processes look for new tombstones every few seconds


def test_a_block_is_not_learnt_of_and_nobody_learns_who_exists(api: Site, move: Move) -> None:
    ann, bob, nobody, gone = names("ann", "bob", "nobody", "gone")
    send(api, bob, event("CHECK_IN", NOON))
    send(api, gone, event("CHECK_IN", NOON))
    status, told = api.call(bob, "PUT", f"/v1/users/{bob}/blocked/{ann}")
    assert (status, told["state"]) == (200, "blocked")
    erase(api, gone)
    answers = [put(api, ann, other) for other in (bob, nobody, gone)]
    for other, (status, told) in zip((bob, nobody, gone), answers, strict=True):
        told.pop("since")
        assert (status, told) == (200, {"user_id": ann, "friend_id": other, "state": "asked"})
    assert ids(friends(api, ann)["asked"]) == sorted((bob, nobody, gone))
    shown = friends(api, bob)
    assert (shown["requests"], ids(shown["blocked"])) == ([], [ann])
    for other in (bob, nobody, gone):
        assert put(api, ann, other)[1]["state"] == "asked"
        assert delete(api, ann, other)[1]["state"] == "none"
    status, told = put(api, bob, ann)
    assert (status, told["error"]["code"]) == (409, "blocked")
    server = (200, "none")
    status, told = api.call(bob, "DELETE", f"/v1/users/{bob}/blocked/{ann}")
    assert (status, told["state"]) == server
    pair(api, ann, bob)


def test_a_server_speaks_for_both_and_for_nobody_who_was_erased(api: Site, move: Move) -> None:
    ann, bob, gone = names("ann", "bob", "gone")
    status, told = api.call("shop", "PUT", f"/v1/users/{ann}/friends/{bob}", None, "streakline/producers")
    assert (status, told["state"]) == (200, "friend")
    assert ids(friends(api, bob)["friends"]) == [ann]
    erase(api, gone)
    for one, other in ((ann, gone), (gone, ann)):
        status, told = api.call(
            "shop", "PUT", f"/v1/users/{one}/friends/{other}", None, "streakline/producers"
        )
        assert (status, told["error"]["code"]) == (410, "erased")
    assert friends(api, ann)["asked"] == []
    status, told = api.call("shop", "DELETE", f"/v1/users/{ann}/friends/{bob}", None, "streakline/producers")
    assert (status, told["state"]) == (200, "none")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_nobody_acts_for_another(api: Site, move: Move, method: str) -> None:
    ann, bob, eve = names("ann", "bob", "eve")
    path = f"/v1/users/{ann}/friends" + ("" if method == "GET" else f"/{bob}")
    assert api.call(eve, method, path)[0] == 403
    assert api.call(bob, method, path)[0] == 403
    if method != "GET":
        for groups in ((), ("streakline/producers",)):
            assert api.call(eve, method, f"/v1/users/{ann}/blocked/{bob}", None, *groups)[0] == 403


@pytest.mark.parametrize("other", ["null", "undefined", "1.5E+12", "a%2523b", "%25252e%25252e", "x" * 256])
def test_odd_ids_are_refused(api: Site, move: Move, other: str) -> None:
    (ann,) = names("ann")
    status, told = put(api, ann, other)
    assert (status, told["error"]["code"]) in ((400, "invalid_parameter"), (404, "not_found")), told
    status, told = put(api, ann, ann)
    assert (status, told["error"]["code"]) == (400, "invalid_parameter")


def test_ids_with_slashes_are_friends_like_others(api: Site, move: Move) -> None:
    ann, bob = names("a/nn", "b|o/b")
    encoded = {ann: ann.replace("/", "%252F"), bob: bob.replace("/", "%252F")}
    for me, other in ((ann, bob), (bob, ann)):
        assert api.call(me, "PUT", f"/v1/users/{encoded[me]}/friends/{encoded[other]}")[0] == 200
    shown = api.call(ann, "GET", f"/v1/users/{encoded[ann]}/friends")[1]
    assert ids(shown["friends"]) == [bob]


def test_a_flood_of_requests_is_bounded(api: Site, move: Move) -> None:
    eve, star, *others = names("eve", "star", *(f"o{number}" for number in range(REQUESTS_MAX)))
    for other in others:
        assert put(api, eve, other)[0] == 200
    assert len(others) == ASKED_MAX
    status, told = put(api, eve, star)
    assert (status, told["error"]["code"]) == (409, "requests_max")
    for other in others:
        assert put(api, other, star)[0] == 200
    delete(api, eve, others[0])
    assert put(api, eve, star)[1]["state"] == "asked"
    assert sorted(ids(friends(api, star)["requests"])) == sorted(others)
    delete(api, star, others[0])
    assert put(api, eve, star)[1]["state"] == "asked"
    assert sorted(ids(friends(api, star)["requests"])) == sorted([eve, *others[1:]])
    move(NOON + 30 * DAY)
    assert friends(api, star)["requests"] == []
    assert put(api, eve, star)[0] == 200


def test_fifty_accounts_of_one_person_do_not_tell_who_is_blocked_or_erased(api: Site, move: Move) -> None:
    eve, star, blocker, gone, unknown = names("eve", "star", "blocker", "gone", "unknown")
    targets = star, blocker, gone, unknown
    for user in (star, blocker, gone):
        send(api, user, event("CHECK_IN", NOON))
    erase(api, gone)
    api.call(blocker, "PUT", f"/v1/users/{blocker}/blocked/{eve}")
    for account in names(*(f"eve{number}" for number in range(REQUESTS_MAX))):
        for target in targets:
            assert put(api, account, target)[1]["state"] == "asked"
    for _ in range(2):
        answers = [put(api, eve, target) for target in targets]
        assert [(status, told["state"]) for status, told in answers] == [(200, "asked")] * len(targets)


def test_of_requests_to_users_who_do_not_exist_nothing_stays(api: Site, move: Move) -> None:
    ann, bob, nobody = names("ann", "bob", "nobody")
    put(api, ann, nobody)
    assert [item.get("expires_at", {}).get("N") for item in items_of(api, nobody)] == [
        str(int((NOON + 30 * DAY).timestamp()))
    ] * 2, "the request and the version of the list"
    pair(api, ann, bob)
    for user in (ann, bob):
        (head,) = (item for item in items_of(api, user) if item["friend_id"]["S"] == "#")
        assert "expires_at" not in head, "a pair stays"
    delete(api, ann, nobody)
    assert items_of(api, nobody) == []


def items_of(api: Site, user: str) -> list[Any]:
    """What the table Friends has of a user."""
    found = api.engine.client("dynamodb").query(
        TableName="Friends",
        KeyConditionExpression="user_id = :user",
        ExpressionAttributeValues={":user": {"S": user}},
    )
    items: list[Any] = found["Items"]
    return items


def test_a_book_without_friends_hides_them(api: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    document = dict(shipped_document())
    del document["friends"]
    with published(api, document, NOON - DAY, monkeypatch) as move:
        move(NOON)
        ann, bob = names("ann", "bob")
        for status, told in (put(api, ann, bob), api.call(ann, "GET", f"/v1/users/{ann}/friends")):
            assert (status, told["error"]["code"]) == (409, "friends_not_offered")
        assert delete(api, ann, bob)[1]["state"] == "none"


def test_two_requests_and_an_end_at_once_agree(api: Site, move: Move) -> None:
    for _ in range(5):
        ann, bob = names("ann", "bob")
        acts = [(put, ann, bob), (put, bob, ann), (delete, ann, bob), (put, ann, bob)]
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda act: act[0](api, act[1], act[2]), acts))
        assert {status for status, _ in answers} <= {200, 503}
        one, other = friends(api, ann), friends(api, bob)
        assert ids(one["friends"]) == ([bob] if other["friends"] else [])
        assert ids(one["requests"]) == ([bob] if other["asked"] else [])
        assert ids(one["asked"]) == ([bob] if other["requests"] else [])


def test_nobody_has_a_friend_too_many(api: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    document = shipped_document() | {"friends": {"max": 3}}
    with published(api, document, NOON - DAY, monkeypatch) as move:
        move(NOON)
        ann, *others = names("ann", *(f"o{number}" for number in range(8)))
        for other in others:
            put(api, other, ann)
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda other: put(api, ann, other), others))
        assert len(friends(api, ann)["friends"]) == 3
        refused = [told["error"]["code"] for status, told in answers if status == 409]
        assert set(refused) == {"friends_max"}
        assert all(status in (200, 409, 503) for status, _ in answers)


def test_a_friend_s_damaged_profile_hides_no_other_friend(api: Site, move: Move) -> None:
    ann, bob, cid, dan = names("ann", "bob", "cid", "dan")
    for user in (ann, bob, cid, dan):
        send(api, user, event("CHECK_IN", NOON))
    for user in (bob, cid):
        pair(api, ann, user)
    put(api, dan, ann)
    profiles = api.engine.client("dynamodb")
    for user in (bob, dan):
        damaged = {
            "TableName": "UserStreaks",
            "Key": {"user_id": {"S": user}},
            "UpdateExpression": "SET period_points = :bad",
            "ExpressionAttributeValues": {":bad": {"S": "damaged"}},
        }
        profiles.update_item(**damaged)
    try:
        shown = friends(api, ann)
        assert (ids(shown["friends"]), shown["requests"]) == ([cid], [])
        status, board = api.call(ann, "GET", f"/v1/users/{ann}/friends/board?board=points")
        assert (status, set(ids(board["entries"]))) == (200, {ann, cid})
        status, read = api.call(
            "shop", "GET", f"/v1/users?ids={ann},{bob},{cid}", None, "streakline/producers"
        )
        assert (status, ids(read["users"])) == (200, [ann, cid])
    finally:
        for user in (bob, dan):
            profiles.delete_item(TableName="UserStreaks", Key={"user_id": {"S": user}})


def test_an_erased_user_is_nobody_s_friend(api: Site, move: Move) -> None:
    ann, bob, cat = names("ann", "bob", "cat")
    pair(api, ann, bob)
    put(api, ann, cat)
    put(api, bob, cat)
    erase(api, ann)
    assert friends(api, bob)["friends"] == []
    assert ids(friends(api, cat)["requests"]) == [bob]


def test_a_board_of_friends_has_friends_alone(api: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    document = shipped_document() | {"boards": {"weekly": {"per": "week"}}}
    with published(api, document, NOON - 30 * DAY, monkeypatch) as move:
        move(NOON)
        ann, bob, cat, eve = names("ann", "bob", "cat", "eve")
        for other in (bob, cat):
            pair(api, ann, other)
        for user, number in ((ann, 1), (bob, 2), (cat, 1), (eve, 3)):
            send(api, user, *(event("LESSON_COMPLETED", NOON - each * DAY) for each in range(number)))
        path = f"/v1/users/{ann}/friends/board"
        for board, scores in (("streaks", [2, 1, 1]), ("points", [20, 10, 10]), ("weekly", [20, 10, 10])):
            status, told = api.call(ann, "GET", f"{path}?board={board}")
            assert status == 200, told
            rows = told["entries"]
            assert [row["score"] for row in rows] == scores
            assert [row["user_id"] for row in rows] == [bob, ann, cat]
            assert [row["rank"] for row in rows] == [1, 2, 2]
            assert [row["is_me"] for row in rows] == [False, True, False]
        assert told["period"] == "2026-W10"
        assert api.call(ann, "GET", f"{path}?board=monthly")[0] == 404
        assert api.call(bob, "GET", path)[0] == 403
        assert api.call(cat, "PUT", f"/v1/users/{cat}/boards", {"hidden": True})[0] == 200
        assert ids(api.call(ann, "GET", path)[1]["entries"]) == [bob, ann]
