"""Glue 5 job: curates the tasks of a nightly run, or every hour of a range of dates.

Arguments: --lake (s3://bucket, or a folder); --run (a nightly run's id); or --from, --to (YYYY-MM-DD) and
--rebuild (true or false). infra/app/lake.yaml has the job (CurateJob) and says what Glue installs.
analytics/curation/spark_job.py puts this file and the packages that it imports into the lake's bucket.
"""

# ruff: noqa: PLC0415 (what the job needs is unpacked by Glue before the first use, on the workers too)
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

# The job's own arguments. Glue adds others, also as pairs of a name and a value.
DEFAULTS = {"lake": "", "run": "", "from": "", "to": "", "rebuild": "false"}


def arguments(words: list[str]) -> dict[str, str]:
    """Return the job's own arguments among `--name value` pairs. A missing one has its default."""
    pairs = pairwise(words)
    return DEFAULTS | {
        word[2:]: value for word, value in pairs if word.startswith("--") and word[2:] in DEFAULTS
    }


def run(context: Any, options: Mapping[str, str]) -> dict[str, int]:
    """Curate on the workers of a Spark context; returns the sum of the files' counts.

    options: as `arguments` returns them.

    If a task of a nightly run fails, the run tries it again. If a task of a range fails, the job fails.
    """
    from analytics.lake.bookkeeping import Counts

    lake, run_id = options["lake"], options["run"]
    tasks = _tasks_of_run(lake, run_id) if run_id else _tasks_of_dates(options)

    def curate(work: Any) -> Any:
        from analytics.curation.spark_job import curate_for_run, curate_one

        if run_id:
            return curate_for_run(lake, run_id, *work)
        return curate_one(lake, work, is_rebuild=options["rebuild"] == "true")

    counts = context.parallelize(tasks, len(tasks)).map(curate).collect() if tasks else []
    return sum(counts, Counts()).as_dict()


def _tasks_of_run(lake: str, run_id: str) -> list[Any]:
    """Return the tasks of a run, each with the dates of arrival of its raw objects."""
    from adapters.platform.objects import objects_at
    from analytics.curation.plan import read_batches
    from analytics.lake.layout import Partition

    batches = read_batches(objects_at(lake), run_id)
    return [(Partition(**task), batch["arrived"]) for batch in batches for task in batch["tasks"]]


def _tasks_of_dates(options: Mapping[str, str]) -> list[Any]:
    """Return the tasks of a range of dates."""
    from adapters.platform.objects import objects_at
    from analytics.curation.plan import plan

    today = datetime.now(UTC).date()
    since, until = options["from"] or None, options["to"] or None
    return plan(objects_at(options["lake"]), today, since_dt=since, until_dt=until).tasks


def main() -> None:
    """Run the job on the Spark context that Glue has made."""
    from pyspark import SparkContext

    with SparkContext.getOrCreate() as context:
        print(run(context, arguments(sys.argv[1:])))  # noqa: T201 (Glue's log of the run)


if __name__ == "__main__":
    main()
