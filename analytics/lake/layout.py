"""Where things are in the lake's bucket, and which curated files a reader takes.

raw/{entity}/dt=YYYY-MM-DD/hour=HH/NAME             a row a line, packed records or plain rows, gzip or not
raw/{entity}/any other name                         no hour's: all lines are refused, and counted for NOWHERE
curated/{entity}/dt=YYYY-MM-DD/hour-HH.parquet      an hour; or day.parquet: the whole day
quarantine/{entity}/dt=.../hour=HH/NAME.ndjson      the refused lines of one raw object
state/watermark.json, state/ledgers_compared.json, runs/{run_id}/NAME, reports/{run_id}.*
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from adapters.platform.objects import Objects, StoredObject

HOURS = "24"
RAW, CURATED, QUARANTINE = "raw/", "curated/", "quarantine/"
WATERMARK = "state/watermark.json"
LEDGERS_COMPARED = "state/ledgers_compared.json"
_RAW = re.compile(r"raw/(\w+)/dt=(\d{4}-\d{2}-\d{2})/hour=(\d{2})/(.+)", re.ASCII)
_CURATED = re.compile(r"curated/(\w+)/dt=(\d{4}-\d{2}-\d{2})/(?:hour-(\d{2})|day)\.parquet", re.ASCII)
# The date that stands for no date: raw objects under an impossible hour are accounted for there.
NOWHERE = "0001-01-01"
DAYS_LISTED_MAX = 62  # a longer range is listed in one go, which is then cheaper than one listing per day


@dataclass(frozen=True, slots=True)
class Place:
    """A partition. dt is YYYY-MM-DD; hour is HH (UTC), or None for the whole day."""

    entity: str
    dt: str
    hour: str | None


def raw_prefix(entity: str, dt: str = "", hour: str | None = None) -> str:
    """Return the prefix of an entity's raw objects: of all, of a day, or of an hour."""
    day = f"dt={dt}/" if dt else ""
    return f"{RAW}{entity}/{day}" + (f"hour={hour}/" if hour is not None else "")


def raw_place(key: str) -> Place | None:
    """Return the hour that a raw object belongs to; None for a key of another form, or an impossible hour."""
    match = _RAW.fullmatch(key)
    place = Place(*match.groups()[:3]) if match else None
    return place if place and _is_real(place) else None


def nowhere(entity: str) -> Place:
    """Return where an entity's raw objects that belong to no hour are accounted for."""
    return Place(entity, NOWHERE, None)


def _is_real(place: Place) -> bool:
    try:
        date.fromisoformat(place.dt)
    except ValueError:
        return False
    return place.dt != NOWHERE and (place.hour or "00") < HOURS


def source_name(key: str) -> str:
    """Return a raw object's name within its day: hour=HH/NAME. That of no hour's is all behind the entity."""
    return key.split("/", 3)[3] if raw_place(key) else key.split("/", 2)[2]


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
    return place if place and (_is_real(place) or place == nowhere(place.entity)) else None


def quarantine_key(raw_key: str) -> str:
    """Return the key of the file that takes a raw object's refused lines."""
    return f"{QUARANTINE}{raw_key.removeprefix(RAW)}.ndjson"


def raw_key(quarantine_key: str) -> str:
    """Return the key of the raw object that a quarantine file has lines of."""
    return f"{RAW}{quarantine_key.removeprefix(QUARANTINE).removesuffix('.ndjson')}"


def run_key(run_id: str, name: str) -> str:
    """Return the key of a file that one nightly run keeps for itself."""
    return f"runs/{run_id}/{name}"


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
    found: dict[str, list[tuple[Place, StoredObject]]] = {}
    for prefix in _prefixes(entity, since_dt, until_dt):
        for stored in objects.list(prefix):
            place = curated_place(stored.key)
            if place and (since_dt or "") <= place.dt <= (until_dt or date.max.isoformat()):
                found.setdefault(place.dt, []).append((place, stored))
    return [stored for files in found.values() for stored in _of_day(files)]


def _of_day(files: list[tuple[Place, StoredObject]]) -> list[StoredObject]:
    whole = [stored for place, stored in files if place.hour is None]
    return whole or [stored for _, stored in files]


def _prefixes(entity: str, since_dt: str | None, until_dt: str | None) -> list[str]:
    if since_dt and until_dt:
        dates = list(dates_between(since_dt, until_dt))
        if len(dates) <= DAYS_LISTED_MAX:
            return [curated_prefix(entity, dt) for dt in dates]
    return [curated_prefix(entity)]


def dates_between(since_dt: str, until_dt: str) -> Iterator[str]:
    """Yield the dates from one to another, both included."""
    day, last = date.fromisoformat(since_dt), date.fromisoformat(until_dt)
    while day <= last:
        yield day.isoformat()
        day += timedelta(days=1)
