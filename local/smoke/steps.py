"""Steps of a smoke test, what they act on, and how they ask the API. Each proves one part, or says why
not; one that needs a failed step is skipped.
"""

import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from local.api import Api
from local.api import subject as subject_of
from local.stack import Stack, fresh_client, sentence
from rules.smoke_names import smoke_name

# Counts the request units of DynamoDB that a client uses.
#
# Only the command's own reads and deletions are seen here. What functions use, only CloudWatch can tell: by
# table and minute, for all callers together.


COUNTED = ("GetItem", "Query", "DeleteItem")


class UnitMeter:
    """The units that one client has used. client: of DynamoDB; it asks for the units of every call."""

    def __init__(self, stack: Stack) -> None:
        self.total = 0.0
        self.client = fresh_client(stack.endpoint_url, stack.region, "dynamodb")
        for operation in COUNTED:
            events = self.client.meta.events
            events.register(f"provide-client-params.dynamodb.{operation}", _ask)
            events.register(f"after-call.dynamodb.{operation}", self._count)

    def _count(self, parsed: dict[str, Any], **_: Any) -> None:
        self.total += float((parsed.get("ConsumedCapacity") or {}).get("CapacityUnits", 0.0))


def _ask(params: dict[str, Any], **_: Any) -> dict[str, Any]:
    return {**params, "ReturnConsumedCapacity": "TOTAL"}


# What a smoke test acts on, what it calls what it makes, and how it waits.


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


SAID_MAX = 300


class StepOutcome(StrEnum):
    """What became of a step."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


class StepFailed(Exception):
    """The deployment did not do what it must; the text says what was wanted and what was seen."""


class StepSkipped(Exception):
    """The stack was deployed without this part; the text names it."""


@dataclass(frozen=True, slots=True)
class SmokeStep:
    """A part of the proof.

    prove: uses the part; returns what was seen, raises StepFailed or StepSkipped. needs: names of steps that
    must have succeeded.
    """

    name: str
    prove: Callable[[Subject], str]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepResult:
    """What became of a step. units: request units of DynamoDB that the command itself used, None if none."""

    name: str
    outcome: StepOutcome
    seconds: float
    said: str
    units: float | None = None


def run_steps(
    steps: Iterable[SmokeStep], subject: Subject, tell: Callable[[StepResult], object]
) -> list[StepResult]:
    """Run steps in their order; returns the result of each, and tells it at once."""
    results: list[StepResult] = []
    for step in steps:
        good = {each.name for each in results if each.outcome is StepOutcome.OK}
        missing = [name for name in step.needs if name not in good]
        if missing:
            result = StepResult(step.name, StepOutcome.SKIPPED, 0.0, f"needs: {', '.join(missing)}")
        else:
            result = run_step(step, subject)
        results.append(result)
        tell(result)
    return results


def run_step(step: SmokeStep, subject: Subject) -> StepResult:
    """Run one step. Whatever it raises is its failure, so that the rest and the clean-up go on."""
    began, before = time.monotonic(), subject.meter.total
    try:
        outcome, said = StepOutcome.OK, step.prove(subject)
    except StepSkipped as reason:
        outcome, said = StepOutcome.SKIPPED, str(reason)
    except StepFailed as reason:
        outcome, said = StepOutcome.FAILED, str(reason)
    except Exception as error:
        outcome, said = StepOutcome.FAILED, f"{type(error).__name__}: {sentence(error)}"
    units = subject.meter.total - before
    return StepResult(step.name, outcome, time.monotonic() - began, said[:SAID_MAX], units or None)


# How steps ask the API: with the status that they want, and with what they want of the answer.


Event = dict[str, Any]


def ask(subject: Subject, method: str, path: str, body: Any, wanted: int) -> Any:
    """Return the API's answer; raises StepFailed unless it has the status that is wanted."""
    status, answer = subject.signed_in().call(method, path, body)
    if status != wanted:
        raise StepFailed(f"{method} {path}: {status} instead of {wanted}: {answer}")
    return answer


def must(holds: bool, wanted: str, seen: Any) -> None:
    """Raise StepFailed unless it holds."""
    if not holds:
        raise StepFailed(f"wanted {wanted}, seen: {seen}")


def profile(subject: Subject, user: str) -> dict[str, Any]:
    """Return a user's profile as of the newest day of the test: the same at any hour."""
    path = f"/v1/users/{user}?as_of={subject.days[-1].isoformat()}"
    found: dict[str, Any] = ask(subject, "GET", path, None, 200)
    return found


def shown(subject: Subject, user: str, **wanted: int) -> dict[str, Any]:
    """Wait until a profile shows figures, and return it. Raises TooLate."""

    def look() -> tuple[dict[str, Any] | None, Any]:
        found = profile(subject, user)
        seen = {name: found.get(name) for name in wanted}
        return (found if seen == wanted else None), seen

    return subject.until(look, f"the profile of {user} shows {wanted}", subject.waits.effect)
