"""`streakline region`: who writes, a promotion, and a return (rule 23).

It acts on the region of the stack that is named. The stack of the other region has the same name.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from adapters.platform.fence import Fence, RegisterStore, guard_client
from adapters.regions import Follower
from local.api import Api
from local.command import FILE_OUT, command, option
from local.region_return import Returning, ReturnOutcome, WriterDoor
from local.region_unseen import FoundUnseen, Side, UnseenFinder
from local.stack import REGISTER, Stack, fresh_client
from local.stores import tombstones_of
from rules.engagement.ledger import Entry
from rules.regions.changes import KEYS
from rules.regions.register import (
    QUIET_SECONDS,
    NotPossible,
    Phase,
    Register,
    close_following,
    join_region,
    mark_filled,
    may_follow,
    open_writing,
    promote_region,
)

# Makes a region the writer (rule 23): first nobody writes, then the region has all that was sent, then it
# writes.
#
# Each step is one change of the register, and then a wait that outlasts every lease. If this dies, it is run
# again: it goes on where the register stands, and waits once more.


DRAIN_SECONDS_MAX = 300.0
LOOK_EVERY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Promoting:
    """waiting: how many messages of changes are in the region's queue. sleep: waits some seconds."""

    registers: RegisterStore
    region: str
    waiting: Callable[[], int]
    sleep: Callable[[float], None]
    say: Callable[[str], None] = lambda _: None

    def run(self, drain_seconds: float = DRAIN_SECONDS_MAX) -> Register:
        """Promote the region; returns the register. Raises NotPossible, RegisterMoved.

        drain_seconds: how long what was sent may take to arrive. What speaks of entries that never came
        waits for ever, and is found when the old region returns.
        """
        read = self.registers.read()
        if read is None:
            raise NotPossible("there is no register yet: `streakline region start` in the region that writes")
        register = self._to(read, promote_region(read, self.region))
        if register.phase is Phase.OPEN:
            self.say(f"{self.region} writes already, epoch {register.epoch}")
            return register
        if register.phase is Phase.DRAINING:
            self.say(
                f"epoch {register.epoch}: nobody writes; waiting {QUIET_SECONDS:.0f} s for the last lease"
            )
            self.sleep(QUIET_SECONDS)
            self._drain(drain_seconds)
            register = self._to(register, close_following(register))
        self.say(f"nobody follows; waiting {QUIET_SECONDS:.0f} s for the last lease")
        self.sleep(QUIET_SECONDS)
        register = self._to(register, open_writing(register))
        self.say(f"{self.region} writes, epoch {register.epoch}")
        return register

    def _to(self, read: Register, register: Register) -> Register:
        if register != read:
            self.registers.change(read, register)
        return register

    def _drain(self, seconds: float) -> None:
        while (left := self.waiting()) and seconds > 0:
            self.say(f"{left} messages of changes are on their way")
            self.sleep(min(LOOK_EVERY_SECONDS, seconds))
            seconds -= LOOK_EVERY_SECONDS
        if left:
            self.say(f"{left} messages are left: what they tell is found when the old region returns")


# Changes a stack's parameter Role: so consumers and schedules are on in the region that writes, and off in
# the other.


NOTHING = "No updates are to be performed"
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]


def change_role(stack: Stack, role: str, say: Callable[[str], None]) -> bool:
    """Update a stack with another Role, its template and all else as they are; returns whether it had
    another.

    Waits for the end. Raises what CloudFormation raises.
    """
    if stack.parameters.get("Role") == role:
        return False
    client = stack.client("cloudformation")
    say(f"{stack.name} in {stack.region}: Role={role}; an update of the stack takes some minutes")
    try:
        client.update_stack(**update_of(stack, role))
    except ClientError as error:
        if NOTHING in str(error):
            return False
        raise
    client.get_waiter("stack_update_complete").wait(StackName=stack.name)
    return True


def update_of(stack: Stack, role: str) -> dict[str, Any]:
    """Return the request: every parameter but Role keeps its value."""
    return {
        "StackName": stack.name,
        "UsePreviousTemplate": True,
        "Capabilities": CAPABILITIES,
        "Parameters": [
            {"ParameterKey": "Role", "ParameterValue": role},
            *(
                {"ParameterKey": each, "UsePreviousValue": True}
                for each in sorted(stack.parameters)
                if each != "Role"
            ),
        ],
    }


ACTIVE, STANDBY = "active", "standby"
SHOWN = 20
Say = Callable[[str], None]


@command("region status --stack-name streakline --region eu-west-1")
def status_command(stack: Stack) -> Any:
    """Print who writes, and how this region stands to that."""
    return status(stack, _registers(stack))


@command("region start --stack-name streakline --region us-east-1")
def start(stack: Stack) -> None:
    """Let the first region begin as the writer."""
    registers, register = _registers(stack), Register(1, stack.region)
    if (read := registers.read()) and read.writer != stack.region:
        raise NotPossible(f"{read.writer} writes already")
    if read is None:
        registers.change(None, register)
    print(f"{stack.region} writes, epoch {read.epoch if read else register.epoch}")


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
    waiting = lambda: waiting_in(stack)  # noqa: E731 (a word for a call)
    Promoting(_registers(stack), stack.region, waiting, time.sleep, _say).run(drain_seconds)
    change_role(stack, ACTIVE, _say)


