"""A night's work in the warehouse, item by item: loads, then models, then the models' tests.

An item that fails hinders only those that need it. The state of all items is stored
(runs/{run_id}/warehouse.json) before each one, so a call of the function does what its time allows, and the
next call goes on. An item begins only in a call's first 100 s, so it has 13 minutes. If an item ends its
function, the next call finds it begun, reports it as failed, and does not try it again.

The warehouse wakes when it is asked, and costs money then. So a night does not ask if the last run that
asked (state/warehouse.json) left nothing to do and no rows have come since: a model depends on rows alone,
and on no date. Slices of leads and users are compared in turn, each once in 28 nights, so after 28 nights
without a question the warehouse is asked again.
"""

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from adapters.platform.objects import NoObject, Objects
from adapters.settings.choices import ModelSettings
from analytics.lake.layout import WAREHOUSE_ASKED, WAREHOUSE_RESULT, run_key
from rules.parts import ALL_PARTS, Part
from rules.turns import NIGHTS

BEGIN_SECONDS_MAX = 100.0  # an item begins at most so long after a call's first one
NIGHT_MAX = timedelta(hours=4)  # no item begins later; the state machine has six hours for the whole night
REASON_MAX = 600  # characters
ENDED = "its function ended without an answer: too slow, or out of memory"
SUNDAY = 6
QUIET_MAX = timedelta(days=NIGHTS)  # after so long the warehouse is asked again
PACKAGED = Path(__file__).resolve().parents[2]
MADE_BY = ("analytics", "rules", "sql")  # the folders whose files make tables, models and tests


class Kind(StrEnum):
    """What an item does; items are done in this order."""

    LOAD = "load"  # loads an entity's curated files
    FORGET = "forget"  # deletes the rows of erased persons
    MODEL = "model"  # builds a model
    TEST = "test"  # runs a model's tests


class State(StrEnum):
    """The state of an item."""

    WAITING = "waiting"
    BEGUN = "begun"  # a call is doing it, or has ended without an answer
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"  # something that it needs failed, or the night was over


@dataclass(slots=True)
class Item:
    """One piece of a night's work: what it does with one entity or model."""

    kind: Kind
    name: str  # an entity or a model
    state: State = State.WAITING
    reason: str = ""  # why it failed or was skipped
    seconds: float = 0.0
    # The tests that failed, each with the fields of models.Failure
    found: list[dict[str, Any]] = field(default_factory=list)


# Returns the names of the models that must be built before an item is done.
Needs = Callable[[Item], Collection[str]]


@dataclass(slots=True)
class WarehouseNight:
    """A night's work in the warehouse."""

    run_id: str
    began: str  # an instant, ISO 8601
    full: bool  # whether all models are built anew
    full_tests: bool  # whether all rows are tested, not only those that came since the tests held last
    items: list[Item]
    # The run since which there is nothing to do, so that the warehouse is not asked; "": it is asked
    quiet_since: str = ""

    @classmethod
    def read(cls, objects: Objects, run_id: str) -> "WarehouseNight | None":
        """Return the state that an earlier call of the run has stored; None if this is the first call."""
        try:
            night = json.loads(objects.get(run_key(run_id, WAREHOUSE_RESULT)))
        except NoObject:
            return None
        items = [
            Item(**item | {"kind": Kind(item["kind"]), "state": State(item["state"])})
            for item in night["items"]
        ]
        return cls(**night | {"items": items})

    def save(self, objects: Objects) -> None:
        """Store the state of the night and of all its items."""
        # It is stored after each item. dataclasses.asdict would copy all items each time.
        text = json.dumps(self, default=lambda part: {name: getattr(part, name) for name in part.__slots__})
        objects.put(run_key(self.run_id, WAREHOUSE_RESULT), text.encode())

    def of(self, *states: State) -> list[Item]:
        """Return the items in one of these states."""
        return [item for item in self.items if item.state in states]


def items_of(entities: Iterable[str], models: Iterable[str], *, forgets: bool = False) -> list[Item]:
    """Return the items of a night. models: in the order of their dependencies.

    forgets: whether rows of erased persons are to be deleted, once their residues are loaded.
    """
    names = list(models)
    return [
        *(Item(Kind.LOAD, entity) for entity in sorted(entities)),
        *([Item(Kind.FORGET, "erased persons")] if forgets else []),
        *(Item(Kind.MODEL, name) for name in names),
        *(Item(Kind.TEST, name) for name in names),
    ]


