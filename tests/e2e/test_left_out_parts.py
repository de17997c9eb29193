"""A laptop cloud without leads and questions: neither database nor route, and nothing that speaks of them.

It is a cloud of its own, of a copy of the checkout, and one process runs it.
"""

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from ingest.openapi import ROUTES
from local.smoke.smoke_command import CLEAN_UP, STEPS
from rules.lake.entities import ENTITIES
from rules.parts import Part
from tests.recipes.scratch import PYTHON, Ran, Scratch

pytestmark = pytest.mark.xdist_group("cloud without parts")

# The gateway itself answers what a page asks before it sends (OPTIONS).
OF_PARTS = [route for route in ROUTES if route.part and route.method != "options"]
WORDS = re.compile(r"lead(?!er)|question|phone|\banswer", re.IGNORECASE)


def streakline(scratch: Scratch, *words: str) -> Ran:
    return scratch.python("-m", "local.cli", *words)


@pytest.fixture(scope="module")
def cloud(cloud_without_parts: Scratch) -> Scratch:
    return cloud_without_parts


@pytest.fixture(scope="module")
def stack(cloud: Scratch) -> dict[str, Any]:
    described: dict[str, Any] = json.loads((cloud.root / ".local" / "stack.json").read_text())
    return described


@pytest.fixture(scope="module")
def token(cloud: Scratch) -> str:
    made = subprocess.run(
        [PYTHON, "-m", "local.cli", "token", "--user", "ann", "--admin"],
        cwd=cloud.root,
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.strip()


def answered(url: str, method: str = "GET", token: str = "", body: str = "") -> tuple[int, str]:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(url, body.encode() or None, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def told(ran: Ran) -> Any:
    """What a command has printed as JSON; its words of progress come before and after."""
    return json.loads(ran.said[ran.said.index("{") : ran.said.rindex("}") + 1])


def test_no_postgresql_is_started(cloud: Scratch, stack: dict[str, Any]) -> None:
    local = cloud.root / ".local"
    assert (local / "run" / "ministack.pid").exists()
    assert not (local / "run" / "postgres.pid").exists()
    assert not (local / "postgres").exists()
    assert stack["parameters"] == {"WithLeads": "false", "WithQuestions": "false"}


def test_no_resource_is_of_a_part_but_the_fingerprints_key(stack: dict[str, Any]) -> None:
    """Names of boards are hashed with that key, too."""
    named = {name for name in stack["outputs"] if WORDS.search(name) or name.startswith(("Hook", "Memory"))}
    assert named == set()
    assert "FingerprintSecretId" in stack["outputs"]


@pytest.mark.parametrize("route", OF_PARTS, ids=lambda route: route.name)
def test_a_route_of_a_part_answers_404(stack: dict[str, Any], token: str, route: Any) -> None:
    path = re.sub(r"{\w+}", "0b7c2f66-8f3c-4a9e-9d4e-2f7f3f1c5a10", route.path)
    status, body = answered(stack["api_url"] + path, route.method.upper(), token, "{}")
    assert status == 404, body
    assert "code" not in body, "the gateway says it, and no function"


def test_other_routes_answer(stack: dict[str, Any], token: str) -> None:
    assert answered(f"{stack['api_url']}/v1/users/ann", token=token)[0] == 200
    assert answered(f"{stack['api_url']}/v1/health")[0] == 200


def test_the_openapi_document_and_its_page_do_not_know_them(stack: dict[str, Any]) -> None:
    status, text = answered(f"{stack['api_url']}/v1/openapi.json")
    document = json.loads(text)
    assert status == 200
    assert not {route.path for route in OF_PARTS} & document["paths"].keys()
    assert not {"Leads", "Questions"} & {tag["name"] for tag in document["tags"]}
    assert "x-part" not in text
    status, page = answered(f"{stack['api_url']}/v1/docs")
    assert status == 200
    assert [route.path for route in OF_PARTS if f"<code>{route.path}</code>" in page] == []


def test_the_page_shows_none_of_their_views(stack: dict[str, Any]) -> None:
    status, config = answered(f"{stack['api_url']}/app/config.json")
    assert status == 200
    assert json.loads(config)["parts"] == []


def test_status_is_well_and_does_not_name_them(cloud: Scratch) -> None:
    ran = streakline(cloud, "status", "--json")
    cloud.must(ran)
    assert told(ran)["is_well"], ran.said
    assert not re.search(r"lead|question|postgres|announce|answer", ran.said, re.IGNORECASE), ran.said


def test_smoke_proves_all_other_parts(cloud: Scratch) -> None:
    ran = streakline(cloud, "smoke", "--json")
    report = told(ran)
    assert report["ok"], report
    assert [each["step"] for each in report["steps"]] == [
        each.name for each in (*STEPS, CLEAN_UP) if each.part is None
    ]


def test_a_night_says_nothing_of_them(cloud: Scratch) -> None:
    ran = streakline(cloud, "night", "run", "--json")
    cloud.must(ran)
    assert not WORDS.search(ran.said), ran.said
    tables = streakline(cloud, "sql", "SHOW TABLES", "--json")
    cloud.must(tables)
    of_parts = {entity.name for entity in ENTITIES.values() if entity.part}
    shown = {row["name"].partition(".")[2] for row in json.loads(tables.said[tables.said.index("[") :])}
    assert not shown & of_parts
    assert not {name for name in shown if WORDS.search(name)}
    loaded = streakline(cloud, "sql", "SELECT DISTINCT entity FROM facts.loaded_rows", "--json")
    cloud.must(loaded)
    reports = streakline(cloud, "report")
    cloud.must(reports)
    _, _, shown_text = (cloud.root / ".local" / "report.html").read_text().partition("</style>")
    assert not WORDS.search(shown_text)


def test_a_command_of_a_part_says_that_there_is_none(cloud: Scratch) -> None:
    for words in (("hook", "list"), ("features", "rebuild")):
        ran = streakline(cloud, *words)
        assert (ran.code, ran.said.count("\n")) == (1, 1), ran.said
        assert "has no leads" in ran.said


def test_a_person_is_exported_and_the_export_tells_what_is_not_deployed(cloud: Scratch, token: str) -> None:
    ran = streakline(cloud, "person", "export", "--user", "ann", "--out", "ann.zip")
    cloud.must(ran)
    shutil.unpack_archive(cloud.root / "ann.zip", cloud.root / "ann")
    manifest = json.loads((cloud.root / "ann" / "manifest.json").read_text())
    left_out = {name for name, why in manifest["left_out"].items() if why == "not deployed"}
    assert {"Event", "PostgreSQL", "Responses", "Subscriptions"} <= left_out
    assert "UserStreaks.json" in {Path(each["file"]).name for each in manifest["files"]}


def test_up_again_keeps_the_parameters_and_starts_nothing_else(cloud: Scratch) -> None:
    ran = streakline(cloud, "up")
    cloud.must(ran)
    assert "deployed already" in ran.said
    assert not (cloud.root / ".local" / "postgres").exists()


@pytest.mark.parametrize("part", Part)
def test_the_plan_leaves_a_part_out(cloud: Scratch, part: Part) -> None:
    words = ("plan", "--daily-actives", "1000", "--json")
    less = told(streakline(cloud, *words, "--without", part))
    every = told(streakline(cloud, *words))
    for size, costs in less["sizes"].items():
        assert costs["idle_dollars"] < every["sizes"][size]["idle_dollars"]
    assert part not in less["parts"]
