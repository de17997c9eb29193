"""Assembles template.yaml and infra/observability.yaml. With --check it only says whether they are stale.

So it is with the tables of docs/settings.md, which is declared in adapters/settings/choices.py, and of
docs/retention.md, which is declared in rules/privacy/retention.py.

A fragment in infra/app holds one domain: its parameters, conditions, resources and outputs. infra/assembly
derives the rest from them, such as a function's log group and alarms. So a new function is one block in one
fragment.
"""

import difflib
import sys
from itertools import islice

from adapters.settings import choices
from infra.assembly import marks, watching
from infra.assembly.fragments import assembled, declared, parameters, read
from infra.assembly.text import ROOT
from rules.privacy import retention

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
SETTINGS, RETENTION = "docs/settings.md", "docs/retention.md"
DIFF_LINES_MAX = 20


def templates() -> dict[str, str]:
    """Return the assembled templates, and the table of settings with what stands before it: path -> text."""
    known = marks.marks(declared(FRAGMENTS), parameters(FRAGMENTS))
    app = [read(each, known) for each in FRAGMENTS]
    alarms, _ = read("alarms", watching.marks([each for _, resources in app for each in resources]))
    return {
        "template.yaml": HEADER + assembled([parts for parts, _ in app]),
        "infra/observability.yaml": HEADER + assembled([alarms]),
        SETTINGS: (ROOT / SETTINGS).read_text().partition("| setting |")[0] + choices.table(),
        RETENTION: (ROOT / RETENTION).read_text().partition("| data |")[0] + retention.table(),
    }


def stale(path: str, committed: str, wanted: str) -> str:
    """Return what to do, and the difference, if a committed template is stale; "" if it is not."""
    if committed == wanted:
        return ""
    names = f"{path} as it is", f"{path} as it should be"
    diff = difflib.unified_diff(committed.splitlines(), wanted.splitlines(), *names, n=1, lineterm="")
    return "\n".join([f"{path} is stale: run `make template`", *islice(diff, DIFF_LINES_MAX), ""])


def main() -> None:
    """Write the templates; with --check exit with a message if one is stale."""
    wanted = templates()
    if "--check" in sys.argv:
        sys.exit("".join(stale(path, (ROOT / path).read_text(), text) for path, text in wanted.items()) or 0)
    for path, text in wanted.items():
        (ROOT / path).write_text(text)


if __name__ == "__main__":
    main()
