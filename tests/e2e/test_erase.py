"""A user of the deployed cloud is exported and erased by the command line, and the certificate is genuine."""

import io
import json
import time
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from analytics.curation.raw_lines import unzip
from local.api import Api
from local.cloud.patience import drain, drain_leads
from local.operate import nightly_run, persons
from local.stack import Stack
from tests.support.lead_orders import Lead, bought, send

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
    drain(stack, lake=True)  # what comes later never gets there, and nothing is removed
    today = datetime.now(UTC).date()
    nightly_run.run(stack, today - timedelta(days=1), today, repair=False)
    before = {each.partition("/")[0] for each in _lines_with(stack, user)}
    assert before >= {"raw", "curated", "runs"}
    person = persons.Person(user)
    persons.export(person, stack, tmp_path / "export.zip")
    with zipfile.ZipFile(tmp_path / "export.zip") as archive:
        held = {each: len(json.loads(archive.read(f"{each}.json"))) for each in ("BPEvents", "RewardsLedger")}
    assert held["BPEvents"] == 3

    told = persons.erase(person, stack, tmp_path / "certificate.json")
    assert (told["status"], "events" in told["awaits"]) == ("open", True)
    assert not (tmp_path / "certificate.json").exists()
    names = ["events", "ledger", "daily_activity", "streaks"]
    assert all(_lines_with(stack, user, f"raw/{name}/") for name in names)
    for _ in range(4):  # two, or more if the first begins while something is on its way yet
        nightly_run.run(stack, today - timedelta(days=1), today, repair=False)
        told = persons.erase(person, stack, tmp_path / "certificate.json")
        if told["status"] == "finished":
            break
    assert told["status"] == "finished"
    removed = {each["store"]: each["removed"] for each in told["certificate"]["stores"]}
    assert held.items() <= removed.items()
    assert removed["UserStreaks"] == 1
    assert removed["events"] == 3
    assert _lines_with(stack, user) == [], "no object of the bucket names them, however young"
    assert persons.certificate(tmp_path / "certificate.json", user, "", stack)["genuine"]
    with pytest.raises(RuntimeError, match="somebody else"):
        persons.certificate(tmp_path / "certificate.json", "another", "", stack)
    assert admin.call("GET", f"/v1/users/{user}/export")[0] == 410


def test_an_organization_erases_a_lead_and_its_command_run_again_has_the_certificate(
    stack: Stack, organization: str, lead_of: Lead, tmp_path: Path
) -> None:
    send(stack, organization, bought(datetime.now(UTC).date() - timedelta(days=1), "5", customer="erased"))
    drain_leads(stack)
    lead = lead_of(organization, "order:erased-1")
    person, out = persons.Person("", lead, organization), tmp_path / "certificate.json"
    first = persons.erase(person, stack, out)
    today = datetime.now(UTC).date()
    for _ in range(4):
        nightly_run.run(stack, today - timedelta(days=1), today, repair=False)
        told = persons.erase(person, stack, out)
        assert told["erasure_id"] == first["erasure_id"]
        if told["status"] == "finished":
            break
    assert persons.certificate(tmp_path / "certificate.json", "", lead, stack)["genuine"]
    assert persons.erase(person, stack, out) == told
    with pytest.raises(RuntimeError, match="404"):
        persons.erase(persons.Person("", lead, f"{organization}x"), stack, out)


def _lines_with(stack: Stack, user: str, prefix: str = "") -> list[str]:
    """Return the objects of the lake that have a user's id."""
    s3, bucket, found = stack.client("s3"), stack.output("LakeBucketName", "the lake"), []
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    for each in (one for page in pages for one in page.get("Contents", ())):
        data = s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read()
        is_table = data.startswith(b"PAR1")
        text = str(pq.read_table(io.BytesIO(data)).to_pydict()).encode() if is_table else data
        if user.encode() in (unzip(text) if not is_table else text):
            found.append(each["Key"])
    return found
