"""`python -m bench.sticks`: how large the project is, and how much of it one event meets. It only prints."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from bench.counting.desk import desk
from bench.units.engagement import DAY, apply_events
from tests.support.module_graph import reached
from tests.support.template import ROOT

LAYERS = ("rules", "adapters", "ingest", "processors", "analytics", "local", "infra")


def sticks() -> Iterator[tuple[str, int]]:
    """Yield names of figures, and the figures."""
    product = _tracked_files(*(f"{layer}/*.py" for layer in LAYERS))
    modules = [path for path in product if path.name != "__init__.py"]
    yield "product Python: lines", _lines(product)
    yield "product Python: modules", len(modules)
    yield "product Python: folders", len({path.parent for path in product})
    yield "modules that one event enters, door to lake", _modules_of_an_event()
    steps = (
        f"analytics.steps.{module.stem}"
        for module in modules
        if module.parent.name == "steps" and module.stem != "what_if_function"  # no night runs it
    )
    yield "modules that the night imports", len({name for step in steps for name in reached(step)})
    yield "template.yaml: lines", _lines(_tracked_files("template.yaml"))
    yield "bench/: lines", _lines(_tracked_files("bench/*.py"))
    yield "tests/: lines", _lines(_tracked_files("tests/*.py"))
    yield "Markdown: words", _words(_tracked_files("*.md"))
    for name in ("README.md", "ARCHITECTURE.md"):
        yield f"{name}: words", _words([ROOT / name])
    glossary = (ROOT / "docs" / "glossary.md").read_text()
    yield "docs/glossary.md: terms", len(re.findall(r"^\*\*(.+?)\*\*", glossary, re.MULTILINE))


def _tracked_files(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "-z", "--", *patterns]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in output.split("\0") if name]


def _lines(paths: list[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in paths)


def _words(paths: list[Path]) -> int:
    return sum(len(path.read_text().split()) for path in paths)


def _modules_of_an_event() -> int:
    """Return how many modules a process enters for one event of a known user, from the door to the lake."""
    modules: set[str] = set()

    def note_module(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.partition(".")[0] in LAYERS:
            modules.add(name)

    with desk() as one_desk:
        apply_events(one_desk, "ann", 1)  # opens the account, and warms the functions
        one_desk.tick(DAY)
        one_desk.start_path()
        sys.setprofile(note_module)
        threading.setprofile(note_module)  # the processor writes users in threads
        try:
            apply_events(one_desk, "ann", 1)
            for function, table in list(one_desk.streams):
                if function == "PublisherFunction":
                    one_desk.consume(function, table)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return len(modules)


if __name__ == "__main__":
    for name, figure in sticks():
        print(f"{name:48} {figure:>8}")
