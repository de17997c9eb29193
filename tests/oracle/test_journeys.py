"""One and the same journey is read by all: live, explain, night, SQL, what-if and both clients agree.

Journeys share a lake and a warehouse by tens; `make soak` has 1,000. JOURNEYS: the numbers of lakes. EACH: how many
journeys each of them has.
"""

import importlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.journey_readers import JourneyReaders
from tests.oracle.journeys import Shared
from tests.oracle.machines import Stream
from tests.support.effort import SOAK, effort
from tests.support.engine import Engine

# Where clocks go forward, and where a date was left out.
LAKES = list(range(20)) if SOAK else [2, 6]
JOURNEYS = int(os.environ.get("EACH", effort(12, soak=50)))
NUMBERS = [int(each) for each in os.environ["JOURNEYS"].split(",")] if "JOURNEYS" in os.environ else LAKES
PLANTED_LAKE, PLANTED_JOURNEYS = 0, 4
Patch = pytest.MonkeyPatch


@pytest.mark.parametrize("number", NUMBERS)
def test_all_readers_of_a_journey_agree(
    number: int, environment: Engine, stream: Stream, tmp_path: Path, monkeypatch: Patch
) -> None:
    shared = Shared.of(number)
    readers = JourneyReaders(environment, stream, shared, monkeypatch)
    readers.play(shared.seeds(JOURNEYS))
    found = readers.compare(tmp_path)
    print(f"\n{number}: {dict(found.happened)}, {dict(found.not_promised)}")
    assert not found.wrong, f"replay with JOURNEYS={number}: {shared}\n" + "\n".join(found.wrong)
    assert found.promised > JOURNEYS, found.not_promised


# ---- planted faults


def real(place: str) -> Any:
    """What a dotted name stands for."""
    module, _, name = place.rpartition(".")
    return getattr(importlib.import_module(module), name)


def explain_counts_covered_dates(patch: Patch, _: Path) -> None:
    explain = real("rules.engagement.account_state.explain_date")

    def longer(*given: Any) -> Any:
        reason, length = explain(*given)
        return reason, length + (reason == "covered_by_freeze")

    patch.setattr("ingest.engagement.profiles.explain_date", longer)


def the_night_forgets_freezes(patch: Patch, _: Path) -> None:
    fold = real("rules.engagement.streak.fold")
    patch.setattr(
        "analytics.recompute.user_fold.fold",
        lambda dates, cover, settled: fold(dates, replace(cover, freezes=()), settled),
    )


def sql_counts_what_was_taken_back(patch: Patch, _: Path) -> None:
    known = real("analytics.warehouse.models.models")()
    weeks = known["facts.user_point_weeks"]
    wrong = weeks.sql.replace("WHERE kind = 'CLAWBACK' AND", "WHERE kind = 'NOTHING' AND")
    assert wrong != weeks.sql
    planted = {**known, weeks.name: replace(weeks, sql=wrong)}
    patch.setattr("analytics.warehouse.build.models", lambda *_: planted)


def what_if_forgets_freezes(patch: Patch, _: Path) -> None:
    patch.setattr("analytics.what_if.user_history.net_freezes", lambda _: ())


FAULTS: dict[str, Callable[[Patch, Path], None]] = {
    "explain": explain_counts_covered_dates,
    "the night": the_night_forgets_freezes,
    "SQL": sql_counts_what_was_taken_back,
    "what-if": what_if_forgets_freezes,
}


def test_a_fault_in_a_reader_of_the_service_is_found(
    environment: Engine, stream: Stream, tmp_path: Path, monkeypatch: Patch
) -> None:
    """By what the others say of the same journeys; and no other reader is blamed."""
    shared = Shared.of(PLANTED_LAKE)
    readers = JourneyReaders(environment, stream, shared, monkeypatch)
    readers.play(shared.seeds(PLANTED_JOURNEYS))
    for who, plant in FAULTS.items():
        with monkeypatch.context() as patch:
            plant(patch, tmp_path / who / "planted")
            wrong = readers.compare(tmp_path / who).wrong
        assert wrong, f"nobody finds {plant.__name__}"
        assert all(who in each for each in wrong), (who, wrong)
