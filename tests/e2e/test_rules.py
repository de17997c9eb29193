"""The book of rules on the deployed cloud: a type is published by the command line while its events wait."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.api import Api
from local.operate.redrive import list_failures, redrive
from local.stack import Stack
from tests.e2e.conftest import printed

pytestmark = pytest.mark.xdist_group("cloud")


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
    before = yaml.safe_load(rules("show", "--version", str(told["version"] - 1)))
    assert name not in before["event_types"]
    assert yaml.safe_load(rules("show", "--version", str(told["version"]))) == yaml.safe_load(rules("show"))
    with pytest.raises(RuntimeError, match=r"no version 99999.*rules list"):
        rules("show", "--version", "99999")
    with pytest.raises(RuntimeError, match="effective is in the past"):
        rules("publish", str(file), "--effective", "2026-01-01T00:00:00Z")
    file.write_text(file.read_text().replace("points: 9", "points: 6"))
    with pytest.raises(RuntimeError, match=r"book.yaml:5: event_types.*cap.points is below the 7 points"):
        rules("check", str(file))
