"""One and the same journey is read by all: live, explain, night, SQL, what-if and both clients agree.

Journeys share a lake and a warehouse by tens; `make soak` has 1,000. JOURNEYS: the numbers of lakes. EACH: how many
journeys each of them has.
"""

import importlib
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.journey_readers import Comparison, JourneyReaders
from tests.oracle.journeys import Shared
from tests.oracle.machines import Stream
from tests.support.effort import SOAK, effort
from tests.support.engine import Engine
from tests.support.node_tools import built

# Where clocks go forward; and where a date was left out, and users choose rest days, and others later.
LAKES = list(range(20)) if SOAK else [2, 7]
JOURNEYS = int(os.environ.get("EACH", effort(10, soak=50)))
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
    assert found.promised > 5 * JOURNEYS, found.not_promised
    assert found.happened["rest days were changed"] or not shared.rests_change, found.happened


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


def python_misses_one_date_less(patch: Patch, _: Path) -> None:
    run = real("streakline_client.profile._Run")
    missed = run._missed_before
    patch.setattr(run, "_missed_before", lambda *given: max(0, missed(*given) - 1))


def python_dates_events_in_utc(patch: Patch, _: Path) -> None:
    date_at = real("streakline_client.queue.clock.date_at")
    patch.setattr(
        "tests.support.journey_clients.date_at", lambda instant, _, start: date_at(instant, 0, start)
    )


def typescript_with(patch: Patch, folder: Path, file: str, right: str, wrong: str) -> None:
    """Let the TypeScript client be one that differs in a line."""
    shutil.copytree(
        built() / "src", folder / "src", ignore=lambda _, names: {*names} - {"profile.js", "moment.js"}
    )
    (folder / "package.json").write_text('{"type": "module"}')
    text = (folder / "src" / file).read_text()
    assert text.count(right) == 1, file
    (folder / "src" / file).write_text(text.replace(right, wrong))
    patch.setattr("tests.support.journey_clients.built", lambda: folder)


def typescript_misses_one_date_less(patch: Patch, folder: Path) -> None:
    typescript_with(
        patch, folder, "profile.js", "daysBetween(until, date) - 1", "daysBetween(until, date) - 2"
    )


def typescript_dates_events_in_utc(patch: Patch, folder: Path) -> None:
    typescript_with(patch, folder, "moment.js", "instant + (offset - offsetOf", "instant + (0 - offsetOf")


CLIENT_FAULTS: dict[str, Sequence[Callable[[Patch, Path], None]]] = {
    "Python": (python_misses_one_date_less, python_dates_events_in_utc),
    "TypeScript": (typescript_misses_one_date_less, typescript_dates_events_in_utc),
}


def test_a_fault_in_a_reader_is_found(
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
    asked = Comparison(readers, tmp_path)
    asked.listen()
    assert not asked.clients_wrong()
    for name, plants in CLIENT_FAULTS.items():
        for plant in plants:
            with monkeypatch.context() as patch:
                plant(patch, tmp_path / plant.__name__)
                wrong = asked.clients_wrong()
            assert wrong, f"nobody finds {plant.__name__}"
            assert all(f" {name} estimates" in each for each in wrong), (name, wrong)
