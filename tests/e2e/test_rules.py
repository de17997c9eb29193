"""The book of rules on the deployed cloud: a type is published by the command line while its events wait."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.api import Api
from local.operate.redrive import list_failures, redrive
from local.replay import put_on_stream
from local.stack import Stack
from tests.e2e.conftest import event, printed
from tests.support.effort import only_soak

pytestmark = pytest.mark.xdist_group("cloud")
KNOWN_WITHIN_SECONDS = 60


def rules(*words: str) -> str:
    return printed("rules", *words)


def waiting(stack: Stack, user: str, *, only_list: bool = False) -> list[str]:
    """Why a user's events wait in the failure queues, once nothing is sent again."""
    return [
        each["reason"]
        for each in (list_failures(stack) if only_list else redrive(stack)["left"])
        if user in json.dumps(each["record"])
    ]


def statuses(me: Api, events: list[dict[str, Any]]) -> list[str]:
    """What became of these events."""
    status, told = me.call("POST", "/v1/events", {"events": events})
    assert status == 202, told
    return [each["status"] for each in told["results"]]


def book_with(name: str, folder: Path) -> Path:
    """The book in force with another type, in a file."""
    file = folder / "book.yaml"
    more = f"event_types:\n  {name}:\n    points: 7\n    cap: {{points: 9, per: day}}\n"
    file.write_text(re.sub(r"^event_types:\n", more, rules("show"), flags=re.MULTILINE))
    return file


def published(file: Path) -> dict[str, Any]:
    """What is printed of the version that is in force from now on."""
    words = ("publish", str(file), "--effective", "now", "--note", "reading counts", "--json")
    told: dict[str, Any] = json.loads(rules(*words))
    return told


def test_a_version_is_compared_published_and_listed_and_a_bad_one_refused(
    stack: Stack, tmp_path: Path
) -> None:
    name = f"READ_{time.time_ns()}"
    file = book_with(name, tmp_path)
    assert f"event_types.{name}: new" in rules("diff", str(file))
    told = published(file)
    assert {**json.loads(rules("list", "--json"))[0], "beginnings": []} == told
    with pytest.raises(RuntimeError, match="effective is in the past"):
        rules("publish", str(file), "--effective", "2026-01-01T00:00:00Z")
    file.write_text(file.read_text().replace("points: 9", "points: 6"))
    with pytest.raises(RuntimeError, match=r"book.yaml:5: event_types.*cap.points is below the 7 points"):
        rules("check", str(file))


@only_soak(
    "test_a_type_is_refused_by_name_until_the_book_knows_it (tests/integration/test_rules_api.py) and"
    " test_an_event_that_a_later_book_knows_is_taken_by_its_redrive (tests/unit/engagement/test_events_stream.py);"
    " docs/tutorial.md in tests/e2e/test_documents.py publishes a book on the cloud, and waits until it is known"
)
def test_events_of_a_type_wait_until_the_book_has_learned_it(
    stack: Stack, me: Api, user: str, tmp_path: Path, settled: Callable[..., None]
) -> None:
    name = f"READ_{time.time_ns()}"
    early = {**event(user, "early"), "event_type": name}
    status, told = me.call("POST", "/v1/events", {"events": [early]})
    assert (status, told["results"][0]["error"]["code"]) == (202, "unknown_type")
    put_on_stream(stack, [early])
    settled()
    assert any(name in reason for reason in waiting(stack, user, only_list=True))

    told = published(book_with(name, tmp_path))
    until = time.monotonic() + KNOWN_WITHIN_SECONDS
    sent = [{**event(user, f"later-{number}"), "event_type": name} for number in range(2)]
    while statuses(me, sent) not in (["accepted", "accepted"], ["duplicate", "duplicate"]):
        # Each process of a function asks for versions by its own clock.
        assert time.monotonic() < until, "a process of the API does not know the version within a minute"
        time.sleep(1)
    # After the doors: each look sends everything again that waits, of other tests too.
    while waiting(stack, user):
        assert time.monotonic() < until, "a function does not know the version within a minute"
        time.sleep(1)
    settled(user)
    assert me.get(f"/v1/users/{user}")["total_bestie_points"] == 9
    while me.get("/v1/rules")["version"] != told["version"]:
        assert time.monotonic() < until, (
            "a process of the rules' API does not know the version within a minute"
        )
        time.sleep(1)
