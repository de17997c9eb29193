"""A wait ends when nothing happens any more, however long it takes while something does."""

import pytest

from local.cloud.patience import Patience


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_it_waits_as_long_as_there_is_progress_and_shows_it() -> None:
    clock, said = Clock(), list[str]()
    patience = Patience(30, said.append, clock)
    for number in range(100):
        patience.wait("orders wait", f"{number} done", 0)
        clock.now += 29
    assert len(said) == 99
    assert said[0] == "  orders wait (1 done)"
    with pytest.raises(RuntimeError, match=r"orders wait \(99 done\), and nothing has happened for 30 s"):
        for _ in range(3):
            patience.wait("orders wait", "99 done", 0)
            clock.now += 29


def test_it_is_silent_about_what_ends_soon() -> None:
    clock, said = Clock(), list[str]()
    patience = Patience(30, said.append, clock)
    for number in range(7):
        patience.wait("orders wait", number, 0)
        clock.now += 1
    assert said == []
