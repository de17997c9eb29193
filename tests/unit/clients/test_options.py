"""What the Python client is given: natural inputs are taken, and what cannot work is refused at once, with its name."""

import os
import sys
import tomllib
import zoneinfo
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from streakline_client import Queueing, Reply, Request, Streakline

from tests.support.template import ROOT

WRONG: dict[str, list[Any]] = {
    "url": ["example", None, "ftp://x.test", "http://", "https://x.test/?a=1", "https://x.test/#a"],
    "token": [" \n", None, ["secret"]],
    "user": [" ", 7],
    "timeout": ["soon", -1, float("nan"), float("inf"), None],
    "queue": ["a.db"],
}


def made(**more: Any) -> Streakline:
    given: dict[str, Any] = {"url": "https://x.test", "token": "t", "user": "ann", **more}
    return Streakline(given.pop("url"), given.pop("token"), **given)


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, all_of in WRONG.items() for value in all_of]
)
def test_what_cannot_work_is_refused_at_once(name: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{name} must ") as refused:
        made(**{name: value})
    assert "secret" not in str(refused.value)


def test_a_queue_is_of_one_user() -> None:
    with pytest.raises(ValueError, match=r"^user is missing"):
        Streakline("https://x.test", "t", queue=Queueing())
    Streakline("https://x.test", "t").close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("most", value) for value in (0, 1.5, True, None)),
        *(("zone", value) for value in ("Nowhere/City", 7, "../etc/passwd")),
        *(
            (name, "print")
            for name in ("on_refused", "on_dropped", "on_unkept", "on_trouble", "keeps_streak")
        ),
        *(("zone", value) for value in (UTC, "")),
        *(("path", value) for value in (" ", 7, "a\0b", "~nobody-is-called-so/a.db")),
    ],
)
def test_a_queue_that_cannot_work_is_refused_at_once(name: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{name} must "):
        Queueing(**{name: value})


@pytest.mark.parametrize("kind", [str, Path, os.fsencode, os.path.relpath])
def test_a_path_is_taken_as_it_comes(tmp_path: Path, kind: Callable[[Any], Any]) -> None:
    path = tmp_path / "below" / "a.db"
    me = made(queue=Queueing(path=kind(path), is_sending=False))
    key = me.track("A")
    me.close()
    assert path.exists()
    again = made(queue=Queueing(path=str(path), is_sending=False))
    assert [each["idempotency_key"] for each in again.waiting()] == [key]
    again.close()


def test_memory_and_a_home_folder_are_paths_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for path in (":memory:", None, "~/a.db"):
        me = made(queue=Queueing(path=path, is_sending=False))
        me.track("A")
        me.close()
    assert [each.name for each in tmp_path.iterdir()] == ["a.db"]


@pytest.mark.parametrize("zone", ["America/New_York", ZoneInfo("America/New_York")])
def test_a_zone_is_a_name_or_a_zone(zone: Any) -> None:
    me = made(queue=Queueing(zone=zone, is_sending=False))
    me.track("A")
    assert me.waiting()[0]["timezone"] == "America/New_York"
    me.close()


@pytest.fixture
def no_zones() -> Iterator[None]:
    """A machine without a time zone database, as Windows and small images of Linux are."""
    before = zoneinfo.TZPATH
    hidden = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "tzdata"}
    for name in hidden:
        del sys.modules[name]
    sys.modules["tzdata"] = None  # type: ignore[assignment]  # so its import fails
    zoneinfo.reset_tzpath([])
    ZoneInfo.clear_cache()
    yield
    zoneinfo.reset_tzpath(before)
    del sys.modules["tzdata"]
    sys.modules.update(hidden)


