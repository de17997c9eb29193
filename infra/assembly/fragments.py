"""Puts the fragments of infra/app together into one template: section by section, and in each by domain."""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from infra.assembly.resources import output, whole
from infra.assembly.text import Block, sections, stand_in

ORDER = ("Parameters", "Mappings", "Conditions", "Rules", "Globals", "Resources", "Outputs")
Fragment = dict[str, str]  # section -> its text


def declared(names: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return (logical id, type, condition or "") of each resource of the fragments, in their order."""
    resources = "".join(sections(f"infra/app/{each}.yaml").get("Resources", "") for each in names)
    return re.findall(r"(?m)^  (\w+):.*\n    Type: (\S+).*(?:\n    Condition: (\w+))?", resources)


def parameters(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return (name, type) of each of the template's parameters."""
    texts = (sections(f"infra/app/{each}.yaml").get("Parameters", "") for each in names)
    return re.findall(r"(?m)^  (\w+):\n    Type: (\S+)", "".join(texts))


def read(name: str, marks: Mapping[str, str]) -> tuple[Fragment, list[Block]]:
    """Return a fragment with all that is derived from it, and its resources.

    Raises ValueError if it cannot be assembled.
    """
    parts = {key: stand_in(text, marks) for key, text in sections(f"infra/app/{name}.yaml").items()}
    resources = list(whole(parts["Resources"].strip("\n") + "\n")) if "Resources" in parts else []
    comment = "".join(re.findall(r"(?m)^#.*\n", parts[""]))
    banner = textwrap.indent(f"# ---- {name} ".ljust(100, "-") + f"\n{comment}", "  ")
    parts[""] = parts[""].removeprefix(comment)
    if resources:
        parts["Resources"] = banner + "".join(each.text for each in resources)
    parts["Outputs"] = parts.get("Outputs", "") + "".join(map(output, resources))
    return parts, resources


def assembled(fragments: Sequence[Fragment]) -> str:
    """Return the template that consists of some fragments."""
    texts = []
    for section in ("", *ORDER):
        parts = [text for each in fragments if (text := each.get(section, "").strip("\n"))]
        gap = "\n\n" if section == "Resources" else "\n"
        texts += [f"{section}:\n" * bool(section) + gap.join(parts) + "\n"] if parts else []
    return "\n".join(texts)
