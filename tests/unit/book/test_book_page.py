"""docs/book.md has every field of a book in its tables, and names each in its example."""

import json
import re
from pathlib import Path

import pytest
import yaml

from infra.book_page import book_tables
from ingest.book_document import book_of_document
from local.rules_command import board_periods, check, earnings, league_lines, level_spans
from rules.book.book import Declarer, Version, terms_of
from rules.days import EPOCH
from tests.support.template import ROOT

PAGE = (ROOT / "docs" / "book.md").read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_schema() -> None:
    assert PAGE.endswith(book_tables())


def test_the_guide_to_points_for_money_says_what_its_book_does() -> None:
    guide = (ROOT / "docs" / "guides" / "points-for-money.md").read_text(encoding="utf-8")
    (text,), (event,) = (re.findall(rf"```{kind}\n(.*?)```", guide, re.DOTALL) for kind in ("yaml", "json"))
    book = book_of_document(yaml.safe_load(text))
    sent = json.loads(event)
    assert book.event_types[sent["event_type"]].declared_by is Declarer.SERVER
    version = Version(1, EPOCH, lambda: book)
    paid = (sent["properties"], {"euros": 10_000})
    assert [terms_of(version, sent["event_type"], EPOCH, said).points for said in paid] == [29, 10_010]
    assert list(earnings(yaml.safe_load(text))) == [
        "  PURCHASE_COMPLETED: 10 to 10,010 points, at most 2,000 a day"
    ]


@pytest.mark.parametrize("name", ["loyalty-levels", "a-league"])
def test_a_guide_prints_what_its_book_means(name: str, tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "guides" / f"{name}.md").read_text(encoding="utf-8")
    (text,), (prints,) = (re.findall(rf"```{kind}\n(.*?)```", guide, re.DOTALL) for kind in ("yaml", "text"))
    (file := tmp_path / "book.yaml").write_text(text, encoding="utf-8")
    document = check(file).document
    lines = ("book.yaml: a book of rules", *earnings(document), *level_spans(document))
    assert prints.splitlines() == [*lines, *board_periods(document), *league_lines(document)]


def test_the_example_is_a_book_with_every_field(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (file := tmp_path / "book.yaml").write_text(example, encoding="utf-8")
    check(file)
    fields = {each.rsplit(".", 1)[-1] for each in re.findall(r"^\| (?:\*\*)?`([^`]+)`", PAGE, re.MULTILINE)}
    assert len(fields) > 40
    assert {each for each in fields if not re.search(rf"\b{each}:", example)} == set()
