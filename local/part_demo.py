"""How a part's acts in the demo are declared (demo.py)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from local.api import Api
from local.event_sources import Body
from local.stack import Stack
from rules.parts import Part

Post = Callable[[Api, str, Body], Any]  # posts a body to a path, and returns the answer


def _nothing(*_: Any) -> None:
    pass


@dataclass(frozen=True, slots=True)
class PartDemo:
    """A part's acts. Each is skipped in a deployment without the part."""

    part: Part
    act: Callable[[Stack, Post], None] = _nothing  # as the demo's person
    # Sends input of its own before the night: takes the demo's instant, and the seed of what is invented
    send: Callable[[Stack, datetime, int], None] = _nothing
