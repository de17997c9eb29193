"""Admins ask what another book would have led to: through the real handlers, over a lake in S3."""

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters import clock
from adapters.book_store import shipped_document
from adapters.platform.objects import NoObject, S3Objects
from analytics.steps import what_if_function
from analytics.what_if.summary import summary
from local.what_if.what_if_command import ask
from rules.days import stamp, unstamp
from tests.support.effort import effort
from tests.support.gateway import GROUP_AGENTS
from tests.support.site import FULFILMENT, PRODUCERS, Site
from tests.support.what_if_story import WhatIfStory
from tests.support.what_ifs import Functions, lake_of_its_own

PATH = "/v1/rules/what-ifs"
NOBODY = "0" * 32


@pytest.fixture
def own(api: Site) -> Iterator[tuple[S3Objects, Functions]]:
    with lake_of_its_own(api.engine) as made:
        yield made


@pytest.fixture
def lake(own: tuple[S3Objects, Functions]) -> S3Objects:
    return own[0]


@pytest.fixture
def functions(own: tuple[S3Objects, Functions]) -> Functions:
    return own[1]


@pytest.fixture
def story(lake: S3Objects) -> WhatIfStory:
    """Books, and nobody who has lived under them: how a question is asked and ends does not depend on it."""
    told = WhatIfStory(26, users=0)
    told.into(lake)
    return told


def move_clock(monkeypatch: pytest.MonkeyPatch, to: datetime) -> None:
    monkeypatch.setattr(clock, "now", lambda: to)


def begun(api: Site, book: Any, **span: str) -> dict[str, Any]:
    status, told = api.admin("POST", PATH, {"book": book, **span})
    assert status == 202, told
    assert told["status"] == "running"
    return dict(told)


def look(api: Site, told: dict[str, Any]) -> dict[str, Any]:
    status, found = api.admin("GET", f"{PATH}/{told['what_if_id']}")
    assert status == 200, found
    return dict(found)


def printed(lake: S3Objects, path: Path, book: Any, *when: datetime) -> dict[str, Any]:
    """What the command prints for the same lake, book and days."""
    path.write_text(json.dumps(book))
    return dict(json.loads(json.dumps(summary(ask(lake, str(path), *when)[1], "this book"))))


@pytest.mark.parametrize("is_bounded", [True, False][: effort(1, soak=2)])
def test_the_report_is_what_the_command_prints(
    api: Site,
    lake: S3Objects,
    functions: Functions,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_bounded: bool,
) -> None:
    story = WhatIfStory(26)
    story.into(lake)
    move_clock(monkeypatch, story.now)
    book, day = story.some_book(), timedelta(days=1)
    days = [(story.now - count * day).date() for count in (20, 2)] if is_bounded else []
    bounds = [datetime(each.year, each.month, each.day, tzinfo=UTC) for each in days]
    told = begun(api, book, **dict(zip(("from", "to"), map(str, days), strict=False)))
    assert look(api, told) == told
    assert functions.work()
    found = look(api, told)
    wanted = printed(lake, tmp_path / "book.json", book, story.now, *bounds)
    assert found == {
        **told,
        "status": "finished",
        "finished_at": stamp(story.now),
        "report": wanted,
    }
    assert wanted["users"]["all"]
    assert wanted["largest_changes"]
    assert not functions.work(), "Lambda may deliver a job twice"
    assert look(api, told) == found


