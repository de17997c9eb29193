"""A handler's parts are made in one way: of its settings and of clients, once a process."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters.bootstrap import Bootstrap, ClientOf, bootstrap, process_client
from adapters.platform import aws, fence
from adapters.settings import SettingsMissing
from rules.regions.register import may_write
from tests.support.template import ROOT


@dataclass(frozen=True)
class ShelfSettings:
    shelf_table: str


@dataclass(frozen=True)
class Shelf:
    table: str
    dynamodb: Any


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Bootstrap[ShelfSettings, Shelf]:
    monkeypatch.setenv("SHELF_TABLE", "Shelf")

    @bootstrap(ShelfSettings)
    def made(config: ShelfSettings, client: ClientOf) -> Shelf:
        return Shelf(config.shelf_table, client("dynamodb"))

    made.client = {"dynamodb": "given"}.__getitem__
    return made


def test_parts_are_made_once_of_the_environment_until_they_are_forgotten(
    parts: Bootstrap[ShelfSettings, Shelf], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = parts()
    monkeypatch.setenv("SHELF_TABLE", "Other")
    assert parts() is first
    assert (first, parts.build()) == (Shelf("Shelf", "given"), Shelf("Other", "given"))
    parts.cache_clear()
    assert parts() == Shelf("Other", "given")


def test_what_is_given_makes_parts_without_an_environment(parts: Bootstrap[ShelfSettings, Shelf]) -> None:
    assert parts.make(ShelfSettings("mine"), lambda service: service) == Shelf("mine", "dynamodb")


def test_a_missing_variable_is_named_and_read_again(
    parts: Bootstrap[ShelfSettings, Shelf], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHELF_TABLE")
    with pytest.raises(SettingsMissing, match="SHELF_TABLE is not set"):
        parts()
    monkeypatch.setenv("SHELF_TABLE", "Shelf")
    assert parts().table == "Shelf"


def test_a_process_s_client_of_dynamodb_is_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    made, guarded = {"dynamodb": object(), "sqs": object()}, list[Any]()
    monkeypatch.setattr(aws, "client", made.__getitem__)
    monkeypatch.setattr(fence, "process_fence", lambda: "the fence")
    monkeypatch.setattr(fence, "guard_client", lambda *arguments: guarded.append(arguments))
    process_client("dynamodb")
    assert guarded == [(made["dynamodb"], "the fence", may_write)]
    assert process_client("sqs") is made["sqs"]
    assert len(guarded) == 1, "SQS has no fence"


# The handlers that make something by themselves, by what they make it with, and why.
BY_ITSELF: dict[str, set[str]] = {
    "client": set(),
    "fence_writer": set(),
    "fence_follower": {"processors/region_follower.py"},  # it writes while its region follows
    "free_client": {
        "processors/region_follower.py",  # the process's client has another fence
        "processors/region_sender.py",  # the other region's queue
    },
    "read_settings": {"processors/batches.py"},  # each batch's failure queue, whatever the handler
}


def names_from_adapters(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("adapters"):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("aws", "fence", "settings"):
            yield node.attr


@pytest.mark.parametrize("name", BY_ITSELF)
def test_no_other_handler_makes_its_clients_and_reads_its_settings(name: str) -> None:
    rooms = (ROOT / "ingest", ROOT / "processors", ROOT / "analytics" / "steps")
    handlers = [path for room in rooms for path in room.rglob("*.py")]
    made = {str(path.relative_to(ROOT)) for path in handlers if name in names_from_adapters(path)}
    assert made == BY_ITSELF[name]


def test_the_page_starts_without_clients_of_aws() -> None:
    child = "import sys, ingest.page; print('botocore.session' in sys.modules)"
    command = [sys.executable, "-c", child]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.strip() == "False"
