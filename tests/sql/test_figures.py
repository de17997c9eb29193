"""The report's plots of the marts can be drawn, from a full warehouse and from an empty one."""

import io
from pathlib import Path

import matplotlib as mpl
import pytest

mpl.use("svg")

from matplotlib import pyplot as plt

from analytics.warehouse.build import build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from local.operate.html_report import figures
from tests.sql.conftest import Lake


def test_every_mart_is_drawn(told: Lake, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    plots = figures(told.duck)
    assert len(plots) == 10
    for title, draw in plots:
        figure, axes = plt.subplots(figsize=(6.4, 3.3), layout="constrained")
        draw(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg")
        plt.close(figure)
        assert "<svg" in out.getvalue(), title


def test_nothing_to_draw(tmp_path: Path) -> None:
    warehouse = DuckWarehouse(tmp_path / "empty.duckdb")
    prepare(warehouse)
    build(warehouse)
    assert figures(warehouse) == []
