"""Outgoing webhooks under seeded fault schedules: folded, they are what GET shows. SEED: replay just that one."""

import os
from typing import Any

import pytest

from rules.outgoing.notices import NoticeType
from tests.faults.listeners import Listeners
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.message_schema import problems

SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else list(range(effort(1, soak=1000)))
# What notifications do not tell: what changes by a clock, as a hold lapses; what is told apart; users' settings.
UNTOLD = (
    *("streak_status", "as_of", "available", "achievements", "alias", "pauses", "rest_days", "day_starts_at"),
)
EARNED = NoticeType.ACHIEVEMENT_EARNED


def violations_heard(listeners: Listeners, user: str, told: dict[str, Any]) -> list[str]:
    """What is wrong with what was told of a user; nothing is the answer."""
    own = [each for each in listeners.heard if each.holder == user]
    first = {each.message_id: each for each in reversed(own)}
    unique = list(dict.fromkeys(each.message_id for each in own))
    numbers = [first[each].number for each in unique]
    wrong = []
    if numbers != list(range(1, len(numbers) + 1)):
        wrong.append(f"{user}: numbers {numbers}")
    bodies: dict[str, set[bytes]] = {}
    for each in own:
        bodies.setdefault(each.message_id, set()).add(each.body)
    wrong += [f"{user}: {problem}" for each in own for problem in problems(each.body)]
    if any(len(each) > 1 for each in bodies.values()):
        wrong.append(f"{user}: one id, several bodies")
    known: dict[str, Any] = {}
    has: dict[str, str] = {}
    level = None
    for name in unique:
        known |= first[name].notice.data["profile"]
        has = first[name].notice.data.get("achievements", has)
        level = first[name].notice.data.get("level", level)
    known.pop("lapses_at", None)
    earned = [first[each].notice.data["achievement"] for each in unique if first[each].notice.type == EARNED]
    if sorted(earned) != sorted(has):  # all users are new, and nothing is taken from them
        wrong.append(f"{user}: earned {earned}, has {has}")
    if has != told["achievements"]:
        wrong.append(f"{user}: achievements folded {has}, shown {told['achievements']}")
    shown = {name: value for name, value in told.items() if name not in UNTOLD}
    if shown.pop("level")["name"] != (level or "starter"):  # which begins with 0 points, and is no news
        wrong.append(f"{user}: level folded {level}, shown {told['level']}")
    if known != shown and (known or shown["active_days"]):
        wrong.append(f"{user}: folded {known}, shown {shown}")
    change = sum(first[each].notice.data.get("change", 0) for each in unique)
    if known and change != known["balance"]:
        wrong.append(f"{user}: changes of points come to {change}, not {known['balance']}")
    return wrong


def run_listeners(engine: Engine, seed: int, patch: pytest.MonkeyPatch) -> list[str]:
    with patch.context() as wiring:
        listeners = Listeners(engine, seed, wiring)
        listeners.run()
        shown = listeners.finish()
        assert any(each.notice.type == EARNED for each in listeners.heard)
        return [each for user in listeners.users for each in violations_heard(listeners, user, shown[user])]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_told_folded_is_what_is_shown(
    seed: int, environment: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run_listeners(environment, seed, monkeypatch)
    assert not found, f"replay with SEED={seed} make test: {found}"
