"""A decision that is applied in a statement of its own is made of what is so then, whoever came in between."""

from collections.abc import Callable
from typing import Any

import pytest

from adapters.leads.identity_store import ATTEMPTS_MAX, IdentityStore
from adapters.postgresql.sql import PostgresUnavailable
from tests.support.identity_events import C1, E1, E2, P1, check
from tests.support.identity_server import NOW, Registry

pytestmark = pytest.mark.xdist_group("identity")
REAL = IdentityStore._call


def between(monkeypatch: pytest.MonkeyPatch, *others: Callable[[], object]) -> list[str]:
    """Let others come between reading and applying, one each time; returns what each attempt came to."""
    left, outcomes = list(others), list[str]()

    def call(store: IdentityStore, name: str, *arguments: Any) -> Any:
        if not name.startswith("apply"):
            return REAL(store, name, *arguments)
        if left:
            other = left.pop(0)
            with monkeypatch.context() as alone:
                alone.setattr(IdentityStore, "_call", REAL)
                other()
        answer = REAL(store, name, *arguments)
        outcomes.append("applied" if "resolution" in answer else "others were first")
        return answer

    monkeypatch.setattr(IdentityStore, "_call", call)
    return outcomes


def test_somebody_else_got_the_number_meanwhile(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planned without him, the number would be stored twice, or taken from him."""
    one, _ = registry.see(E1), registry.see(E2)
    outcomes = between(monkeypatch, lambda: registry.see(E2, P1))
    found = registry.see(E1, P1)
    assert outcomes == ["others were first", "applied"]
    assert found.root_id == registry.see(P1).root_id == one.root_id  # the number proves that both are one
    check(registry)


def test_an_operator_parted_them_meanwhile(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.see(E1)
    registry.see(E2)
    merged = registry.see(E1, E2, C1).changes[-1]
    parted = lambda: registry.store.unmerge("acme", merged.number, "why", "me", NOW)  # noqa: E731
    outcomes = between(monkeypatch, parted)
    registry.see(E1, P1)
    assert outcomes.count("others were first") == 1
    assert registry.see(E1).root_id != registry.see(E2).root_id
    check(registry)


def test_who_always_comes_too_late_is_told_to_come_again(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.see(E1)
    before = registry.dump()
    others: dict[str, Any] = {"facts": {"known": [], "strong": [], "apart": []}, "resolutions": {}}
    attempts: list[str] = []

    def call(_store: IdentityStore, name: str, *_arguments: Any) -> Any:
        attempts.append(name.partition("(")[0])
        return others

    with monkeypatch.context() as late:
        late.setattr(IdentityStore, "_call", call)
        with pytest.raises(PostgresUnavailable, match="other changes were first") as refused:
            registry.see(E1, P1)
    assert attempts == ["facts", *["apply"] * ATTEMPTS_MAX]
    assert not refused.value.is_away
    assert registry.dump() == before
    assert registry.see(E1, P1).leaf == registry.see(P1).leaf
