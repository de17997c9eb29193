"""Steps of a smoke test: each proves one part, or says why not. One that needs a failed step is skipped."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from local.smoke.subject import Subject
from local.stack import sentence

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
