"""How many shares a night's comparison has, from when on each compares, and what is split among them.

A share has its own watermark and its own settled users. So one that failed is taken up by the next night,
from where it was, and the others go on.
"""

import json
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, cached_property, partial
from typing import Any

from adapters.platform.objects import NoObject, Objects, StoredObject
from analytics.lake.curated_files import date_of
from analytics.lake.layout import LEDGERS_COMPARED, run_key
from analytics.recompute.lake_days import first_partition, oldest_date
from analytics.recompute.settled_users import (
    FOLDED,
    FOLDER,
    SETTLED_AFTER,
    Files,
    UserShare,
    etags_digest,
    lake_files,
    settled_until,
)
from rules.engagement.reconciliation import LAKE_LAG, shares_for

# When each share was compared with the lake before: state/ledgers_compared.json.


def read_compared(objects: Objects) -> list[str | None]:
    """Return when each share's ledgers were compared with the lake before; an empty list: never."""
    try:
        held = json.loads(objects.get(LEDGERS_COMPARED))["compared_at"]
    except NoObject:
        return []
    return held if isinstance(held, list) else [held]


def compared_before(compared: list[str | None], share: UserShare) -> datetime | None:
    """Return when a share was compared; None: never. Of other numbers, the oldest that it meets."""
    met = [
        each
        for number, each in enumerate(compared)
        if number * share.of // len(compared) == share.number
        or share.number * len(compared) // share.of == number
    ]
    return None if not met or None in met else min(datetime.fromisoformat(each) for each in met if each)


def note_compared(objects: Objects, shares: int, now: datetime, failed: Collection[int]) -> None:
    """Note that all ledgers whose turn it was have been compared, but for the shares that failed."""
    compared = read_compared(objects)
    at = [
        _text(compared_before(compared, UserShare(number, shares))) if number in failed else _text(now)
        for number in range(shares)
    ]
    objects.put(LEDGERS_COMPARED, json.dumps({"compared_at": at}).encode())


def _text(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


PLAN, FILES = FOLDER + "plan.json", FOLDER + "files.json"
SPLITS, SHARES = FOLDER + "splits.json", FOLDER + "shares.json"
# Of a history, so much more than of the last days is no reason for another share.
HISTORY = 512
BATCH_BYTES = 64 * 2**20  # of curated files that one call splits
SCANS_MIN = 4
SHARES_A_SCAN = 2  # one call scans for so many shares
READERS = 16
ONE_DAY = timedelta(days=1)


@dataclass(frozen=True)
class NightPlan:
    """at: up to when the night compares. span: first and last activity date to compare, if given.

    before: for each share, when it was compared last. after: by entity, for each share, the last partition
    that it does not need ("": it needs all).
    """

    run_id: str
    at: datetime
    shares: int
    everybody: bool
    span: tuple[date, date] | None
    before: list[datetime | None]
    after: dict[str, list[str]]

    @cached_property
    def compares_all_days(self) -> bool:
        """Whether any share compares all days, those that the lake does not know included."""
        return self.span is None and None in self.before

    def save(self, objects: Objects) -> None:
        """Store the plan for the steps that follow."""
        objects.put(run_key(self.run_id, PLAN), json.dumps(asdict(self), default=str).encode())

    @classmethod
    def load(cls, objects: Objects, run_id: str) -> "NightPlan":
        """Read a run's plan. Raises NoObject if there is none."""
        held = json.loads(objects.get(run_key(run_id, PLAN)))
        span = tuple(map(date.fromisoformat, held["span"])) if held["span"] else None
        before = [each and datetime.fromisoformat(each) for each in held["before"]]
        return cls(**{**held, "at": datetime.fromisoformat(held["at"]), "span": span, "before": before})


def plan_night(
    objects: Objects, now: datetime, share_bytes: int, event: Mapping[str, Any]
) -> tuple[NightPlan, list[dict[str, Any]]]:
    """Plan and store a night's comparison; returns it, and what is to be split.

    share_bytes: of curated files of the last days that one share is for. event: `run_id`, and the run's
    `everybody`, `from` and `to`. One share is not split.
    """
    run_id = event["run_id"]
    files, everybody = lake_files(objects), event.get("everybody") is True
    compared = read_compared(objects)
    shares = shares_for(_parts(files, now.date(), share_bytes), len(compared) if compared else None)
    span = None
    if event.get("from") and event.get("to"):
        span = (date.fromisoformat(event["from"]), date.fromisoformat(event["to"]))
    before = [None if everybody else compared_before(compared, UserShare(n, shares)) for n in range(shares)]
    after = _after(objects, files, before, span, everybody=everybody) if shares > 1 else {}
    plan = NightPlan(run_id, now, shares, everybody, span, before, after)
    plan.save(objects)
    _save_files(objects, run_id, files)
    return plan, _splits(plan, files) if shares > 1 else []


def _parts(files: Files, today: date, share_bytes: int) -> float:
    """Return how many shares the night's reading would fill."""
    settled = (today - SETTLED_AFTER).isoformat()
    every = [each for some in files.values() for each in some]
    late = sum(each.size for each in every if date_of(each) > settled)
    return max(late, sum(each.size for each in every) / HISTORY) / share_bytes


def _untils(objects: Objects, files: Files, shares: list[UserShare]) -> list[date | None]:
    digest = cache(partial(etags_digest, files))  # most shares are settled up to one date
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(lambda each: settled_until(objects, digest, each), shares))


