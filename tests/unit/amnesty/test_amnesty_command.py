"""What `streakline amnesty` reads and tells (rule 17)."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from adapters.engagement.amnesty_store import AmnestyResult
from local.amnesty_command import apply, users_in
from rules.engagement.account_state import Amnesties

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Known:
    """Forgives users that it knows, each a streak of 3."""

    def apply(self, user: str, amnesties: Amnesties, now: datetime, **_: Any) -> AmnestyResult:
        if user == "broken":
            raise ValueError("no profile")
        return AmnestyResult(user, user == "ann", 1, 3, 0, is_known=user in ("ann", "ben"))


@pytest.mark.parametrize(
    "data",
    [b"ann\nben\n", b"\xef\xbb\xbfben\r\nann\r\nann\r\n", b"  ann\n\n\nben"],
    ids=["plain", "spreadsheet", "spaces"],
)
def test_a_file_names_users_one_a_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "users.txt"
    path.write_bytes(data)
    assert users_in(path) == ["ann", "ben"]


@pytest.mark.parametrize("data", [b"", b"\n \n", b"ann\n\xff\n"], ids=["empty", "blank", "no UTF-8"])
def test_a_file_that_names_nobody_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "users.txt"
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match=r"users\.txt"):
        users_in(path)


def test_who_is_unknown_is_told_and_stops_nobody() -> None:
    found = apply(cast("Any", Known()), ["\ufeffann", "ann", "ben", "broken"], Amnesties(), NOW)
    assert (found.looked_at, found.unknown, len(found.failed)) == (4, ["\ufeffann"], 1)
    assert [each.user_id for each in found.changed] == ["ann"]
    assert "1 users are unknown here: \ufeffann" in "\n".join(found.lines(is_dry=False))
