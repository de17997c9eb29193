"""How long a file and a function may be; a longer one says why, in a comment `# Long: REASON`.

A file says so within fifteen lines of its docstring, a function in the first line of its own that is a comment.
Of tests only the files are measured: a test tells a story from its beginning to its end.
"""

import ast
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.support.template import ROOT

SHORT_FUNCTIONS = ("rules", "adapters", "ingest", "processors", "analytics", "local", "bench", "client")
SHORT_FILES = (*SHORT_FUNCTIONS, "tests")
FILE_LINES_MAX = 200
FUNCTION_LINES_MAX = 30
REASON_WITHIN_LINES = 15
MARK = "# Long: "


def too_long(source: str) -> Iterator[str]:
    """What in a module's text is too long and does not say why: the file as "", functions by name: lines."""
    yield from too_long_file(source)
    yield from too_long_functions(source)


def too_long_file(source: str) -> Iterator[str]:
    lines = source.splitlines()
    if len(lines) > FILE_LINES_MAX and not _file_says_why(lines, ast.parse(source)):
        yield f": {len(lines)} lines"


def too_long_functions(source: str) -> Iterator[str]:
    lines = source.splitlines()
    for each in ast.walk(ast.parse(source)):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            own = lines[each.lineno - 1 : each.end_lineno]
            if len(own) > FUNCTION_LINES_MAX and not _says_why(_first_comment(own)):
                yield f" {each.name}: {len(own)} lines"


def _file_says_why(lines: list[str], tree: ast.Module) -> bool:
    begin = tree.body[0].end_lineno or 0 if ast.get_docstring(tree) else 0
    return any(map(_says_why, lines[begin : begin + REASON_WITHIN_LINES]))


def _says_why(line: str) -> bool:
    text = line.strip()
    return text.startswith(MARK) and bool(text.removeprefix(MARK).strip())


def _first_comment(lines: list[str]) -> str:
    return next((line for line in lines if line.strip().startswith("#")), "")


def told(folders: Sequence[str], measure: Callable[[str], Iterator[str]]) -> list[str]:
    """What is too long in these folders: path and lines."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [f"{path.relative_to(ROOT)}{each}" for path in paths for each in measure(path.read_text())]


def test_files_and_functions_are_short_or_say_why_not() -> None:
    found = [*told(SHORT_FILES, too_long_file), *told(SHORT_FUNCTIONS, too_long_functions)]
    assert not found, f"split these by subject, or say why not ({MARK}REASON): {found}"


FUNCTION = "def f() -> None:\n{comment}" + "    print()\n" * FUNCTION_LINES_MAX


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("x = 1\n" * FILE_LINES_MAX, []),
        ("x = 1\n" * (FILE_LINES_MAX + 1), [f": {FILE_LINES_MAX + 1} lines"]),
        ('"""Doc."""\n# Long: a table.\n' + "x = 1\n" * FILE_LINES_MAX, []),
        ('"""Doc."""\n# Long:\n' + "x = 1\n" * FILE_LINES_MAX, [f": {FILE_LINES_MAX + 2} lines"]),
        ("x = 1\n" * FILE_LINES_MAX + "# Long: too late.\n", [f": {FILE_LINES_MAX + 1} lines"]),
        (FUNCTION.format(comment=""), [f" f: {FUNCTION_LINES_MAX + 1} lines"]),
        (FUNCTION.format(comment="    # Long: a table.\n"), []),
        (
            FUNCTION.format(comment="    # What follows is\n    # Long: not the first\n"),
            [f" f: {FUNCTION_LINES_MAX + 3} lines"],
        ),
        ("class A:\n    " + FUNCTION.format(comment="")[:-1].replace("\n", "\n    "), [" f: 31 lines"]),
    ],
)
def test_what_is_too_long_is_noticed(source: str, found: list[str]) -> None:
    assert [*too_long(source)] == found
