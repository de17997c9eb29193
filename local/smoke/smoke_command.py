"""`streakline smoke`: uses each part of a deployment once, prints what it saw, and removes what it made.

STEPS is the one list of what a deployment promises, in the order in which it is proven.
tests/e2e/test_smoke.py runs the same steps on the laptop cloud.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

from local.command import command
from local.smoke import parts
from local.smoke.cleanup import PARTS, clean_up
from local.smoke.steps import SmokeStep, StepOutcome, StepResult, Subject, run_step, run_steps
from local.stack import Stack
from rules.parts import is_deployed

STEPS = (
    SmokeStep("sign-in", parts.sign_in),
    SmokeStep("HTTP door", parts.http_door, ("sign-in",)),
    SmokeStep("Kinesis door", parts.kinesis_door, ("sign-in",)),
    SmokeStep("duplicates", parts.duplicates, ("HTTP door",)),
    SmokeStep("conflict", parts.conflict, ("HTTP door",)),
    SmokeStep("streak", parts.streak, ("HTTP door",)),
    SmokeStep("late events", parts.late_events, ("streak",)),
    SmokeStep("redemption", parts.redemption, ("late events",)),
    SmokeStep("overdraft", parts.overdraft, ("redemption",)),
    *(step for part in PARTS for step in part.steps),
    SmokeStep("lake", parts.rows_arrive, ("late events",)),
    SmokeStep("nightly run", parts.nightly, ("lake",)),
    SmokeStep("warehouse", parts.warehouse, ("nightly run",)),
    SmokeStep("redshift", parts.redshift, ("warehouse",)),
    SmokeStep("alarms", parts.alarms),
)
CLEAN_UP = SmokeStep("clean-up", clean_up)


@command("smoke", "smoke --stack-name streakline --json")
def smoke_command(stack: Stack, as_json: bool) -> None:
    """Prove a deployment: each part once, then remove what was made. Fails if a step fails."""
    if not smoke(stack, as_json=as_json):
        raise SystemExit(1)


def smoke(stack: Stack, *, as_json: bool = False) -> bool:
    """Prove a deployment, and clean up whatever happens; prints the steps. Returns whether none failed."""
    subject = Subject(stack)
    print(f"smoke test {subject.name} of {stack.api_url}", file=sys.stderr, flush=True)
    results = prove(subject)
    print(json.dumps(as_document(subject, results), indent=2) if as_json else table(results))
    failed = failures(results)
    if failed:
        print(f"streakline: smoke failed: {', '.join(failed)}", file=sys.stderr)
    return not failed


def prove(subject: Subject, steps: Sequence[SmokeStep] = STEPS) -> list[StepResult]:
    """Run the steps of the parts that are deployed, then the clean-up, also if the steps are interrupted."""
    results: list[StepResult] = []
    steps = [step for step in steps if is_deployed(step.part, subject.stack.parts)]
    try:
        results = run_steps(steps, subject, _tell)
    finally:
        results.append(run_step(CLEAN_UP, subject))
        _tell(results[-1])
    return results


def failures(results: Sequence[StepResult]) -> list[str]:
    """Return the names of the steps that failed."""
    return [result.name for result in results if result.outcome is StepOutcome.FAILED]


def _tell(result: StepResult) -> None:
    print(f"  {result.name}: {result.outcome.value}", file=sys.stderr, flush=True)


def as_document(subject: Subject, results: Sequence[StepResult]) -> dict[str, Any]:
    """Return the test as JSON: the stack, the test's name, whether all is well, and each step."""
    return {
        "stack": subject.stack.name,
        "name": subject.name,
        "ok": not failures(results),
        "seconds": round(sum(result.seconds for result in results), 1),
        "steps": [
            {
                "step": result.name,
                "promise": result.step.promise,
                "outcome": result.outcome.value,
                "seconds": round(result.seconds, 1),
                "seen": result.seen,
            }
            for result in results
        ],
    }


def table(results: Sequence[StepResult]) -> str:
    """Return the steps as a table for people; below it, what a failed one would have promised."""
    lines = [f"{'step':<14}{'outcome':<9}{'seconds':>8}  seen"]
    lines += [
        f"{result.name:<14}{result.outcome.value:<9}{result.seconds:>8.1f}  {result.seen}"
        for result in results
    ]
    counts = {outcome: sum(result.outcome is outcome for result in results) for outcome in StepOutcome}
    summary = ", ".join(f"{number} {outcome.value}" for outcome, number in counts.items())
    lines.append(f"{'':<23}{sum(result.seconds for result in results):>8.1f}  {summary}")
    broken = [result.step for result in results if result.outcome is StepOutcome.FAILED]
    return "\n".join([*lines, *(f"not kept by {each.name}: {each.promise}" for each in broken)])
