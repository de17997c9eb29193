"""Templates as text, so that comments and short forms stay as somebody wrote them."""

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.assembly.short_forms import parse

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Block:
    """A resource. text: its lines, with the empty lines and comments before it."""

    logical_id: str
    kind: str
    properties: dict[str, Any]
    text: str

    @property
    def name(self) -> str:
        """The logical id, of a function without `Function`."""
        return self.logical_id.removesuffix("Function")


def sections(path: str) -> dict[str, str]:
    """Return a file's top-level sections by name, as text; "" is what stands before the first."""
    before, *rest = re.split(r"(?m)^([A-Za-z][\w:]*):\n", (ROOT / path).read_text())
    return {"": before, **dict(zip(rest[::2], rest[1::2], strict=True))}


def patterns(name: str) -> dict[str, str]:
    """Return the patterns of a file of infra/patterns by name, without the comments between them."""
    found = sections(f"infra/patterns/{name}.yaml")
    return {key: re.sub(r"(?m)^(#.*)?\n", "", text) for key, text in found.items()}


def fill(pattern: str, **values: object) -> str:
    """Return a pattern with a value for each <name> in it."""
    return re.sub(r"<(\w+)>", lambda found: str(values[found[1]]), pattern)


def stand_in(text: str, marks: Mapping[str, str]) -> str:
    """Return a text with what each line `# @name` stands for in its place, indented as it is."""

    def derived(found: re.Match[str]) -> str:
        if found[2] not in marks:
            raise ValueError(f"# @{found[2]} stands for nothing; known are {', '.join(marks)}")
        return textwrap.indent(textwrap.dedent(marks[found[2]]), found[1])

    return re.sub(r"(?m)^( *)# @(\w+)\n", derived, text)


def blocks(resources: str) -> list[Block]:
    """Return the resources of a section. ValueError: a line belongs to none of them."""
    texts = re.findall(r"\n*(?:  #.*\n)*  \w+:.*\n(?:    .*\n)*", resources)
    if "".join(texts) != resources:
        raise ValueError(f"not all of this is resources, indented by two blanks:\n{resources[:400]}")
    parsed = [next(iter(parse(each).items())) for each in texts]
    return [
        Block(logical_id, each["Type"], each.get("Properties") or {}, text)
        for text, (logical_id, each) in zip(texts, parsed, strict=True)
    ]
