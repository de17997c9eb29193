"""What both clients estimate of a profile and of events that wait: the functions that `estimate()` calls."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from streakline_client.profile import estimated
from streakline_client.queue.clock import date_at

from tests.support.node_tools import NODE, built, must

FIGURES = (
    *("current_streak", "longest_streak", "streak_status", "last_activity_date", "freezes_available"),
    *("active_days", "as_of"),
)
EPOCH, MILLISECOND, MINUTE = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1), timedelta(minutes=1)
SCRIPT = """
import { readFileSync } from 'node:fs';
const { estimated } = await import(process.argv[1] + '/src/profile.js');
const { dateAt } = await import(process.argv[1] + '/src/moment.js');
const guesses = JSON.parse(readFileSync(process.argv[2], 'utf8'));
console.log(JSON.stringify(guesses.map(({ profile, events, today }) =>
  estimated(profile, events.map(([at, offset]) => dateAt(at, offset, profile.day_starts_at)), today))));
"""


@dataclass(frozen=True)
class Guess:
    """A question to a device. profile: the newest it has. events: that wait, each with its offset then.

    names: the figures that are promised.
    """

    profile: Any
    events: list[tuple[datetime, timedelta]]
    today: str
    names: tuple[str, ...] = FIGURES

    @property
    def instants(self) -> list[tuple[int, int]]:
        """The events as devices keep them: milliseconds since 1970, and minutes east of UTC."""
        return [((at - EPOCH) // MILLISECOND, offset // MINUTE) for at, offset in self.events]

    def figures(self, profile: Any) -> dict[str, Any]:
        """Return of a profile what is promised."""
        return {name: profile.get(name) for name in self.names}


def in_python(guess: Guess) -> dict[str, Any]:
    """Return the Python client's estimate."""
    start = guess.profile["day_starts_at"]
    dates = [date_at(instant, offset, start) for instant, offset in guess.instants]
    return guess.figures(estimated(guess.profile, dates, datetime.fromisoformat(guess.today).date()))


def in_typescript(guesses: list[Guess], folder: Any) -> list[dict[str, Any]]:
    """Return the TypeScript client's estimates."""
    file = folder / "guesses.json"
    asked = [{"profile": each.profile, "events": each.instants, "today": each.today} for each in guesses]
    file.write_text(json.dumps(asked))
    found = must(NODE, "--input-type=module", "-e", SCRIPT, str(built()), str(file))
    return [guess.figures(each) for guess, each in zip(guesses, json.loads(found), strict=True)]
