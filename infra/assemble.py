"""Assembles template.yaml and infra/observability.yaml. With --check it only says whether they are stale.

So it is with the tables of docs/settings.md, which is declared in adapters/settings/choices.py, of
docs/retention.md, which is declared in rules/privacy/retention.py, and of docs/book.md, which follows from
rules/book/book_schema.py.

A fragment in infra/app holds one domain: its parameters, conditions, resources and outputs. The
modules infra/resources.py and infra/marks.py derive the rest from them, such as a function's log group and
alarms. So a new function is one block in one fragment.
"""

import difflib
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from adapters.settings import choices
from infra import marks
from infra.book_page import book_tables
from infra.resources import complete_resources, output
from infra.template_text import ROOT, Block, replace_marks, sections
from rules.privacy import retention

# Puts the fragments of infra/app together into one template: section by section, and in each by domain.


ORDER = ("Metadata", "Parameters", "Mappings", "Conditions", "Rules", "Globals", "Resources", "Outputs")
Fragment = dict[str, str]  # section -> its text


def declared_resources(names: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return (logical id, type, condition or "") of each resource of the fragments, in their order."""
    resources = "".join(sections(f"infra/app/{each}.yaml").get("Resources", "") for each in names)
    return re.findall(r"(?m)^  (\w+):.*\n    Type: (\S+).*(?:\n    Condition: (\w+))?", resources)


def declared_parameters(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return (name, type) of each of the template's parameters."""
    texts = (sections(f"infra/app/{each}.yaml").get("Parameters", "") for each in names)
    return re.findall(r"(?m)^  (\w+):\n    Type: (\S+)", "".join(texts))


def read_fragment(name: str, mark_texts: Mapping[str, str]) -> tuple[Fragment, list[Block]]:
    """Return a fragment with all that is derived from it, and its resources.

    Raises ValueError if it cannot be assembled.
    """
    parts = {key: replace_marks(text, mark_texts) for key, text in sections(f"infra/app/{name}.yaml").items()}
    resources = (
        list(complete_resources(parts["Resources"].strip("\n") + "\n")) if "Resources" in parts else []
    )
    comment = "".join(re.findall(r"(?m)^#.*\n", parts[""]))
    banner = textwrap.indent(f"# ---- {name} ".ljust(100, "-") + f"\n{comment}", "  ")
    parts[""] = parts[""].removeprefix(comment)
    if resources:
        parts["Resources"] = banner + "".join(each.text for each in resources)
    parts["Outputs"] = parts.get("Outputs", "") + "".join(map(output, resources))
    return parts, resources


def assemble_template(fragments: Sequence[Fragment]) -> str:
    """Return the template that consists of some fragments."""
    texts = []
    for section in ("", *ORDER):
        parts = [text for each in fragments if (text := each.get(section, "").strip("\n"))]
        gap = "\n\n" if section == "Resources" else "\n"
        heading = f"{section}:\n" if section else ""
        texts += [heading + gap.join(parts) + "\n"] if parts else []
    return "\n".join(texts)


FRAGMENTS = (
    "sizes",
    "head",
    "release",
    "network",
    "api",
    "engagement",
    "leads",
    "questions",
    "outgoing",
    "privacy",
    "lake",
    "regions",
    "observe",
)
HEADER = """\
# Assembled by `make template` from infra/app/*.yaml, infra/patterns/*.yaml and what the code declares
# (routes, entities of the lake, types of lead events). Change those, not this file.
"""
SETTINGS, RETENTION, BOOK_PAGE = "docs/settings.md", "docs/retention.md", "docs/book.md"
DIFF_LINES_MAX = 20


def generated_files() -> dict[str, str]:
    """Return the assembled templates, and the documents with generated tables: path -> text."""
    mark_texts = marks.marks(declared_resources(FRAGMENTS), declared_parameters(FRAGMENTS))
    app = [read_fragment(each, mark_texts) for each in FRAGMENTS]
    alarms, _ = read_fragment(
        "alarms", marks.alarm_marks([each for _, resources in app for each in resources])
    )
    return {
        "template.yaml": HEADER + assemble_template([parts for parts, _ in app]),
        "infra/observability.yaml": HEADER + assemble_template([alarms]),
        SETTINGS: (ROOT / SETTINGS).read_text().partition("| setting |")[0] + choices.settings_table(),
        RETENTION: (ROOT / RETENTION).read_text().partition("| data |")[0] + retention.retention_table(),
        BOOK_PAGE: (ROOT / BOOK_PAGE).read_text().partition("## `")[0] + book_tables(),
    }


def stale_message(path: str, committed: str, wanted: str) -> str:
    """Return what to do, and the difference, if a committed template is stale; "" if it is not."""
    if committed == wanted:
        return ""
    names = f"{path} as it is", f"{path} as it should be"
    diff = difflib.unified_diff(committed.splitlines(), wanted.splitlines(), *names, n=1, lineterm="")
    return "\n".join([f"{path} is stale: run `make template`", *islice(diff, DIFF_LINES_MAX), ""])


def main() -> None:
    """Write the templates; with --check exit with a message if one is stale."""
    wanted = generated_files()
    if "--check" in sys.argv:
        sys.exit(
            "".join(stale_message(path, (ROOT / path).read_text(), text) for path, text in wanted.items())
            or 0
        )
    for path, text in wanted.items():
        (ROOT / path).write_text(text)


if __name__ == "__main__":
    main()
