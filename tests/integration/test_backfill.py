"""`streakline backfill`: the code that Glue gets is all that the job needs, and a run's end is told."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from moto import mock_aws

from adapters.platform import aws
from adapters.platform.objects import FolderObjects
from local.operate import backfill
from tests.support.declared import properties
from tests.support.raw_lake import DT, event, put_raw, rows
from tests.support.template import ROOT

SINCE, UNTIL = date(2026, 3, 1), date(2026, 3, 31)
OUTPUTS = {"LakeBucketName": "lake", "CurateJobName": "curate"}


class Glue:
    """Answers get_job_run with one state after another, and keeps what was asked."""

    def __init__(self, *states: dict[str, Any]) -> None:
        self.states = iter(states)
        self.asked: dict[str, Any] = {}

    def start_job_run(self, **asked: Any) -> dict[str, Any]:
        self.asked = asked
        return {"JobRunId": "jr_1"}

    def get_job_run(self, JobName: str, RunId: str) -> dict[str, Any]:  # noqa: N803 (AWS's names)
        assert (JobName, RunId) == ("curate", "jr_1")
        return {"JobRun": next(self.states)}


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        aws.client.cache_clear()
        aws.client("s3").create_bucket(Bucket="lake")
        yield aws.client("s3")


def stack_with(s3: Any, glue: Glue, outputs: dict[str, str] = OUTPUTS) -> Any:
    return SimpleNamespace(outputs=outputs, client=lambda name: {"s3": s3, "glue": glue}[name])


def run(stack: Any, **options: Any) -> str:
    asked = {"rebuild": False, "workers": 4, **options}
    return backfill.run(stack, SINCE, UNTIL, pause=lambda _: None, **asked)


def test_the_job_finds_its_code_where_the_template_says(s3: Any) -> None:
    glue = Glue({"JobRunState": "RUNNING"}, {"JobRunState": "SUCCEEDED"})
    assert run(stack_with(s3, glue), rebuild=True) == "run jr_1 of the Glue job curate succeeded"
    days = {"--from": "2026-03-01", "--to": "2026-03-31", "--rebuild": "true"}
    assert (glue.asked["Arguments"], glue.asked["NumberOfWorkers"]) == (days, 4)
    uploaded = {
        f"s3://${{LakeBucket}}/{each['Key']}" for each in s3.list_objects_v2(Bucket="lake")["Contents"]
    }
    job = properties("CurateJob")
    named = {
        job["Command"]["ScriptLocation"]["Fn::Sub"],
        job["DefaultArguments"]["--extra-py-files"]["Fn::Sub"],
    }
    assert uploaded == named


def test_a_run_that_does_not_succeed_says_why(s3: Any) -> None:
    for state in ("FAILED", "TIMEOUT", "STOPPED"):
        glue = Glue({"JobRunState": state, "ErrorMessage": "out of memory"})
        with pytest.raises(RuntimeError, match=f"curate: {state}: out of memory"):
            run(stack_with(s3, glue))


def test_a_laptop_says_what_to_do_instead(s3: Any) -> None:
    laptop = stack_with(s3, Glue(), {"LakeBucketName": "lake"})
    with pytest.raises(RuntimeError, match="no Glue here: `streakline recompute"):
        run(laptop)


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
def test_the_packages_alone_curate_on_a_spark_that_knows_nothing_of_the_repository(tmp_path: Path) -> None:
    lake, job = tmp_path / "lake", tmp_path / "job"
    job.mkdir()
    python = str(environment_of_the_job(tmp_path / "glue"))
    (job / "packages.zip").write_bytes(backfill.packages())
    script = shutil.copy(backfill.SCRIPT, job / "curate_spark.py")
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