def do_items(
    night: WarehouseNight,
    needs: Needs,
    do: Callable[[Item], bool],
    objects: Objects,
    now: Callable[[], datetime],
) -> int:
    """Do as many items as one call has time for; returns how many are left for the next.

    do: does one item, and returns False if only a part of it is done and the rest has to wait.
    """
    for item in night.of(State.BEGUN):  # the earlier call that began it has ended without an answer
        item.state, item.reason = State.FAILED, ENDED
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
    """Yield each item that is to be done, and skip the others.

    The caller changes the state of each item before it takes the next one. An item that is then still waiting
    is yielded again.
    """
    while waiting := night.of(State.WAITING):
        item = waiting[0]
        if now() - datetime.fromisoformat(night.began) > NIGHT_MAX:
            item.state, item.reason = State.SKIPPED, f"the night's {NIGHT_MAX} were over"
        elif hindrance := _hindrance(item, night, needs):
            item.state, item.reason = State.SKIPPED, f"{hindrance} was not built"
        else:
            yield item


def _hindrance(item: Item, night: WarehouseNight, needs: Needs) -> str | None:
    """Return the name of a load or model that an item needs and that was not done tonight.

    One that failed is named before those that were skipped because of it.
    """
    if item.kind is Kind.LOAD:
        return None
    if item.kind is Kind.FORGET:
        return next((load.name for load in night.of(State.FAILED) if load.kind is Kind.LOAD), None)
    missing = {model.name for model in night.of(State.FAILED, State.SKIPPED) if model.kind is Kind.MODEL}
    failed = {other.name for other in night.of(State.FAILED)}
    return min(missing.intersection(needs(item)), key=lambda name: (name not in failed, name), default=None)


def _do(item: Item, do: Callable[[Item], bool]) -> None:
    """Do an item, and note its new state, reason and time in it."""
    start = time.monotonic()
    try:
        item.state = State.DONE if do(item) else State.WAITING
    except Exception as error:  # noqa: BLE001 (any error of one item: the others are still done)
        item.state, item.reason = State.FAILED, f"{type(error).__name__}: {error}"[:REASON_MAX]
    item.seconds = round(item.seconds + time.monotonic() - start, 2)


@dataclass(slots=True)
class LastWarehouseRun:
    """The newest run that has asked the warehouse (state/warehouse.json)."""

    run_id: str
    at: str  # when it began, ISO 8601
    version: str  # of the code (see `version`)
    is_settled: bool = False  # whether it left nothing to be done
    are_all_tested: bool = False  # whether the tests were of all rows
    curation: list[dict[str, Any]] = field(default_factory=list)  # the report's counts by entity

    @classmethod
    def read(cls, objects: Objects) -> "LastWarehouseRun | None":
        """Return the stored note; None if no run has asked yet."""
        try:
            return cls(**json.loads(objects.get(WAREHOUSE_ASKED)))
        except NoObject:
            return None

    def save(self, objects: Objects) -> None:
        """Store the note."""
        objects.put(WAREHOUSE_ASKED, json.dumps(asdict(self)).encode())

    def still_holds(self, version: str, today: date) -> bool:
        """Whether a night with this version of the code may rely on what this run has left.

        The run must have left nothing to be done, and be younger than QUIET_MAX. On Sundays all rows are
        tested, so then it must have tested all rows.
        """
        is_tested = self.are_all_tested or today.weekday() != SUNDAY
        is_young = today - datetime.fromisoformat(self.at).date() < QUIET_MAX
        return self.is_settled and self.version == version and is_tested and is_young


def settle(objects: Objects, run_id: str, curation: list[dict[str, Any]]) -> None:
    """Note that a run has left nothing to be done, if it was the last one that asked the warehouse."""
    last, night = LastWarehouseRun.read(objects), WarehouseNight.read(objects, run_id)
    if last and night and last.run_id == run_id:
        last.is_settled, last.are_all_tested, last.curation = True, night.full_tests, curation
        last.save(objects)


@cache
def version(url: str, settings: ModelSettings, deployed: frozenset[Part] = ALL_PARTS) -> str:
    """Return a digest of what fills a warehouse: code, its URL, settings of models, the parts."""
    values = " ".join(str(value) for _, value in settings)
    digest = hashlib.sha256(f"{url} {values} {' '.join(sorted(deployed))}".encode())
    for folder in MADE_BY:
        for path in sorted((PACKAGED / folder).rglob("*")):
            if path.suffix in (".py", ".sql", ".yml"):
                digest.update(f"\0{path.relative_to(PACKAGED)}\0".encode() + path.read_bytes())
    return digest.hexdigest()
