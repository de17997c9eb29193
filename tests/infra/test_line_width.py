"""A template's long lines: what they say stays, and no line is longer than a screen shows."""

import re
from pathlib import Path

import pytest

from infra.line_width import WIDTH, short_lines
from infra.template_text import ROOT, parse

TEMPLATES = [
    ROOT / "template.yaml",
    *sorted((ROOT / "infra").glob("*.yaml")),
    *sorted((ROOT / "infra/app").glob("*.yaml")),
]
LONG = "word " * 40


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_line_that_can_be_broken_is_longer_than_a_screen(path: Path) -> None:
    """A word, a line of a text of several lines, and JSON within a text cannot be broken."""
    text = path.read_text()
    assert short_lines(text) == text


@pytest.mark.parametrize(
    "line",
    [
        f"Description: {LONG}ends here; it isn't 'quoted'",
        f"Description: '{LONG}it''s, a: quoted text'",
        f'Description: "{LONG}, {{a brace}}, a #hash"',
        f'- {{A: "{LONG[:-1]}", B: [1, {{C: "x, y]"}}, !Ref D], E: !If [F, !Sub "${{G}}{LONG[:-1]}", !Ref H]}} # why',
        f'Key: !Join ["", [!Sub \'{{"a": "${{A}}", {LONG}}}\', !If [B, "x", ""], "}}"]]',
        f'- !If [B, {{Effect: Allow, Action: [a:B, c:D], Resource: "{LONG[:-1]}"}}, !Ref AWS::NoValue]',
        f'- - {{Type: AWS::X::Y, Name: "{LONG[:-1]}"}}\n  - 2',
        f'"POST /v1/{{a}}": {{Limit: 200, Text: "{LONG[:-1]}"}}',
        f'Filters: [{{Pattern: \'{{"eventName": ["INSERT", "MODIFY"]}}\', Note: "{LONG[:-1]}"}}]',
    ],
)
def test_broken_lines_say_the_same(line: str) -> None:
    text = f"Resources:\n  X:\n    {line.replace(chr(10), chr(10) + '    ')}\n"
    broken = short_lines(text)
    assert parse(broken) == parse(text)
    assert max(len(each) for each in broken.splitlines() if not re.search(r'"word .*"$', each)) <= WIDTH


def test_a_comment_behind_a_long_line_goes_before_it() -> None:
    line = f"- {{A: 1, B: '{'b' * 100}'}} # why it is so"
    assert short_lines(f"{line}\n") == f"# why it is so\n{line.removesuffix(' # why it is so')}\n"


def test_lines_of_a_text_stay() -> None:
    text = f"Code: |\n  {{a: {LONG}}}\n\n  # {LONG}\nB: 1\n"
    assert short_lines(text) == text
