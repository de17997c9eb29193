"""The edge cases of docs/rules.md, over HTTP."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.api import Api
from local.cloud import laptop_cloud
from local.stack import Stack
from tests.e2e.conftest import event
from tests.support.effort import only_soak

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")

Settled = Callable[..., None]
Post = Callable[..., list[dict[str, Any]]]


def days(start: str, *offsets: int) -> list[str]:
    return [(datetime.fromisoformat(start) + timedelta(days=each)).date().isoformat() for each in offsets]


# What somebody did, when, and in which zone if it is said; then as of which date the streak and the active dates are.
DATES: list[tuple[str, list[str], str | None, str, int, int]] = [
    (
        "two dates an hour apart",
        ["2026-03-01T23:30:00-05:00", "2026-03-02T00:30:00-05:00"],
        None,
        "2026-03-02",
        2,
        2,
    ),
    (
        "falling back",
        ["2025-10-24T22:30:00Z", "2025-10-25T22:30:00Z", "2025-10-26T23:30:00Z"],
        "Europe/Berlin",
        "2025-10-27",
        3,
        3,
    ),
    (
        "springing ahead",
        ["2026-03-27T22:30:00Z", "2026-03-28T22:30:00Z", "2026-03-29T21:30:00Z"],
        "Europe/Berlin",
        "2026-03-30",
        3,
        3,
    ),
    (
        "a zone that skips a date",
        ["2011-12-29T12:00:00-10:00", "2011-12-31T12:00:00+14:00"],
        "Pacific/Apia",
        "2011-12-31",
        2,
        2,
    ),
    ("travel east", ["2026-05-01T23:30:00-05:00", "2026-05-02T22:00:00+02:00"], None, "2026-05-02", 2, 2),
    (
        "travel west, one date twice",
        ["2026-05-01T09:00:00+09:00", "2026-05-01T20:00:00-08:00"],
        None,
        "2026-05-01",
        1,
        1,
    ),
    ("an offset as zone", ["2026-05-01T01:00:00Z", "2026-05-02T01:00:00Z"], "-07:00", "2026-05-01", 2, 2),
]


@only_soak(
    "tests/unit/platform/test_days.py for the date of an event, test_a_date_that_apia_skipped_joins_its_neighbours and"
    " test_travel_west_credits_the_date_that_comes_twice_once (tests/unit/engagement/test_account_zones.py),"
    " test_25_26_27_october_are_a_streak_of_3 (tests/unit/engagement/test_streaks.py), and"
    " test_a_bare_z_is_read_in_the_zone_the_user_has_set (tests/e2e/test_edge_cases.py) for a zone on the cloud"
)
def test_dates(admin: Api, post: Post, settled: Settled, user: str) -> None:
    for place, (_, moments, zone, *_) in enumerate(DATES):
        more = {"timezone": zone} if zone else {}
        post(*[event(f"{user}-{place}", f"k{n}", at, **more) for n, at in enumerate(reversed(moments))])
    settled()  # of no users: the walk of the invariants knows nothing of dates that a zone skipped
    for place, (name, _, _, as_of, current, active) in enumerate(DATES):
        profile = admin.get(f"/v1/users/{user}-{place}?as_of={as_of}")
        assert (profile["current_streak"], profile["active_days"]) == (current, active), name


def test_a_bare_z_is_read_in_the_zone_the_user_has_set(
    me: Api, user: str, post: Post, settled: Settled
) -> None:
    post(event(user, "before", "2026-05-01T23:30:00Z"))
    assert me.call("PUT", f"/v1/users/{user}/timezone", {"timezone": "Asia/Tokyo"})[0] == 200
    post(event(user, "after", "2026-05-02T23:30:00Z"))
    settled(user)
    dates = [each["activity_date"] for each in me.get(f"/v1/users/{user}/activity")["activity"]]
    assert dates == ["2026-05-03", "2026-05-01"]


def test_zone_changes_are_kept_and_flagged(me: Api, user: str) -> None:
    path = f"/v1/users/{user}/timezone"
    answers = [
        me.call("PUT", path, {"timezone": zone})[1] for zone in ("Asia/Tokyo", "Europe/Rome", "Asia/Dubai")
    ]
    assert [answer["under_review"] for answer in answers] == [False, False, True]
    assert [change["timezone"] for change in answers[-1]["recent_tz_changes"]] == [
        "Asia/Tokyo",
        "Europe/Rome",
        "Asia/Dubai",
    ]
    status, answer = me.call("PUT", path, {"timezone": "Mars/Olympus"})
    assert (status, answer["error"]["details"][0]["field"]) == (422, "timezone")


@only_soak(
    "test_two_freezes_and_three_missed_days_are_used_in_date_order_then_the_run_ends and"
    " test_the_streak_shows_0_at_once_after_a_missed_day (tests/unit/engagement/test_streaks.py)"
)
def test_two_freezes_and_three_misses(admin: Api, user: str, post: Post, settled: Settled) -> None:
    for key in ("f1", "f2"):
        body = {"granted_on": "2026-01-01", "idempotency_key": key}
        assert admin.call("POST", f"/v1/users/{user}/freezes", body)[0] == 201
    post(event(user, "k1", "2026-01-01T12:00:00Z"))
    settled(user)
    shown = [admin.get(f"/v1/users/{user}?as_of={day}") for day in days("2026-01-01", 0, 1, 2, 3, 4)]
    assert [each["current_streak"] for each in shown] == [1, 1, 1, 1, 0]
    assert [each["streak_status"] for each in shown] == ["active", "at_risk", "at_risk", "at_risk", "broken"]
    assert [each["freezes_available"] for each in shown] == [2, 2, 1, 0, 0]
    post(event(user, "k2", "2026-01-05T12:00:00Z"))
    settled(user)
    after = admin.get(f"/v1/users/{user}?as_of=2026-01-05")
    assert (after["current_streak"], after["longest_streak"], after["freezes_available"]) == (1, 1, 0)


@only_soak(
    "test_a_late_event_refunds_the_freeze_that_covered_its_day_by_a_reversing_entry"
    " (tests/unit/engagement/test_account_freezes.py), test_each_date_has_its_reason (tests/unit/engagement/test_streaks.py)"
)
def test_a_late_event_refunds_the_freeze_that_covered_its_day(
    admin: Api, user: str, post: Post, settled: Settled
) -> None:
    admin.call("POST", f"/v1/users/{user}/freezes", {"granted_on": "2026-01-01"})
    post(event(user, "k1", "2026-01-01T12:00:00Z"), event(user, "k3", "2026-01-03T12:00:00Z"))
    settled(user)
    covered = admin.get(f"/v1/users/{user}/streak/explain?date=2026-01-02")
    assert (covered["counts"], covered["reason"]) == (False, "covered_by_freeze")
    before = admin.get(f"/v1/users/{user}?as_of=2026-01-03")
    assert (before["current_streak"], before["freezes_available"]) == (2, 0)
    post(event(user, "k2", "2026-01-02T23:58:00Z"))
    settled(user)
    after = admin.get(f"/v1/users/{user}?as_of=2026-01-03")
    assert (after["current_streak"], after["freezes_available"]) == (3, 1)
    notes = [each.get("freeze") for each in admin.get(f"/v1/users/{user}/ledger")["entries"]]
    assert notes.count("freeze_spent") == notes.count("freeze_refunded") == 1
    assert admin.get(f"/v1/users/{user}/streak/explain?date=2026-01-02")["reason"] == "counted"


@only_soak(
    "test_a_returned_freeze_leaves_the_streak_as_it_was_and_takes_one_freeze (tests/unit/engagement/test_allowances.py) and"
    " test_a_freeze_that_is_revoked_when_spent_becomes_a_debt (tests/unit/engagement/test_account_freezes.py)"
)
def test_a_reversed_freeze_goes_or_becomes_a_debt(
    admin: Api, user: str, post: Post, settled: Settled
) -> None:
    freezes = f"/v1/users/{user}/freezes"
    _, unused = admin.call("POST", freezes, {})
    assert admin.get(f"/v1/users/{user}")["freezes_available"] == 1
    path = f"/v1/users/{user}/redemptions/{unused['entry_id']}/reversal"
    assert admin.call("POST", path, {})[0] == 201
    assert admin.get(f"/v1/users/{user}")["freezes_available"] == 0
    _, spent = admin.call("POST", freezes, {"granted_on": "2026-01-01"})
    post(event(user, "k1", "2026-01-01T12:00:00Z"), event(user, "k3", "2026-01-03T12:00:00Z"))
    settled(user)
    path = f"/v1/users/{user}/redemptions/{spent['entry_id']}/reversal"
    assert admin.call("POST", path, {})[0] == 201
    assert admin.get(f"/v1/users/{user}")["freezes_available"] == -1
    settled(user)


@only_soak(
    "test_paused_dates_are_no_misses_and_cost_no_freeze (tests/unit/engagement/test_streaks.py) and"
    " test_nine_years_of_pauses_are_refused (tests/integration/test_no_free_money.py) for the door"
)
def test_a_pause_protects_the_run(me: Api, user: str, settled: Settled) -> None:
    now = datetime.now(UTC)
    me.call("POST", "/v1/events", {"events": [event(user, "k", now.isoformat())]})
    first, last, after, lost = days(now.isoformat(), 1, 5, 6, 7)
    assert me.call("POST", f"/v1/users/{user}/pauses", {"first": first, "last": last})[0] == 201
    settled()
    shown = [me.get(f"/v1/users/{user}?as_of={day}") for day in (last, after, lost)]
    assert [(each["current_streak"], each["streak_status"]) for each in shown] == [
        (1, "active"),
        (1, "at_risk"),
        (0, "broken"),
    ]


@only_soak(
    "test_ties_share_a_rank_and_the_next_one_is_counted_on (tests/unit/engagement/test_leaderboards.py) and"
    " test_snapshot_index_and_sorting_agree (tests/integration/test_boards.py)"
)
def test_ties_share_a_rank(stack: Stack, admin: Api, user: str, post: Post, settled: Settled) -> None:
    zone = "Arctic/Longyearbyen"
    today = datetime.now(UTC)
    lengths = {"a": 4, "b": 3, "c": 3, "d": 2}
    for name, length in lengths.items():
        moments = [(today - timedelta(days=back)).isoformat() for back in range(length)]
        post(*[event(f"{user}-{name}", f"k{n}", moment, timezone=zone) for n, moment in enumerate(moments)])
    settled(*[f"{user}-{name}" for name in lengths])
    laptop_cloud.build_ranks(stack)
    board = admin.get("/v1/leaderboards/streaks?region=arctic&limit=100")["entries"]
    own = [admin.get(f"/v1/leaderboards/streaks/users/{user}-{name}?region=arctic") for name in lengths]
    names = {each["alias"] for each in own}
    assert len(names) == 4
    mine = [row for row in board if row["alias"] in names]
    best = mine[0]["rank"]
    assert [row["rank"] - best for row in mine] == [0, 1, 1, 3]
    told = {each["alias"]: (each["rank"], each["score"]) for each in own}
    assert told == {row["alias"]: (row["rank"], row["score"]) for row in mine}
    assert user not in str(board)


def test_history_pages_have_every_entry_once(admin: Api, user: str, post: Post, settled: Settled) -> None:
    post(*[event(user, f"k{number}", f"2026-02-{1 + number:02}T08:00:00Z") for number in range(15)])
    settled(user)
    for name, total in (("ledger", 16), ("activity", 15)):
        rows: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = admin.get(f"/v1/users/{user}/{name}?limit=7{cursor}")
            rows += page["entries" if name == "ledger" else name]
            if not page["cursor"]:
                break
            cursor = f"&cursor={page['cursor']}"
        keys = [row.get("created_at") or row["activity_date"] for row in rows]
        assert len(rows) == total
        assert keys == sorted(set(keys), reverse=True)
    found = admin.get(f"/v1/users/{user}/events?from=2026-02-03&to=2026-02-04")["events"]
    assert [each["activity_date"] for each in found] == ["2026-02-04", "2026-02-03"]
