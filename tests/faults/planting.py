"""How a planted bug is looked for: schedule after schedule, until one finds it."""

from collections.abc import Callable, Sequence

import pytest

from tests.support.engine import Engine

Plant = Callable[[pytest.MonkeyPatch], None]
Run = Callable[[Engine, int, pytest.MonkeyPatch], Sequence[str]]


def must_be_caught(
    plant: Plant, run: Run, environment: Engine, monkeypatch: pytest.MonkeyPatch, seeds: Sequence[int]
) -> None:
    """Fail unless one of these schedules finds something wrong, or does not come to an end."""
    for seed in seeds:
        with monkeypatch.context() as bug:
            plant(bug)
            try:
                if run(environment, seed, bug):
                    return
            except AssertionError:
                return  # It does not come to an end: that too is a bug found.
    pytest.fail(f"{len(seeds)} schedules found nothing wrong with {plant.__name__}")
