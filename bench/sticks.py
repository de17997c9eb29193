"""`python -m bench.sticks`: how large the project is, and how much of it one event meets. It only prints."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from bench.counting.desk import desk
from bench.units.engagement import DAY, apply
from tests.support.module_graph import reached
from tests.support.template import ROOT

LAYERS = ("rules", "adapters", "ingest", "processors", "analytics", "local", "infra")


def tracked(*patterns: str) -> list[Path]:
    """Return the files of the repository that match git's patterns."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / each for each in listed.stdout.split("\0") if each]


def lines(paths: list[Path]) -> int:
    """Return how many lines the files have together."""
    return sum(path.read_bytes().count(b"\n") for path in paths)


def words(paths: list[Path]) -> int:
    """Return how many words the files have together."""
    return sum(len(path.read_text().split()) for path in paths)


def modules_of_an_event() -> int:
    """Return how many modules a process enters for one event of a known user, from the door to the lake."""
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.partition(".")[0] in LAYERS:
            entered.add(name)

    with desk() as warm:
        apply(warm, "ann", 1)
        warm.tick(DAY)
        warm.forget()
        sys.setprofile(note)
        try:
            apply(warm, "ann", 1)
            for function, table in list(warm.streams):
                if function == "PublisherFunction":
                    warm.consume(function, table)
        finally:
            sys.setprofile(None)
    return len(entered)


def sticks() -> Iterator[tuple[str, object]]:
    """Yield what is measured, and its figure."""
    product = tracked(*(f"{layer}/*.py" for layer in LAYERS))
    modules = [each for each in product if each.name != "__init__.py"]
    yield "product Python: lines", lines(product)
    yield "product Python: modules", len(modules)
    yield "product Python: folders", len({each.parent for each in product})
    yield "modules that one event enters, door to lake", modules_of_an_event()
    steps = (
        f"analytics.steps.{module.stem}"
        for module in modules
        if module.parent.name == "steps" and module.stem != "what_if_function"  # no night runs it
    )
    yield "modules that the night imports", len({name for step in steps for name in reached(step)})
    yield "template.yaml: lines", lines(tracked("template.yaml"))
    yield "bench/: lines", lines(tracked("bench/*.py"))
    yield "tests/: lines", lines(tracked("tests/*.py"))
    yield "Markdown: words", words(tracked("*.md"))
    for name in ("README.md", "ARCHITECTURE.md"):
        yield f"{name}: words", words([ROOT / name])
    terms = re.findall(r"^\*\*(.+?)\*\*", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    yield "docs/glossary.md: terms", len(terms)


if __name__ == "__main__":
    for name, figure in sticks():
        print(f"{name:48} {figure:>8}")
