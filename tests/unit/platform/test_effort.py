"""What `make test` leaves to `make soak`: each names tests that are there, and `make soak` runs its file."""

import re

from tests.support.template import ROOT

LEFT = {
    path.relative_to(ROOT): found
    for path in sorted((ROOT / "tests").glob("*/test_*.py"))
    if (found := re.findall(r"@only_soak\(\n?(.*?)\n?\)\ndef ", path.read_text(), re.DOTALL))
}


def test_few_tests_are_left_to_make_soak() -> None:
    assert sum(map(len, LEFT.values())) <= 25, "make test would prove less and less"


def test_no_planted_bug_is_left_to_make_soak() -> None:
    planted = [
        *(ROOT / "tests" / "faults").glob("test_*.py"),
        *(ROOT / "tests").glob("oracle/test_planted*.py"),
    ]
    assert len(planted) >= 7
    assert not [path for path in planted if "only_soak" in path.read_text()]


def test_what_proves_the_same_is_there() -> None:
    for reason in (reason for found in LEFT.values() for reason in found):
        files = re.findall(r"tests/[\w/]+\.py", reason)
        assert files, reason
        texts = [(ROOT / each).read_text() for each in files]
        for name in re.findall(r"test_\w+(?=\W)(?!\.py)", re.sub(r"tests/[\w/]+\.py", "", reason)):
            assert any(f"def {name}(" in text for text in texts), name


def test_make_soak_runs_the_files_that_leave_something_to_it() -> None:
    listed = (ROOT / "Makefile").read_text().partition("SOAKED = ")[2].splitlines()[0]
    assert "support.effort import" in listed
    for path in LEFT:
        assert "from tests.support.effort import" in (ROOT / path).read_text()
