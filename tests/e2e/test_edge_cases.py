"""The edge cases of docs/rules.md, over HTTP."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from local.api import Api
from tests.e2e.conftest import event

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