def _registers(stack: Stack) -> RegisterStore:
    table = stack.output(REGISTER, "second region (Role is single)")
    return RegisterStore(stack.free_client("dynamodb"), table)


def status(stack: Stack, registers: RegisterStore) -> dict[str, Any]:
    """Return who writes, and how this region stands to that."""
    register = registers.read()
    return {
        "region": stack.region,
        "role": stack.parameters.get("Role"),
        "register": asdict(register) if register else None,
        "changes_waiting": waiting_in(stack),
    }


def waiting_in(stack: Stack) -> int:
    """Return how many messages of changes are in a region's queue, about."""
    names = [f"ApproximateNumberOfMessages{each}" for each in ("", "NotVisible", "Delayed")]
    answer = stack.client("sqs").get_queue_attributes(
        QueueUrl=stack.output("ChangesQueueUrl", "second region"), AttributeNames=names
    )
    return sum(int(answer["Attributes"][each]) for each in names)


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
    from local.stack import find

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
    steps = Steps(side_of(stack), side_of(writer), registers, Api(writer), time.sleep, _say)
    found = steps.find(tombstones_of(writer), datetime.now(UTC))
    report = _write(file, report_of(found, ReturnOutcome(names=list(found.listed))))
    if not dry_run:
        # Written before anything is cut: a second attempt would find nothing of this any more.
        report = _write(file, report_of(found, steps.apply(found)))
        steps.follow(found, following_client(stack, registers), datetime.now(UTC))
    for line in report["listed"][:SHOWN]:
        print(f"listed, {line['store']} {line['key']}: {line['reason']}")
    print(f"{len(report['unseen'])} entries were unseen; applied: {report['applied']}; {file}")
    if report["listed"]:
        raise RuntimeError(f"{len(report['listed'])} things are listed: somebody must decide about them")


def _write(file: Path, report: Mapping[str, Any]) -> Mapping[str, Any]:
    file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return report


class Steps:
    """The return of `old` to `new`, step by step. door: of the new one. sleep: waits some seconds."""

    def __init__(  # noqa: PLR0917 (both sides, and what acts on them)
        self,
        old: Side,
        new: Side,
        registers: RegisterStore,
        door: WriterDoor,
        sleep: Callable[[float], None],
        say: Say,
    ) -> None:
        self._old, self._new, self._registers = old, new, registers
        self._returning, self._sleep, self._say = Returning(old, new, door), sleep, say

    def find(self, erased: Any, now: datetime) -> FoundUnseen:
        """Return what the new writer never saw; nothing is written."""
        return UnseenFinder(self._old, self._new, erased, now).find()

    def apply(self, found: FoundUnseen) -> ReturnOutcome:
        """Give the new writer what it never saw; returns what became of it."""
        return self._returning.apply(found)

    def follow(self, found: FoundUnseen, follows: Any, now: datetime) -> None:
        """Cut the old region, and let it follow. follows: a client that may write there then."""
        self._say(f"{self._returning.cut(found)} items of the old region were cut")
        read = self._read()
        self._registers.change(read, join_region(read, self._old.region))
        self._sleep(QUIET_SECONDS)
        self._returning.fill(Follower(follows, self._old.tables), self._read().epoch, now, self._say)
        read = self._read()
        self._registers.change(read, mark_filled(read, self._old.region))
        self._say(f"{self._old.region} follows {read.writer}, epoch {read.epoch}")

    def _read(self) -> Register:
        found = self._registers.read()
        if found is None:
            raise NotPossible("the register is gone")
        return found


def side_of(stack: Stack) -> Side:
    """Return a stack's tables that are followed."""
    return Side(stack.region, stack.free_client("dynamodb"), {name: stack.tables[name] for name in KEYS})


def following_client(stack: Stack, registers: RegisterStore) -> Any:
    """Return a client that writes to a stack's tables while its region follows, and no longer."""
    made = fresh_client(stack.endpoint_url, stack.region, "dynamodb")
    return guard_client(made, Fence(registers.read, stack.region), may_follow)


def report_of(found: FoundUnseen, outcome: ReturnOutcome) -> Mapping[str, Any]:
    """Return what the file of the report holds: every unseen entry by account and place, and all that is
    listed.
    """
    unseen = [
        {"account": account_id, **_entry_view(each.entry), "fate": each.fate.value}
        for account_id, (_, beyond) in sorted(found.accounts.items())
        for each in beyond
    ]
    return {
        "unseen": unseen,
        "fates": dict(Counter(each["fate"] for each in unseen)),
        "applied": dict(outcome.applied),
        "carried": dict(outcome.carried),
        "listed": [asdict(each) for each in outcome.names],
    }


def _entry_view(entry: Entry) -> dict[str, Any]:
    draft = entry.draft
    return {"place": entry.created_at, "kind": draft.kind.value, "points": draft.points, "seq": entry.seq}


def _say(line: str) -> None:
    print(line, flush=True)
