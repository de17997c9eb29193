"""A bucket keeps former versions of what is replaced: those of persons who were erased go with them."""

import json
import uuid
from datetime import timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

from adapters.platform.objects import S3Objects
from analytics.curation.curate import curate
from analytics.lake.layout import Place
from analytics.steps.forget_function import ForgetSteps
from rules.days import unstamp
from tests.support.forgetting import MemoryJobs
from tests.support.raw_lake import PLACE, event, put_raw, rows

NOW = unstamp("2026-03-09T02:30:00.000000Z")


@pytest.fixture
def s3() -> Any:
    with mock_aws():
        yield boto3.client("s3", region_name="eu-west-1")


def test_former_versions_of_what_is_rewritten_go_too(s3: Any) -> None:
    bucket, user = f"lake-{uuid.uuid4()}", "canary-user"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    lake, jobs = S3Objects(s3, bucket), MemoryJobs()
    for number in range(3):
        put_raw(lake, f"n{number}", [event(number, user_id=user), event(9 + number, user_id="ann")])
        curate(lake, PLACE)
    curate(lake, Place("events", PLACE.dt, None))  # the hour's file becomes a former version
    other = put_raw(lake, "other", [event(20, user_id="ann")], Place("events", "2026-04-01", "05"))
    lake.put(other, lake.get(other))
    jobs.add("e", NOW, user=user)
    lake.put("runs/one/tasks.json", b"[]")
    steps = ForgetSteps(lake, jobs, None, timedelta(0))  # type: ignore[arg-type]
    steps.forget({"run_id": "one", "tasks_key": "runs/one/tasks.json"}, NOW)

    found = s3.list_object_versions(Bucket=bucket)
    told = {}
    for each in found["Versions"]:
        data = s3.get_object(Bucket=bucket, Key=each["Key"], VersionId=each["VersionId"])["Body"].read()
        told[each["Key"], each["IsLatest"]] = data
    assert [key for key, data in told.items() if user.encode() in data] == []
    assert [key for key, is_latest in told if not is_latest and "dt=2026-03-01" in key] == []
    assert json.dumps(sorted({row["user_id"] for row in rows(lake)})).count("erased/") == 1
    assert len(rows(lake)) == 6
