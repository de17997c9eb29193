"""What a smoke test acts on, what it calls what it makes, and how it waits."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

from local.api import Api
from local.api import subject as subject_of
from local.smoke.units import UnitMeter
from local.stack import Stack
from rules.smoke_names import smoke_name

DAYS = 5
# A message of leads whose function died comes again after 12 minutes; rows wait 5 minutes in Firehose.
EFFECT_SECONDS, LEAD_SECONDS, LAKE_SECONDS, ALARM_SECONDS = 180.0, 900.0, 900.0, 300.0
LAPTOP_PAUSE_SECONDS, AWS_PAUSE_SECONDS = 0.2, 2.0
T = TypeVar("T")


class TooLate(Exception):
    """Something did not happen in time; the text says what, and what was there instead."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long to wait, in seconds: for effects, leads, the lake, alarms, and between two looks."""

    effect: float = EFFECT_SECONDS
    lead: float = LEAD_SECONDS
    lake: float = LAKE_SECONDS
    alarm: float = ALARM_SECONDS
    pause: float = AWS_PAUSE_SECONDS

    @classmethod
    def of(cls, stack: Stack) -> "Waits":
        """Return the waits for a stack."""
        return cls(pause=LAPTOP_PAUSE_SECONDS if stack.is_laptop else AWS_PAUSE_SECONDS)


@dataclass(slots=True)
class Subject:
    """A stack under test. api: set by the step that signs in. executions: nightly runs that were started.

    places: (table, partition) -> names of the table's key, of all that the clean-up has found.
    """

    stack: Stack
    meter: UnitMeter
    waits: Waits
    name: str = field(default_factory=lambda: smoke_name(secrets.randbits(48)))
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    api: Api | None = None
    executions: list[str] = field(default_factory=list)
    places: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    @property
    def second_user(self) -> str:
        """The user whose events come over Kinesis."""
        return f"{self.name}-kinesis"

    @property
    def days(self) -> list[date]:
        """The five days before today (UTC), oldest first. Late senders and Kinesis may send all of them."""
        return [(self.began - timedelta(days=DAYS - number)).date() for number in range(DAYS)]

    @property
    def agent(self) -> str:
        """Whom the API takes for the agent who asks: the user of the token."""
        return subject_of(self.signed_in().token)

    def signed_in(self) -> Api:
        """Return the API, called as an admin. Raises RuntimeError before anybody has signed in."""
        if self.api is None:
            raise RuntimeError("nobody has signed in")
        return self.api

    def until(self, look: Callable[[], tuple[T | None, Any]], what: str, seconds: float) -> T:
        """Look until there is an answer, and return it. look: returns (answer or None, what was seen).

        Raises TooLate when the time is up, with what was seen last.
        """
        deadline = time.monotonic() + seconds
        while True:
            answer, seen = look()
            if answer is not None:
                return answer
            if time.monotonic() > deadline:
                raise TooLate(f"{what}: not after {seconds:.0f} s, last seen: {seen}")
            time.sleep(self.waits.pause)
