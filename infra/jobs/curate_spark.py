"""Glue 5 job for backfills: curates every hour of a range of dates (analytics.curation.curate).

Arguments: --lake (s3://bucket, or a folder), --from, --to (YYYY-MM-DD), --rebuild (true or false).
infra/app/lake.yaml has the job (CurateJob) and says what Glue installs. local/operate/backfill.py uploads
this file and the packages that it imports, and starts the job.
"""

# ruff: noqa: PLC0415 (what the job needs is unpacked by Glue before the first use, on the workers too)
import sys
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

# Glue adds arguments of its own, also in pairs of a name and a value. Only the names listed here are ours.
DEFAULTS = {"lake": "", "from": "", "to": "", "rebuild": "false"}


def arguments(words: list[str]) -> dict[str, str]:
    """Return our arguments among `--name value` pairs; one that is missing has its default."""
    pairs = pairwise(words)
    return DEFAULTS | {
        word[2:]: value for word, value in pairs if word.startswith("--") and word[2:] in DEFAULTS
    }


def run(context: Any, lake: str, since: str, until: str, rebuild: bool) -> dict[str, int]:
    """Curate every hour of these dates on the workers of a Spark context; returns the sum of their counts."""
    from adapters.platform.objects import objects_at
    from analytics.curation.planning.plan import plan
    from analytics.lake.bookkeeping import Counts

    today = datetime.now(UTC).date()
    tasks = plan(objects_at(lake), today, since_dt=since or None, until_dt=until or None).tasks

    def curate(task: Any) -> Any:
        from analytics.curation.curate_all import curate_one

        return curate_one(lake, task, rebuild)

    counts = context.parallelize(tasks, max(1, len(tasks))).map(curate).collect() if tasks else []
    return sum(counts, Counts()).as_dict()


def main() -> None:
    """Run the job on the Spark context that Glue has made."""
    from pyspark import SparkContext

    given = arguments(sys.argv[1:])
    with SparkContext.getOrCreate() as context:
        print(run(context, given["lake"], given["from"], given["to"], given["rebuild"] == "true"))


if __name__ == "__main__":
    main()
