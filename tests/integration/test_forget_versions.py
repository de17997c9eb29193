"""Every object of a bucket, with its former versions, is looked through before a certificate is signed."""

import base64
import gzip
import io
import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto import mock_aws

from adapters.platform.objects import S3Objects
from analytics.curation.curate import curate
from analytics.lake.layout import Partition
from analytics.lake.run_notes import odd_objects
from analytics.steps.forget_function import ForgetSteps
from analytics.steps.warehouse_function import WarehouseSteps
from analytics.warehouse.warehouse import NoWarehouse
from rules.days import unstamp
from tests.support.effort import effort
from tests.support.forgetting import MemoryJobs, readings
from tests.support.raw_lake import PLACE, event, put_raw, rows

NOW = unstamp("2026-03-09T02:30:00.000000Z")


@pytest.fixture
def s3() -> Any:
    with mock_aws():
        yield boto3.client("s3", region_name="eu-west-1")


def versioned_lake(s3: Any) -> S3Objects:
    bucket = f"lake-{uuid.uuid4()}"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    return S3Objects(s3, bucket)


def versions(lake: S3Objects) -> Iterator[tuple[str, bool, bytes]]:
    """Yield each version of each object: its key, whether it is the newest, and its bytes."""
    for page in lake.s3.get_paginator("list_object_versions").paginate(Bucket=lake.bucket):
        for each in page.get("Versions", ()):
            asked = {"Bucket": lake.bucket, "Key": each["Key"], "VersionId": each["VersionId"]}
            yield each["Key"], each["IsLatest"], lake.s3.get_object(**asked)["Body"].read()


def naming(lake: S3Objects, name: str) -> set[str]:
    """Return the keys of which a version names somebody, wherever anybody can read it; and of unfinished ones."""
    found = {
        key
        for key, _, data in versions(lake)
        if any(name.encode() in text for text in (*readings(data), *columns(data)))
    }
    uploads = lake.s3.list_multipart_uploads(Bucket=lake.bucket).get("Uploads", [])
    return found | {each["Key"] for each in uploads}


def columns(data: bytes) -> Iterator[bytes]:
    if data.startswith(b"PAR1"):
        yield json.dumps(pq.read_table(pa.BufferReader(data)).to_pydict(), default=str).encode()


USER = "canary-user"
MINE, OTHER = (
    json.dumps(event(each, user_id=user)).encode() + b"\n" for each, user in ((1, USER), (2, "ann"))
)


def table(column: str) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({column: [USER, "ann"]}), sink)
    return sink.getvalue()


def record(data: bytes) -> bytes:
    return json.dumps({"rawData": base64.b64encode(data).decode()}).encode()


HOUR = "raw/events/arrived=2026-03-02/dt=2026-03-01/hour=05/"
# What Firehose, S3 or a run that has died may leave, and where.
PLACES = {
    "raw/events/arrived=2026-03-02/dt=2026-03-02/hour=07/loose": gzip.compress(MINE + OTHER),
    "raw/events/nowhere": MINE,
    "raw/ledger/arrived=2026-03-02/dt=2026-03-01/hour=05/misplaced": b'{"user_id": "canary-user"}\n',
    f"{HOUR}cut": gzip.compress(OTHER) + gzip.compress(MINE)[:-5],
    f"{HOUR}damaged": gzip.compress(OTHER) + gzip.compress(MINE)[:-6] + b"\0\0\0\0\0\0",
    f"{HOUR}refused": gzip.compress(MINE.replace(b'"CHECK_IN"', b"7")),
    "quarantine/events/dt=2026-03-04/hour=05/arrived=2026-03-04/old.ndjson": json.dumps(
        {"line": 1, "reason": "", "raw": MINE.decode()}
    ).encode(),
    "quarantine/events/dt=2026-03-04/hour=05/arrived=2026-03-04/no_json.ndjson": b"what? " + MINE,
    "errors/events/processing-failed/dt=2026-03-01/zipped": gzip.compress(record(MINE) + record(OTHER)),
    "errors/events/processing-failed/dt=2026-03-01/cut": gzip.compress(record(MINE))[:-9],
    "errors/events/processing-failed/dt=2026-03-01/message": json.dumps(
        {"errorMessage": f'no "{USER}"', "rawData": ""}
    ).encode(),
    "errors/astray": record(MINE),
    "state/users.parquet": table("user_id"),
    "state/answers_compared.json": b'{"of": "canary-user"}',
    "runs/over/shares/0000/profiles/0000.ndjson.gz": gzip.compress(MINE),
    "runs/over/shares/0000/streaks.parquet": table("user_id"),
    "runs/over/load-events.manifest": b'{"of": "canary-user"}',
    "reports/over.md": b"differs: `canary-user`",
    "athena/answer.csv": b'"user_id"\n"canary-user"\n',
    "what_if/0a1b.json": b'{"report": {"largest_changes": [{"user_id": "canary-user"}]}}',
}
# What a console makes of "create folder", and keys with which the names of whole folders begin.
MARKERS = (
    "raw/",
    "raw/events/",
    "curated/",
    "quarantine/",
    "errors/",
    "state/",
    "state/unloaded/",
    "raw",
    "r",
)
DIED = {
    "runs/died/shares/0001/days/0000.ndjson.gz": gzip.compress(MINE),
    "runs/died/found.json": b'["canary-user"]',
}
COPIES = {
    "copies/events.ndjson": MINE,
    "raw/unknown/copy": gzip.compress(MINE),
    "notes.txt": b"ask canary-user",
}
# The same beside them, which somebody has deleted: former versions alone have the bytes.
DELETED = {
    str(path.with_name(f"deleted-{path.name}")): data
    for path, data in [(PurePosixPath(key), data) for key, data in PLACES.items()][:: effort(3, soak=1)]
}


