"""Glue 5 job for backfills: the curation of analytics.curation.curate, over the tasks of a range of dates.

Arguments: --lake (s3://bucket, or a folder), --from, --to (YYYY-MM-DD), --rebuild (true or false). The
packages rules, adapters and analytics come with --extra-py-files, duckdb and isal with
--additional-python-modules.
"""

# ruff: noqa: PLC0415 (what the job needs is unpacked by Glue before the first use, on the workers too)
import sys
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

# What Glue itself adds to the command line comes in pairs, too.
DEFAULTS = {"lake": "", "from": "", "to": "", "rebuild": "false"}


def arguments(words: list[str]) -> dict[str, str]:
    """Return the arguments that are ours, of the form --name value."""
    pairs = pairwise(words)
    return DEFAULTS | {
        word[2:]: value for word, value in pairs if word.startswith("--") and word[2:] in DEFAULTS
    }


def run(context: Any, lake: str, since: str, until: str, rebuild: bool) -> dict[str, int]:
    """Curate every hour of these dates on the workers of a Spark context; returns the counts of all."""
    from adapters.platform.objects import objects_at
    from analytics.curation.plan import plan
    from analytics.lake.bookkeeping import Counts

    today = datetime.now(UTC).date()
    tasks = plan(objects_at(lake), today, since_dt=since or None, until_dt=until or None).tasks

    def curate(task: Any) -> Any:
        from analytics.curation.curate_all import curate_one

        return curate_one(lake, task, rebuild)

    counts = context.parallelize(tasks, max(1, len(tasks))).map(curate).collect() if tasks else []
    return sum(counts, Counts()).as_dict()


def main() -> None:
    """Run the job on the context that Glue has made."""
    from pyspark import SparkContext

    given = arguments(sys.argv[1:])
    with SparkContext.getOrCreate() as context:
        print(run(context, given["lake"], given["from"], given["to"], given["rebuild"] == "true"))


if __name__ == "__main__":
    main()
