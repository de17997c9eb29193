"""How the traffic of a part is declared (cost.py, plan_command.py)."""

from collections.abc import Mapping
from dataclasses import dataclass

from rules.parts import Part


@dataclass(frozen=True, slots=True)
class PartTraffic:
    """What a day has of one kind of thing."""

    part: Part
    name: str  # of the figure; of the option, with hyphens
    words: str  # in the plan, a plural
    meaning: str  # of the option
    events: float  # of users, to one of them
    paths: Mapping[str, float]  # path of units.json -> how often one of them takes it
