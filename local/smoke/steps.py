"""What steps of a smoke test are, what they act on, and how they call the API.

Each step proves one part of a deployment, or says why not. A step that needs one that failed is skipped.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from adapters.platform.items import Item
from local.api import Api
from local.aws_errors import explain_error
from local.sign_in import subject as subject_of
from local.stack import Stack
from rules.parts import Part
from rules.smoke_names import smoke_name

DAYS = 5
# How long a step waits: a message of leads whose function died comes again after 12 minutes, and rows wait
# 5 minutes in Firehose.
SECONDS_MAX = {"effect": 180.0, "lead": 900.0, "lake": 900.0, "alarm": 300.0}
LAPTOP_PAUSE_SECONDS, AWS_PAUSE_SECONDS = 0.2, 2.0  # between two looks
SEEN_MAX = 300  # characters of a step's text
Event = dict[str, Any]
T = TypeVar("T")


class TooLate(Exception):
    """Something did not happen in time; the text says what, and what was there instead."""


class StepFailed(Exception):
    """The deployment did not do what it must; the text says what was wanted and what was seen."""


class StepSkipped(Exception):
    """The stack was deployed without this part; the text names it."""


@dataclass(slots=True)
class Subject:
    """A stack under test, and what the test has made in it."""

    stack: Stack
    name: str = field(default_factory=lambda: smoke_name(secrets.randbits(48)))
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    api: Api | None = None  # set by the step that signs in
    executions: list[str] = field(default_factory=list)  # the nightly runs that were started
    # The partitions that the clean-up looks at, in this order: (table, partition key)
    partitions: dict[tuple[str, str], None] = field(default_factory=dict)

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
        """The agent of the test's question: the user of the token."""
        return subject_of(self.signed_in().token)

    def signed_in(self) -> Api:
        """Return the API, called as an admin. Raises RuntimeError before anybody has signed in."""
        if self.api is None:
            raise RuntimeError("nobody has signed in")
        return self.api

    def until(self, look: Callable[[], tuple[T | None, Any]], what: str, kind: str = "effect") -> T:
        """Look until there is an answer, and return it.

        look: returns (answer or None, what was seen). kind: of SECONDS_MAX. Raises TooLate when the time is
        up, with what was seen last.
        """
        seconds = SECONDS_MAX[kind]
        deadline = time.monotonic() + seconds
        while True:
            answer, seen = look()
            if answer is not None:
                return answer
            if time.monotonic() > deadline:
                raise TooLate(f"{what}: not after {seconds:.0f} s, last seen: {seen}")
            time.sleep(LAPTOP_PAUSE_SECONDS if self.stack.is_laptop else AWS_PAUSE_SECONDS)


class StepOutcome(StrEnum):
    """What became of a step."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class SmokeStep:
    """A part of the proof. Its promise is the docstring of `prove`."""

    name: str
    # Uses the part; returns what was seen, raises StepFailed or StepSkipped.
    prove: Callable[[Subject], str]
    needs: tuple[str, ...] = ()  # names of steps that must have succeeded
    part: Part | None = None  # the part that it proves, if a deployment may leave it out

    @property
    def promise(self) -> str:
        """What the deployment keeps if the step succeeds."""
        return (self.prove.__doc__ or "").partition("\n")[0]


@dataclass(frozen=True, slots=True)
class StepResult:
    """What became of a step."""

    step: SmokeStep
    outcome: StepOutcome
    seconds: float
    seen: str  # what the step saw, or why it failed or was skipped

    @property
    def name(self) -> str:
        """The step's name."""
        return self.step.name


def run_steps(
    steps: Iterable[SmokeStep], subject: Subject, tell: Callable[[StepResult], object]
) -> list[StepResult]:
    """Run steps in their order; returns the result of each. tell: gets each result at once."""
    results: list[StepResult] = []
    for step in steps:
        proven = {earlier.name for earlier in results if earlier.outcome is StepOutcome.OK}
        missing = [name for name in step.needs if name not in proven]
        if missing:
            result = StepResult(step, StepOutcome.SKIPPED, 0.0, f"needs: {', '.join(missing)}")
        else:
            result = run_step(step, subject)
        results.append(result)
        tell(result)
    return results


@dataclass(frozen=True, slots=True)
class SmokePart:
    """What a part adds to the test."""

    part: Part
    steps: tuple[SmokeStep, ...]  # they follow those of users
    keys: Mapping[str, tuple[str, ...]]  # by table: the attributes of its key, the partition key first
    # Yields each partition that the part's steps may have written to: table, partition key. It takes what
    # returns the items of a partition. An item that leads to other partitions comes after these.
    partitions: Callable[[Subject, Callable[[str, str], list[Item]]], Iterator[tuple[str, str]]]
    # Removes what no table has; returns what went wrong, or ""
    forget: Callable[[Subject], str] = lambda _: ""


def run_step(step: SmokeStep, subject: Subject) -> StepResult:
    """Run one step. Whatever it raises is its failure, so that the rest and the clean-up go on."""
    began = time.monotonic()
    try:
        outcome, seen = StepOutcome.OK, step.prove(subject)
    except StepSkipped as reason:
        outcome, seen = StepOutcome.SKIPPED, str(reason)
    except StepFailed as reason:
        outcome, seen = StepOutcome.FAILED, str(reason)
    except Exception as error:
        outcome, seen = StepOutcome.FAILED, f"{type(error).__name__}: {explain_error(error)}"
    return StepResult(step, outcome, time.monotonic() - began, seen[:SEEN_MAX])


def ask(subject: Subject, method: str, path: str, body: Any, wanted: int) -> Any:
    """Return the API's answer; raises StepFailed unless it has the status that is wanted."""
    status, answer = subject.signed_in().call(method, path, body)
    if status != wanted:
        raise StepFailed(f"{method} {path}: {status} instead of {wanted}: {answer}")
    return answer


def must(holds: bool, wanted: str, seen: Any) -> None:
    """Raise StepFailed, with what was wanted and seen, unless a condition holds."""
    if not holds:
        raise StepFailed(f"wanted {wanted}, seen: {seen}")


def profile(subject: Subject, user: str) -> dict[str, Any]:
    """Return a user's profile as of the newest day of the test: the same at any hour."""
    path = f"/v1/users/{user}?as_of={subject.days[-1].isoformat()}"
    answer: dict[str, Any] = ask(subject, "GET", path, None, 200)
    return answer


def await_profile(subject: Subject, user: str, **wanted: int) -> dict[str, Any]:
    """Wait until a profile shows figures, and return it. Raises TooLate."""

    def look() -> tuple[dict[str, Any] | None, Any]:
        answer = profile(subject, user)
        seen = {name: answer.get(name) for name in wanted}
        return (answer if seen == wanted else None), seen

    return subject.until(look, f"the profile of {user} shows {wanted}")
