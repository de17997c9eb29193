"""Runs a smoke test, and prints what came of it."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from local.command import command
from local.smoke import lake, parts
from local.smoke.cleanup import CLEAN_UP
from local.smoke.steps import (
    SmokeStep,
    StepOutcome,
    StepResult,
    Subject,
    UnitMeter,
    Waits,
    run_step,
    run_steps,
)
from local.stack import Stack

STEPS: tuple[SmokeStep, ...] = (
    *parts.EVENT_STEPS,
    *parts.REWARD_STEPS,
    *parts.LEAD_STEPS,
    *parts.QUESTION_STEPS,
    *lake.LAKE_STEPS,
    *lake.REDSHIFT_STEPS,
    *parts.ALARM_STEPS,
)
UNITS = "units: request units of DynamoDB that this command used itself; what functions used, it cannot see"


def smoke(stack: Stack, *, as_json: bool = False) -> bool:
    """Prove a deployment, and clean up whatever happens; prints the steps. Returns whether none failed."""
    subject = Subject(stack, UnitMeter(stack), Waits.of(stack))
    print(f"smoke test {subject.name} of {stack.api_url}", file=sys.stderr, flush=True)
    results = prove(subject)
    print(json.dumps(as_document(subject, results), indent=2) if as_json else table(results))
    failed = failures(results)
    if failed:
        print(f"streakline: smoke failed: {', '.join(failed)}", file=sys.stderr)
    return not failed


def prove(subject: Subject, steps: Sequence[SmokeStep] = STEPS) -> list[StepResult]:
    """Run the steps, then the clean-up, also if the steps are interrupted."""
    results: list[StepResult] = []
    try:
        results = run_steps(steps, subject, _tell)
    finally:
        results.append(run_step(CLEAN_UP, subject))
        _tell(results[-1])
    return results


def failures(results: Sequence[StepResult]) -> list[str]:
    """Return the names of the steps that failed."""
    return [each.name for each in results if each.outcome is StepOutcome.FAILED]


def _tell(result: StepResult) -> None:
    print(f"  {result.name}: {result.outcome.value}", file=sys.stderr, flush=True)


def as_document(subject: Subject, results: Sequence[StepResult]) -> dict[str, Any]:
    """Return the test as JSON: the stack, the test's name, whether all is well, and each step."""
    return {
        "stack": subject.stack.name,
        "name": subject.name,
        "ok": not failures(results),
        "seconds": round(sum(each.seconds for each in results), 1),
        "steps": [
            {
                "step": each.name,
                "outcome": each.outcome.value,
                "seconds": round(each.seconds, 1),
                "units": each.units,
                "seen": each.said,
            }
            for each in results
        ],
    }


def table(results: Sequence[StepResult]) -> str:
    """Return the steps as a table for people."""
    lines = [f"{'step':<14}{'outcome':<9}{'seconds':>8}{'units':>8}  seen"]
    for each in results:
        units = "-" if each.units is None else f"{each.units:g}"
        lines.append(f"{each.name:<14}{each.outcome.value:<9}{each.seconds:>8.1f}{units:>8}  {each.said}")
    total, units_total = sum(each.seconds for each in results), sum(each.units or 0 for each in results)
    counts = {outcome: sum(each.outcome is outcome for each in results) for outcome in StepOutcome}
    counts_text = ", ".join(f"{number} {outcome.value}" for outcome, number in counts.items())
    return "\n".join([*lines, f"{'':<23}{total:>8.1f}{units_total:>8g}  {counts_text}", UNITS])


@command("smoke", "smoke --stack-name streakline --json")
def smoke_command(stack: Stack, as_json: bool) -> None:
    """Prove a deployment: each part once, then remove what was made. Fails if a step fails."""
    if not smoke(stack, as_json=as_json):
        raise SystemExit(1)
