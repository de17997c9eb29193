"""A night's work in the warehouse, item by item: loads, then models, then the models' tests.

An item that fails hinders those that need it and no others. What came of each is stored
(runs/{run_id}/warehouse.json) before the next begins, so a call of the function does what its time allows and
the next call goes on. An item has 13 minutes of its own: it begins only in a call's first 100 s. One that
killed its function is found begun, is reported as failed, and is not tried again.
"""

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import date, datetime, timedelta
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import WAREHOUSE_ASKED, WAREHOUSE_RESULT, run_key
from rules.turns import NIGHTS

BEGIN_SECONDS_MAX = 100.0  # after the call's start
NIGHT_MAX = timedelta(hours=4)  # the state machine has six
REASON_MAX = 600  # characters
ENDED = "its function ended without an answer: too slow, or out of memory"
SUNDAY = 6
QUIET_MAX = timedelta(days=NIGHTS)
MADE_BY = ("analytics", "rules", "sql")  # what tables, models and tests follow from


class Kind(StrEnum):
    """What an item does; items are done in this order."""

    LOAD = "load"
    FORGET = "forget"
    MODEL = "model"
    TEST = "test"


class State(StrEnum):
    """What came of an item."""

    WAITING = "waiting"
    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(slots=True)
class Item:
    """What a night does to one entity or model."""

    kind: Kind
    name: str  # an entity or a model
    state: State = State.WAITING
    reason: str = ""
    seconds: float = 0.0
    # Tests that failed, as model_tests.Failure has them
    found: list[dict[str, Any]] = field(default_factory=list)


Needs = Callable[[Item], Collection[str]]


@dataclass(slots=True)
class WarehouseNight:
    """A night's work in the warehouse."""

    run_id: str
    began: str  # when
    full: bool  # models are built anew
    full_tests: bool  # all rows are tested
    items: list[Item]
    # The run since which there is nothing to do, so that the warehouse is not asked; "": it is
    quiet_since: str = ""

    @classmethod
    def read(cls, objects: Objects, run_id: str) -> "WarehouseNight | None":
        """Return what an earlier call has left; None if this is the first one."""
        try:
            fields = json.loads(objects.get(run_key(run_id, WAREHOUSE_RESULT)))
        except NoObject:
            return None
        items = [
            Item(**each | {"kind": Kind(each["kind"]), "state": State(each["state"])})
            for each in fields["items"]
        ]
        return cls(**fields | {"items": items})

    def save(self, objects: Objects) -> None:
        """Store what has come of it so far. It is stored before each item: copies and indents took 20 ms."""
        fields = {night_field: getattr(self, night_field) for night_field in NIGHT_FIELDS}
        items = [{item_field: getattr(item, item_field) for item_field in ITEM_FIELDS} for item in self.items]
        objects.put(run_key(self.run_id, WAREHOUSE_RESULT), json.dumps(fields | {"items": items}).encode())

    def of(self, *states: State) -> list[Item]:
        """Return the items in one of these states."""
        return [item for item in self.items if item.state in states]


ITEM_FIELDS, NIGHT_FIELDS = ([each.name for each in fields(shape)] for shape in (Item, WarehouseNight))


def items_of(entities: Iterable[str], models: Iterable[str], *, forgets: bool = False) -> list[Item]:
    """Return the items of a night. models: in the order of their dependencies.

    forgets: rows of persons are to leave it, after what stays of them is loaded.
    """
    names = list(models)
    return [
        *(Item(Kind.LOAD, entity) for entity in sorted(entities)),
        *([Item(Kind.FORGET, "erased persons")] if forgets else []),
        *(Item(Kind.MODEL, name) for name in names),
        *(Item(Kind.TEST, name) for name in names),
    ]


def work(
    night: WarehouseNight,
    needs: Needs,
    do: Callable[[Item], bool],
    objects: Objects,
    now: Callable[[], datetime],
) -> int:
    """Do as many items as one call has time for; returns how many are left for the next.

    needs: models without which an item makes no sense. do: does one item; False: a part, the rest waits.
    """
    for each in night.of(State.BEGUN):
        each.state, each.reason = State.FAILED, ENDED
    end = None
    for item in _in_order(night, needs, now):
        if end and time.monotonic() > end:
            break
        end = end or time.monotonic() + BEGIN_SECONDS_MAX
        item.state = State.BEGUN
        night.save(objects)
        _do(item, do)
    night.save(objects)
    return len(night.of(State.WAITING))


