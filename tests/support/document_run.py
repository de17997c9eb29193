"""Carries out what a document shows: all its blocks in order, in one clean shell, in a folder that looks like the checkout."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from local.paths import ROOT
from local.stack import EMULATOR_KEY, EMULATOR_SECRET, Stack
from tests.support.documents import Block

# The documents whose blocks of shell, SQL and Python are run. The tutorial publishes a book, so it comes first; while the
# commands run, all functions learn the book that the clients' documents need; and in `make soak` they build the warehouse.
RUN = (
    "docs/tutorial.md",
    "README.md",
    "docs/commands.md",
    "client/python/README.md",
    "docs/guides/analyst.md",
    "docs/guides/move-in.md",
    "docs/guides/python-backend.md",
    "docs/runbook.md",
    "sql/README.md",
)
# Of these only `make soak` carries the blocks out: what a night has loaded, and what other tests import.
OF_THE_WAREHOUSE = ("docs/guides/analyst.md", "docs/runbook.md", "sql/README.md")
SELDOM_RUN = (*OF_THE_WAREHOUSE, "docs/guides/move-in.md")
LANGUAGES = ("bash", "sql", "python")
QUESTIONS = ("sql/README.md", "sql")  # its ten questions: tests/sql asks each of them of every engine
PRINTS = "prints"  # the title of a block that the block before it prints
DUCKDB = "import duckdb, sys; duckdb.sql(open(sys.argv[1]).read())"
BESIDE = {".git", ".hypothesis"}
SECONDS_MAX = 600
OF_CALLER = ("AWS_", "STREAKLINE_", "PYTHON", "VIRTUAL_ENV")
# A cloud that other tests use has things that wait or have failed: `status` may say so (1), and not more than that.
STATUS = r"""streakline() {
  command streakline "$@" && return
  local ended=$?
  printf '%s: status %s\n' "streakline $*" $ended >&2
  [[ $ended = 1 && " $* " == *" status "* ]] || return $ended
}"""


@dataclass(frozen=True)
class Premises:
    """What a document takes as given.

    words: what stands for words of the document, such as names that no earlier run on this cloud has used.
    shell: what is done before its first block. python: lines before and after each of its Python blocks.
    """

    words: Mapping[str, str] = field(default_factory=dict)
    shell: str = ""
    python: tuple[str, str] = ("", "")

    def text(self, block: Block) -> str:
        """A block's text with the words that stand for others."""
        if not self.words:
            return block.text
        names = "|".join(re.escape(each) for each in sorted(self.words, key=len, reverse=True))
        return re.sub(rf"(?<![\w-])(?:{names})(?!\w)", lambda found: self.words[found[0]], block.text)


@dataclass(frozen=True)
class Outcome:
    """What came of a run. failed: the place and the command that ended it, or nothing. printed: by the blocks' places."""

    failed: str
    printed: Mapping[str, str]


def is_carried_out(block: Block) -> bool:
    """Whether a block is carried out, or says what the one before it prints."""
    if block.mark or (block.document, block.language) == QUESTIONS:
        return False
    return block.language in LANGUAGES or block.title == PRINTS


def checkout(folder: Path) -> None:
    """Let a folder look like the checkout; what is written beside the links is the folder's own."""
    for each in ROOT.iterdir():
        if each.name not in BESIDE:
            (folder / each.name).symlink_to(each)


def script(blocks: Sequence[Block], premises: Premises, folder: Path) -> str:
    """The shell's text that carries blocks out. Texts of other languages are put into `folder`."""
    lines = [
        "set -euo pipefail",
        'trap \'printf "\\n\\x1efailed\\x1f%s" "$BASH_COMMAND"\' ERR',
        STATUS,
        premises.shell,
    ]
    for block in blocks:
        if block.title != PRINTS:
            lines += [f"printf '\\n\\x1e%s\\x1f' {block.place}", _carried_out(block, premises, folder)]
    return "\n".join(lines)


def _carried_out(block: Block, premises: Premises, folder: Path) -> str:
    text = premises.text(block)
    if block.language == "bash":
        return text
    file = folder / (block.title if block.title.endswith(".py") else f"block-{block.line}.{block.language}")
    if block.language == "python":
        before, after = ("", "") if file.name == block.title else premises.python
        file.write_text(f"{before}\n{text}\n{after}", encoding="utf-8")
        return "" if file.name == block.title else f"python {file.name}"
    file.write_text(text, encoding="utf-8")
    by_duckdb = f"python -c {shlex.quote(DUCKDB)} {file.name}"
    return by_duckdb if block.title == "DuckDB" else f'streakline sql "$(cat {file.name})"'


def run(text: str, folder: Path, stack: Stack, more: Mapping[str, str]) -> Outcome:
    """Run a shell's text. It has AWS's variables for the laptop cloud, and no command of ours on its PATH."""
    own = str(ROOT / ".venv" / "bin")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_CALLER)}
    environment = {
        **kept,
        "PATH": os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if each != own),
        "AWS_ENDPOINT_URL": stack.endpoint_url,
        "AWS_ACCESS_KEY_ID": EMULATOR_KEY,
        "AWS_SECRET_ACCESS_KEY": EMULATOR_SECRET,
        "AWS_DEFAULT_REGION": stack.region,
        # `make up` is to set up this checkout: it would install the folder in its place.
        "UV_PROJECT": str(ROOT),
        **more,
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", text],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    parts = [each.partition("\x1f") for each in done.stdout.split("\x1e")[1:]]
    printed = {place: said for place, _, said in parts if place != "failed"}
    if not done.returncode:
        return Outcome("", printed)
    place = next(reversed(printed), "before the first block")
    command = next((said for name, _, said in parts if name == "failed"), "")
    tail = f"{printed.get(place, '')[-1500:]}\n{done.stderr[-2500:]}"
    return Outcome(f"{place}: status {done.returncode} of\n{command}\n{tail}", printed)


def missing_lines(blocks: Sequence[Block], printed: Mapping[str, str]) -> Iterator[str]:
    """Yield each line that a document says a block prints, and that the block did not print."""
    last = ""
    for block in blocks:
        if block.title != PRINTS:
            last = block.place if block.language != "python" or not block.title else last
            continue
        said = [line.strip() for line in printed.get(last, "").splitlines()]
        yield from (f"{block.place}: {line}" for line in block.text.splitlines() if line.strip() not in said)


def ndjson(*rows: Mapping[str, object]) -> str:
    """Rows as lines of JSON."""
    return "".join(f"{json.dumps(each)}\n" for each in rows)
