"""How often a schedule of EventBridge fires, and how many states a run of the state machine enters."""

import json
import re
from pathlib import Path
from typing import Any

DAYS_A_MONTH = 365 / 12
SECONDS_A_DAY = 86_400
UNIT_SECONDS = {"minute": 60, "hour": 3600, "day": SECONDS_A_DAY}


def fires_a_day(expression: str) -> float:
    """Return how often `rate(15 minutes)` or `cron(30 2 * * ? *)` fires a day; raises ValueError."""
    if found := re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", expression):
        return SECONDS_A_DAY / (int(found[1]) * UNIT_SECONDS[found[2]])
    if found := re.fullmatch(r"cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)", expression):
        if any(each not in ("*", "?") for each in found.groups()[2:]):
            raise ValueError(f"the planner knows schedules of every day alone: {expression}")
        return _matches(found[1], 60) * _matches(found[2], 24)
    raise ValueError(f"the planner does not know the schedule {expression}")


def _matches(field: str, count: int) -> int:
    """Return how many of so many values a field of cron names: *, 5, 1,2, 8-17, */15 or 0/15."""
    named: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        begin = 0 if first == "*" else int(first)
        end = int(last) if last else (begin if not step and first != "*" else count - 1)
        named |= set(range(begin, end + 1, int(step or 1)))
    return len(named)


def states_of(definition: Path) -> int:
    """Return how many states a run enters that succeeds; a map counts as one, and nothing is done twice."""
    text = re.sub(r"\$\{\w+\}", "0", definition.read_text())
    return _entered(json.loads(text))


def _entered(machine: dict[str, Any]) -> int:
    name, count = machine["StartAt"], 0
    while name:
        state = machine["States"][name]
        count += 1 + sum(map(_entered, state.get("Branches", ())))
        name = state.get("Next", state.get("Default", ""))
    return count
