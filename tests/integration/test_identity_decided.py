"""A decision that is applied in a statement of its own is made of what is so then, whoever came in between."""

from collections.abc import Callable
from typing import Any

import pytest

from adapters.leads import identity_store
from adapters.leads.identity_store import ATTEMPTS, PLANS
from rules.leads.identity import Identity
from tests.support.identity_events import C1, E1, E2, P1, check
from tests.support.identity_server import NOW, Registry

pytestmark = pytest.mark.xdist_group("identity")
REAL = identity_store._apply


def between(monkeypatch: pytest.MonkeyPatch, *others: Callable[[], object]) -> list[str]:
    """Let others come between reading and applying, one each time; returns what each attempt came to."""
    left, told = list(others), []

    def apply(*args: Any, **named: Any) -> Any:
        if left:
            other = left.pop(0)
            with monkeypatch.context() as alone:
                alone.setattr(identity_store, "_apply", REAL)
                other()
        found = REAL(*args, **named)
        told.extend(found)
        return found

    monkeypatch.setattr(identity_store, "_apply", apply)
    return told


def test_nobody_came_in_between(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    known, told = registry.see(E1), between(monkeypatch)
    assert registry.see(E1, P1).leaf == known.leaf == registry.see(P1).leaf
    assert told == ["resolution"]


def test_somebody_else_got_the_number_meanwhile(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planned without him, the number would be stored twice, or taken from him."""
    one, _ = registry.see(E1), registry.see(E2)
    told = between(monkeypatch, lambda: registry.see(E2, P1))
    found = registry.see(E1, P1)
    assert told == ["facts", "resolution"]
    assert found.root_id == registry.see(P1).root_id == one.root_id  # the number proves that both are one
    check(registry)


def test_the_group_was_merged_meanwhile(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (E2, E1):
        registry.see(each)
    told = between(monkeypatch, lambda: registry.see(E1, E2))
    assert registry.see(E1, P1).root_id == registry.see(E2).root_id
    assert told.count("facts") == 1
    check(registry)


def test_an_operator_parted_them_meanwhile(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.see(E1)
    registry.see(E2)
    merged = registry.see(E1, E2, C1).changes[-1]
    parted = lambda: registry.store.unmerge("acme", merged.number, "why", "me", NOW)  # noqa: E731
    told = between(monkeypatch, parted)
    registry.see(E1, P1)
    assert told.count("facts") == 1
    assert registry.see(E1).root_id != registry.see(E2).root_id
    check(registry)


def test_who_always_comes_too_late_decides_under_locks(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.see(E1)
    numbers = [Identity("device", f"acme/shop/new-{number}") for number in range(PLANS + 1)]
    assert PLANS < ATTEMPTS

    def never(*args: Any, **named: Any) -> Any:
        tried.append(1)
        return {"facts": named["facts"]}

    tried: list[int] = []
    monkeypatch.setattr(identity_store, "_apply", never)
    found = registry.see(E1, P1, *numbers)
    assert len(tried) == PLANS
    monkeypatch.setattr(identity_store, "_apply", REAL)
    assert {registry.see(each).leaf for each in (E1, P1, *numbers)} == {found.leaf}
    check(registry)
