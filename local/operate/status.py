"""`streakline status`: says what runs of a deployment, what waits, and what alarms say.

stack_status.py reads this of a stack on AWS, laptop_status.py of the laptop cloud. verdict.py says what is
wrong with what was read.
"""

from local.command import command, find_stack, show
from local.operate import verdict
from local.operate.laptop_status import look_at_laptop
from local.operate.stack_status import look_at_stack


@command("status", "status --json --stack-name streakline")
def status(stack_name: str | None, region: str | None, as_json: bool) -> None:
    """Say whether all is well: what runs, what waits and for how long. Fails if something is wrong."""
    try:
        stack = find_stack(stack_name, region)
    except SystemExit as error:  # no laptop cloud is up
        if as_json:
            text = str(error.code)
            show({"is_well": False, "verdict": text, "problems": [{"what": text}]}, as_json=True)
        raise
    deployment = look_at_laptop() if stack.is_laptop else look_at_stack(stack)
    if as_json:
        show(verdict.as_json(deployment), as_json=True)
    else:
        print(verdict.as_text(deployment))
    if verdict.problems(deployment):
        raise SystemExit(1)
