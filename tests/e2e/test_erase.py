"""A user of the deployed cloud is exported and erased by the command line, and the certificate is genuine."""

import json
import time
import zipfile
from argparse import Namespace
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from local.operate import persons
from local.replay.api import Api
from local.stack import Stack

pytestmark = pytest.mark.xdist_group("cloud")


@pytest.fixture
def user() -> str:
    """Somebody whom the other tests of this cloud find in the lake alone."""
    return f"erased-{time.time_ns()}"


def test_a_user_is_exported_and_forgotten(
    stack: Stack,
    admin: Api,
    user: str,
    post: Callable[..., Any],
    settled: Callable[..., None],
    tmp_path: Path,
) -> None:
    event = {"event_type": "LESSON_COMPLETED", "occurred_at": datetime.now(UTC).isoformat(), "user_id": user}
    post(*({**event, "idempotency_key": str(number)} for number in range(3)))
    settled(user)
    about = {"user": user, "lead": "", "organization": None, "lift": False}
    persons.export(Namespace(**about, out=tmp_path / "export.zip"), stack)
    with zipfile.ZipFile(tmp_path / "export.zip") as archive:
        held = {each: len(json.loads(archive.read(f"{each}.json"))) for each in ("BPEvents", "RewardsLedger")}
    assert held["BPEvents"] == 3

    told = persons.erase(Namespace(**about, out=tmp_path / "certificate.json"), stack)
    assert told["status"] == "finished"
    removed = {each["store"]: each["removed"] for each in told["certificate"]["stores"]}
    assert held.items() <= removed.items()
    assert removed["UserStreaks"] == 1
    assert persons.certificate(tmp_path / "certificate.json", user, "", stack)["genuine"]
    with pytest.raises(RuntimeError, match="somebody else"):
        persons.certificate(tmp_path / "certificate.json", "another", "", stack)
    assert admin.call("GET", f"/v1/users/{user}/export")[0] == 410
