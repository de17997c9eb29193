"""Assembles template.yaml and infra/observability.yaml; with --check only says whether they are stale.

A fragment of infra/app holds a domain: its parameters, conditions, resources and outputs. What follows from
these is derived (infra/assembly), so that a new function is one block in one fragment.
"""

import difflib
import sys
from itertools import islice

from infra.assembly import marks, watching
from infra.assembly.fragments import assembled, declared, read
from infra.assembly.text import ROOT

FRAGMENTS = ("head", "network", "api", "engagement", "leads", "questions", "lake", "observe")
HEADER = """\
# Assembled by `make template` from infra/app/*.yaml, infra/patterns/*.yaml and what the code declares
# (routes, entities of the lake, types of lead events). Change those, not this file.
"""
DIFF_LINES_MAX = 20


def templates() -> dict[str, str]:
    """Return the assembled templates by path."""
    known = marks.marks(declared(FRAGMENTS))
    app = [read(each, known) for each in FRAGMENTS]
    alarms, _ = read("alarms", watching.marks([each for _, resources in app for each in resources]))
    return {
        "template.yaml": HEADER + assembled([parts for parts, _ in app]),
        "infra/observability.yaml": HEADER + assembled([alarms]),
    }


def stale(path: str, committed: str, wanted: str) -> str:
    """Return what to do about a committed template that is not the assembled one; "" if it is."""
    if committed == wanted:
        return ""
    names = f"{path} as it is", f"{path} as it should be"
    diff = difflib.unified_diff(committed.splitlines(), wanted.splitlines(), *names, n=1, lineterm="")
    return "\n".join([f"{path} is stale: run `make template`", *islice(diff, DIFF_LINES_MAX), ""])


def main() -> None:
    """Write the templates, or find them stale."""
    wanted = templates()
    if "--check" in sys.argv:
        sys.exit("".join(stale(path, (ROOT / path).read_text(), text) for path, text in wanted.items()) or 0)
    for path, text in wanted.items():
        (ROOT / path).write_text(text)


if __name__ == "__main__":
    main()
