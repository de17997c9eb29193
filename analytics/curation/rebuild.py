"""Makes a partition anew, and tells where not all of its raw objects were there any more."""

from collections.abc import Callable, Collection
from functools import partial

from adapters.platform.objects import Objects
from analytics.curation.curate import RawGone, Task, curate
from analytics.curation.refused_lines import unreadable_objects
from analytics.lake import odd_objects, rebuild_notes
from analytics.lake.bookkeeping import Counts


def rebuild(
    objects: Objects, task: Task, say: Callable[[str], object], arrived: Collection[str] | None = None
) -> Counts:
    """Make a partition's file anew from its raw objects; returns its counts. arrived: see `curate`.

    If some of these are gone, it is made from its own rows and from the quarantine, and `say` is told why.
    """
    try:
        return curate(objects, task, rebuild=True, arrived=arrived)
    except RawGone as gone:
        say(str(gone))
        return curate(objects, task, rebuild=True, without_raw=True, arrived=arrived)


def curate_in_run(
    objects: Objects, run_id: str, task: Task, *, is_rebuild: bool, arrived: Collection[str] | None
) -> Counts:
    """Bring a partition up to date in a nightly run, or make it anew; returns its counts."""
    if is_rebuild:
        counts = rebuild(objects, task, partial(rebuild_notes.note, objects, run_id, task), arrived)
    else:
        counts = curate(objects, task, arrived=arrived)
    for key, reason in unreadable_objects(objects, task) if counts.quarantined else ():
        odd_objects.note(objects, run_id, key, reason)
    return counts
