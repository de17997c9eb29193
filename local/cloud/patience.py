"""Waits until others have done their work: consumers of queues, of streams, and the processor of events.

A wait goes on as long as the work goes on, however long that is, and ends when nothing happens any more.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import encode_item
from adapters.platform.tables import BEFORE_ALL
from local.cloud import poller
from local.event_sources import Body
from local.stack import Stack
from rules.days import parse_moment
from rules.engagement.events import event_id

STALLED_SECONDS_MAX = 300.0
SAY_EVERY_SECONDS = 8.0
LAPTOP_PAUSE_SECONDS = 0.1
AWS_PAUSE_SECONDS = 2.0
# On AWS counts of queues lag, and nobody sees the stream between them: they must stay empty for this long.
AWS_QUIET_SECONDS = 20
READERS = 8
WORK = ("LeadIngestion", "MemoryProcessing", "FeatureProcessing", "FeatureRefresh")
# Messages that wait, that a consumer has, and that are sent to be delivered later.
COUNTS = tuple(f"ApproximateNumberOfMessages{state}" for state in ("", "NotVisible", "Delayed"))
NOT_APPLIED = "events are in no account: `streakline status` and `streakline queue list` say what is wrong"


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # stdout is for what a command answers


@dataclass(slots=True)
class Patience:
    """Ends a wait whose progress has stayed the same for so many seconds."""

    seconds: float = STALLED_SECONDS_MAX
    say: Callable[[str], object] = _print  # gets a line of progress every SAY_EVERY_SECONDS
    elapsed: Callable[[], float] = time.monotonic  # seconds, from any beginning
    _progress: object = None
    _progressed_at: float | None = None  # None: the wait has not begun
    _said_at: float = 0.0

    def wait(self, what: str, progress: object, pause: float) -> None:
        """Pause for some seconds. Raises RuntimeError if there was no progress for too long.

        what: what is waited for, a sentence without its end. progress: another value whenever it goes on.
        """
        now = self.elapsed()
        if self._progressed_at is None:
            self._said_at = now
        if self._progressed_at is None or progress != self._progress:
            self._progress, self._progressed_at = progress, now
        elif now - self._progressed_at >= self.seconds:
            raise RuntimeError(f"{what} ({progress}), and nothing has happened for {self.seconds:.0f} s")
        if now - self._said_at >= SAY_EVERY_SECONDS:
            self.say(f"  {what} ({progress})")
            self._said_at = now
        time.sleep(pause)


def depth(stack: Stack, url: str) -> int:
    """Return how many messages a queue holds, including those that a consumer is working on."""
    answer = stack.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=list(COUNTS))
    return sum(int(answer["Attributes"][name]) for name in COUNTS)


def failures(stack: Stack) -> dict[str, int]:
    """Return how many messages wait for an operator, by failure queue."""
    urls = {name: url for name, url in stack.outputs.items() if name.endswith("FailuresUrl")}
    return {name.removesuffix("Url"): depth(stack, url) for name, url in urls.items()}


def messages_waiting(stack: Stack) -> dict[str, int]:
    """Return how many messages wait for their consumer, by queue."""
    urls = {name: stack.outputs.get(f"{name}Url") for name in WORK}
    return {name: depth(stack, url) for name, url in urls.items() if url}  # a part may be left out


def wait_until_empty(stack: Stack, names: Iterable[str], patience: Patience) -> None:
    """Wait until consumers have done all that waits in these queues, one queue after the other.

    Raises RuntimeError when `patience` ends.
    """
    for name in names:
        while waiting := depth(stack, stack.outputs[f"{name}Url"]):
            patience.wait(f"messages still wait in {name}", waiting, LAPTOP_PAUSE_SECONDS)


@dataclass(frozen=True, slots=True)
class Sent:
    """So many events were sent at most, after Engagement had processed `before` records."""

    before: int
    count: int


def drain(
    stack: Stack, stalled_max: float = STALLED_SECONDS_MAX, *, lake: bool = False, sent: Sent | None = None
) -> None:
    """Wait until every consumer of the laptop cloud has processed what was sent before.

    The laptop's poller says how far each consumer is. lake: wait until all of it is in the lake, too. sent:
    lets progress say of how much. Raises RuntimeError when nothing has happened for `stalled_max` seconds.
    """
    for consumer in ("EventsStream", "Engagement", *(("Publisher",) if lake else ())):
        await_stream(stack, consumer, Patience(stalled_max), sent if consumer == "Engagement" else None)


def records_of(stack: Stack, consumer: str) -> int:
    """Return how many records a consumer of the laptop cloud has processed since it started."""
    return int(state_of(stack.outputs[f"{consumer}FunctionName"]).get("records", 0))


def drain_leads(stack: Stack, stalled_max: float = STALLED_SECONDS_MAX) -> None:
    """Wait until everything that was sent to the leads' doors has been processed.

    Raises RuntimeError when nothing has happened for `stalled_max` seconds.
    """
    if not stack.is_laptop:
        _await_quiet(stack, Patience(stalled_max))
        return
    wait_until_empty(stack, ("LeadIngestion",), Patience(stalled_max))
    await_stream(stack, "LeadEvents", Patience(stalled_max))
    wait_until_empty(
        stack, ("MemoryProcessing", "FeatureProcessing", "FeatureRefresh"), Patience(stalled_max)
    )


def _await_quiet(stack: Stack, patience: Patience) -> None:
    """Wait until no message of leads has waited for AWS_QUIET_SECONDS."""
    quiet_since = time.monotonic()
    while time.monotonic() < quiet_since + AWS_QUIET_SECONDS:
        waiting = messages_waiting(stack)
        if any(waiting.values()):
            quiet_since = time.monotonic()
        patience.wait("messages of leads still wait: see `streakline status`", waiting, AWS_PAUSE_SECONDS)


def await_stream(stack: Stack, consumer: str, patience: Patience, sent: Sent | None = None) -> None:
    """Wait until a consumer of the laptop cloud has processed what is on its stream.

    sent: what of it was sent last. Raises RuntimeError when `patience` ends.
    """
    function, sent_at = stack.outputs[f"{consumer}FunctionName"], time.time()
    poller.ask(function, sent_at)
    while (state := state_of(function)).get("caught_up_at", 0.0) <= sent_at:
        progress = f"{state.get('records', 0):,} records so far"
        if sent:
            progress = f"{state.get('records', 0) - sent.before:,} of at most {sent.count:,} events"
        patience.wait(f"waiting for {consumer}", progress, LAPTOP_PAUSE_SECONDS)


def state_of(function: str) -> dict[str, Any]:
    """Return what the poller reports of a function; {} before it reports anything.

    caught_up_at: when it last had nothing left to do (epoch seconds). done_until: all that arrived before is
    done. Its counts grow while it works.
    """
    try:
        state: dict[str, Any] = json.loads(poller.HEARTBEAT.read_text())[function]
    except (OSError, ValueError, KeyError):
        return {}
    return state


def wait_until_applied(
    stack: Stack, events: Iterable[Body], stalled_max: float = STALLED_SECONDS_MAX
) -> None:
    """Wait on AWS until profiles show all events. The tables tell it.

    An event is applied if, and only if, a ledger entry names it. It is shown once the profile has counted
    that entry. Raises RuntimeError when nothing has happened for `stalled_max` seconds.
    """
    waiting, patience = ids_by_user(events), Patience(stalled_max)
    count = sum(map(len, waiting.values()))
    while waiting := _not_shown(stack, waiting):
        progress = f"{sum(map(len, waiting.values()))} are not"
        patience.wait(f"some of {count} {NOT_APPLIED}", progress, AWS_PAUSE_SECONDS)


def ids_by_user(events: Iterable[Body]) -> dict[str, set[str]]:
    """Return the ids under which events are stored, by user."""
    ids: dict[str, set[str]] = {}
    for event in events:
        user, key = event["user_id"], event["idempotency_key"]
        ids.setdefault(user, set()).add(event_id(user, key, parse_moment(event["occurred_at"])))
    return ids


def _not_shown(stack: Stack, ids: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the events that no profile has counted yet, by user; only users that have any."""
    dynamodb = stack.client("dynamodb")
    ledger = LedgerStore(dynamodb, stack.tables["RewardsLedger"])

    def shown(user: str) -> set[str]:
        entries, _ = ledger.after(user, BEFORE_ALL)
        key = encode_item({"user_id": user})
        answer = dynamodb.get_item(TableName=stack.tables["UserStreaks"], Key=key, ConsistentRead=True)
        head = answer.get("Item", {}).get("ledger_head", {}).get("S", "")
        return {str(entry.draft.event_id) for entry in entries if entry.created_at <= head}

    with ThreadPoolExecutor(READERS) as pool:
        missing = {user: ids[user] - found for user, found in zip(ids, pool.map(shown, ids), strict=True)}
    return {user: some for user, some in missing.items() if some}
