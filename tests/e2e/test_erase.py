"""A user of the deployed cloud is exported and erased by the command line, and the certificate is genuine."""

import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator
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


def test_a_user_and_a_lead_are_exported_and_forgotten(
    stack: Stack,
    admin: Api,
    user: str,
    organization: str,
    lead_of: Lead,
    post: Callable[..., Any],
    settled: Callable[..., None],
    tmp_path: Path,
) -> None:
    event = {"event_type": "LESSON_COMPLETED", "occurred_at": datetime.now(UTC).isoformat(), "user_id": user}
    post(*({**event, "idempotency_key": str(number)} for number in range(3)))
    send(stack, organization, bought(datetime.now(UTC).date() - timedelta(days=1), "5", customer="erased"))
    settled(user)
    drain_leads(stack)
    drain(stack, lake=True)  # what comes later never gets there, and nothing is removed
    today = datetime.now(UTC).date()
    nightly_run.run(stack, today - timedelta(days=1), today, repair=False)
    assert all(any(_objects_with(stack, user, f"{room}/")) for room in ("raw", "curated", "runs"))
    person = persons.Person(user)
    persons.export(person, stack, tmp_path / "export.zip")
    with zipfile.ZipFile(tmp_path / "export.zip") as archive:
        held = {each: len(json.loads(archive.read(f"{each}.json"))) for each in ("BPEvents", "RewardsLedger")}
    assert held["BPEvents"] == 3

    told = persons.erase(person, stack, tmp_path / "certificate.json")
    assert (told["status"], "events" in told["awaits"]) == ("open", True)
    assert not (tmp_path / "certificate.json").exists()
    names = ["events", "ledger", "daily_activity", "streaks"]
    assert all(any(_objects_with(stack, user, f"raw/{name}/")) for name in names)
    lead_id, of_lead = lead_of(organization, "order:erased-1"), tmp_path / "lead.json"
    lead = persons.Person("", lead_id, organization)
    begun = persons.erase(lead, stack, of_lead)
    for _ in range(4):  # two, or more if the first begins while something is on its way yet
        nightly_run.run(stack, today - timedelta(days=1), today, repair=False)
        told = persons.erase(person, stack, tmp_path / "certificate.json")
        told_of_lead = persons.erase(lead, stack, of_lead)
        assert told_of_lead["erasure_id"] == begun["erasure_id"], "the command run again begins no other"
        if told["status"] == told_of_lead["status"] == "finished":
            break
    assert (told["status"], told_of_lead["status"]) == ("finished", "finished")
    removed = {each["store"]: each["removed"] for each in told["certificate"]["stores"]}
    assert held.items() <= removed.items()
    assert removed["UserStreaks"] == 1
    assert removed["events"] == 3
    assert [*_objects_with(stack, user)] == [], "no object of the bucket names them, however young"
    assert persons.certificate(tmp_path / "certificate.json", user, "", stack)["genuine"]
    with pytest.raises(RuntimeError, match="somebody else"):
        persons.certificate(tmp_path / "certificate.json", "another", "", stack)
    assert admin.call("GET", f"/v1/users/{user}/export")[0] == 410
    assert persons.certificate(of_lead, "", lead_id, stack)["genuine"]
    assert persons.erase(lead, stack, of_lead) == told_of_lead
    with pytest.raises(RuntimeError, match="404"):
        persons.erase(persons.Person("", lead_id, f"{organization}x"), stack, of_lead)


def _objects_with(stack: Stack, user: str, prefix: str = "") -> Iterator[str]:
    """Yield the objects of the lake that have a user's id."""
    s3, bucket = stack.client("s3"), stack.output("LakeBucketName", "the lake")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    for each in (one for page in pages for one in page.get("Contents", ())):
        data = s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read()
        is_table = data.startswith(b"PAR1")
        text = str(pq.read_table(io.BytesIO(data)).to_pydict()).encode() if is_table else data
        if user.encode() in (unzip(text) if not is_table else text):
            yield each["Key"]
