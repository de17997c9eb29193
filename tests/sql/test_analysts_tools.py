"""docs/guides/analysts-tools.md: each tool, as the page shows it, counts what the warehouse counts."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from local.analyst import aws_engines
from local.cli import root
from local.stack import EMULATOR_KEY, EMULATOR_SECRET, Stack
from tests.sql.conftest import Lake
from tests.sql.test_analyst_lake import stack
from tests.support.documents import Block, blocks

__all__ = ["stack"]  # a fixture
PAGE = "docs/guides/analysts-tools.md"
CODE = {
    re.findall(r"import (\w+)", each.text)[0]: each
    for each in blocks(PAGE)
    if each.language == "python" and not each.title
}
# pyarrow's client knows no variable for another endpoint than AWS's.
AT_EMULATOR = """import functools, os, pyarrow.fs
pyarrow.fs.S3FileSystem = functools.partial(pyarrow.fs.S3FileSystem, endpoint_override=os.environ["AWS_ENDPOINT_URL"])
"""


def numbers(text: str) -> set[int]:
    return {int(each) for each in re.findall(r"\d+", text.replace(",", ""))}


def printed(block: Block, folder: Path, lake: str, stack: Stack) -> str:
    (settings,) = (each for each in blocks(PAGE) if each.title == "lake.py")
    (folder / "lake.py").write_text(settings.text.replace('"lake"', f'"{lake}"'))
    (folder / "block.py").write_text(f"{AT_EMULATOR}{block.text}")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "AWS_ENDPOINT_URL": stack.endpoint_url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": EMULATOR_KEY,
        "AWS_SECRET_ACCESS_KEY": EMULATOR_SECRET,
        "AWS_DEFAULT_REGION": stack.region,
        "AWS_REGION": stack.region,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "--master local[1] --conf spark.ui.enabled=false --conf spark.driver.bindAddress=127.0.0.1 pyspark-shell",
        "TZ": "America/New_York",
    }
    done = subprocess.run(
        [sys.executable, "block.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def copy(told: Lake, stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The curated files, and another day's file with an event in an older version; the bucket gets it, too."""
    folder = tmp_path_factory.mktemp("copy") / "lake"
    shutil.copytree(told.root / "curated", folder)
    event = pq.read_table(next((folder / "events").rglob("*.parquet")), partitioning=None).slice(0, 1)
    for name, value in (("version", ""), ("points_awarded", 1_000_000)):
        column = event.schema.get_field_index(name)
        event = event.set_column(
            column, event.schema.field(name), pa.array([value], event.schema.field(name).type)
        )
    older = folder / "events" / "dt=2030-01-01" / "day.parquet"
    older.parent.mkdir()
    pq.write_table(event, older)
    key = f"curated/{older.relative_to(folder)}"
    stack.client("s3").put_object(Bucket="lake", Key=key, Body=older.read_bytes())
    return folder


@pytest.fixture
def wanted(told: Lake) -> set[int]:
    (row,) = told.duck.rows("SELECT COUNT(*) AS events, SUM(points_awarded) AS points FROM lake.events")
    return {int(row["events"]), int(row["points"])}


@pytest.mark.parametrize("tool", CODE)
def test_a_copy(tool: str, copy: Path, stack: Stack, wanted: set[int], tmp_path: Path) -> None:
    if tool == "LAKE" and shutil.which("java") is None:
        pytest.skip("Spark needs java")
    (tmp_path / "lake").symlink_to(copy)
    assert wanted <= numbers(printed(CODE[tool], tmp_path, "lake", stack))


@pytest.mark.parametrize("tool", ["polars", "pyarrow"])
def test_the_bucket_itself(tool: str, copy: Path, stack: Stack, wanted: set[int], tmp_path: Path) -> None:
    lake = "lake/curated" if tool == "pyarrow" else "s3://lake/curated"
    assert wanted <= numbers(printed(CODE[tool], tmp_path, lake, stack))


def test_athena(stack: Stack, wanted: set[int]) -> None:
    (block,) = (each for each in blocks(PAGE) if each.title == "Athena")
    with aws_engines.by_athena(stack, block.text, lambda _: None) as answer:
        (row,) = answer.table().to_pylist()
    assert {int(value) for value in row.values()} == wanted


def test_the_commands(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("local.stack.load", lambda: stack)
    (block,) = (each for each in blocks(PAGE) if each.language == "bash" and not each.mark)
    for line in block.text.splitlines():
        result = CliRunner().invoke(root, shlex.split(line, comments=True)[1:], catch_exceptions=False)
        assert result.exit_code == 0, result.output
    for folder, type_ in (("streakline-dbt", "duckdb"), ("on-redshift", "redshift")):
        assert f"type: {type_}\n" in (tmp_path / folder / "profiles.yml").read_text()
        assert (tmp_path / folder / "models" / "marts" / "marts_daily_actives.sql").exists()
