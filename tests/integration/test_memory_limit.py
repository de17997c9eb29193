"""A partition that memory cannot hold is curated nevertheless, in a process that gets no more."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.platform.objects import FolderObjects
from analytics.lake.bookkeeping import Counts
from tests.support.effort import only_soak
from tests.support.raw_lake import PLACE, event, put_raw, total

OBJECTS, LINES = 20, 40_000
MORE = 400 * 2**20  # bytes: enough with rows on disk; in memory 480 MB are too few
# Curates in a process whose data may grow by so many bytes beyond what it has when everything is imported.
CURATE = """
import resource, sys
import pyarrow.parquet
from adapters.platform.objects import FolderObjects
from analytics.curation import row_staging
from analytics.curation.curate import curate
from analytics.lake.layout import Partition
from pathlib import Path

folder, entity, dt, hour, held, more = sys.argv[1:]
row_staging.MEMORY_BYTES_MAX, row_staging.SORTED_BYTES = int(held), "80MB"
used = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData"))
limit = int(used.split()[1]) * 1024 + int(more)
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
curate(FolderObjects(Path(folder)), Partition(entity, dt, hour))
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """800,000 rows of 400,000 keys."""
    folder = tmp_path_factory.mktemp("lake")
    template = json.dumps(event(0), separators=(",", ":")).replace("e0", "e%d").replace('"k0"', '"k%d"')
    for number in range(OBJECTS):
        rows = (number * LINES + each for each in range(LINES))
        lines = [(template % (row % 400_000, row)).encode() for row in rows]
        put_raw(FolderObjects(folder), f"{number:02}", lines)
    return folder


def curated(lake: Path, held: int, more: int) -> subprocess.CompletedProcess[str]:
    for each in list(FolderObjects(lake).list("curated/")):
        (lake / each.key).unlink()
    words = [str(lake), PLACE.entity, PLACE.dt, str(PLACE.hour), str(held), str(more)]
    environment = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", CURATE, *words], env=environment, capture_output=True, text=True, check=False
    )


@only_soak("tests/lake/test_spilled_rows.py and tests/lake/test_curate_ways.py, with fewer rows on disk")
def test_a_partition_beyond_memory(lake: Path) -> None:
    found = curated(lake, 16 * 2**20, MORE)
    assert found.returncode == 0, found.stderr[-2000:]
    assert total(FolderObjects(lake)) == Counts(800_000, 400_000, 400_000, 0)
    assert curated(lake, 10**12, MORE).returncode != 0, "the limit is none"
