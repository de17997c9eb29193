"""docs/book.md has every field of a book in its tables, and names each in its example."""

import re
from pathlib import Path

from infra.book_page import book_tables
from local.book import check
from tests.support.template import ROOT

PAGE = (ROOT / "docs" / "book.md").read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_schema() -> None:
    assert PAGE.endswith(book_tables())


def test_the_example_is_a_book_with_every_field(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (file := tmp_path / "book.yaml").write_text(example, encoding="utf-8")
    check(file)
    fields = {each.rsplit(".", 1)[-1] for each in re.findall(r"^\| (?:\*\*)?`([^`]+)`", PAGE, re.MULTILINE)}
    assert len(fields) > 40
    assert {each for each in fields if not re.search(rf"\b{each}:", example)} == set()
