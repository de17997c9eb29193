"""The keys of the lake's bucket, and the curated files that a reader takes.

raw/{entity}/arrived=YYYY-MM-DD/dt=.../hour=HH/NAME  a row a line, packed records or plain rows, gzip or not
raw/{entity}/any other name                          a stray: nobody reads it, each night's report names it
curated/{entity}/dt=YYYY-MM-DD/hour-HH.parquet       an hour
curated/{entity}/dt=YYYY-MM-DD/day.parquet           a whole day
curated/{entity}/dt=YYYY-MM/month.parquet            a whole month of the past, which has no other files
quarantine/{entity}/dt=.../hour=HH/arrived=.../NAME.ndjson  the refused lines of one raw object
state/NAME                                           one nightly run's state for the next: constants below
state/users/OF/NUMBER.parquet                        a share of the users, of so many
runs/{run_id}/NAME                                   files of one run's steps for each other
runs/{run_id}/shares/NUMBER/NAME                     the results of one share of the users
reports/{run_id}.*                                   a run's report
"""

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from os.path import commonprefix

from adapters.platform.objects import Objects, StoredObject

HOURS = "24"  # of a day: an hour sorts before it
RAW, CURATED, QUARANTINE, RUNS = "raw/", "curated/", "quarantine/", "runs/"
WATERMARK = "state/watermark.json"
FAILED_TASKS = "state/failed_tasks.json"
LEDGERS_COMPARED = "state/ledgers_compared.json"
LEADS_COMPARED = "state/leads_compared.json"
ANSWERS_COMPARED, SETTLED_ANSWERS = "state/answers_compared.json", "state/answers.parquet"
UNLOADED = "state/unloaded/"
WAREHOUSE_ASKED = "state/warehouse.json"
WAREHOUSE_RESULT = "warehouse.json"  # of a run: the state of its work in the warehouse
REPORT_TITLE, REPORT_CELL_MAX = "# Run ", 120  # begins a report for people; characters of a cell in it
_RAW = re.compile(
    r"raw/(\w+)/arrived=(\d{4}-\d{2}-\d{2})/dt=(\d{4}-\d{2}-\d{2})/hour=(\d{2})/(.*[^/])", re.ASCII
)
_QUARANTINE = re.compile(r"quarantine/(\w+)/(dt=[^/]+/hour=\d{2}/)(arrived=[^/]+/)(.+)\.ndjson", re.ASCII)
_CURATED = re.compile(
    r"curated/(\w+)/dt=(\d{4}-\d{2}(?:-\d{2})?)/(?:hour-(\d{2})|day|month)\.parquet", re.ASCII
)
# Of events that a door takes (rules.days.is_stamp). No other date takes part in anything.
FIRST_DT, LAST_DT = "1970-01-01", "2999-12-31"
MONTHS_LISTED_MAX = 3  # a longer range is listed in one go, which is then cheaper than one listing per month
MONTH = len("2026-03")


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition: an hour, a day or a month.

    dt is YYYY-MM-DD, or YYYY-MM for a month; hour is HH (UTC), or None for the whole day or month.
    """

    entity: str
    dt: str
    hour: str | None

    @property
    def is_month(self) -> bool:
        """Whether it is a whole month."""
        return len(self.dt) == MONTH

    @property
    def month(self) -> "Partition":
        """The month in which it lies."""
        return Partition(self.entity, self.dt[:MONTH], None)

    @property
    def first_dt(self) -> str:
        """Its first date, YYYY-MM-DD."""
        return f"{self.dt}-01" if self.is_month else self.dt

    @property
    def last_dt(self) -> str:
        """Its last date, YYYY-MM-DD."""
        if not self.is_month:
            return self.dt
        year, month = map(int, self.dt.split("-"))
        return f"{self.dt}-{monthrange(year, month)[1]}"

    @property
    def wider(self) -> tuple["Partition", ...]:
        """The partitions that have it in them, the widest first: of an hour its month and its day."""
        if self.is_month:
            return ()
        return (self.month,) if self.hour is None else (self.month, replace(self, hour=None))

    def has_any_of(self, since_dt: str, until_dt: str) -> bool:
        """Whether it has a date from one to another, both included."""
        return self.first_dt <= until_dt and self.last_dt >= since_dt


def raw_prefix(entity: str, arrived: str = "", dt: str = "", hour: str | None = None) -> str:
    """Return the prefix of an entity's raw objects: of all, or narrowed from left to right.

    arrived: the date (YYYY-MM-DD, UTC) on which they were stored. dt, hour: those of their rows; a dt of
    YYYY-MM gives all days of this month.
    """
    arrival = f"arrived={arrived}/" if arrived else ""
    return f"{RAW}{entity}/{arrival}{_partition_folder(dt, hour)}"


def _partition_folder(dt: str, hour: str | None) -> str:
    if len(dt) == MONTH:
        return f"dt={dt}-"  # the folders of its days begin so
    return (f"dt={dt}/" if dt else "") + (f"hour={hour}/" if hour is not None else "")


def raw_partition(key: str) -> Partition | None:
    """Return the hour that a raw object belongs to; None for a key of another form, or an impossible hour."""
    match = _RAW.fullmatch(key)
    partition = Partition(match[1], match[3], match[4]) if match and is_date(match[2]) else None
    return partition if partition and _is_real(partition) else None


def arrival_date(key: str) -> str:
    """Return the date on which a raw object was stored; empty for a key of another form."""
    match = _RAW.fullmatch(key)
    return match[2] if match else ""


def is_date(dt: str) -> bool:
    """Whether a text is a date (YYYY-MM-DD) that the lake may have."""
    try:
        return date.fromisoformat(dt).isoformat() == dt and FIRST_DT <= dt <= LAST_DT
    except ValueError:
        return False


def _is_real(partition: Partition) -> bool:
    """Whether a partition's date and hour exist."""
    return is_date(partition.first_dt) and (partition.hour or "00") < HOURS


