"""Attacks on a book's file: every fault is told with its line, and what is read is what JSON would say."""

from pathlib import Path

import pytest

from local.book_file import UnreadableBook, read_file


@pytest.mark.parametrize("value", ["!!int ''", "!!int abc", "!!bool maybe", "!!float x", "9" * 5000])
def test_a_scalar_that_is_not_what_it_says_is_told_with_its_line(tmp_path: Path, value: str) -> None:
    path = tmp_path / "book.yaml"
    path.write_text(f"event_types:\n  READ: {{points: {value}}}\n")
    with pytest.raises(UnreadableBook, match=r"book.yaml:2:"):
        read_file(path)


@pytest.mark.parametrize("value", ["1:30", "010", "1_0", "0x10"])
def test_a_tag_makes_no_number_of_what_json_calls_none(tmp_path: Path, value: str) -> None:
    path = tmp_path / "book.yaml"
    path.write_text(f"event_types:\n  READ: {{points: !!int {value}}}\n")
    with pytest.raises(UnreadableBook):
        read_file(path)


def test_a_tab_in_a_text_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "book.yaml"
    path.write_text('values: ["a\tb"]\n')
    assert read_file(path).document == {"values": ["a\tb"]}
