"""No alarm of the stack sounds."""

from typing import Any

from local.operate.status import alarm_states
from local.smoke.asking import must
from local.smoke.steps import SmokeStep, StepSkipped
from local.smoke.subject import Subject, TooLate

SOUNDS, NO_DATA = "ALARM", "INSUFFICIENT_DATA"


def alarms(subject: Subject) -> str:
    """All alarms are OK. A new alarm is without data for some minutes, which are waited for."""
    states = alarm_states(subject.stack)
    if not states:
        raise StepSkipped("the stack has no alarms")

    def look() -> tuple[dict[str, str] | None, Any]:
        found = alarm_states(subject.stack)
        waiting = sorted(name for name, state in found.items() if state == NO_DATA)
        return (None if waiting else found), waiting

    try:
        states = subject.until(look, "alarms have data", subject.waits.alarm)
    except TooLate:
        states = alarm_states(subject.stack)
    sounding = sorted(name for name, state in states.items() if state == SOUNDS)
    must(not sounding, "no alarm that sounds", sounding)
    silent = sum(state == NO_DATA for state in states.values())
    return f"{len(states) - silent} alarms OK" + (f", {silent} without data yet" if silent else "")


STEPS = (SmokeStep("alarms", alarms),)
