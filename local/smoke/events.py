"""Events through both doors: taken, recognised when they come again, and counted whatever their order."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from local.api import ADMIN, Api
from local.replay import aggregated_records, plain_records
from local.smoke.asking import Event, ask, must, profile, shown
from local.smoke.steps import SmokeStep, StepSkipped
from local.smoke.subject import Subject

FIRST, LATE = (4, 1, 3), (2, 0)  # places in Subject.days, as they are sent
LARGE = 600  # bytes of properties: too many for an item, so they go to the bucket
POINTS = 10  # of a contribution; a boost of points multiplies it


def event_on(subject: Subject, user: str, place: int, **more: Any) -> Event:
    """Return an event at noon (UTC) of one of the test's days."""
    day = subject.days[place].isoformat()
    return {
        "user_id": user,
        "idempotency_key": f"day-{place}",
        "event_type": "CONTRIBUTION",
        "occurred_at": f"{day}T12:00:00Z",
        "source": "smoke",
        **more,
    }


def first_events(subject: Subject) -> list[Event]:
    """Return the events that are sent first, unordered; one has properties that go to the bucket."""
    events = [event_on(subject, subject.name, place) for place in FIRST]
    return [*events[:-1], {**events[-1], "properties": {"note": "x" * LARGE}}]


def sign_in(subject: Subject) -> str:
    """The API runs, and takes the token of an admin."""
    subject.api = Api(subject.stack, subject.name, group=ADMIN)
    ask(subject, "GET", "/v1/health", None, 200)
    found = profile(subject, subject.name)
    must(found["balance"] == 0, "a user whom nobody knows", found)
    return f"{subject.name}, an admin, is let in"


def _post(subject: Subject, events: Sequence[Event], wanted: str) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = ask(subject, "POST", "/v1/events", {"events": events}, 202)["results"]
    seen = Counter(each["status"] for each in results)
    must(seen == {wanted: len(events)}, f"{len(events)} events {wanted}", results)
    return results


def http_door(subject: Subject) -> str:
    """Events posted unordered are taken."""
    results = _post(subject, first_events(subject), "accepted")
    return f"{len(results)} events accepted, unordered"


def kinesis_door(subject: Subject) -> str:
    """Plain and aggregated records, one event in both, count each once."""
    name = subject.stack.outputs.get("EventsStreamName")
    if not name:
        raise StepSkipped("not deployed: the stack has no Kinesis door")
    user = subject.second_user
    events = [event_on(subject, user, place) for place in (1, 3, 2)]
    records = [*plain_records(events[:2]), *aggregated_records(events[1:])]
    answer = subject.stack.client("kinesis").put_records(StreamName=name, Records=records)
    must(answer["FailedRecordCount"] == 0, "all records on the stream", answer["Records"])
    shown(subject, user, active_days=3, longest_streak=3)
    listed = ask(subject, "GET", f"/v1/users/{user}/events", None, 200)["events"]
    must(len(listed) == len(events), f"{len(events)} events, one of which came twice", listed)
    return f"{len(events)} events, plain and aggregated, one twice: a streak of 3"


def duplicates(subject: Subject) -> str:
    """The same events again get the first result."""
    events = first_events(subject)
    results = _post(subject, events, "duplicate")
    listed = ask(subject, "GET", f"/v1/users/{subject.name}/events", None, 200)["events"]
    stored, told = {each["event_id"] for each in listed}, {each.get("event_id") for each in results}
    must(stored == told, "the ids of the stored events", sorted(map(str, told)))
    return f"{len(events)} events sent again are duplicates, with their first ids"


def conflict(subject: Subject) -> str:
    """A key that was used for another body is refused."""
    _post(subject, [event_on(subject, subject.name, FIRST[0], event_type="CHECK_IN")], "conflict")
    return "another body under a used key is refused"


def streak(subject: Subject) -> str:
    """Days count in their order, not in that of arrival."""
    shown(subject, subject.name, active_days=len(FIRST), current_streak=2)
    return "3 dates with a gap: a streak of 2"


def late_events(subject: Subject) -> str:
    """Late events close the gaps; points, balance and ledger agree."""
    _post(subject, [event_on(subject, subject.name, place) for place in LATE], "accepted")
    found = shown(subject, subject.name, active_days=5, current_streak=5, longest_streak=5)
    entries = ask(subject, "GET", f"/v1/users/{subject.name}/ledger", None, 200)["entries"]
    points = sum(each["points"] for each in entries)
    must(points >= 5 * POINTS, f"at least {5 * POINTS} points", points)
    seen = (found["total_bestie_points"], found["balance"])
    must(seen == (points, points), f"total and balance {points}, as the entries add up", seen)
    return f"2 late events make it a streak of 5, with {points} points"


STEPS = (
    SmokeStep("sign-in", sign_in),
    SmokeStep("HTTP door", http_door, ("sign-in",)),
    SmokeStep("Kinesis door", kinesis_door, ("sign-in",)),
    SmokeStep("duplicates", duplicates, ("HTTP door",)),
    SmokeStep("conflict", conflict, ("HTTP door",)),
    SmokeStep("streak", streak, ("HTTP door",)),
    SmokeStep("late events", late_events, ("streak",)),
)
