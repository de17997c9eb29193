"""A stack that the last release has deployed, with data, is upgraded by today's: docs/guides/upgrade.md.

It is a laptop cloud of its own. The emulator and its data stay, as AWS does; the code beside it is replaced. What AWS
refuses in an update is judged by the templates (tests/infra/test_updates.py).

It fails if what a release has stored is read otherwise: then read both forms. As long as nothing is deployed anywhere, a
release may be stored anew instead (`make released`).
"""

import io
import json
import shutil
import subprocess
import tarfile
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.recipes.scratch import PYTHON, Ran, Scratch, copied
from tests.support.effort import only_soak
from tests.support.template import ROOT

pytestmark = pytest.mark.xdist_group("cloud that is upgraded")
RELEASED = "tests/infra/released.json.xz"  # `make released` stores it: its newest commit is the release
STAYS = {".local", ".venv"}
DAYS = 6
HEAD = "user_id,occurred_at,idempotency_key,event_type,timezone"
PURCHASES = "customer_id,date,quantity,amount"


def streakline(scratch: Scratch, *words: str) -> str:
    ran: Ran = scratch.python("-m", "local.cli", *words)
    scratch.must(ran)
    return ran.said


def git(*words: str) -> bytes:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
    if done.returncode or not done.stdout:
        pytest.skip(f"this clone lacks the release's commit: {done.stderr.decode()[-200:]}")
    return done.stdout


def released(folder: Path) -> Scratch:
    """The files of the last release."""
    commit = git("log", "-1", "--format=%H", "--", RELEASED).decode().strip()
    with tarfile.open(fileobj=io.BytesIO(git("archive", commit))) as files:
        files.extractall(folder, filter="data")
    (folder / ".venv").symlink_to(PYTHON.parent.parent)
    (folder / ".local").mkdir()
    for name in ("bin", "tools"):  # what was installed is the same
        (ROOT / ".local" / name).mkdir(parents=True, exist_ok=True)
        (folder / ".local" / name).symlink_to(ROOT / ".local" / name)
    return Scratch(folder)


def upgrade(scratch: Scratch) -> None:
    """Put today's files in the place of the release's, and deploy them."""
    for each in scratch.root.iterdir():
        if each.name not in STAYS:
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    (scratch.root / ".venv").unlink()
    copied(scratch.root)
    streakline(scratch, "up")


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Scratch]:
    (tmp_path / "cloud").mkdir()
    scratch = released(tmp_path / "cloud")
    try:
        streakline(scratch, "up")
        yield scratch
    finally:
        scratch.python("-m", "local.cli", "down")


class Seen:
    """What an admin sees of a stack."""

    def __init__(self, scratch: Scratch) -> None:
        self._url = json.loads((scratch.root / ".local" / "stack.json").read_text())["api_url"]
        self._token = streakline(scratch, "token", "--user", "root", "--admin").strip()

    def __call__(self, path: str) -> Any:
        request = urllib.request.Request(
            f"{self._url}{path}", headers={"Authorization": f"Bearer {self._token}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def entries(self, user: str) -> list[tuple[Any, ...]]:
        found = self(f"/v1/users/{user}/ledger?limit=100")["entries"]
        return [tuple(each[name] for name in ("kind", "points", "balance", "created_at")) for each in found]


def replay(scratch: Scratch, number: int, dates: list[datetime]) -> None:
    """Two users do something on some dates, and one of them buys something as a lead."""
    rows = [
        f"{user},{at.isoformat()},{user}-{number}-{place},LESSON_COMPLETED,Europe/Berlin"
        for place, at in enumerate(dates)
        for user in ("ann", "bob")
    ]
    (scratch.root / "events.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    streakline(scratch, "events", "replay", "events.csv")
    day = dates[0].strftime("%Y%m%d")
    (scratch.root / "shop.csv").write_text(f"{PURCHASES}\ncarl-{number},{day},2,11.77\n")
    streakline(scratch, "events", "replay", "shop.csv", "--format", "orders")


@only_soak(
    "tests/infra/test_updates.py, of what AWS would do to a stack of the last release; tests/e2e/test_sizes.py, of data that"
    " stays while one stack is updated"
)
def test_a_stack_of_the_last_release_goes_on_with_its_data(cloud: Scratch) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    replay(cloud, 1, [now - timedelta(days=number) for number in range(DAYS, 0, -1)])
    streakline(cloud, "night", "run")
    seen = Seen(cloud)
    profiles = {user: seen(f"/v1/users/{user}") for user in ("ann", "bob")}
    entries = {user: seen.entries(user) for user in ("ann", "bob")}
    assert profiles["ann"]["current_streak"] == DAYS
    assert len(entries["ann"]) >= DAYS

    upgrade(cloud)
    seen = Seen(cloud)
    for user, before in profiles.items():
        after = seen(f"/v1/users/{user}")
        assert {name: after.get(name) for name in before} == before, "an upgrade changes no profile"
        assert seen.entries(user) == entries[user], "nor any entry"

    replay(cloud, 2, [now])
    after = seen("/v1/users/ann")
    assert (after["current_streak"], after["balance"]) == (DAYS + 1, profiles["ann"]["balance"] + 10)
    assert seen.entries("ann")[-len(entries["ann"]) :] == entries["ann"], "further entries come on top"
    night = streakline(cloud, "night", "run", "--json")
    report = json.loads(night[night.index("{") : night.rindex("}") + 1])
    assert [report[name] for name in ("different", "ledger_and_lake", "unrepaired")] == [[], [], []], report
    smoke = streakline(cloud, "smoke", "--json")
    assert json.loads(smoke[smoke.index("{") : smoke.rindex("}") + 1])["ok"], smoke
    assert '"n": 14' in streakline(
        cloud, "sql", "SELECT COUNT(*) AS n FROM facts.events WHERE user_id IN ('ann', 'bob')", "--json"
    )
