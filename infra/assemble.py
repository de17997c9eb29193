"""Assembles template.yaml and infra/observability.yaml. With --check it only says whether they are stale.

A fragment in infra/app holds one domain: its parameters, conditions, resources and outputs. The rest is
derived, such as a function's log group (infra/resources.py), lists over all domains (infra/marks.py) and
alarms (infra/alarms.py). So a new function is one block in one fragment.

The tables of documents are written too: docs/settings.md (adapters/settings/choices.py), docs/book.md
(infra/book_page.py), and in ARCHITECTURE.md each folder with the first sentence of its `__init__.py`.
"""

import ast
import difflib
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from adapters.settings import choices
from infra.alarms import alarm_marks
from infra.book_page import book_tables
from infra.line_width import short_lines
from infra.marks import PUBLISHED_TABLES, DeclaredResource, delivery_streams, template_marks
from infra.parts import Conditions, guarded, marks_of_parts
from infra.resources import complete_resources, output
from infra.template_text import ROOT, Block, blocks, parse, replace_marks, sections, with_condition
from rules.parts import Part

Fragment = dict[str, str]  # section -> its text

# The files of infra/app that make template.yaml, in its order; alarms.yaml makes infra/observability.yaml.
FRAGMENTS = (
    *("sizes", "head", "release", "network", "api", "engagement", *Part),
    *("outgoing", "privacy", "lake", "regions", "observe"),
)
SECTIONS = ("Metadata", "Parameters", "Mappings", "Conditions", "Rules", "Globals", "Resources", "Outputs")
HEADER = """\
# Assembled by `make template` from infra/app/*.yaml, infra/patterns/*.yaml and what the code declares
# (routes, entities of the lake, types of lead events). Change those, not this file.
"""
SETTINGS, BOOK_PAGE, ARCHITECTURE = "docs/settings.md", "docs/book.md", "ARCHITECTURE.md"
# The folders of ARCHITECTURE.md's table: from what users touch down to the rules, then the rest.
LAYERS = ("ingest", "processors", "analytics", "adapters", "rules", "local", "bench")
FOLDERS_HEAD = "| folder | what is there |\n|---|---|\n"
DIFF_LINES_MAX = 20


def main() -> None:
    """Write the templates; with --check exit with a message if one is stale."""
    wanted = generated_files()
    if "--check" in sys.argv:
        messages = [stale_message(path, (ROOT / path).read_text(), text) for path, text in wanted.items()]
        sys.exit("".join(messages) or 0)
    for path, text in wanted.items():
        (ROOT / path).write_text(text)


def generated_files() -> dict[str, str]:
    """Return the assembled templates, and the documents with generated tables: path -> text."""
    declared = declared_resources(FRAGMENTS)
    of_parts = conditions_of_parts(declared)
    marks = template_marks(declared, declared_parameters(FRAGMENTS), of_parts) | marks_of_parts()
    conditions = Conditions(of_parts, declared_conditions(FRAGMENTS))
    fragments = [read_fragment(name, marks, conditions) for name in FRAGMENTS]
    resources = [block for _, blocks in fragments for block in blocks]
    alarms, _ = read_fragment("alarms", alarm_marks(resources), Conditions({}, {}))
    return {
        "template.yaml": HEADER + assemble_template([fragment for fragment, _ in fragments]),
        "infra/observability.yaml": HEADER + assemble_template([alarms]),
        SETTINGS: (ROOT / SETTINGS).read_text().partition("| setting |")[0] + choices.settings_table(),
        BOOK_PAGE: (ROOT / BOOK_PAGE).read_text().partition("## `")[0] + book_tables(),
        ARCHITECTURE: with_folders((ROOT / ARCHITECTURE).read_text()),
    }


def with_folders(text: str) -> str:
    """Return a document with its table of folders as the folders' own `__init__.py` have it."""
    before, _, rest = text.partition(FOLDERS_HEAD)
    _, _, after = rest.partition("\n\n")
    rows = []
    for layer in LAYERS:
        for file in sorted((ROOT / layer).rglob("__init__.py")):
            words = " ".join((ast.get_docstring(ast.parse(file.read_text())) or "").split())
            first = re.split(r"(?<=\.)\s(?=[A-Z])", words, maxsplit=1)[0]
            rows.append(f"| `{file.parent.relative_to(ROOT)}/` | {first} |")
    return f"{before}{FOLDERS_HEAD}{chr(10).join(rows)}\n\n{after}"


