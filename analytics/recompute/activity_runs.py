"""Folds all curated activity into every user's runs.

Two threads read files and look up users; the caller's thread folds what they found.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import TypeVar

import pyarrow as pa

from adapters.platform.objects import Objects, StoredObject
from analytics.lake import curated_files
from analytics.lake.layout import curated_files as files
from analytics.recompute.plain_streaks import Runs, day_number
from analytics.recompute.user_numbers import Codes, Users

READERS = 2
FILES_AHEAD = 8
BATCHES_AHEAD = 2
BATCH_ROWS_MAX = 1_000_000
A = TypeVar("A")
B = TypeVar("B")


@dataclass(slots=True)
class _Batch:
    """Columns of user ids that are looked up together, each with its day. A day may have several columns."""

    days: list[int] = field(default_factory=list)
    columns: list[pa.StringArray] = field(default_factory=list)
    rows: int = 0


def runs_of(objects: Objects, special: Iterable[str] = ()) -> tuple[Users, Runs]:
    """Return all users, and their runs as if nobody had cover.

    special: users who have cover; they get the first codes, and their dates are kept so that `refold` can
    fold them by the rule. A row's date is that of its partition (see analytics.lake.layout).
    """
    users = Users(pa.array(list(special), pa.string()))
    runs = Runs(kept=len(users.ids))
    with ThreadPoolExecutor(READERS) as pool:
        read = partial(_read, objects)
        days = _ahead(pool, read, files(objects, "daily_activity"), FILES_AHEAD)
        look_up = partial(_look_up, users)
        for batch, codes, seen in _ahead(pool, look_up, _batches(days), BATCHES_AHEAD):
            users.settle(batch.columns, codes, seen)
            runs.grow(len(users.ids))
            for day, of_day in zip(batch.days, codes, strict=True):
                runs.advance(day, of_day)
    runs.grow(len(users.ids))
    return users, runs


def _read(objects: Objects, stored: StoredObject) -> tuple[int, list[pa.StringArray]]:
    table = curated_files.read(objects, "daily_activity", stored, ["user_id"])
    return day_number(date.fromisoformat(curated_files.date_of(stored))), table["user_id"].chunks


def _batches(days: Iterable[tuple[int, list[pa.StringArray]]]) -> Iterator[_Batch]:
    """Yield batches that grow: a day at first, then as many rows as all before, up to BATCH_ROWS_MAX.

    So the users of the first days are known by the time the large batches are looked up.
    """
    batch, before = _Batch(), 0
    for day, columns in days:
        batch.days += [day] * len(columns)
        batch.columns += columns
        batch.rows += sum(map(len, columns))
        if batch.rows >= min(BATCH_ROWS_MAX, before):
            yield batch
            before += batch.rows
            batch = _Batch()
    if batch.days:
        yield batch


def _look_up(users: Users, batch: _Batch) -> tuple[_Batch, list[Codes], int]:
    known = users.directory
    return batch, [known.find(column) for column in batch.columns], len(known.ids)


def _ahead(pool: ThreadPoolExecutor, work: Callable[[A], B], items: Iterable[A], ahead: int) -> Iterator[B]:
    """Yield the results in order, while up to `ahead` further items are being worked on."""
    waiting: deque[Future[B]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
