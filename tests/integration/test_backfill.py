"""Curation by Spark: the code that Glue gets is all that the job needs, and how a run ends is told."""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from adapters.platform import aws
from adapters.platform.objects import FolderObjects
from analytics.curation.spark_job import NIGHT_MINUTES_MAX, SCRIPT, SCRIPT_KEY, SparkJob, packages
from analytics.reconcile.run_report import gather, markdown
from analytics.steps import curate_function
from local.operate import nightly_run
from tests.support.declared import properties
from tests.support.effort import only_soak
from tests.support.raw_lake import DT, event, put_raw, rows
from tests.support.template import ROOT

SINCE, UNTIL = date(2026, 3, 1), date(2026, 3, 31)
OUTPUTS = {"LakeBucketName": "lake", "CurateJobName": "curate", "CurateFunctionName": "function"}
CONTEXT = SimpleNamespace(
    function_name="curate", memory_limit_in_mb=1024, invoked_function_arn="arn", aws_request_id="1"
)
REFUSED = ClientError(
    {"Error": {"Code": "ConcurrentRunsExceededException", "Message": "one run at a time"}}, "StartJobRun"
)


class Glue:
    """Answers get_job_run with one state after another, and keeps what was asked."""

    def __init__(self, *states: dict[str, Any], refuses: bool = False) -> None:
        self.states, self.refuses = iter(states), refuses
        self.asked: list[dict[str, Any]] = []

    def start_job_run(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        if self.refuses:
            raise REFUSED
        return {"JobRunId": "jr_1"}

    def get_job_run(self, JobName: str, RunId: str) -> dict[str, Any]:  # noqa: N803 (AWS's names)
        assert (JobName, RunId) == ("curate", "jr_1")
        return {"JobRun": next(self.states)}


class Deployed:
    """The deployed function, in place of a client of Lambda."""

    def invoke(self, FunctionName: str, Payload: bytes, LogType: str) -> dict[str, Any]:  # noqa: N803
        assert (FunctionName, LogType) == ("function", "Tail")
        try:
            answer, error = curate_function.handler(json.loads(Payload), CONTEXT), {}
        except ClientError as refused:
            answer, error = {"errorMessage": str(refused)}, {"FunctionError": "Unhandled"}
        return {"Payload": io.BytesIO(json.dumps(answer).encode()), **error}


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, value in {
        **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "test"),
        "AWS_DEFAULT_REGION": "us-east-1",
        "LAKE_BUCKET": "lake",
        "GLUE_DATABASE": "lake",
        "RAW_RETENTION_DAYS": "0",
        "CURATE_JOB_NAME": "curate",
        "SPARK_FROM_GB": "20",
    }.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        aws.client.cache_clear()
        curate_function._parts.cache_clear()
        aws.client("s3").create_bucket(Bucket="lake")
        yield aws.client("s3")
    aws.client.cache_clear()
    curate_function._parts.cache_clear()


