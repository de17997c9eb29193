"""Removes old data from the tables: events, and what parts say (rule 22).

A night's pass (RetentionPass) reads no table as a whole. The rows of the lake's partitions name the items. It
reads a partition once, when all its dates are old enough. If some rows are too young, because they came late,
RetentionState.due has the date for a second reading. A partition that a night has curated again is read again
in that night.

Each rule (RetentionRule) reads the items before it changes them. So an item that the lake does not have
stays in its table. A repetition changes nothing.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapters.platform.item_tables import AgedItems
from adapters.platform.items import Item, decode_item
from adapters.platform.objects import NoObject, Objects, StoredObject
from adapters.platform.tables import chunks
from analytics.lake import curated_files, layout
from analytics.lake.bookkeeping import footer_of
from analytics.lake.curated_files import ColumnBounds
from analytics.lake.layout import Partition
from rules.days import DAY
from rules.lake.entities import ENTITIES, EVENTS, is_in_lake
from rules.lake.residues import is_residue
from rules.lake.schema import EXTRA

READ_AT_ONCE = 100
THREADS = 16  # a client has this many connections
ItemRow = Mapping[str, Any]
Row = dict[str, Any]
PREFIX = "state/retention/"
BATCH_ROWS = 2000
# Events stored over 100 days before the first night had a TTL, and DynamoDB has deleted them.
TTL_DAYS = 100


@dataclass(frozen=True, slots=True)
class RemovalCounts:
    """How many items, or attributes of items, were removed."""

    left: int = 0  # removed
    # Kept, although they were old enough: the lake has other values, or somebody has changed them
    stayed: int = 0

    def __add__(self, other: "RemovalCounts") -> "RemovalCounts":
        """Return the sums of both."""
        return RemovalCounts(self.left + other.left, self.stayed + other.stayed)


def in_threads(
    remove: Callable[[Sequence[ItemRow]], RemovalCounts], rows: Sequence[ItemRow]
) -> RemovalCounts:
    """Remove the items of rows, a hundred at a time, in threads: most of the time is waiting for answers."""
    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(remove, chunks(rows, READ_AT_ONCE)), RemovalCounts())


@dataclass(frozen=True, slots=True)
class RetentionRule(ABC):
    """The rule for one kind of data that leaves a table when it is old."""

    items: AgedItems
    days: int  # the age at which it leaves; 0: never
    setting: ClassVar[str]  # the parameter of the stack that gives the days
    name: ClassVar[str]  # of the rule's state (RetentionState)
    entity: ClassVar[str]  # its rows in the lake name the items
    age: ClassVar[str]  # the column with the instant from which the age counts
    had_ttl: ClassVar[bool] = False  # the items had a time to live before there was a setting

    @abstractmethod
    def remove(self, rows: Sequence[ItemRow]) -> RemovalCounts:
        """Remove the data that these rows of the lake name. It is safe to repeat. Raises Unprocessed."""


@dataclass(frozen=True, slots=True)
class Events(RetentionRule):
    """Removes items of BPEvents, once the lake has them value by value."""

    setting = "EventHotDays"
    name, entity, age = "events", "events", "created_at"
    had_ttl = True

    def remove(self, rows: Sequence[ItemRow]) -> RemovalCounts:
        """Delete the items that the lake has value by value, on condition that nobody has changed them."""
        return in_threads(self._remove, [row for row in rows if not is_residue(row["user_id"])])

    def _remove(self, rows: Sequence[ItemRow]) -> RemovalCounts:
        by_key = {(row["user_id"], row["event_id"]): row for row in rows}
        items = self.items.read({"user_id": user, "event_id": event} for user, event in by_key)
        in_lake = [item for item in items if self._is_in_lake(item, by_key)]
        changed = self.items.delete(in_lake)
        return RemovalCounts(len(in_lake) - changed, len(items) - len(in_lake) + changed)

    @staticmethod
    def _is_in_lake(item: Item, by_key: Mapping[tuple[str, str], ItemRow]) -> bool:
        attributes = decode_item(item)
        return is_in_lake(EVENTS, attributes, by_key[attributes["user_id"], attributes["event_id"]])


@dataclass(frozen=True, slots=True)
class PartRetention:
    """The rules of a part: further settings of the function, and what yields its rules."""

    settings: Mapping[str, type]
    rules: Callable[[Any, Any], Iterable[RetentionRule]]  # takes the settings and a client of DynamoDB


@dataclass(frozen=True, slots=True)
class Resume:
    """Where a call has stopped within a partition. It counts only while the partition has the same files."""

    partition: str  # a digest of its files
    until: str  # the date (YYYY-MM-DD) before which the rows of what is done were old enough
    files: int  # how many are done
    batches: int  # how many batches of the next file's rows are done


@dataclass(slots=True)
class RetentionState:
    """The progress of a rule: state/retention/NAME.json. It has dates (YYYY-MM-DD), and names no person."""

    name: str
    began: str  # the date of the first night
    through: str = ""  # all partitions up to this date were read
    # Earlier partitions to read again -> the date from which on
    due: dict[str, str] = field(default_factory=dict)
    resumes: dict[str, Resume] = field(default_factory=dict)  # by the partition's date
    run_id: str = ""  # of the last night

    @classmethod
    def read(cls, objects: Objects, name: str, today: str) -> "RetentionState":
        """Return the state that earlier nights have stored, or that of a first night."""
        try:
            fields = json.loads(objects.get(f"{PREFIX}{name}.json"))
        except NoObject:
            return cls(name, today)
        resumes = {dt: Resume(**resume) for dt, resume in fields.pop("resumes", {}).items()}
        return cls(**fields, resumes=resumes)

    def save(self, objects: Objects) -> None:
        """Store the state."""
        objects.put(f"{PREFIX}{self.name}.json", json.dumps(asdict(self)).encode())

    def begin(self, run_id: str, curated_dates: Collection[str], today: str) -> None:
        """Note a night at its first call. curated_dates: their partitions may have new rows, so are due."""
        if self.run_id != run_id:
            self.run_id = run_id
            self.due |= dict.fromkeys((dt for dt in curated_dates if dt <= self.through), today)

    def note_done(self, dt: str, due_again: str) -> None:
        """Note that a partition is done. due_again: the date on which it is due once more; "" for never."""
        self.through = max(self.through, dt)
        self.due.pop(dt, None)
        if due_again:
            self.due[dt] = due_again
        self.resumes.pop(dt, None)


@dataclass(frozen=True, slots=True)
class AgeSpan:
    """The span of instants in which rows are old enough, and are not deleted already."""

    column: str  # of the instant
    since: datetime | None  # the least value; None: any
    until: datetime  # values are before this one

    def select(self, rows: pa.Table) -> pa.Table:
        """Return the rows that are old enough."""
        is_old = pc.less(rows[self.column], pa.scalar(self.until))
        if self.since is not None:
            is_old = pc.and_(is_old, pc.greater_equal(rows[self.column], pa.scalar(self.since)))
        return rows.filter(is_old)

    def may_be_in(self, objects: Objects, stored: StoredObject) -> bool:
        """Whether a file may have such rows, by its footer alone. Raises NoObject."""
        metadata = pq.read_metadata(pa.BufferReader(footer_of(objects, stored.key)))
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        return any(self._meets(curated_files.column_bounds(group, self.column)) for group in groups)

    def _meets(self, bounds: ColumnBounds | None) -> bool:
        """Whether values between these bounds may lie in the span. None: the bounds are not known."""
        if bounds is None:
            return True
        return bounds.least < self.until and (self.since is None or bounds.greatest >= self.since)


def old_rows(objects: Objects, entity: str, stored: StoredObject, ages: AgeSpan) -> Iterator[list[Row]]:
    """Yield the rows that are old enough of each 2,000 rows of a file; a list may be empty.

    Raises NoObject if the file is gone.
    """
    if not ages.may_be_in(objects, stored):
        return
    names = [*(field.name for field in ENTITIES[entity].fields), EXTRA]
    with TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        objects.save(stored.key, path)
        file = pq.ParquetFile(path)
        columns = set(file.schema_arrow.names)
        for batch in file.iter_batches(BATCH_ROWS, columns=[name for name in names if name in columns]):
            rows = curated_files.as_declared(pa.Table.from_batches([batch]), entity, names)
            yield ages.select(rows).to_pylist()


def next_instant_to_age(
    objects: Objects, entity: str, files: Sequence[StoredObject], ages: AgeSpan
) -> datetime | None:
    """Return the oldest instant of the rows that are not old enough yet; None: all rows are old enough."""
    younger = AgeSpan(ages.column, ages.until, datetime.max.replace(tzinfo=UTC))
    oldest_of_files = []
    for stored in files:
        if not younger.may_be_in(objects, stored):
            continue
        instants = curated_files.read_file(objects, entity, stored, [ages.column])[ages.column]
        oldest = pc.min(instants.filter(pc.greater_equal(instants, pa.scalar(ages.until)))).as_py()
        if oldest is not None:
            oldest_of_files.append(oldest)
    return min(oldest_of_files, default=None)


class OutOfTime(Exception):
    """The call has no more time. The next call continues."""


@dataclass(slots=True)
class RetentionPass:
    """One rule in one night."""

    objects: Objects
    rule: RetentionRule
    run_id: str
    today: date
    curated_tonight: Collection[Partition]
    has_time: Callable[[], bool] = lambda: True  # whether the call may go on
    removals: RemovalCounts = field(default_factory=RemovalCounts)  # of this call

    def run(self) -> bool:
        """Continue where the last call has ended; returns whether all is done.

        It is safe to repeat. Raises NoObject if somebody replaces a file while it is read.
        """
        today = self.today.isoformat()
        state = RetentionState.read(self.objects, self.rule.name, today)
        curated_dates = {
            partition.last_dt for partition in self.curated_tonight if partition.entity == self.rule.entity
        }
        state.begin(self.run_id, curated_dates, today)
        state.save(self.objects)
        try:
            for dt in sorted(self._dates(state)):
                self._process_date(state, dt)
        except OutOfTime:
            return False
        return True

    def _dates(self, state: RetentionState) -> set[str]:
        """Return the dates of the partitions to read: those to read again today, and those never read."""
        today, last_old = self.today.isoformat(), (self._first_young_date() - DAY).isoformat()
        dates = {dt for dt, again_on in state.due.items() if again_on <= today and dt <= last_old}
        first_unread = (date.fromisoformat(state.through) + DAY).isoformat() if state.through else None
        if first_unread is None or first_unread <= last_old:
            files = layout.curated_files(self.objects, self.rule.entity, first_unread, last_old)
            dates |= {dt for dt in map(curated_files.date_of, files) if dt <= last_old}
        return dates

    def _first_young_date(self) -> date:
        """Return the first date of which no row is old enough."""
        return self.today - timedelta(days=self.rule.days)

    def _process_date(self, state: RetentionState, dt: str) -> None:
        """Remove the data of a partition's old rows, and note when its younger rows are old enough."""
        files = layout.curated_files(self.objects, self.rule.entity, dt, dt)
        progress = self._progress(state, dt, files)
        ages = self._due_span(state, progress.until)
        for stored in files[progress.files :]:
            self._process_file(state, dt, progress, stored, ages)
            progress = replace(progress, files=progress.files + 1, batches=0)
        young = next_instant_to_age(self.objects, self.rule.entity, files, ages)
        read_again_on = (young.date() + timedelta(days=self.rule.days + 1)).isoformat() if young else ""
        state.note_done(dt, read_again_on)
        state.save(self.objects)

    def _progress(self, state: RetentionState, dt: str, files: list[StoredObject]) -> Resume:
        """Return where to begin in a partition of these files."""
        partition = curated_files.etags_digest({self.rule.entity: files}, date.max)
        first_young = self._first_young_date().isoformat()
        resume = state.resumes.get(dt)
        if resume is None or resume.partition != partition:
            return Resume(partition, first_young, 0, 0)
        # Rows that have become old since then wait for the next reading, because some batches are done.
        return replace(resume, until=min(resume.until, first_young))

    def _due_span(self, state: RetentionState, until: str) -> AgeSpan:
        """Return the span of the rows that are due. DynamoDB has deleted older items that had a TTL."""
        since = None
        if self.rule.had_ttl:
            since = _begin(date.fromisoformat(state.began) - timedelta(days=TTL_DAYS))
        return AgeSpan(self.rule.age, since, _begin(date.fromisoformat(until)))

    def _process_file(
        self, state: RetentionState, dt: str, progress: Resume, stored: StoredObject, ages: AgeSpan
    ) -> None:
        for number, rows in enumerate(old_rows(self.objects, self.rule.entity, stored, ages)):
            if number < progress.batches:
                continue
            if not self.has_time():
                state.resumes[dt] = replace(progress, batches=number)
                state.save(self.objects)
                raise OutOfTime
            self.removals += self.rule.remove(rows)


def _begin(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
