"""Rows of users come whole and in order out of parts, whatever their columns lack."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from analytics.lake.user_rows import rows_of_users
from analytics.what_if.history_parts import part_source, small_database, write_parts

MANY = """SELECT 'u' || (n * 7 % 61) AS user_id, n AS seq, CASE WHEN n % 3 > 0 THEN 'k' || n % 5 END AS kind,
  CASE WHEN n % 4 > 0 THEN n END AS points, n % 2 = 0 AS is_even, NULL::VARCHAR AS nothing,
  CASE WHEN n % 5 > 0 THEN DATE '2026-01-01' + (n % 400)::INTEGER END AS day, 'e' || n AS event_id
FROM range(50_000) AS numbers(n)"""


@pytest.mark.parametrize("parts", [1, 7])
def test_each_user_comes_once_with_all_rows_in_order(tmp_path: Path, parts: int) -> None:
    write_parts(small_database(), MANY, tmp_path / "parts", parts)
    found = {}
    for part in range(parts):
        source = part_source(tmp_path / "parts", part)
        assert source
        sql = f"SELECT * FROM {source} ORDER BY user_id, seq"
        for _, rows in rows_of_users(small_database(), sql, tuple):
            user = str(rows[0][0])
            assert user not in found
            found[user] = rows
    expected: dict[str, list[tuple[object, ...]]] = {}
    for n in range(50_000):
        row = (
            *(f"u{n * 7 % 61}", n, f"k{n % 5}" if n % 3 else None),
            *(n if n % 4 else None, n % 2 == 0, None),
            *(date(2026, 1, 1) + timedelta(days=n % 400) if n % 5 else None, f"e{n}"),
        )
        expected.setdefault(str(row[0]), []).append(row)
    assert found == expected


def test_a_part_of_nobody_is_none(tmp_path: Path) -> None:
    write_parts(small_database(), "SELECT 'one' AS user_id", tmp_path / "parts", 50)
    assert sum(part_source(tmp_path / "parts", part) is not None for part in range(50)) == 1