def test_one_question_at_a_time_and_the_same_one_once(
    api: Site, functions: Functions, story: WhatIfStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_clock(monkeypatch, story.now)
    book = story.some_book()
    told = begun(api, book)
    assert begun(api, dict(reversed(book.items()))) == told, "the order of keys says nothing"
    for other in ({"book": book, "from": "2027-01-01"}, {"book": story.documents[0]}):
        status, refused = api.admin("POST", PATH, other)
        assert (status, refused["error"]["code"]) == (409, "conflict")
        assert stamp(story.now) in refused["error"]["message"]
    assert len(functions.asked) == 1
    functions.work()
    other = begun(api, story.documents[0])
    assert other["what_if_id"] != told["what_if_id"]
    assert look(api, told)["status"] == "finished", "a report stays"
    functions.work()
    later = story.now + timedelta(hours=1)
    move_clock(monkeypatch, later)
    again = begun(api, book)
    assert (again["what_if_id"], again["asked_at"]) == (told["what_if_id"], stamp(later))
    assert look(api, told)["status"] == "running", "the lake may have changed, so it is worked out anew"
    functions.work()
    assert unstamp(look(api, told)["finished_at"]) == later


def test_only_admins_ask_and_see(api: Site, functions: Functions, story: WhatIfStory) -> None:
    told = begun(api, story.some_book())
    groups = ((), (PRODUCERS,), (FULFILMENT,), (GROUP_AGENTS,), ("streakline/leads/acme",))
    for each in groups:
        assert api.call("somebody", "POST", PATH, {"book": story.some_book()}, *each)[0] == 403
        assert api.call("somebody", "GET", f"{PATH}/{told['what_if_id']}", None, *each)[0] == 403
    assert len(functions.asked) == 1
    assert api.admin("GET", f"{PATH}/{NOBODY}")[0] == 404
    for wrong in ("asked", "..%2Fstate", NOBODY.upper() + "A", f"{NOBODY}0"):
        assert api.admin("GET", f"{PATH}/{wrong}")[0] in (400, 404)


def without_types(book: Any) -> None:
    del book["event_types"]


def text_points(book: Any) -> None:
    next(iter(book["event_types"].values()))["points"] = "many"


def test_a_book_that_is_none_is_refused_at_its_fields(api: Site, functions: Functions) -> None:
    for damage in (without_types, text_points):
        book = copy.deepcopy(shipped_document())
        damage(book)
        status, refused = api.admin("POST", PATH, {"book": book})
        assert status == 422
        assert refused == api.admin("POST", "/v1/rules", {"book": book, "dry_run": True})[1]
        assert all(each["field"].startswith("event_types") for each in refused["error"]["details"])
    assert not functions.asked


SPANS: list[tuple[dict[str, Any], str]] = [
    ({"from": "tomorrow"}, "from"),
    ({"to": "2027-02-30"}, "to"),
    ({"from": "0001-01-01"}, "from"),
    ({"to": "9999-12-31"}, "to"),
    ({"from": "2027-01-02", "to": "2027-01-02"}, "to"),
    ({"from": 7}, "from"),
    ({"until": "2027-01-01"}, "body"),
]


def test_days_that_make_no_sense_are_refused_at_their_field(api: Site, functions: Functions) -> None:
    for span, field in SPANS:
        status, refused = api.admin("POST", PATH, {"book": shipped_document(), **span})
        assert (status, [each["field"] for each in refused["error"]["details"]]) == (422, [field]), span
    assert not functions.asked


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("of canary-user"), "ValueError ended it: the log of WhatIfFunction says where"),
        (NoObject("curated/x"), "the nightly run has replaced files of the lake meanwhile: ask again"),
    ],
)
def test_why_a_what_if_fails_is_told(
    api: Site,
    functions: Functions,
    story: WhatIfStory,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    reason: str,
) -> None:
    def fail(*_: Any) -> None:
        raise error

    book = story.some_book()
    told = begun(api, book)
    with monkeypatch.context() as patch:
        patch.setattr(what_if_function, "what_if", fail)
        with pytest.raises(type(error)):  # so that the alarm of its errors sounds
            functions.work()
        assert not functions.work(), "Lambda tries again: that is over"
    found = look(api, told)
    assert (found["status"], found["reason"]) == ("failed", reason)
    begun(api, book)
    functions.work()
    assert look(api, told)["status"] == "finished"


def test_attempts_that_die_without_a_word_end(
    api: Site, functions: Functions, story: WhatIfStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_at = story.now
    move_clock(monkeypatch, asked_at)
    told = begun(api, story.some_book())
    move_clock(monkeypatch, asked_at + timedelta(minutes=16))
    assert look(api, told)["status"] == "running"
    assert functions.work(), "an attempt after one that ran into its time limit"
    assert look(api, told)["reason"].startswith("it ended without a report")

    told = begun(api, story.some_book())
    assert len(functions.asked) == 2
    move_clock(monkeypatch, asked_at + timedelta(minutes=47))
    found = look(api, told)
    assert (found["status"], unstamp(found["finished_at"])) == ("failed", asked_at + timedelta(minutes=46))
    begun(api, story.documents[0])


def test_lambda_that_is_away_keeps_nobody_from_asking(
    api: Site, functions: Functions, story: WhatIfStory
) -> None:
    functions.is_away = True
    status, refused = api.admin("POST", PATH, {"book": story.some_book()})
    assert (status, refused["error"]["code"]) == (503, "unavailable")
    functions.is_away = False
    told = begun(api, story.documents[0])
    functions.work()
    assert look(api, told)["status"] == "finished"