def declared_resources(fragments: Iterable[str]) -> list[DeclaredResource]:
    """Return each resource of some fragments, in their order, with the condition of its part."""
    text = "".join(with_part(sections(f"infra/app/{name}.yaml")) for name in fragments)
    declared = re.findall(r"(?m)^  (\w+):.*\n    Type: (\S+).*(?:\n    Condition: (\w+))?", text)
    return [DeclaredResource(*fields) for fields in declared]


def with_part(fragment: Fragment) -> str:
    """Return a fragment's resources. Each of a part has the part's condition, or one of its own."""
    resources = fragment.get("Resources", "").strip("\n") + "\n"
    if "Part" not in fragment:
        return resources
    part = fragment["Part"].strip()
    return "".join(
        block.text if block.condition else with_condition(part, block.text) for block in blocks(resources)
    )


def conditions_of_parts(declared: Iterable[DeclaredResource]) -> dict[str, str]:
    """Return the condition of each resource that has the condition of a part, by its logical id."""
    parts = {sections(f"infra/app/{name}.yaml").get("Part", "").strip() for name in FRAGMENTS} - {""}
    streams = delivery_streams(PUBLISHED_TABLES)
    of_parts = {each.logical_id: each.condition for each in declared if each.condition in parts}
    of_streams = {
        streams[entity]: of_parts[published.table]
        for entity, published in PUBLISHED_TABLES.items()
        if published.table in of_parts
    }
    return of_parts | of_streams


def declared_conditions(fragments: Iterable[str]) -> dict[str, object]:
    """Return the conditions of some fragments, as data."""
    texts = (sections(f"infra/app/{name}.yaml").get("Conditions", "") for name in fragments)
    declared: dict[str, object] = parse(f"Conditions:\n{''.join(texts)}")["Conditions"]
    return declared


def declared_parameters(fragments: Iterable[str]) -> list[tuple[str, str]]:
    """Return (name, type) of each parameter of some fragments, in their order."""
    text = "".join(sections(f"infra/app/{name}.yaml").get("Parameters", "") for name in fragments)
    return re.findall(r"(?m)^  (\w+):\n    Type: (\S+)", text)


def read_fragment(
    name: str, mark_texts: Mapping[str, str], conditions: Conditions
) -> tuple[Fragment, list[Block]]:
    """Return a fragment with all that is derived from it, and its resources.

    Raises ValueError if it cannot be assembled.
    """
    declared = sections(f"infra/app/{name}.yaml")
    if "Resources" in declared:
        declared["Resources"] = with_part(declared)
    fragment = {key: replace_marks(text, mark_texts) for key, text in declared.items()}
    resources: list[Block] = []
    comment = "".join(re.findall(r"(?m)^#.*\n", fragment[""]))
    fragment[""] = fragment[""].removeprefix(comment)
    if "Resources" in fragment:
        resources = [
            replace(block, text=guarded(block.text, block.condition, conditions))
            for block in complete_resources(fragment["Resources"])
        ]
        banner = textwrap.indent(f"# ---- {name} ".ljust(100, "-") + f"\n{comment}", "  ")
        fragment["Resources"] = banner + "".join(block.text for block in resources)
    fragment["Outputs"] = fragment.get("Outputs", "") + "".join(map(output, resources))
    return fragment, resources


def assemble_template(fragments: Sequence[Fragment]) -> str:
    """Return the template that consists of some fragments: section by section, and in each by domain.

    No line is longer than infra.line_width has it.
    """
    texts = []
    for section in ("", *SECTIONS):
        parts = [text for fragment in fragments if (text := fragment.get(section, "").strip("\n"))]
        gap = "\n\n" if section == "Resources" else "\n"
        heading = f"{section}:\n" if section else ""
        texts += [heading + gap.join(parts) + "\n"] if parts else []
    return short_lines("\n".join(texts))


def stale_message(path: str, committed: str, wanted: str) -> str:
    """Return what to do, and the difference, if a committed template is stale; "" if it is not."""
    if committed == wanted:
        return ""
    names = f"{path} as it is", f"{path} as it should be"
    diff = difflib.unified_diff(committed.splitlines(), wanted.splitlines(), *names, n=1, lineterm="")
    return "\n".join([f"{path} is stale: run `make template`", *islice(diff, DIFF_LINES_MAX), ""])


if __name__ == "__main__":
    main()
