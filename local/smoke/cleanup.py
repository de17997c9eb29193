"""Removes what a smoke test made. It looks again until nothing is left, because an effect may come late.

Rows in the lake and in the warehouse stay. All bear the test's name, and the nightly run leaves such users
out.
"""

import time

from local.api import users_of
from local.operate.functions import Invocation, invoke
from local.smoke import leftovers
from local.smoke.steps import SmokeStep, StepFailed
from local.smoke.subject import Subject

SWEEPS_MAX = 10
LAPTOP_QUIET_SECONDS, AWS_QUIET_SECONDS = 1.0, 10.0
STAY = "stay, marked by the name: rows in the lake and the warehouse"


def clean_up(subject: Subject) -> str:
    """Remove items, objects, leads, ranks and the pool's user; raises StepFailed with what it could not."""
    objects = leftovers.remove_run_files(subject)
    items, troubles = 0, []
    for sweep in range(SWEEPS_MAX):
        removed, referred = leftovers.remove_items(subject)
        items, objects = items + removed, objects + referred
        if sweep and not removed:
            break
        time.sleep(LAPTOP_QUIET_SECONDS if subject.stack.is_laptop else AWS_QUIET_SECONDS)
    else:
        troubles.append(f"items came again in {SWEEPS_MAX} sweeps: look for {subject.name} later")
    troubles += [trouble for forget in (_forget_leads, _forget_ranks) if (trouble := forget(subject))]
    users = users_of(subject.stack) if not subject.stack.is_laptop else None
    if users:
        users.remove(subject.name)
    if troubles:
        raise StepFailed(f"{items} items removed; " + "; ".join(troubles))
    return f"{items} items and {objects} objects removed, leads and ranks forgotten; {STAY} {subject.name}"


def _forget_leads(subject: Subject) -> str:
    """Have PostgreSQL forget the leads; returns what went wrong."""
    reply = _invoke(subject, "Leads", subject.name)
    left = reply.answer.get("left") if isinstance(reply.answer, dict) else None
    return "" if left == 0 and not reply.error else f"leads are left in PostgreSQL: {reply.answer}"


def _forget_ranks(subject: Subject) -> str:
    """Have Redis forget the users; returns what went wrong."""
    reply = _invoke(subject, "Ranks", [subject.name, subject.second_user])
    good = isinstance(reply.answer, dict) and reply.answer.get("forgotten") is True and not reply.error
    return "" if good else f"ranks in Redis still have the users: {reply.answer}"


def _invoke(subject: Subject, function: str, whom: object) -> Invocation:
    name = subject.stack.outputs[f"{function}FunctionName"]
    return invoke(subject.stack, name, {"streakline_forget": whom})


CLEAN_UP = SmokeStep("clean-up", clean_up)
