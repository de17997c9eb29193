"""For all tests of the lake."""

from pathlib import Path

import pytest

from adapters.platform.objects import FolderObjects
from analytics.curation import row_staging


@pytest.fixture(params=["line by line", "by columns, on disk"])
def objects(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FolderObjects:
    """A lake. Each test runs twice: the result must not depend on how lines are read and where rows are held."""
    if request.param == "line by line":
        monkeypatch.setattr(row_staging, "FEW_LINES", 10**9)
    else:
        monkeypatch.setattr(row_staging, "FEW_LINES", 0)
        monkeypatch.setattr(row_staging, "MEMORY_BYTES_MAX", 0)
    return FolderObjects(tmp_path)
