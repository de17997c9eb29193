"""What the Markdown documents show: fenced blocks, and code within sentences.

A block that is not run on a laptop is marked by a comment in the line before its fence, which readers do not see:
`<!-- on AWS -->`, or `<!-- not run -->`. tests/unit/platform/test_doc_commands.py lists all of these.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from textwrap import dedent

from tests.support.template import ROOT

BUILD_FOLDERS = {"node_modules", "dist", "build"}
FENCE = re.compile(
    r"^(?:(?P<margin> *)<!-- (?P<mark>[^>]+?) -->\n+)?"
    r"^(?P<indent> *)```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
# Code that is neither a fenced block nor within a sentence: nothing here would look at it.
OTHER_CODE = re.compile(r"<(?:pre|code)\b|^ {4,}(?:\$ )?(?:streakline|aws|sam|make|curl) .*", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block. document: its path in the repository. line: that of the fence, from 1.

    mark: what the comment before it says, or nothing. title: of the fence, such as `prints`.
    """

    document: str
    line: int
    language: str
    title: str
    mark: str
    text: str

    @property
    def place(self) -> str:
        """Where it stands, as editors understand it."""
        return f"{self.document}:{self.line}"

    @property
    def head(self) -> str:
        """Its first line, without a comment."""
        return re.split(r"\s+(?:#|--) ", self.text.lstrip().partition("\n")[0])[0].strip()


@cache
def documents() -> tuple[str, ...]:
    """Every Markdown document, by its path in the repository."""
    found = (each.relative_to(ROOT) for each in ROOT.rglob("*.md"))
    return tuple(sorted(str(each) for each in found if not _is_built(each.parts)))


def _is_built(parts: tuple[str, ...]) -> bool:
    return any(each.startswith(".") or each in BUILD_FOLDERS for each in parts)


def blocks_of(document: str, text: str) -> list[Block]:
    """The blocks of a text, in order."""
    return [
        Block(
            document,
            text.count("\n", 0, each.start("indent")) + 1,
            each["language"],
            each["title"] or "",
            each["mark"] or "",
            dedent(each["text"]),
        )
        for each in FENCE.finditer(text)
    ]


@cache
def text_of(document: str) -> str:
    """A document's text."""
    return (ROOT / document).read_text(encoding="utf-8")


@cache
def blocks(document: str) -> tuple[Block, ...]:
    """The blocks of a document, in order."""
    return tuple(blocks_of(document, text_of(document)))


def fences(text: str) -> int:
    """How many lines open or close a block, in whichever way Markdown knows."""
    return len(re.findall(r"^ *(?:>\s*)*(?:`{3,}|~{3,})", text, re.MULTILINE))


def other_code(text: str) -> list[str]:
    """Code that stands in no fenced block and in no sentence: by indentation, or by tags of HTML."""
    return OTHER_CODE.findall(SPAN.sub("", FENCE.sub("", text)))


def spans_of(text: str) -> Iterator[str]:
    """Yield what stands as code within sentences; a span that goes over a line's end has a blank there."""
    for _, each in SPAN.findall(FENCE.sub("", text)):
        if "\n\n" not in each:
            yield " ".join(each.replace(r"\|", "|").split())