def test_no_certificate_while_any_object_of_the_bucket_names_somebody(s3: Any) -> None:
    """Nights are minutes apart. What a run that may go on has left, and what is none of ours, is awaited."""
    lake, jobs, now = versioned_lake(s3), MemoryJobs(), datetime.now(UTC)
    jobs.add("e", now - timedelta(days=3), user=USER)
    jobs.add("other", now - timedelta(days=3), user="ben")
    for key, data in (PLACES | DELETED | DIED | COPIES).items():
        lake.put(key, data)
    for key in MARKERS:
        lake.put(key, b"")
    lake.put("reports/over.json", b"{}")
    put_raw(lake, "curated", [event(1, user_id=USER), event(2, user_id="ann")])
    curate(lake, PLACE)
    curate(lake, Partition("events", PLACE.dt, None))
    lake.delete(DELETED)
    upload = s3.create_multipart_upload(Bucket=lake.bucket, Key="raw/events/half")["UploadId"]
    s3.upload_part(Bucket=lake.bucket, Key="raw/events/half", UploadId=upload, PartNumber=1, Body=MINE)
    assert naming(lake, USER) >= {*PLACES, *DELETED, *DIED, *COPIES, "raw/events/half"}

    def night(run_id: str, at: datetime) -> bool:
        lake.put(f"runs/{run_id}/tasks.json", b"[]")
        event = {"run_id": run_id, "tasks_key": f"runs/{run_id}/tasks.json"}
        steps = ForgetSteps(lake, jobs, None, timedelta(days=2))  # type: ignore[arg-type]
        assert not steps.forget(event, at)["is_left"]
        WarehouseSteps(NoWarehouse(), lake, "", "").work(event, at)
        steps.finish(event)
        lake.put(f"reports/{run_id}.json", b"{}")
        return jobs.all["e"].is_done

    for number in range(2):  # an erasure is done after two nights
        assert not night(f"early-{number}", now + timedelta(minutes=number))
        assert naming(lake, USER) == {*DIED, *COPIES}  # moto has begun all uploads in 2010
        assert {each["object"] for each in odd_objects(lake, f"early-{number}")} == COPIES.keys()
    assert jobs.all["other"].is_done, "nobody else waits for it"
    later = now + timedelta(days=1, minutes=1)
    assert not night("later", later)
    assert naming(lake, USER) == COPIES.keys()
    lake.delete(COPIES)
    for key in COPIES:
        lake.forget_former(key)
    assert night("last", later + timedelta(minutes=5))
    assert naming(lake, USER) == set()
    assert {f"{HOUR}cut", f"{HOUR}damaged"} <= naming(lake, "ann"), "others' lines stay"


def test_former_versions_of_what_is_rewritten_go_too(s3: Any) -> None:
    lake, user, jobs = versioned_lake(s3), "canary-user", MemoryJobs()
    for number in range(3):
        put_raw(lake, f"n{number}", [event(number, user_id=user), event(9 + number, user_id="ann")])
        curate(lake, PLACE)
    curate(lake, Partition("events", PLACE.dt, None))  # the hour's file becomes a former version
    other = put_raw(lake, "other", [event(20, user_id="ann")], Partition("events", "2026-04-01", "05"))
    lake.put(other, lake.get(other))
    jobs.add("e", NOW, user=user)
    lake.put("runs/one/tasks.json", b"[]")
    steps = ForgetSteps(lake, jobs, None, timedelta(0))  # type: ignore[arg-type]
    steps.forget({"run_id": "one", "tasks_key": "runs/one/tasks.json"}, NOW)

    assert naming(lake, user) == set()
    assert [key for key, is_latest, _ in versions(lake) if not is_latest and "dt=2026-03-01" in key] == []
    assert json.dumps(sorted({row["user_id"] for row in rows(lake)})).count("erased/") == 1
    assert len(rows(lake)) == 6
