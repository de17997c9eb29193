"""The keys of the lake's bucket, and the curated files that a reader takes.

raw/{entity}/arrived=YYYY-MM-DD/dt=.../hour=HH/NAME  a row a line, packed records or plain rows, gzip or not
raw/{entity}/any other name                          a stray: nobody reads it, each night's report names it
curated/{entity}/dt=YYYY-MM-DD/hour-HH.parquet       an hour
curated/{entity}/dt=YYYY-MM-DD/day.parquet           a whole day
quarantine/{entity}/dt=.../hour=HH/arrived=.../NAME.ndjson  the refused lines of one raw object
state/NAME                                           one nightly run's state for the next: constants below
state/users/OF/NUMBER.parquet                        a share of the users, of so many
runs/{run_id}/NAME                                   files of one run's steps for each other
runs/{run_id}/shares/NUMBER/NAME                     the results of one share of the users
reports/{run_id}.*                                   a run's report
"""

import re
from collections.abc import Iterator
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
_CURATED = re.compile(r"curated/(\w+)/dt=(\d{4}-\d{2}-\d{2})/(?:hour-(\d{2})|day)\.parquet", re.ASCII)
# Of events that a door takes (rules.days.is_stamp). No other date takes part in anything.
FIRST_DT, LAST_DT = "1970-01-01", "2999-12-31"
DAYS_LISTED_MAX = 62  # a longer range is listed in one go, which is then cheaper than one listing per day


@dataclass(frozen=True, slots=True)
class Place:
    """A partition. dt is YYYY-MM-DD; hour is HH (UTC), or None for the whole day."""

    entity: str
    dt: str
    hour: str | None


def raw_prefix(entity: str, arrived: str = "", dt: str = "", hour: str | None = None) -> str:
    """Return the prefix of an entity's raw objects: of all, or narrowed from left to right.

    arrived: the date (YYYY-MM-DD, UTC) on which they were stored. dt, hour: those of their rows.
    """
    arrival = f"arrived={arrived}/" if arrived else ""
    return f"{RAW}{entity}/{arrival}{_partition_folder(dt, hour)}"


def _partition_folder(dt: str, hour: str | None) -> str:
    return (f"dt={dt}/" if dt else "") + (f"hour={hour}/" if hour is not None else "")


def raw_place(key: str) -> Place | None:
    """Return the hour that a raw object belongs to; None for a key of another form, or an impossible hour."""
    match = _RAW.fullmatch(key)
    place = Place(match[1], match[3], match[4]) if match and is_date(match[2]) else None
    return place if place and _is_real(place) else None


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


def _is_real(place: Place) -> bool:
    """Whether a place's date and hour exist."""
    return is_date(place.dt) and (place.hour or "00") < HOURS


def source_name(key: str) -> str:
    """Return a raw object's name within its day: hour=HH/arrived=.../NAME. source_key is the opposite.

    Raises ValueError for a stray.
    """
    match = _RAW.fullmatch(key)
    if match is None:
        raise ValueError(f"{key} is of no hour")
    return f"hour={match[4]}/arrived={match[2]}/{match[5]}"


def source_key(place: Place, name: str) -> str:
    """Return the key of the raw object that has a name (see source_name) within a partition's day."""
    return raw_key(quarantine_prefix(replace(place, hour=None)) + name + ".ndjson")


def curated_prefix(entity: str, dt: str = "") -> str:
    """Return the prefix of an entity's curated files: of all, or of a day."""
    return f"{CURATED}{entity}/" + (f"dt={dt}/" if dt else "")


def curated_key(place: Place) -> str:
    """Return the key of the one file of an hour, or of a whole day."""
    name = "day" if place.hour is None else f"hour-{place.hour}"
    return f"{curated_prefix(place.entity, place.dt)}{name}.parquet"


def curated_place(key: str) -> Place | None:
    """Return the hour or day that a curated file holds; None for a key of another form."""
    match = _CURATED.fullmatch(key)
    place = Place(*match.groups()) if match else None
    return place if place and _is_real(place) else None


def quarantine_key(raw_key: str) -> str:
    """Return the key of the file that takes a raw object's refused lines."""
    match = _RAW.fullmatch(raw_key)
    if match is None:
        raise ValueError(f"{raw_key} is of no hour")
    return f"{quarantine_prefix(Place(match[1], match[3], None))}{source_name(raw_key)}.ndjson"


def quarantine_prefix(place: Place) -> str:
    """Return the prefix of a partition's quarantine files."""
    return f"{QUARANTINE}{place.entity}/{_partition_folder(place.dt, place.hour)}"


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

    If a day has a day's file, the files of its hours are left out: an unfinished compaction left them there,
    and the day's file has all their rows.
    """
    files_by_date: dict[str, dict[Place, StoredObject]] = {}
    for prefix in _prefixes(entity, since_dt, until_dt):
        for stored in objects.list(prefix):
            place = curated_place(stored.key)
            if place and (since_dt or "") <= place.dt <= (until_dt or date.max.isoformat()):
                files_by_date.setdefault(place.dt, {})[place] = stored
    chosen: list[StoredObject] = []
    for dt, files in files_by_date.items():
        day = files.get(Place(entity, dt, None))
        chosen += [day] if day else files.values()
    return chosen


def _prefixes(entity: str, since_dt: str | None, until_dt: str | None) -> list[str]:
    """Return the prefixes whose listings have all curated files of these days."""
    if since_dt and until_dt:
        dates = list(dates_between(since_dt, until_dt))
        if len(dates) <= DAYS_LISTED_MAX:
            return [curated_prefix(entity, dt) for dt in dates]
    return [curated_prefix(entity)]


def dates_prefix(since_dt: str, until_dt: str) -> str:
    """Return the common prefix of these dates' folders, such as dt=2026-0. Other folders may have it, too."""
    # commonprefix compares characters, which is right here: dates have no folders.
    return f"dt={commonprefix([since_dt, until_dt])}"  # noqa: RUF071


def dates_between(since_dt: str, until_dt: str) -> Iterator[str]:
    """Yield the dates from one to another, both included."""
    day, last = date.fromisoformat(since_dt), date.fromisoformat(until_dt)
    while day <= last:
        yield day.isoformat()
        day += timedelta(days=1)
