"""What `streakline status` says of a deployment: what is wrong, what causes it, and what to do.

It reads nothing itself: status.py and stack_status.py do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

# An event is in its account within a second or two. A consumer that is later has something in its way.
LATE = timedelta(seconds=60)
# A queue's message may wait for a store for a quarter of an hour, which is no fault of its consumer.
QUEUE_LATE = timedelta(minutes=15)
LISTED_MAX = 3
SOUNDS = "ALARM"


@dataclass(frozen=True, slots=True)
class RunningPart:
    """Something that must run."""

    name: str
    runs: bool
    state: str = "runs"  # in words
    mend: str = ""  # what to do if it does not run


@dataclass(frozen=True, slots=True)
class Consumer:
    """A function that streams or queues feed."""

    name: str
    mappings: tuple[str, ...] = ()  # the states of its event source mappings
    behind: timedelta | None = None  # how late its last batches were; None if that is unknown
    trouble: str = ""  # why Lambda does not feed it; "" if it does
    mend: str = ""  # what to do about the trouble; "": its log says that


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of work."""

    messages: int
    oldest: timedelta | None = None  # for how long the oldest message has waited; None if that is unknown


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong."""

    what: str  # a part of a sentence, as mend is
    mend: str = ""  # what to do about it


@dataclass(frozen=True, slots=True)
class Deployment:
    """What was read of a deployment."""

    where: str  # which deployment, in words
    at: datetime
    parts: tuple[RunningPart, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    queues: Mapping[str, Queue] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)  # messages, by failure queue
    alarms: Mapping[str, str] | None = None  # states, by name; None where there are none, as on a laptop
    about: Mapping[str, str] = field(default_factory=dict)  # printed beside the verdict
    unseen: Mapping[str, str] = field(default_factory=dict)  # what could not be read -> why
    late: timedelta = LATE  # how long a record may wait for its consumer


def problems(deployment: Deployment) -> list[Problem]:
    """Return all that is wrong, what causes most of it first."""
    return [
        *(Problem(f"{part.name} {part.state}", part.mend) for part in deployment.parts if not part.runs),
        *(Problem(f"{what} cannot be seen: {why}") for what, why in deployment.unseen.items()),
        *_consumer_problems(deployment),
        *_queue_problems(deployment),
        *(
            Problem(f"the alarm {name} sounds", "docs/runbook.md has a paragraph on it")
            for name, state in (deployment.alarms or {}).items()
            if state == SOUNDS
        ),
    ]


def verdict(deployment: Deployment) -> str:
    """Return one sentence: all is well, or what is wrong."""
    all_problems = problems(deployment)
    if not all_problems:
        return f"All is well with {deployment.where}."
    more = f"; and {len(all_problems) - LISTED_MAX} more" if len(all_problems) > LISTED_MAX else ""
    troubles = "; ".join(problem.what for problem in all_problems[:LISTED_MAX])
    return f"Something is wrong with {deployment.where}: {troubles}{more}."


def as_text(deployment: Deployment) -> str:
    """Return the verdict, and below it what runs, what waits, and what to do."""
    lines = [verdict(deployment)]
    if mends := [f"  {problem.what}: {problem.mend}" for problem in problems(deployment) if problem.mend]:
        lines += ["", "What to do", *mends]
    lines += ["", "What runs", *_table([(part.name, part.state) for part in deployment.parts])]
    if deployment.consumers:
        lines += [
            "",
            "Consumers",
            *_table([(consumer.name, _state(consumer)) for consumer in deployment.consumers]),
        ]
    if deployment.queues:
        lines += ["", "Queues", *_depths({name: queue.messages for name, queue in deployment.queues.items()})]
    if deployment.failures:
        lines += ["", "Failure queues", *_depths(deployment.failures)]
    if deployment.alarms is not None:
        other = [(name, state) for name, state in deployment.alarms.items() if state != "OK"]
        fine = f"  {counted(len(deployment.alarms) - len(other), 'alarm')} OK"
        lines += ["", "Alarms", *_table(other), fine]
    if deployment.about:
        lines += ["", *_table(list(deployment.about.items()))]
    return "\n".join(lines)


def as_json(deployment: Deployment) -> dict[str, Any]:
    """Return all that was read of a deployment, and the verdict, for programs.

    The instant is RFC 3339 in UTC, durations are seconds; null is unknown.
    """
    return {
        "is_well": not problems(deployment),
        "verdict": verdict(deployment),
        "problems": [{"what": problem.what, "mend": problem.mend} for problem in problems(deployment)],
        "at": deployment.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **deployment.about,
        "parts": {part.name: {"runs": part.runs, "state": part.state} for part in deployment.parts},
        "consumers": {
            consumer.name: {
                "mappings": list(consumer.mappings),
                "behind_seconds": None
                if consumer.behind is None
                else round(consumer.behind.total_seconds(), 1),
                "trouble": consumer.trouble,
            }
            for consumer in deployment.consumers
        },
        "queues": {name: queue.messages for name, queue in deployment.queues.items()},
        "oldest_message_seconds": {
            name: queue.oldest.total_seconds()
            for name, queue in deployment.queues.items()
            if queue.oldest is not None
        },
        "failures": dict(deployment.failures),
        "alarms": None
        if deployment.alarms is None
        else {
            "known": len(deployment.alarms),
            "not_ok": {name: state for name, state in deployment.alarms.items() if state != "OK"},
        },
        "unseen": dict(deployment.unseen),
    }


def spoken(length: timedelta) -> str:
    """Return a duration in words: `45 s`, `12 min`, `3 h 5 min`, `2 days`."""
    seconds = int(length.total_seconds())
    if seconds < 120:
        return f"{seconds} s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if minutes < 120:
        return f"{minutes} min"
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{days} days"


def counted(number: int, thing: str) -> str:
    """Return `1 thing` or `1,234 things`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