def _in_order(night: WarehouseNight, needs: Needs, now: Callable[[], datetime]) -> Iterator[Item]:
    while waiting := night.of(State.WAITING):
        item = waiting[0]
        if now() - datetime.fromisoformat(night.began) > NIGHT_MAX:
            item.state, item.reason = State.SKIPPED, f"the night's {NIGHT_MAX} were over"
        elif hindrance := _hindrance(item, night, needs):
            item.state, item.reason = State.SKIPPED, f"{hindrance} was not built"
        else:
            yield item


def _hindrance(item: Item, night: WarehouseNight, needs: Needs) -> str | None:
    """Return the first model without which an item makes no sense, and that was not built tonight."""
    if item.kind is Kind.LOAD:
        return None
    if item.kind is Kind.FORGET:
        return next((each.name for each in night.of(State.FAILED) if each.kind is Kind.LOAD), None)
    missing = {each.name for each in night.of(State.FAILED, State.SKIPPED) if each.kind is Kind.MODEL}
    failed = {each.name for each in night.of(State.FAILED)}
    return min(missing.intersection(needs(item)), key=lambda name: (name not in failed, name), default=None)


def _do(item: Item, do: Callable[[Item], bool]) -> None:
    start = time.monotonic()
    try:
        item.state = State.DONE if do(item) else State.WAITING
    except Exception as error:  # noqa: BLE001 (whatever it is, the other items go on)
        item.state, item.reason = State.FAILED, f"{type(error).__name__}: {error}"[:REASON_MAX]
    item.seconds = round(item.seconds + time.monotonic() - start, 2)


# Whether a night has anything to do in the warehouse, which wakes when it is asked: the lake's notes say.
#
# state/warehouse.json is of the run that asked last. If its report was whole and found nothing there, and
# nothing has come since, then its tables, models and tests are what they would be made again: a model depends
# on rows alone, and on no date. Slices of leads and users that are compared by turns have one in 28 nights,
# so a warehouse is asked again after as many.


PACKAGED = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class LastWarehouseRun:
    """The newest run of the warehouse."""

    run_id: str
    at: str  # when it began
    version: str  # by which code (see `version`)
    is_settled: bool = False  # it left nothing to be done
    are_all_tested: bool = False  # the tests were of all rows
    curation: list[dict[str, Any]] = field(default_factory=list)  # the report's counts by entity

    @classmethod
    def read(cls, objects: Objects) -> "LastWarehouseRun | None":
        """Return what is noted; None if no run has asked yet."""
        try:
            return cls(**json.loads(objects.get(WAREHOUSE_ASKED)))
        except NoObject:
            return None

    def save(self, objects: Objects) -> None:
        """Store it."""
        objects.put(WAREHOUSE_ASKED, json.dumps(asdict(self)).encode())

    def is_of(self, version: str, today: date) -> bool:
        """Whether the warehouse is still what this run has left, as far as code and dates can tell."""
        is_tested = self.are_all_tested or today.weekday() != SUNDAY
        is_young = today - datetime.fromisoformat(self.at).date() < QUIET_MAX
        return self.is_settled and self.version == version and is_tested and is_young


def settle(objects: Objects, run_id: str, curation: list[dict[str, Any]]) -> None:
    """Note that a run has left nothing to be done, unless it did not ask, or another one has since."""
    last, night = LastWarehouseRun.read(objects), WarehouseNight.read(objects, run_id)
    if last and night and last.run_id == run_id:
        last.is_settled, last.are_all_tested, last.curation = True, night.full_tests, curation
        last.save(objects)


@cache
def version(url: str, grace_days: int) -> str:
    """Return a digest of the code that fills a warehouse, of its setting, and of where that is."""
    digest = hashlib.sha256(f"{url} {grace_days}".encode())
    for folder in MADE_BY:
        for path in sorted((PACKAGED / folder).rglob("*")):
            if path.suffix in (".py", ".sql", ".yml"):
                digest.update(f"\0{path.relative_to(PACKAGED)}\0".encode() + path.read_bytes())
    return digest.hexdigest()