def _after(
    objects: Objects,
    files: Files,
    before: list[datetime | None],
    span: tuple[date, date] | None,
    *,
    everybody: bool,
) -> dict[str, list[str]]:
    """Return by entity, for each share, the last partition that neither fold nor comparison needs."""
    shares = [UserShare(number, len(before)) for number in range(len(before))]
    untils = _untils(objects, files, shares)
    folded = ["" if everybody or until is None else until.isoformat() for until in untils]
    compared = []
    for each in before:
        since = span[0] if span else each and oldest_date(each - LAKE_LAG)
        compared.append((first_partition(since) - ONE_DAY).isoformat() if since else "")
    return {entity: list(map(min, folded, compared)) if entity == "ledger" else folded for entity in files}


def _splits(plan: NightPlan, files: Files) -> list[dict[str, Any]]:
    """Return the input of each call that splits: some files of an entity, or a segment of a table."""
    found: list[dict[str, Any]] = []
    for entity, some in files.items():
        keys: list[str] = []
        size = 0
        for each in some:
            if date_of(each) <= min(plan.after[entity]):
                continue
            if keys and size + each.size > BATCH_BYTES:
                found.append({"what": entity, "keys": keys})
                keys, size = [], 0
            keys.append(each.key)
            size += each.size
        if keys:
            found.append({"what": entity, "keys": keys})
    segments = max(SCANS_MIN, plan.shares // SHARES_A_SCAN)
    for table in ("profiles", "days") if plan.compares_all_days else ("profiles",):
        found += [{"what": table, "segment": number, "segments": segments} for number in range(segments)]
    return found


def _save_files(objects: Objects, run_id: str, files: Files) -> None:
    rows = [(entity, each.key, each.size, each.etag) for entity, some in files.items() for each in some]
    objects.put(run_key(run_id, FILES), json.dumps(rows).encode())


def planned_files(objects: Objects, run_id: str) -> Files:
    """Return the curated files as the plan found them, by entity."""
    found: dict[str, list[StoredObject]] = {}
    for entity, key, size, etag in json.loads(objects.get(run_key(run_id, FILES))):
        found.setdefault(entity, []).append(StoredObject(key, size, etag, datetime.min.replace(tzinfo=UTC)))
    return {entity: found.get(entity, []) for entity in FOLDED}
