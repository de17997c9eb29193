"""The steps of the nightly machine over S3 and the Glue catalog (by moto), and the other two launchers."""

import base64
import gzip
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from pyarrow import ArrowInvalid

from adapters.platform import aws
from adapters.platform.objects import FolderObjects, S3Objects
from analytics.curation import intake
from analytics.curation import plan as watermark
from analytics.curation.plan import plan, write_plan
from analytics.lake import catalog as lake_catalog
from analytics.lake.arrow import glue_columns
from analytics.lake.bookkeeping import Counts, bookkeeping_of
from analytics.lake.catalog import Catalog
from analytics.lake.layout import Partition, curated_key
from analytics.lake.run_notes import failed_tasks_of_run, remembered_tasks
from analytics.reconcile.run_report import gather, is_whole, markdown
from analytics.steps import curate_function, curate_large_function, curate_spark
from rules.lake.entities import EVENTS, LOADED, Entity, Field, Type
from rules.lake.valid_row import RowRefused
from tests.support.effort import only_soak
from tests.support.raw_lake import ARRIVED, DT, PLACE, event, line, put_raw, quarantined, rows

CONTEXT = SimpleNamespace(
    function_name="curate", memory_limit_in_mb=1024, invoked_function_arn="arn", aws_request_id="1"
)
LATER, NEXT = replace(PLACE, hour="06"), replace(PLACE, dt="2026-03-02")


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> dict[str, Entity]:
    """Three, which are made and followed as all are. test_the_catalog_lists_tables_and_partitions has them all."""
    few = {name: LOADED[name] for name in ("events", "ledger", "streaks")}
    monkeypatch.setattr(lake_catalog, "LOADED", few)
    return few


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch, tables: dict[str, Entity]) -> Iterator[S3Objects]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    for name, value in {
        "LAKE_BUCKET": "lake",
        "GLUE_DATABASE": "lake",
        "AWS_DEFAULT_REGION": "us-east-1",
        "RAW_RETENTION_DAYS": "180",
        "CURATE_JOB_NAME": "curate",
        "SPARK_FROM_GB": "20",
    }.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        aws.client.cache_clear()
        curate_function._parts.cache_clear()
        curate_large_function._parts.cache_clear()
        aws.client("s3").create_bucket(Bucket="lake")
        # Too early for a day to be compacted.
        monkeypatch.setattr("adapters.clock.now", lambda: datetime(2026, 3, 2, tzinfo=UTC))
        yield S3Objects(aws.client("s3"), "lake")
    aws.client.cache_clear()
    curate_function._parts.cache_clear()
    curate_large_function._parts.cache_clear()