FED = {"ByPoller": "read by the poller"}  # the state of a mapping, in words


def _state(consumer: Consumer) -> str:
    if consumer.trouble:
        return consumer.trouble
    fed = ", ".join(dict.fromkeys(FED.get(mapping, mapping.casefold()) for mapping in consumer.mappings))
    return fed if consumer.behind is None else f"{fed}, at most {spoken(consumer.behind)} behind"


def _depths(depths: Mapping[str, int]) -> list[str]:
    rows = [(name, counted(messages, "message")) for name, messages in depths.items() if messages]
    empty = len(depths) - len(rows)
    return [*_table(rows), *([f"  {counted(empty, 'queue')} empty"] if empty else [])]


def _table(rows: list[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {name:{width}}  {text}" for name, text in rows]


def _consumer_problems(deployment: Deployment) -> Iterator[Problem]:
    for consumer in deployment.consumers:
        why = f"`streakline logs {consumer.name}` says why"
        if consumer.trouble:
            yield Problem(f"{consumer.name} is not fed: {consumer.trouble}", consumer.mend or why)
        if consumer.behind is not None and consumer.behind > deployment.late:
            yield Problem(f"{consumer.name} is {spoken(consumer.behind)} behind", why)


def _queue_problems(deployment: Deployment) -> Iterator[Problem]:
    for name, queue in deployment.queues.items():
        if queue.messages and queue.oldest is not None and queue.oldest > QUEUE_LATE:
            yield Problem(
                f"{counted(queue.messages, 'message')} in {name}, the oldest for {spoken(queue.oldest)}",
                f"`streakline logs` of its consumer says why: docs/runbook.md, {name}Late",
            )
    for name, messages in deployment.failures.items():
        mend = f"`streakline queue list --queue {name}` says why"
        if name == "ShipmentFailures":
            mend = "ask the partner: docs/runbook.md"
        if messages:
            yield Problem(f"{counted(messages, 'message')} in {name}", mend)
