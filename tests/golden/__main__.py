"""Compare what this tree makes with what a commit made: `make golden`, `make golden AGAINST=main~5`.

It ends with 1 if anything differs. Each difference is one line: - is what the commit made, + what this tree makes.
"""

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.golden.determinism import fix, restart

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / ".local" / "golden"
SHOWN_MAX = 20


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--against", metavar="COMMIT", default="HEAD", help="default: the last commit")
    parser.add_argument(
        "--record", metavar="FOLDER", type=Path, help="record this tree there, and compare nothing"
    )
    parser.add_argument(
        "--only", metavar="PART", action="append", default=[], help="just this part; again for more"
    )
    given = parser.parse_args()
    if given.record:
        _record(given.record, given.only)
        return
    commit = _git("rev-parse", "--short=12", given.against)
    golden, now = RECORDS / commit, RECORDS / "now"
    if not _is_recorded(golden, given.only):
        _record_commit(commit, golden, given.only)
    _record(now, given.only)
    lines = list(differences(golden, now, given.only))
    print("\n".join(lines) or f"equal to {commit}")
    sys.exit(1 if lines else 0)


def differences(golden: Path, now: Path, only: list[str]) -> Iterator[str]:
    """Give a line for each part that differs, then its differing lines, the first SHOWN_MAX of each side."""
    names = {each.stem for folder in (golden, now) for each in folder.glob("*.txt")}
    for name in sorted(names & {*only} if only else names):
        before, after = (_lines(folder / f"{name}.txt") for folder in (golden, now))
        gone, new = list((before - after).elements()), list((after - before).elements())
        if gone or new:
            yield f"{name}: {len(gone)} lines are gone, {len(new)} are new, {(before & after).total()} are equal"
            yield from (f"  - {each}" for each in gone[:SHOWN_MAX])
            yield from (f"  + {each}" for each in new[:SHOWN_MAX])


def _lines(file: Path) -> Counter[str]:
    return Counter(file.read_text().splitlines()) if file.exists() else Counter()


def _is_recorded(folder: Path, only: list[str]) -> bool:
    return all((folder / f"{name}.txt").exists() for name in only or ["recorded"])


def _record(folder: Path, only: list[str]) -> None:
    """Record in a process of its own, whose hashes of texts are the same each time."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        _run(ROOT, folder, only)
        return
    fix()
    from tests.golden.parts import PARTS
    from tests.support.engine import stop_servers

    folder.mkdir(parents=True, exist_ok=True)
    try:
        for name, part in PARTS.items():
            if not only or name in only:
                restart()
                (folder / f"{name}.txt").write_text("\n".join(part()) + "\n")
    finally:
        stop_servers()
    if not only:
        (folder / "recorded.txt").touch()


def _record_commit(commit: str, folder: Path, only: list[str]) -> None:
    """Check the commit out beside this tree, and let its own code record."""
    tree = RECORDS / f"tree-{commit}"
    _git("worktree", "add", "--force", "--detach", str(tree), commit)
    # Where the machine has no uv, `make setup` has put it here; the commit's code looks for it in its own tree.
    if (uv := ROOT / ".local" / "bin" / "uv").exists():
        (tree / ".local" / "bin").mkdir(parents=True)
        (tree / ".local" / "bin" / "uv").symlink_to(uv)
    try:
        _run(tree, folder, only)
    finally:
        _git("worktree", "remove", "--force", str(tree))


def _run(tree: Path, folder: Path, only: list[str]) -> None:
    parts = [word for name in only for word in ("--only", name)]
    command = [sys.executable, "-m", "tests.golden", "--record", str(folder.absolute()), *parts]
    subprocess.run(command, check=True, cwd=tree, env={**os.environ, "PYTHONHASHSEED": "0"})


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], check=True, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