def source_name(key: str, partition: Partition) -> str:
    """Return a raw object's name for the bookkeeping of a partition's file. source_key is the opposite.

    It is hour=HH/arrived=.../NAME, with dt=YYYY-MM-DD/ before it in a month's file. Raises ValueError for a
    stray.
    """
    match = _RAW.fullmatch(key)
    if match is None:
        raise ValueError(f"{key} is of no hour")
    day = f"dt={match[3]}/" if partition.is_month else ""
    return f"{day}hour={match[4]}/arrived={match[2]}/{match[5]}"


def source_key(partition: Partition, name: str) -> str:
    """Return the key of the raw object that has a name (see source_name) in a partition's file."""
    day = "" if partition.is_month else _partition_folder(partition.dt, None)
    return raw_key(f"{QUARANTINE}{partition.entity}/{day}{name}.ndjson")


def curated_prefix(entity: str, dt: str = "") -> str:
    """Return the prefix of an entity's curated files: of all, or of a day's or month's partition."""
    return f"{CURATED}{entity}/" + (f"dt={dt}/" if dt else "")


def month_prefix(partition: Partition) -> str:
    """Return the prefix of all curated files of a partition's month: of its hours, its days, and its own."""
    return f"{curated_prefix(partition.entity)}dt={partition.dt[:MONTH]}"


def curated_key(partition: Partition) -> str:
    """Return the key of the one file of an hour, of a whole day, or of a whole month."""
    whole = "month" if partition.is_month else "day"
    name = whole if partition.hour is None else f"hour-{partition.hour}"
    return f"{curated_prefix(partition.entity, partition.dt)}{name}.parquet"


def curated_partition(key: str) -> Partition | None:
    """Return the hour, day or month that a curated file holds; None for a key of another form."""
    match = _CURATED.fullmatch(key)
    partition = Partition(*match.groups()) if match else None
    return partition if partition and _is_real(partition) and curated_key(partition) == key else None


def quarantine_key(raw_key: str) -> str:
    """Return the key of the file that takes a raw object's refused lines."""
    match = _RAW.fullmatch(raw_key)
    if match is None:
        raise ValueError(f"{raw_key} is of no hour")
    partition = Partition(match[1], match[3], None)
    return f"{quarantine_prefix(partition)}{source_name(raw_key, partition)}.ndjson"


def quarantine_prefix(partition: Partition) -> str:
    """Return the prefix of a partition's quarantine files."""
    return f"{QUARANTINE}{partition.entity}/{_partition_folder(partition.dt, partition.hour)}"


def raw_key(quarantine_key: str) -> str:
    """Return the key of the raw object whose refused lines a quarantine file has; "" for another object."""
    match = _QUARANTINE.fullmatch(quarantine_key)
    if match is None:
        return ""
    entity, hour, arrival, name = match.groups()
    return f"{RAW}{entity}/{arrival}{hour}{name}"


def run_key(run_id: str, name: str) -> str:
    """Return the key of a file that one nightly run keeps for itself."""
    return f"{RUNS}{run_id}/{name}"


def run_of(key: str) -> str:
    """Return the id of the run in a key that run_key has made."""
    return key.removeprefix(RUNS).partition("/")[0]


def report_key(run_id: str, suffix: str) -> str:
    """Return the key of a nightly run's report; suffix: json or md."""
    return f"reports/{run_id}.{suffix}"


def curated_files(
    objects: Objects, entity: str, since_dt: str | None = None, until_dt: str | None = None
) -> list[StoredObject]:
    """Return the files to read for an entity's rows of these days (both included), by key.

    A file of a month may have rows of other days, too. If a day has a day's file, the files of its hours are
    left out: an unfinished compaction left them there, and the day's file has all their rows. So it is with
    the files beside a month's.
    """
    files: dict[Partition, StoredObject] = {}
    for prefix in _prefixes(entity, since_dt, until_dt):
        for stored in objects.list(prefix):
            partition = curated_partition(stored.key)
            if partition and partition.has_any_of(since_dt or "", until_dt or date.max.isoformat()):
                files[partition] = stored
    return list(without_parts(files).values())


def without_parts(files: Mapping[Partition, StoredObject]) -> dict[Partition, StoredObject]:
    """Return the files that have all rows: those of an hour or a day are left out beside a wider one's."""
    return {partition: file for partition, file in files.items() if files.keys().isdisjoint(partition.wider)}


def _prefixes(entity: str, since_dt: str | None, until_dt: str | None) -> list[str]:
    """Return the prefixes whose listings have all curated files of these days."""
    if since_dt and until_dt:
        months = sorted({dt[:MONTH] for dt in dates_between(since_dt, until_dt)})
        if len(months) <= MONTHS_LISTED_MAX:
            return [month_prefix(Partition(entity, month, None)) for month in months]
    return [curated_prefix(entity)]


def dates_prefix(since_dt: str, until_dt: str) -> str:
    """Return the common prefix of the folders of these dates and of their months, such as dt=2026-0.

    Other folders may have it, too.
    """
    # commonprefix compares characters, which is right here: dates have no folders.
    return f"dt={commonprefix([since_dt[:MONTH], until_dt[:MONTH]])}"  # noqa: RUF071


def dates_between(since_dt: str, until_dt: str) -> Iterator[str]:
    """Yield the dates from one to another, both included."""
    day, last = date.fromisoformat(since_dt), date.fromisoformat(until_dt)
    while day <= last:
        yield day.isoformat()
        day += timedelta(days=1)
