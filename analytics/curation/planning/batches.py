"""A run's tasks, and how they share calls of the two curating functions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from analytics.curation.curate import Task

# For one call of the curating function. A backfill of years is thousands of hours with a row or two. A task
# that is larger gets the large function.
BATCH_BYTES_MAX = 64 * 1024 * 1024
BATCH_TASKS_MAX = 200


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run has to do. watermark: what the next plan may start from, once all is done.

    sizes: bytes that a task will read: new raw objects, zipped, and curated files. failed: tasks that failed
    before. arrived: the dates on which the raw objects arrived. past_days: past days of which hours are
    written; the next plan may compact them. checks: files of which only the seal is looked at, by their size.
    raw_bytes: of all raw objects that are to be read, zipped.
    """

    tasks: list[Task]
    watermark: datetime
    sizes: Mapping[Task, int] = field(default_factory=dict)
    arrived: Sequence[str] = ()
    past_days: Sequence[Task] = ()
    checks: Mapping[Task, int] = field(default_factory=dict)
    failed: frozenset[Task] = frozenset()
    raw_bytes: int = 0

    def of_days(self, days: Mapping[str, Sequence[str]]) -> "Plan":
        """Return the plan with the tasks of some dates (YYYY-MM-DD) by entity alone."""
        return replace(self, tasks=[each for each in self.tasks if each.dt in days.get(each.entity, ())])

    def is_large(self, task: Task) -> bool:
        """Tell whether a task gets the large function at once."""
        return task in self.failed or self.sizes.get(task, 0) > BATCH_BYTES_MAX

    def batches(self) -> Iterator[list[Task]]:
        """Yield the tasks, small ones together, each large one by itself."""
        yield from ([task] for task in self.tasks if self.is_large(task))
        batch: list[Task] = []
        size = 0
        for task in self.tasks:
            if self.is_large(task):
                continue
            more = self.sizes.get(task, 0)
            if batch and (len(batch) == BATCH_TASKS_MAX or size + more > BATCH_BYTES_MAX):
                yield batch
                batch, size = [], 0
            batch.append(task)
            size += more
        if batch:
            yield batch