def step(name: str, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = curate_function.handler({"step": name, "run_id": "r1", **more}, CONTEXT)
    return answer


TASKS = [{"entity": "events", "dt": DT, "hour": hour} for hour in ("05", "06")]


def alone(task: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = curate_large_function.handler(
        {"run_id": "r1", "task": task, "arrived": [ARRIVED], **more}, CONTEXT
    )
    return answer


def fill(objects: Any) -> None:
    put_raw(objects, "a", [event(1), event(1), b"nonsense"])
    put_raw(objects, "b", [event(2)], zipped=False)
    put_raw(objects, "a", [event(3, occurred_at=f"{DT}T06:00:00Z", hour="06")], LATER)


def test_a_night(lake: S3Objects) -> None:
    fill(lake)
    planned = step("plan")
    keys = {"tasks_key": "runs/r1/tasks.json", "batches_key": "runs/r1/batches.json"}
    assert planned == {"run_id": "r1", "tasks": 2, "is_handed_over": False, **keys}
    (batch,) = json.loads(lake.get(planned["batches_key"]))
    assert batch["tasks"] == json.loads(lake.get(planned["tasks_key"]))
    done = step("curate", **batch)
    counts = {"in": 5, "curated": 3, "duplicates": 1, "quarantined": 1}
    assert done == {"step": "curate", **batch, "tasks": [], "counts": counts}
    assert step("curate", **batch) == done
    assert step("curate", **(batch | {"rebuild": True}))["counts"] == counts
    assert len(rows(lake)) == 3
    assert watermark.read_watermark(lake) < watermark.FIRST_MARK.replace(year=1971)
    committed = step("commit")
    assert committed["watermark"] == watermark.read_watermark(lake).isoformat() > "2026"
    assert step("plan", **{"from": "2026-03-02", "to": "2026-03-05"})["tasks"] == 0
    assert step("plan", **{"from": DT, "to": DT})["tasks"] == 2


def test_a_night_with_more_raw_bytes_than_is_set_is_handed_to_spark(
    lake: S3Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(lake)
    size = sum(each.size for each in lake.list("raw/"))
    for limit, is_more in ((size, False), (0, False), (size - 1, True)):
        monkeypatch.setattr(curate_function, "GIGABYTE", limit)
        monkeypatch.setenv("SPARK_FROM_GB", "1" if limit else "0")
        assert step("plan")["is_handed_over"] is is_more, limit
    assert step("plan", rebuild=True)["is_handed_over"] is False, "each function makes its files anew"


def test_a_rebuild_reads_the_lines_of_some_entities_again(
    lake: S3Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an older declaration refused leaves the quarantine; nothing that was not named is touched."""

    def refuse(*_: object) -> None:
        raise RowRefused("an older declaration")

    fill(lake)
    put_raw(lake, "a", [b"{}"], replace(PLACE, entity="ledger"))
    with monkeypatch.context() as older:
        older.setattr(intake, "read_row", refuse)
        (batch,) = json.loads(lake.get(step("plan")["batches_key"]))
        assert step("curate", **batch)["counts"] == {
            "in": 6,
            "curated": 0,
            "duplicates": 0,
            "quarantined": 6,
        }
    assert step("curate", **batch)["counts"]["quarantined"] == 6, "read once, as long as nobody asks"
    asked = {"from": DT, "to": DT, "entities": ["events"], "rebuild": True}
    (batch,) = json.loads(lake.get(step("plan", **asked)["batches_key"]))
    assert {each["entity"] for each in batch["tasks"]} == {"events"}
    counts = {"in": 5, "curated": 3, "duplicates": 1, "quarantined": 1}
    assert step("curate", **batch)["counts"] == counts
    assert sorted(str(each.get("raw")) for each in quarantined(lake)) == ["nonsense", "{}"]
    with pytest.raises(ValueError, match="entities: there is no orders"):
        step("plan", entities=["orders"])


def test_a_rebuild_says_of_what_raw_objects_are_gone(lake: S3Objects) -> None:
    fill(lake)
    (batch,) = json.loads(lake.get(step("plan")["batches_key"]))
    counts = step("curate", **batch)["counts"]
    report = gather(lake, "r1", datetime(2026, 3, 2, tzinfo=UTC), {"Error": "of another step"})
    assert report["rebuild"] == {"raw_deleted_before": None, "without_raw": []}
    assert "raw objects" not in markdown(report).lower()
    (gone, *_) = lake.list(f"raw/events/arrived={ARRIVED}/dt={DT}/hour=05/")
    lake.delete([gone.key])
    asked = {"from": "2025-01-01", "to": DT, "days": {"events": [DT], "ledger": [DT]}, "rebuild": True}
    (batch,) = json.loads(lake.get(step("plan", **asked)["batches_key"]))
    assert step("curate", **batch)["counts"] == counts
    assert alone(batch["tasks"][0], rebuild=True)["in"] == 4
    report = gather(lake, "r1", datetime(2026, 3, 2, tzinfo=UTC), {"Error": "of another step"})
    assert report["rebuild"] == {
        "raw_deleted_before": "2025-09-03",
        "without_raw": [
            {**asdict(PLACE), "reason": f"1 raw objects are gone, hour=05/arrived={ARRIVED}/a first"}
        ],
    }
    text = markdown(report)
    assert "Raw objects that came before 2025-09-03 are deleted" in text
    assert f"| events | 2026-03-01 | 05 | 1 raw objects are gone, hour=05/arrived={ARRIVED}/a first |" in text


def test_the_report_names_what_could_not_be_read(lake: S3Objects) -> None:
    """An error object and a raw one, both cut off; what is whole in them is in the lake."""
    row = line(event(1))
    told = json.dumps({"rawData": base64.b64encode(row).decode()}).encode()
    whole, cut = gzip.compress(told * 2), gzip.compress(told)[:-5]
    lake.put("errors/events/x/whole", whole)
    lake.put("errors/events/x/cut", whole + cut)
    lake.put(
        f"raw/events/arrived={ARRIVED}/dt={DT}/hour=05/cut",
        gzip.compress(line(event(2)) + b"\n") + gzip.compress(b"{}")[:-5],
    )
    # The night that reads an hour names its raw objects; an error object waits, and is named each night.
    for run_id, named in (
        ("r1", ["errors/events/x/cut", f"raw/events/arrived={ARRIVED}/dt={DT}/hour=05/cut"]),
        ("r2", ["errors/events/x/cut"]),
    ):
        for batch in json.loads(lake.get(step("plan", run_id=run_id)["batches_key"])):
            step("curate", **batch)
        step("commit", run_id=run_id)
        report = gather(lake, run_id, datetime(2026, 3, 2, tzinfo=UTC), {"Error": "of another step"})
        assert [each["object"] for each in report["odd_objects"]] == named
        assert not is_whole(report | {"error": None})
        assert is_whole(report | {"error": None, "odd_objects": []})
        assert "bytes cannot be unzipped" in markdown(report)
    assert [row["event_id"][-2:] for row in rows(lake)] == ["e1", "e2"]
    assert lake.get("errors/events/x/cut") == cut
    assert lake.etag("errors/events/x/whole") is None


def test_each_report_names_the_objects_that_nobody_reads(lake: S3Objects) -> None:
    """Until they are gone; a folder's own marker is none of them."""
    hour = f"raw/events/arrived={ARRIVED}/dt={DT}/hour=05/"
    strays = sorted(["raw/events/_SUCCESS", hour, f"raw/events/arrived={ARRIVED}/", "curated/events/x/"])
    for key in ("raw/", "raw/events/", "curated/", "curated/events/", "errors/", "state/unloaded/", *strays):
        lake.put(key, b"")
    fill(lake)
    for run_id, named in (("r1", strays), ("r2", strays), ("r3", [])):
        if not named:
            lake.delete(strays)
        for batch in json.loads(lake.get(step("plan", run_id=run_id)["batches_key"])):
            step("curate", **batch)
        step("commit", run_id=run_id)
        report = gather(lake, run_id, datetime(2026, 3, 2, tzinfo=UTC), {"Error": "of another step"})
        assert [each["object"] for each in report["odd_objects"]] == named
        assert is_whole(report | {"error": None}) is not bool(named)
    assert len(rows(lake)) == 3
    assert len(quarantined(lake)) == 1


def test_a_plan_of_some_days_by_entity(lake: S3Objects) -> None:
    fill(lake)
    asked = {"from": "2026-02-01", "to": "2026-03-31"}
    assert step("plan", **asked, days={"events": [DT]})["tasks"] == 2
    assert step("plan", **asked, days={"events": ["2026-03-02"], "ledger": [DT]})["tasks"] == 0
    with pytest.raises(ValueError, match="there is no orders"):
        step("plan", **asked, days={"orders": [DT]})


def test_one_task_that_fails_does_not_hold_back_the_others(lake: S3Objects) -> None:
    """Its curated file is damaged. It is told, given up, passed by the watermark, and planned again."""
    fill(lake)
    (batch,) = json.loads(lake.get(step("plan")["batches_key"]))
    damaged = curated_key(PLACE)
    lake.put(damaged, b"PAR1 no more")
    left = step("curate", **batch)
    assert left["tasks"] == [asdict(PLACE)]
    assert left["counts"]["curated"] == 1
    with pytest.raises(ArrowInvalid):
        alone(left["tasks"][0])
    error = {"Error": "ArrowInvalid", "Cause": "no Parquet file"}
    assert step("give_up", task=left["tasks"][0], error=error) == {}
    assert failed_tasks_of_run(lake, "r1") == [{**asdict(PLACE), "reason": "ArrowInvalid: no Parquet file"}]
    report = gather(lake, "r1", datetime(2026, 3, 2, tzinfo=UTC), {"Error": "of another step"})
    assert report["curation_failures"] == failed_tasks_of_run(lake, "r1")
    assert "| events | 2026-03-01 | 05 | ArrowInvalid: no Parquet file |" in markdown(report)
    assert step("commit")["failed"] == 1
    assert watermark.read_watermark(lake).year > 2025
    lake.delete([damaged])
    first, *_ = json.loads(lake.get(step("plan", run_id="r2")["batches_key"]))
    assert (first["tasks"], first["large"]) == ([asdict(PLACE)], True)
    assert alone(first["tasks"][0]) == Counts(4, 2, 1, 1).as_dict()
    assert step("commit", run_id="r2")["failed"] == 0
    assert remembered_tasks(lake) == set()
    assert len(rows(lake)) == 3


def test_what_is_quarantined_becomes_a_metric_that_an_alarm_can_see(
    lake: S3Objects, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(lake)
    step("plan")
    step("curate", tasks=TASKS, arrived=[ARRIVED])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["QuarantinedRows"] for each in lines if "QuarantinedRows" in each] == [[1.0]]


def test_the_catalog_lists_tables_and_partitions(lake: S3Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_catalog, "LOADED", LOADED)
    fill(lake)
    step("plan")
    step("curate", tasks=TASKS, arrived=[ARRIVED])
    glue = aws.client("glue")
    tables = glue.get_tables(DatabaseName="lake")["TableList"]
    assert {table["Name"] for table in tables} == set(LOADED)
    (partition,) = glue.get_partitions(DatabaseName="lake", TableName="events")["Partitions"]
    assert partition["Values"] == [DT]
    assert partition["StorageDescriptor"]["Location"] == f"s3://lake/curated/events/dt={DT}/"
    assert partition["StorageDescriptor"]["Columns"] == glue_columns(EVENTS)


def test_the_catalog_follows_a_grown_schema(lake: S3Objects, tables: dict[str, Entity]) -> None:
    glue = aws.client("glue")
    catalog = Catalog(glue, "lake", "lake")
    catalog.ensure()
    dates = [f"2026-{month:02}-{day:02}" for month in range(1, 6) for day in range(1, 29)]
    catalog.register([Partition("events", dt, None) for dt in dates])
    catalog.register([Partition("events", dt, None) for dt in (*dates[:3], "2026-06-01")])
    grown = replace(EVENTS, fields=(*EVENTS.fields, Field("mood", Type.TEXT, "how it felt")))
    tables["events"] = grown
    catalog.ensure()
    catalog.ensure()
    table = glue.get_table(DatabaseName="lake", Name="events")["Table"]
    assert [each["Name"] for each in table["StorageDescriptor"]["Columns"]][-2:] == ["mood", "extra"]
    pages = glue.get_paginator("get_partitions").paginate(DatabaseName="lake", TableName="events")
    found = [each for page in pages for each in page["Partitions"]]
    assert sorted(each["Values"][0] for each in found) == [*dates, "2026-06-01"]
    assert all(each["StorageDescriptor"]["Columns"] == glue_columns(grown) for each in found)


class Throttled:
    """A client of Glue of which one operation fails from a call on, as the service does when it is busy.

    partly: it answers, and refuses all partitions but the first of a call.
    """

    def __init__(self, glue: Any, operation: str, after: int, partly: bool) -> None:
        self.glue, self.operation, self.after, self.partly = glue, operation, after, partly
        self.updated = 0

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.glue, name)
        if name == "batch_update_partition":
            return lambda **asked: self._update(call, **asked)
        return self._fail if name == self.operation and self.after <= 0 else call

    def _update(self, call: Any, **asked: Any) -> Any:
        self.after -= self.operation == "batch_update_partition"
        if self.after >= 0:
            self.updated += len(asked["Entries"])
            return call(**asked)
        if not self.partly:
            return self._fail()
        self.updated += 1
        call(**{**asked, "Entries": asked["Entries"][:1]})
        error = {"ErrorCode": "ThrottlingException"}
        return {
            "Errors": [
                {"PartitionValueList": each["PartitionValueList"], "ErrorDetail": error}
                for each in asked["Entries"][1:]
            ]
        }

    def _fail(self, *_: Any, **__: Any) -> Any:
        raise ClientError({"Error": {"Code": "ThrottlingException"}}, self.operation)


@pytest.mark.parametrize(
    ("operation", "after", "partly", "left"),
    [
        ("batch_update_partition", 1, False, 9),
        ("batch_update_partition", 1, True, 6),
        ("get_paginator", 0, False, 13),
    ],
)
def test_a_catalog_that_throttles_is_whole_the_next_night(
    lake: S3Objects,
    tables: dict[str, Entity],
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    after: int,
    partly: bool,
    left: int,
) -> None:
    """Another table's partitions are updated all the same, and what is done is not done again."""
    monkeypatch.setattr(lake_catalog, "PARTITIONS_MAX", 4)
    glue, catalog = aws.client("glue"), Catalog(aws.client("glue"), "lake", "lake")
    catalog.ensure()
    dates = [(date(2026, 1, 1) + timedelta(days=number)).isoformat() for number in range(10)]
    catalog.register([Partition("events", dt, None) for dt in dates])
    catalog.register([Partition("streaks", dt, None) for dt in dates[:3]])
    for name in ("events", "streaks"):
        mood = Field("mood", Type.TEXT, "how it felt")
        grown = replace(LOADED[name], fields=(*LOADED[name].fields, mood))
        tables[name] = grown
    with pytest.raises(ClientError if not partly else RuntimeError, match="Throttling"):
        Catalog(Throttled(glue, operation, after, partly), "lake", "lake").ensure()
    again = Throttled(glue, "", 0, False)
    Catalog(again, "lake", "lake").ensure()
    assert again.updated == left
    for name in ("events", "streaks"):
        pages = glue.get_paginator("get_partitions").paginate(DatabaseName="lake", TableName=name)
        found = [each for page in pages for each in page["Partitions"]]
        assert all(each["StorageDescriptor"]["Columns"] == glue_columns(tables[name]) for each in found)
    Catalog(again, "lake", "lake").ensure()
    assert again.updated == left, "a night without a change updates nothing"


def test_a_partition_that_somebody_has_changed_is_mended(lake: S3Objects) -> None:
    glue, catalog = aws.client("glue"), Catalog(aws.client("glue"), "lake", "lake")
    catalog.ensure()
    catalog.register([Partition("events", DT, None)])
    found = glue.get_partition(DatabaseName="lake", TableName="events", PartitionValues=[DT])["Partition"]
    storage = {**found["StorageDescriptor"], "Columns": found["StorageDescriptor"]["Columns"][:3]}
    asked = {"Values": [DT], "StorageDescriptor": storage}
    glue.update_partition(
        DatabaseName="lake", TableName="events", PartitionValueList=[DT], PartitionInput=asked
    )
    catalog.ensure()
    found = glue.get_partition(DatabaseName="lake", TableName="events", PartitionValues=[DT])["Partition"]
    assert found["StorageDescriptor"]["Columns"] == glue_columns(EVENTS)


@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs java")
@only_soak(
    "tests/integration/test_curate_function.py::test_a_night, of the function that it maps, "
    "test_a_night_with_more_raw_bytes_than_is_set_is_handed_to_spark and, in "
    "tests/integration/test_backfill.py, test_the_job_finds_its_code_where_the_template_says"
)
def test_spark_maps_the_same_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    from pyspark import SparkConf, SparkContext

    lake = FolderObjects(tmp_path)
    fill(lake)
    given = curate_spark.arguments(["--JOB_NAME", "x", "--lake", str(tmp_path), "--from", DT, "--to", DT])
    assert given == {"lake": str(tmp_path), "run": "", "from": DT, "to": DT, "rebuild": "false"}
    config = SparkConf().setMaster("local[1]").set("spark.ui.enabled", "false")
    with SparkContext(conf=config.set("spark.driver.bindAddress", "127.0.0.1")) as context:
        assert curate_spark.run(context, given) == Counts(5, 3, 1, 1).as_dict()
        later = given | {"from": "2026-05-01", "to": ""}
        assert curate_spark.run(context, later) == Counts().as_dict(), "no tasks"
        assert len(rows(lake)) == 3
        # A night's run: what fails is left to the night's functions, and hinders nothing else.
        put_raw(lake, "c", [event(4)])
        put_raw(lake, "c", [event(5, occurred_at="2026-03-02T05:00:00Z", dt="2026-03-02")], NEXT)
        write_plan(lake, "r1", plan(lake, date(2026, 3, 3)))
        (damaged,) = lake.list("curated/")
        lake.put(damaged.key, b"PAR1 no more")
        night = curate_spark.arguments(["--lake", str(tmp_path), "--run", "r1"])
        assert curate_spark.run(context, night) == Counts(1, 1, 0, 0).as_dict()
    assert bookkeeping_of(lake, curated_key(NEXT)).counts == Counts(1, 1, 0, 0)
