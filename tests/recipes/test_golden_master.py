"""A difference of each kind, planted in a copy of the repository, is told by the golden master."""

from pathlib import Path

import pytest

from local.cloud.processes import tool
from tests.golden.__main__ import differences
from tests.recipes.scratch import Scratch, copied

PARTS = ("resources", "town", "app")
# Kind -> the file, the text in it, what is planted instead, and how the first line that differs begins.
PLANTED = {
    "an item": (
        "adapters/engagement/account_items.py",
        '"points_earned": day.points_earned,',
        '"points_earned": day.points_earned + 1,',
        "town",
        "item DailyActivity",
    ),
    "a lake row": (
        "rules/lake/engagement_entities.py",
        'return others | {"points_by_type": points_by_type(by_cap)}',
        'return others | {"points_by_type": points_by_type(by_cap), "events_count": 9}',
        "town",
        "lake daily_activity",
    ),
    "an answer": (
        "rules/engagement/ledger.py",
        "{balance} does not cover",
        "{balance} does not pay",
        "app",
        "shop POST",
    ),
    "a report": (
        "analytics/reconcile/findings.py",
        '"users": self.users,',
        '"users": self.users + 1,',
        "town",
        "report",
    ),
    "a resource": (
        "template.yaml",
        "      BatchSize: 1 # a message has 50 leads",
        "      BatchSize: 2",
        "resources",
        "default /",
    ),
}


def record(scratch: Scratch, folder: Path, *parts: str) -> None:
    only = [word for name in parts for word in ("--only", name)]
    scratch.must(scratch.python("-m", "tests.golden", "--record", str(folder), *only))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """One copy for all, with the emulator of this tree."""
    made = copied(tmp_path_factory.mktemp("tree"))
    (made.root / ".local" / "tools").mkdir(parents=True)
    home = tool("ministack").parents[1]
    (made.root / ".local" / "tools" / home.name).symlink_to(home)
    return made


@pytest.fixture(scope="module")
def golden(scratch: Scratch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    record(scratch, folder, *PARTS)
    return folder


def test_what_is_recorded_twice_is_equal(scratch: Scratch, golden: Path, tmp_path: Path) -> None:
    record(scratch, tmp_path, *PARTS)
    assert list(differences(golden, tmp_path, [])) == []


@pytest.mark.parametrize("kind", PLANTED)
def test_a_difference_is_told(kind: str, scratch: Scratch, golden: Path, tmp_path: Path) -> None:
    file, text, planted, part, place = PLANTED[kind]
    scratch.replace(file, text, planted)
    try:
        record(scratch, tmp_path, part)
    finally:
        scratch.replace(file, planted, text)
    summary, *lines = differences(golden, tmp_path, [part])
    assert summary.startswith(f"{part}: ")
    assert any(each.startswith(f"  + {place}") for each in lines), lines
