"""`streakline region`: who writes, a promotion, and a return (rule 23).

It acts on the region of the stack that is named. The stack of the other region has the same name.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from adapters.platform.fence import Fence, RegisterStore, guard_client
from local.api import Api
from local.cloud.patience import depth
from local.command import FILE_OUT, command, option
from local.region_return import RegionReturn, ReturnOutcome
from local.region_unseen import FoundUnseen, Side
from local.stack import REGISTER, Stack, find, fresh_client
from local.stores import tombstones_of
from rules.engagement.ledger import Entry
from rules.regions.changes import KEYS
from rules.regions.register import (
    QUIET_SECONDS,
    NotPossible,
    Phase,
    Register,
    close_following,
    may_follow,
    open_writing,
    promote_region,
)

DRAIN_SECONDS_MAX = 300.0
LOOK_EVERY_SECONDS = 5.0
ACTIVE, STANDBY = "active", "standby"  # values of the stack's parameter Role
NO_UPDATES = "No updates are to be performed"
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
LINES_MAX = 20  # of what is listed, on the terminal; the report has all
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Promotion:
    """Makes a region the writer: first nobody writes, then the region has all that was sent, then it writes.

    Each step is one change of the register, and then a wait that outlasts every lease. An interrupted
    promotion is run again: it goes on where the register stands, and waits once more.
    """

    registers: RegisterStore
    region: str
    waiting: Callable[[], int]  # returns how many messages of changes are in the region's queue
    sleep: Callable[[float], None]  # waits some seconds
    say: Say = lambda _: None

    def run(self, drain_seconds: float = DRAIN_SECONDS_MAX) -> Register:
        """Promote the region; returns the register. Raises NotPossible, RegisterMoved.

        drain_seconds: how long changes that were sent may take to arrive. A change that needs an entry that
        was never sent waits for ever. It is found when the old region returns.
        """
        before = self.registers.read()
        if before is None:
            raise NotPossible("there is no register yet: `streakline region start` in the region that writes")
        register = self._change(before, promote_region(before, self.region))
        if register.phase is Phase.OPEN:
            self.say(f"{self.region} writes already, epoch {register.epoch}")
            return register
        if register.phase is Phase.DRAINING:
            self.say(
                f"epoch {register.epoch}: nobody writes; waiting {QUIET_SECONDS:.0f} s for the last lease"
            )
            self.sleep(QUIET_SECONDS)
            self._drain(drain_seconds)
            register = self._change(register, close_following(register))
        self.say(f"nobody follows; waiting {QUIET_SECONDS:.0f} s for the last lease")
        self.sleep(QUIET_SECONDS)
        register = self._change(register, open_writing(register))
        self.say(f"{self.region} writes, epoch {register.epoch}")
        return register

    def _change(self, before: Register, after: Register) -> Register:
        if after != before:
            self.registers.change(before, after)
        return after

    def _drain(self, seconds: float) -> None:
        while (messages := self.waiting()) and seconds > 0:
            self.say(f"{messages} messages of changes are on their way")
            self.sleep(min(LOOK_EVERY_SECONDS, seconds))
            seconds -= LOOK_EVERY_SECONDS
        if messages:
            self.say(f"{messages} messages are left: what they tell is found when the old region returns")


def change_role(stack: Stack, role: str, say: Say) -> bool:
    """Give a stack another Role, and wait for the end; returns whether that was an update.

    Role turns consumers and schedules on in the region that writes, and off in the other. The template and
    all other parameters stay as they are. Raises ClientError of CloudFormation.
    """
    if stack.parameters.get("Role") == role:
        return False
    client = stack.client("cloudformation")
    say(f"{stack.name} in {stack.region}: Role={role}; an update of the stack takes some minutes")
    try:
        client.update_stack(**update_of(stack, role))
    except ClientError as error:
        if NO_UPDATES in str(error):
            return False
        raise
    client.get_waiter("stack_update_complete").wait(StackName=stack.name)
    return True


def update_of(stack: Stack, role: str) -> dict[str, Any]:
    """Return the request that gives a stack a Role: every parameter but Role keeps its value."""
    return {
        "StackName": stack.name,
        "UsePreviousTemplate": True,
        "Capabilities": CAPABILITIES,
        "Parameters": [
            {"ParameterKey": "Role", "ParameterValue": role},
            *(
                {"ParameterKey": parameter, "UsePreviousValue": True}
                for parameter in sorted(stack.parameters)
                if parameter != "Role"
            ),
        ],
    }


@command("region status --stack-name streakline --region eu-west-1")
def status_command(stack: Stack) -> Any:
    """Print who writes, which role this region has, and how many changes wait for it."""
    register = _registers(stack).read()
    return {
        "region": stack.region,
        "role": stack.parameters.get("Role"),
        "register": asdict(register) if register else None,
        "changes_waiting": waiting_in(stack),
    }


@command("region start --stack-name streakline --region us-east-1")
def start(stack: Stack) -> None:
    """Let the first region begin as the writer."""
    registers = _registers(stack)
    register = registers.read()
    if register and register.writer != stack.region:
        raise NotPossible(f"{register.writer} writes already")
    if register is None:
        register = Register(1, stack.region)
        registers.change(None, register)
    print(f"{stack.region} writes, epoch {register.epoch}")


@command("region promote --stack-name streakline --region us-west-2")
@option(
    "--drain-seconds",
    type=float,
    default=DRAIN_SECONDS_MAX,
    metavar="N",
    help="how long what was sent may take to arrive",
)
def promote(stack: Stack, drain_seconds: float) -> None:
    """Make the stack's region the writer. If this dies, run it again: it goes on."""
    promotion = Promotion(_registers(stack), stack.region, partial(waiting_in, stack), time.sleep, _say)
    promotion.run(drain_seconds)
    change_role(stack, ACTIVE, _say)