@pytest.mark.usefixtures("no_zones")
@pytest.mark.parametrize(
    "zone", ["UTC", "Etc/UTC", "Zulu", "Etc/GMT-0", "Greenwich", "Etc/Greenwich", "GMT+0"]
)
def test_utc_needs_no_time_zone_database(zone: str) -> None:
    me = made(queue=Queueing(zone=zone, is_sending=False))
    me.track("A")
    sent = (
        "+00:00" if zone == "GMT+0" else zone
    )  # devices write offsets so, and a service may read another one
    assert (me.waiting()[0]["timezone"], me.waiting()[0]["occurred_at"][-6:]) == (sent, "+00:00")
    assert me.estimate()["current_streak"] == 1
    me.close()


@pytest.mark.usefixtures("no_zones")
def test_other_zones_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"^zone must .*'Europe/Berlin'.* install the package tzdata"):
        Queueing(zone="Europe/Berlin")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    me = made(queue=Queueing(is_sending=False))
    me.track("A")  # by its offset
    assert me.waiting()[0]["timezone"] == me.waiting()[0]["occurred_at"][-6:]
    me.close()


def test_the_package_depends_on_zones_where_the_system_has_none() -> None:
    project = tomllib.loads((ROOT / "client" / "python" / "pyproject.toml").read_text())["project"]
    [needed] = project["dependencies"]
    assert needed.startswith("tzdata; sys_platform == 'win32'")
    assert project["optional-dependencies"] == {"tzdata": ["tzdata"]}


class Asked:
    """A service that notes what it is asked."""

    def __init__(self) -> None:
        self.requests = list[Request]()

    def __call__(self, request: Request) -> Reply:
        self.requests.append(request)
        return Reply(200, b'{"responses": [], "cursor": "c", "done": true}')


@pytest.mark.parametrize("timeout", [3, 3.0, timedelta(seconds=3)])
def test_a_timeout_is_seconds_or_a_timedelta(timeout: Any) -> None:
    asked = Asked()
    me = made(transport=asked, timeout=timeout)
    me.balance()
    assert list(me.answers("q", wait=timeout, timeout=timeout)) == []
    assert [each.timeout for each in asked.requests] == [3.0, pytest.approx(6.0, abs=1)]


@pytest.mark.parametrize("day", [date(2026, 3, 2), "2026-03-02", datetime(2026, 3, 2, 23, tzinfo=UTC)])
def test_a_date_is_a_date_or_its_text(day: Any) -> None:
    asked = Asked()
    me = made(transport=asked)
    me.explain(day)
    me.activity(day, day)
    assert ["date=2026-03-02" in asked.requests[0].path, asked.requests[1].path.count("2026-03-02")] == [
        True,
        2,
    ]


def circle() -> dict[str, Any]:
    """Properties that hold themselves."""
    found: dict[str, Any] = {}
    found["itself"] = found
    return found


def depth(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"in": found}
    return found


@pytest.mark.parametrize("event_type", [None, " ", 7])
def test_a_type_that_is_no_text_is_refused_at_once(event_type: Any) -> None:
    me = made(queue=Queueing(is_sending=False))
    with pytest.raises(TypeError, match=r"^event_type must be a text"):
        me.track(event_type)
    assert not me.waiting()
    me.close()


@pytest.mark.parametrize(
    "properties",
    [
        *({"a": [value]} for value in (float("nan"), 10**5000, date(2026, 3, 2), b"x")),
        {(1, 2): 3},
        *("minutes", [1], 0),
        circle(),
        depth(100_000),
    ],
    ids=lambda value: type(value).__name__,
)
def test_properties_that_are_no_json_are_refused_at_once(properties: Any) -> None:
    me = made(queue=Queueing(is_sending=False))
    with pytest.raises((TypeError, ValueError), match=r"^properties must be (JSON|a mapping)"):
        me.track("A", properties)
    assert not me.waiting()
    me.close()


def test_properties_that_are_json_are_kept_as_they_were() -> None:
    me = made(queue=Queueing(is_sending=False))
    given = {"name": "\ud83d", "none": None, "tags": ["a", 1.5], "large": 10**400}
    me.track("A", given)
    me.track("A", {})
    me.track("A", None)
    assert [each.get("properties") for each in me.waiting()] == [given, None, None]
    me.close()
