"""Curation on one machine: tasks side by side, one process a core."""

import logging
import multiprocessing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

from adapters.platform.objects import objects_at
from analytics.curation.curate import Task, curate, curate_in_run
from analytics.curation.curate import rebuild as _rebuild
from analytics.lake.bookkeeping import Counts

logger = logging.getLogger(__name__)


def curate_all(
    url: str,
    tasks: Sequence[Task],
    processes: int = 2,
    *,
    rebuild: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> dict[Task, Counts]:
    """Curate tasks of the lake at a URL (see objects_at); returns each one's counts.

    progress: is called with the number of tasks that are done, and of all. Raises a task's error, after the
    other tasks have ended.
    """
    counts: dict[Task, Counts] = {}
    if processes <= 1 or len(tasks) <= 1:
        for done, task in enumerate(tasks, 1):
            counts[task] = curate_one(url, task, rebuild)
            progress(done, len(tasks))
        return counts
    with _pool(min(processes, len(tasks))) as pool:
        waiting = {pool.submit(curate_one, url, task, rebuild): task for task in tasks}
        for done, future in enumerate(as_completed(waiting), 1):
            counts[waiting[future]] = future.result()
            progress(done, len(tasks))
    return counts


def curate_one(url: str, task: Task, rebuild: bool = False) -> Counts:
    """Curate a task of the lake at a URL, in a worker process. It logs if a rebuild lacks raw objects."""
    objects = objects_at(url)
    if rebuild:
        return _rebuild(objects, task, lambda reason: logger.warning("%s: %s", task, reason))
    return curate(objects, task)


def curate_for(url: str, run_id: str, work: tuple[Mapping[str, Any], Collection[str] | None]) -> Counts:
    """Curate a task of a nightly run. A failure is logged, and leaves the task to the run.

    work: the task as a plan's batch has it, and its dates of arrival (see `curate`).
    """
    fields, arrived = work
    task = Task(**fields)
    try:
        return curate_in_run(objects_at(url), run_id, task, is_rebuild=False, arrived=arrived)
    except Exception:
        logger.exception("task failed: %s", task)
        return Counts()


@contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    # A forked child would inherit locks held by threads of DuckDB or Arrow.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        yield pool