def _registers(stack: Stack) -> RegisterStore:
    table = stack.output(REGISTER, "second region (Role is single)")
    return RegisterStore(stack.free_client("dynamodb"), table)


def waiting_in(stack: Stack) -> int:
    """Return how many messages of changes are in a region's queue, about."""
    return depth(stack, stack.output("ChangesQueueUrl", "second region"))


@command("region return --stack-name streakline --region us-east-1 --dry-run")
@option("--dry-run", is_flag=True, help="only tell what the writer never saw; nothing changes")
@option(
    "--report",
    "file",
    type=FILE_OUT,
    default=lambda: Path(f"region-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"),
    help="what was unseen, applied and listed",
    show_default="region-NOW.json",
)
def return_command(stack: Stack, dry_run: bool, file: Path) -> None:
    """Let the stack's region follow the writer, once all that nobody saw was told and applied.

    It fails if something is listed that somebody must decide about.
    """
    if file.exists():
        raise RuntimeError(f"{file} is there: it is the report of a former attempt; name another")
    registers = _registers(stack)
    register = registers.read()
    if register is None:
        raise NotPossible("there is no register yet: `streakline region start` in the region that writes")
    if register.phase is not Phase.OPEN or register.writer == stack.region:
        raise NotPossible(f"{register.writer} writes, phase {register.phase}: {stack.region} cannot return")
    writer = find(stack.name, register.writer)
    if not dry_run:
        change_role(stack, STANDBY, _say)
        _say(f"waiting {QUIET_SECONDS:.0f} s for the last lease")
        time.sleep(QUIET_SECONDS)
    steps = RegionReturn(side_of(stack), side_of(writer), registers, Api(writer), time.sleep, _say)
    found = steps.find(tombstones_of(writer), datetime.now(UTC))
    report = _write(file, report_of(found, ReturnOutcome(listed=list(found.listed))))
    if not dry_run:
        # Written before anything is cut: a second attempt would find nothing of this any more.
        report = _write(file, report_of(found, steps.apply(found)))
        steps.follow(found, following_client(stack, registers), datetime.now(UTC))
    for line in report["listed"][:LINES_MAX]:
        print(f"listed, {line['store']} {line['key']}: {line['reason']}")
    print(f"{len(report['unseen'])} entries were unseen; applied: {report['applied']}; {file}")
    if report["listed"]:
        raise RuntimeError(f"{len(report['listed'])} things are listed: somebody must decide about them")


def _write(file: Path, report: Mapping[str, Any]) -> Mapping[str, Any]:
    file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return report


def side_of(stack: Stack) -> Side:
    """Return a stack's region with those of its tables that a second region follows."""
    tables = {name: stack.tables[name] for name in KEYS if name in stack.tables}
    return Side(stack.region, stack.free_client("dynamodb"), tables)


def following_client(stack: Stack, registers: RegisterStore) -> Any:
    """Return a client that writes to a stack's tables while its region follows, and no longer."""
    client = fresh_client(stack.endpoint_url, stack.region, "dynamodb")
    return guard_client(client, Fence(registers.read, stack.region), may_follow)


def report_of(found: FoundUnseen, outcome: ReturnOutcome) -> Mapping[str, Any]:
    """Return the content of the report's file: every unseen entry, and all that is listed."""
    unseen = [
        {"account": account_id, **_entry_view(unseen_entry.entry), "fate": unseen_entry.fate.value}
        for account_id, unseen_entries in sorted(found.entries.items())
        for unseen_entry in unseen_entries
    ]
    return {
        "unseen": unseen,
        "fates": dict(Counter(entry["fate"] for entry in unseen)),
        "applied": dict(outcome.applied),
        "carried": dict(outcome.carried),
        "listed": [asdict(item) for item in outcome.listed],
    }


def _entry_view(entry: Entry) -> dict[str, Any]:
    draft = entry.draft
    return {"place": entry.created_at, "kind": draft.kind.value, "points": draft.points, "seq": entry.seq}


def _say(line: str) -> None:
    print(line, flush=True)
