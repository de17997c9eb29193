"""What `streakline status` says: from what was seen of a deployment to what is wrong with it, and what to do.

Pure: local/operate/status.py looks.
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
class Part:
    """Something that must run. state: in words. mend: what to do if it does not run."""

    name: str
    runs: bool
    state: str = "runs"
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A function that streams or queues feed.

    waiting: how many records of its streams it has not processed, by stream; None if that is unknown.
    oldest_at: since when the oldest of them waits. newest_at: the newest record of its streams, as far as it
    was read. is_more: more wait than were counted. behind: how late its last batches were, if nobody can tell
    what waits. mappings: the states of its event source mappings. trouble: why Lambda does not feed it; "".
    mend: what to do about that; "": its log says it.
    """

    name: str
    mappings: tuple[str, ...] = ()
    waiting: Mapping[str, int] | None = None
    oldest_at: datetime | None = None
    newest_at: datetime | None = None
    is_more: bool = False
    behind: timedelta | None = None
    trouble: str = ""
    mend: str = ""

    def lateness(self, at: datetime) -> timedelta:
        """Return for how long something has waited: the oldest record, or the last batches."""
        waited = at - self.oldest_at if self.oldest_at else timedelta()
        return max(timedelta(), waited, self.behind or timedelta())


@dataclass(frozen=True, slots=True)
class Queue:
    """How many messages a queue holds, and since when the oldest one waits, if that is known."""

    messages: int
    oldest: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong, and what to do about it, each as a sentence's part."""

    what: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Deployment:
    """What was seen. about: what is shown beside it. unseen: what could not be looked at -> why.

    late: how long a record may wait for its consumer.
    """

    where: str
    at: datetime
    parts: tuple[Part, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    queues: Mapping[str, Queue] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    alarms: Mapping[str, str] | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    unseen: Mapping[str, str] = field(default_factory=dict)
    late: timedelta = LATE


def problems(seen: Deployment) -> list[Problem]:
    """Return all that is wrong, what causes most of it first."""
    return [
        *(Problem(f"{each.name} {each.state}", each.mend) for each in seen.parts if not each.runs),
        *(Problem(f"{what} cannot be seen: {why}") for what, why in seen.unseen.items()),
        *_late_consumers(seen),
        *(
            Problem(
                f"{counted(each.messages, 'message')} in {name}, the oldest for {spoken(each.oldest)}",
                f"`streakline logs` of its consumer says why: docs/runbook.md, {name}Late",
            )
            for name, each in seen.queues.items()
            if each.messages and each.oldest is not None and each.oldest > QUEUE_LATE
        ),
        *(
            Problem(
                f"{counted(messages, 'message')} in {name}",
                f"`streakline queue list --queue {name}` says why"
                if name != "ShipmentFailures"
                else "ask the partner: docs/runbook.md",
            )
            for name, messages in seen.failures.items()
            if messages
        ),
        *(
            Problem(f"the alarm {name} sounds", "docs/runbook.md has a paragraph on it")
            for name, state in (seen.alarms or {}).items()
            if state == SOUNDS
        ),
    ]


def _late_consumers(seen: Deployment) -> Iterator[Problem]:
    for each in seen.consumers:
        why = f"`streakline logs {each.name}` says why"
        if each.trouble:
            yield Problem(f"{each.name} is not fed: {each.trouble}", each.mend or why)
        late = each.lateness(seen.at)
        if late > seen.late and each.oldest_at:
            yield Problem(f"{_waiting(each)} for {each.name}, the oldest for {spoken(late)}", why)
        elif late > seen.late:
            yield Problem(f"{each.name} was {spoken(late)} behind within the last quarter of an hour", why)


def verdict(seen: Deployment) -> str:
    """Return one sentence: all is well, or what is wrong."""
    found = problems(seen)
    if not found:
        return f"All is well with {seen.where}."
    more = f"; and {len(found) - LISTED_MAX} more" if len(found) > LISTED_MAX else ""
    troubles = "; ".join(each.what for each in found[:LISTED_MAX])
    return f"Something is wrong with {seen.where}: {troubles}{more}."


def as_text(seen: Deployment) -> str:
    """Return the verdict, and below it what runs, what waits, and what to do."""
    lines = [verdict(seen)]
    if mends := [f"  {each.what}: {each.mend}" for each in problems(seen) if each.mend]:
        lines += ["", "What to do", *mends]
    lines += ["", "What runs", *_table([(each.name, each.state) for each in seen.parts])]
    if seen.consumers:
        lines += ["", "Consumers", *_table([(each.name, _state(each, seen.at)) for each in seen.consumers])]
    if seen.queues:
        lines += ["", "Queues", *_depths({name: each.messages for name, each in seen.queues.items()})]
    if seen.failures:
        lines += ["", "Failure queues", *_depths(seen.failures)]
    if seen.alarms is not None:
        other = [(name, state) for name, state in seen.alarms.items() if state != "OK"]
        fine = f"  {counted(len(seen.alarms) - len(other), 'alarm')} OK"
        lines += ["", "Alarms", *_table(other), fine]
    if seen.about:
        lines += ["", *_table(list(seen.about.items()))]
    return "\n".join(lines)


def as_json(seen: Deployment) -> dict[str, Any]:
    """Return the same for machines. Instants are RFC 3339 in UTC, durations seconds; null is unknown."""
    return {
        "is_well": not problems(seen),
        "verdict": verdict(seen),
        "problems": [{"what": each.what, "mend": each.mend} for each in problems(seen)],
        "at": _instant(seen.at),
        **seen.about,
        "parts": {each.name: {"runs": each.runs, "state": each.state} for each in seen.parts},
        "consumers": {
            each.name: {
                "mappings": list(each.mappings),
                "waiting": None if each.waiting is None else sum(each.waiting.values()),
                "waiting_by_stream": each.waiting,
                "is_more": each.is_more,
                "oldest_waiting_at": _instant(each.oldest_at),
                "newest_record_at": _instant(each.newest_at),
                "behind_seconds": None
                if each.waiting is None and each.behind is None
                else round(each.lateness(seen.at).total_seconds(), 1),
                "trouble": each.trouble,
            }
            for each in seen.consumers
        },
        "queues": {name: each.messages for name, each in seen.queues.items()},
        "oldest_message_seconds": {
            name: each.oldest.total_seconds() for name, each in seen.queues.items() if each.oldest is not None
        },
        "failures": dict(seen.failures),
        "alarms": None
        if seen.alarms is None
        else {
            "known": len(seen.alarms),
            "not_ok": {name: state for name, state in seen.alarms.items() if state != "OK"},
        },
        "unseen": dict(seen.unseen),
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


def _waiting(consumer: Consumer) -> str:
    waiting = {stream: number for stream, number in (consumer.waiting or {}).items() if number}
    total, of = sum(waiting.values()), ", ".join(waiting)
    waits = "waits" if total == 1 and not consumer.is_more else "wait"
    return f"{'more than ' if consumer.is_more else ''}{counted(total, 'record')} of {of} {waits}"


def _state(consumer: Consumer, at: datetime) -> str:
    late = consumer.lateness(at)
    if consumer.trouble:
        return consumer.trouble
    if consumer.oldest_at:
        return f"{_waiting(consumer)}, the oldest for {spoken(late)}"
    if consumer.waiting is not None:
        return "nothing waits"
    fed = ", ".join(dict.fromkeys(each.casefold() for each in consumer.mappings))
    return fed if consumer.behind is None else f"{fed}, was at most {spoken(late)} behind"


def _depths(depths: Mapping[str, int]) -> list[str]:
    held = [(name, counted(messages, "message")) for name, messages in depths.items() if messages]
    empty = len(depths) - len(held)
    return [*_table(held), *([f"  {counted(empty, 'queue')} empty"] if empty else [])]


def _table(rows: list[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {name:{width}}  {text}" for name, text in rows]


def _instant(at: datetime | None) -> str | None:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z") if at else None
