"""The package of dbt: run by dbt on DuckDB over the story's warehouse, its models have the rows of ours.

dbt has an environment of its own (tests/sql/dbt), which uv makes in .local at the first run: no package of ours needs it.
"""

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from analytics.warehouse.ddl import declared_tables
from analytics.warehouse.models import ModelError, models
from local.analyst.dbt_package import (
    DUCKDB,
    PROJECT,
    REDSHIFT,
    TABLE,
    VIEW,
    Package,
    model_name,
    package_files,
    write_package,
)
from local.paths import ROOT
from rules.parts import ALL_PARTS
from tests.sql.conftest import Lake
from tests.support.effort import only_soak

HOST = "streakline-1.123456789012.eu-west-1.redshift-serverless.amazonaws.com"
UV = shutil.which("uv") or str(ROOT / ".local" / "bin" / "uv")
SECONDS_MAX = 600


def package(engine: str, materialized: str = TABLE, file: Path = Path("w.duckdb")) -> Package:
    return Package(
        models(), engine, materialized, tuple(declared_tables()), HOST, "streakline", "eu-west-1", file
    )


def dbt(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DBT_")}
    environment = {
        **kept,
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "UV_PROJECT_ENVIRONMENT": str(ROOT / ".local" / "dbt"),
    }
    command = [UV, "run", "--quiet", "--frozen", "--project", str(ROOT / "tests" / "sql" / "dbt"), "dbt"]
    return subprocess.run(
        [*command, *arguments, "--project-dir", ".", "--profiles-dir", "."],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )


@pytest.fixture(scope="module")
def warehouse_file(told: Lake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("dbt") / "warehouse.duckdb"
    with told.duck.reading() as connection:
        connection.execute("CHECKPOINT")
    shutil.copy(told.duck.path, file)  # this process holds the original open
    return file


def differences(folder: Path, warehouse_file: Path) -> dict[str, int]:
    """Return how many rows of each model only dbt's relation has, or only ours."""
    found = {}
    with duckdb.connect(str(folder / "streakline.duckdb"), read_only=True) as connection:
        connection.execute(f"ATTACH '{warehouse_file}' AS warehouse (READ_ONLY)")
        for model in models().values():
            columns = ", ".join(f'"{name}"' for name in model.columns)
            ours, its = (
                f"SELECT {columns} FROM warehouse.{model.name}",
                f"SELECT {columns} FROM analytics_{model.name}",
            )
            (found[model.name],) = connection.execute(
                f"SELECT (SELECT COUNT(*) FROM ({ours} EXCEPT ALL {its})) + (SELECT COUNT(*) FROM ({its} EXCEPT ALL {ours}))"
            ).fetchone() or (-1,)
    return {name: count for name, count in found.items() if count}


@pytest.fixture(scope="module")
def built(warehouse_file: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a package whose models dbt has built and tested, and what dbt said."""
    folder = tmp_path_factory.mktemp("package")
    write_package(folder, package_files(package(DUCKDB, TABLE, warehouse_file)))
    done = dbt(folder, "build", "--threads", "2")
    assert done.returncode == 0, done.stdout[-4000:]
    return folder, done.stdout


def test_what_dbt_builds_has_the_rows_of_the_nightly_run(
    told: Lake, built: tuple[Path, str], warehouse_file: Path
) -> None:
    folder, said = built
    assert "WARN=0 ERROR=0 SKIP=0" in said
    assert "deprecat" not in said.lower()
    assert told.duck.rows("SELECT COUNT(*) AS n FROM marts.daily_actives")[0]["n"] > 0
    assert differences(folder, warehouse_file) == {}


def test_dbt_finds_broken_rows(built: tuple[Path, str]) -> None:
    folder, _ = built
    with duckdb.connect(str(folder / "streakline.duckdb")) as connection:
        connection.execute("CREATE TEMP TABLE kept AS FROM analytics_marts.points_liability")
        connection.execute("INSERT INTO analytics_marts.points_liability FROM kept LIMIT 1")  # a date twice
        connection.execute(
            "UPDATE analytics_marts.points_liability SET redeemed = -1, adjusted = adjusted + 7"
        )
        connection.execute("UPDATE analytics_staging.ledger SET kind = 'GIFT' WHERE kind = 'EARN'")
        connection.execute(
            "INSERT INTO analytics_marts.retention_cohorts FROM analytics_marts.retention_cohorts LIMIT 1"
        )
    done = dbt(
        folder, "test", "--select", "marts_points_liability", "staging_ledger", "marts_retention_cohorts"
    )
    assert done.returncode == 1
    assert set(re.findall(r"Failure in test (\w+?)(?:__OPEN\w+)? ", done.stdout)) == {
        "accepted_values_staging_ledger_kind",
        "marts_points_liability__expression_redeemed_0",
        "marts_points_liability__sql_outstanding_all_balances",
        "marts_retention_cohorts__unique_cohort_kind_cohort_start_period_number",
        "unique_marts_points_liability_date_day",
    }


@only_soak(
    "test_dbt_takes_the_package_for_redshift_and_knows_what_each_model_reads (tests/sql/test_dbt_package.py),"
    " for what dbt makes of a model"
)
def test_views_answer_as_tables_do(warehouse_file: Path, tmp_path: Path) -> None:
    write_package(tmp_path, package_files(package(DUCKDB, VIEW, warehouse_file)))
    done = dbt(tmp_path, "run", "--select", "+marts_points_liability")
    assert done.returncode == 0, done.stdout[-4000:]
    with duckdb.connect(str(tmp_path / "streakline.duckdb"), read_only=True) as connection:
        connection.execute(f"ATTACH '{warehouse_file}' AS warehouse (READ_ONLY)")
        kinds = connection.execute(
            "SELECT DISTINCT table_type FROM information_schema.tables WHERE table_catalog = 'streakline'"
        )
        assert kinds.fetchall() == [("VIEW",)]
        ours = connection.execute("FROM warehouse.marts.points_liability ORDER BY date_day").fetchall()
        assert ours
        assert (
            connection.execute("FROM analytics_marts.points_liability ORDER BY date_day").fetchall() == ours
        )


def test_dbt_takes_the_package_for_redshift_and_knows_what_each_model_reads(tmp_path: Path) -> None:
    """No Redshift runs here: dbt's adapter reads the package, and asks no server."""
    write_package(tmp_path, package_files(package(REDSHIFT, VIEW)))
    done = dbt(tmp_path, "parse")
    assert done.returncode == 0, done.stdout[-4000:]
    manifest = json.loads((tmp_path / "target" / "manifest.json").read_text(encoding="utf-8"))
    for model in models().values():
        node = manifest["nodes"][f"model.streakline.{model_name(model.name)}"]
        reads = {name for name in model.reads if name in model.sql}
        assert set(node["depends_on"]["nodes"]) == {
            f"source.streakline.{name}"
            if name.startswith("lake.")
            else f"model.streakline.{model_name(name)}"
            for name in reads
        }
        assert node["config"]["materialized"] == VIEW
        assert node["config"]["bind"] is False
        assert {name: column["description"] for name, column in node["columns"].items()} == model.columns
        assert node["config"].get("dist") == model.dist


def test_redshift_s_models_are_our_selects_word_for_word() -> None:
    files = package_files(package(REDSHIFT))
    for model in models().values():
        folder = model.name.partition(".")[0]
        text = files[f"models/{folder}/{model_name(model.name)}.sql"]
        for name in model.reads:
            of, _, read = name.partition(".")
            reference = f"source('lake', '{read}')" if of == "lake" else f"ref('{model_name(name)}')"
            text = text.replace(f"{{{{ {reference} }}}}", name)
        aliased = re.compile(rf"({'|'.join(map(re.escape, sorted(model.reads)))}) AS \w+")
        assert aliased.sub(r"\1", text).strip() == aliased.sub(r"\1", model.sql)


def test_what_a_deployment_left_out_is_in_no_file() -> None:
    parts = ALL_PARTS - {part for part in ALL_PARTS if "question" in str(part).lower()}
    smaller = Package(models(deployed=parts), REDSHIFT, TABLE, tuple(declared_tables(frozenset(parts))))
    files = package_files(smaller)
    assert "models/marts/marts_points_liability.sql" in files
    assert not [name for name in files if "question" in name or "answer" in name]
    assert "lake_questions" not in files["models/sources.yml"]


def test_only_a_package_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="files that are not of such a package"):
        write_package(tmp_path, {PROJECT: "x"})
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]
    folder = tmp_path / "package"
    files = package_files(package(REDSHIFT))
    write_package(folder, files)
    (folder / "models" / "gone.sql").write_text("SELECT 1")
    write_package(folder, files)
    assert {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()} == files.keys()


def test_a_name_in_a_place_that_takes_no_reference_is_refused() -> None:
    known = dict(models())
    known["marts.odd"] = replace(
        known["marts.stickiness"], name="marts.odd", sql="SELECT marts.bonuses.points AS p FROM marts.bonuses"
    )
    with pytest.raises(ModelError, match=r"marts.odd: marts.bonuses stands where dbt takes"):
        package_files(Package(known, REDSHIFT, VIEW, ()))
