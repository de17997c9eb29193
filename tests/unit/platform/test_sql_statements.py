"""A migration's file is split at its lines `-- next`, and nowhere else."""

import pytest

from adapters.postgresql.migrations import FOLDER, statements


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;\n", ["SELECT 1"]),
        ("SELECT 1;\n-- next\nSELECT 2;\n", ["SELECT 1", "SELECT 2"]),
        ("SELECT 1;\r\n\r\n-- next \r\nSELECT 2", ["SELECT 1", "SELECT 2"]),
        ("-- next to nothing\nSELECT 'a;b' -- next\n", ["-- next to nothing\nSELECT 'a;b' -- next"]),
        ("DO $$ BEGIN; END $$;\n-- next\nSELECT 2", ["DO $$ BEGIN; END $$", "SELECT 2"]),
    ],
)
def test_a_line_parts_statements(script: str, expected: list[str]) -> None:
    assert statements(script) == expected


def test_no_statement_of_ours_is_longer_than_the_data_api_takes() -> None:
    files = sorted(FOLDER.glob("*.sql"))
    assert files
    for path in files:
        found = statements(path.read_text())
        assert len(found) > 1, path.name
        assert all(each and len(each) < 65_536 for each in found), path.name