@pytest.fixture
def backfilled(s3: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    def run(glue: Glue, outputs: dict[str, str] = OUTPUTS, **options: Any) -> str:
        clients = {"lambda": Deployed(), "glue": glue}
        stack: Any = SimpleNamespace(outputs=outputs, client=lambda name: clients[name])
        monkeypatch.setattr(curate_function._parts, "client", lambda name: {"s3": s3, "glue": glue}[name])
        curate_function._parts.cache_clear()
        asked = {"rebuild": False, "workers": 4, **options}
        return nightly_run.run_backfill(stack, SINCE, UNTIL, pause=lambda _: None, **asked)

    return run


def test_the_job_finds_its_code_where_the_template_says(s3: Any, backfilled: Callable[..., str]) -> None:
    glue = Glue({"JobRunState": "RUNNING"}, {"JobRunState": "SUCCEEDED"})
    assert backfilled(glue, rebuild=True) == "run jr_1 of the Glue job curate succeeded"
    days = {"--from": "2026-03-01", "--to": "2026-03-31", "--rebuild": "true"}
    (asked,) = glue.asked
    assert (asked["Arguments"], asked["NumberOfWorkers"], asked["WorkerType"]) == (days, 4, "G.1X")
    uploaded = {
        f"s3://${{LakeBucket}}/{each['Key']}" for each in s3.list_objects_v2(Bucket="lake")["Contents"]
    }
    job = properties("CurateJob")
    named = {
        job["Command"]["ScriptLocation"]["Fn::Sub"],
        job["DefaultArguments"]["--extra-py-files"]["Fn::Sub"],
    }
    assert uploaded == named


def test_a_run_that_does_not_succeed_says_why(backfilled: Callable[..., str]) -> None:
    for state in ("FAILED", "TIMEOUT", "STOPPED"):
        with pytest.raises(RuntimeError, match=f"curate: {state}: out of memory"):
            backfilled(Glue({"JobRunState": state, "ErrorMessage": "out of memory"}))
    with pytest.raises(RuntimeError, match=r"did not start: .*ConcurrentRunsExceeded"):
        backfilled(Glue(refuses=True))


def test_a_laptop_says_what_to_do_instead(backfilled: Callable[..., str]) -> None:
    with pytest.raises(RuntimeError, match="no Glue here: `streakline night run"):
        backfilled(Glue(), {"LakeBucketName": "lake"})


def test_a_night_starts_the_job_once_and_waits_for_its_end(tmp_path: Path) -> None:
    lake = FolderObjects(tmp_path)
    glue = Glue(
        {"JobRunState": "RUNNING"},
        {"JobRunState": "FAILED", "ErrorMessage": "no more room"},
        {"JobRunState": "?"},
    )
    job = SparkJob(lake, glue, "curate")
    found = [job.go_on("r1") for _ in range(4)]
    assert [each["state"] for each in found] == ["STARTING", "RUNNING", "FAILED", "FAILED"]
    assert [each["is_over"] for each in found] == [False, False, True, True]
    (asked,) = glue.asked
    assert asked == {"JobName": "curate", "Arguments": {"--run": "r1"}, "Timeout": NIGHT_MINUTES_MAX}
    assert lake.get(SCRIPT_KEY) == (ROOT / SCRIPT).read_bytes()
    report = gather(lake, "r1", datetime(2026, 3, 2, tzinfo=UTC), {"Error": "of another step"})
    assert report["spark"] == found[-1]
    assert "The Glue job curated first (run jr_1, FAILED: no more room)." in markdown(report)


def test_a_night_goes_on_without_a_job_that_does_not_start(tmp_path: Path) -> None:
    lake = FolderObjects(tmp_path)
    told = SparkJob(lake, Glue(refuses=True), "curate").go_on("r1")
    assert (told["state"], told["is_over"]) == ("REFUSED", True)
    assert "one run at a time" in told["reason"]


def environment_of_the_job(folder: Path) -> Path:
    """Make an environment of what the job's own line names, and of Spark; returns its Python."""
    modules = properties("CurateJob")["DefaultArguments"]["--additional-python-modules"].split(",")
    python, uv = folder / "bin" / "python", shutil.which("uv") or str(ROOT / ".local" / "bin" / "uv")
    spark = f"pyspark=={version('pyspark')}"
    for command in (
        ("venv", "--python", sys.executable, str(folder)),
        ("pip", "install", "--python", str(python), spark, *modules),
    ):
        done = subprocess.run([uv, *command, "--quiet"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return python


@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs java")
@only_soak(
    "tests/integration/test_backfill.py::test_the_job_finds_its_code_where_the_template_says, and "
    "tests/integration/test_curate_function.py::test_a_night"
)
def test_the_packages_alone_curate_on_a_spark_that_knows_nothing_of_the_repository(tmp_path: Path) -> None:
    lake, job = tmp_path / "lake", tmp_path / "job"
    job.mkdir()
    python = str(environment_of_the_job(tmp_path / "glue"))
    (job / "packages.zip").write_bytes(packages())
    script = shutil.copy(ROOT / SCRIPT, job / "curate_spark.py")
    # So many lines are read by columns, of fewer each by itself.
    put_raw(FolderObjects(lake), "a", [*map(event, range(300)), event(1)])
    submit = (
        f"--master local[1] --conf spark.ui.enabled=false --py-files {job / 'packages.zip'} pyspark-shell"
    )
    own = {
        "PYSPARK_SUBMIT_ARGS": submit,
        "PYSPARK_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [
            python,
            "-P",
            script,
            "--lake",
            str(lake),
            "--from",
            DT,
            "--to",
            DT,
            "--rebuild",
            "false",
        ],
        env=os.environ | own,
        cwd=job,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "{'in': 301, 'curated': 300, 'duplicates': 1, 'quarantined': 0}" in done.stdout
    assert len(rows(FolderObjects(lake))) == 300
