"""The steps of a smoke test, from the doors to lake and warehouse. And no alarm sounds."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from analytics.curation.raw_lines import readable_text
from analytics.lake.layout import Partition
from analytics.lake.listing import raw_objects_of_partition
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.warehouse import NoWarehouse
from ingest.web.caller import ADMIN
from local.api import Api
from local.operate import nightly_run
from local.operate.stack_status import alarm_states
from local.replay import aggregated_records, plain_records
from local.smoke.redshift_assumptions import ASSUMPTIONS, check_assumptions
from local.smoke.steps import Event, StepSkipped, Subject, TooLate, ask, await_profile, must, profile
from local.stores import lake_of, warehouse_of

FIRST_DAYS, LATE_DAYS = (4, 1, 3), (2, 0)  # indexes of Subject.days, in the order of sending
LARGE = 600  # bytes of properties: too many for an item, so they go to the bucket
POINTS = 10  # of a contribution; a boost of points multiplies it
PRICE, TOO_MUCH = 20, 1_000_000
SOUNDS, NO_DATA = "ALARM", "INSUFFICIENT_DATA"  # states of an alarm
SKEW = timedelta(minutes=5)  # between this machine's clock and S3's
NOON = "12"
# What the step `warehouse` shows when it finds rows on Redshift. DuckDB loads without COPY.
COPY_ASSUMPTION = "COPY reads Parquet of zstd"
EVENTS = "SELECT COUNT(*) AS events FROM lake.events WHERE user_id = '{user}' AND activity_date = '{day}'"


def event_on(subject: Subject, user: str, day_index: int, **more: Any) -> Event:
    """Return an event at noon (UTC) of one of the test's days. more: fields besides, or instead."""
    day = subject.days[day_index].isoformat()
    return {
        "user_id": user,
        "idempotency_key": f"day-{day_index}",
        "event_type": "CONTRIBUTION",
        "occurred_at": f"{day}T12:00:00Z",
        "source": "smoke",
        **more,
    }


def first_events(subject: Subject) -> list[Event]:
    """Return the events that are sent first, unordered; one has properties that go to the bucket."""
    events = [event_on(subject, subject.name, day_index) for day_index in FIRST_DAYS]
    return [*events[:-1], {**events[-1], "properties": {"note": "x" * LARGE}}]


def sign_in(subject: Subject) -> str:
    """The API runs, and takes the token of an admin."""
    subject.api = Api(subject.stack, subject.name, group=ADMIN)
    ask(subject, "GET", "/v1/health", None, 200)
    answer = profile(subject, subject.name)
    must(answer["balance"] == 0, "a user whom nobody knows", answer)
    return f"{subject.name}, an admin, is let in"


def _post(subject: Subject, events: Sequence[Event], wanted: str) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = ask(subject, "POST", "/v1/events", {"events": events}, 202)["results"]
    seen = Counter(result["status"] for result in results)
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
    events = [event_on(subject, user, day_index) for day_index in (1, 3, 2)]
    records = [*plain_records(events[:2]), *aggregated_records(events[1:])]
    answer = subject.stack.client("kinesis").put_records(StreamName=name, Records=records)
    must(answer["FailedRecordCount"] == 0, "all records on the stream", answer["Records"])
    await_profile(subject, user, active_days=3, longest_streak=3)
    listed = ask(subject, "GET", f"/v1/users/{user}/events", None, 200)["events"]
    must(len(listed) == len(events), f"{len(events)} events, one of which came twice", listed)
    return f"{len(events)} events, plain and aggregated, one twice: a streak of 3"


def duplicates(subject: Subject) -> str:
    """The same events again get the first result."""
    events = first_events(subject)
    results = _post(subject, events, "duplicate")
    listed = ask(subject, "GET", f"/v1/users/{subject.name}/events", None, 200)["events"]
    stored = {event["event_id"] for event in listed}
    answered = {result.get("event_id") for result in results}
    must(stored == answered, "the ids of the stored events", sorted(map(str, answered)))
    return f"{len(events)} events sent again are duplicates, with their first ids"


def conflict(subject: Subject) -> str:
    """A key that was used for another body is refused."""
    _post(subject, [event_on(subject, subject.name, FIRST_DAYS[0], event_type="CHECK_IN")], "conflict")
    return "another body under a used key is refused"


def streak(subject: Subject) -> str:
    """Days count in their order, not in that of arrival."""
    await_profile(subject, subject.name, active_days=len(FIRST_DAYS), current_streak=2)
    return "3 dates with a gap: a streak of 2"


def late_events(subject: Subject) -> str:
    """Late events close the gaps; points, balance and ledger agree."""
    _post(subject, [event_on(subject, subject.name, day_index) for day_index in LATE_DAYS], "accepted")
    answer = await_profile(subject, subject.name, active_days=5, current_streak=5, longest_streak=5)
    entries = ask(subject, "GET", f"/v1/users/{subject.name}/ledger", None, 200)["entries"]
    points = sum(entry["points"] for entry in entries)
    must(points >= 5 * POINTS, f"at least {5 * POINTS} points", points)
    seen = (answer["total_bestie_points"], answer["balance"])
    must(seen == (points, points), f"total and balance {points}, as the entries add up", seen)
    return f"2 late events make it a streak of 5, with {points} points"


def redemption(subject: Subject) -> str:
    """A redemption lowers the balance; the same one again gives the same entry."""
    before = profile(subject, subject.name)["balance"]
    first, again = (_redeem(subject, PRICE, "mug", 201) for _ in range(2))
    must(first["balance"] == before - PRICE, f"a balance of {before - PRICE} in the entry", first)
    is_same = again.get("duplicate") is True and again["entry_id"] == first["entry_id"]
    must(is_same, f"the entry {first['entry_id']} again, as a duplicate", again)
    await_profile(subject, subject.name, balance=before - PRICE)
    return f"{PRICE} of {before} points spent, once"


def overdraft(subject: Subject) -> str:
    """More than the balance is refused, and the ledger adds up."""
    before = profile(subject, subject.name)["balance"]
    refused = _redeem(subject, TOO_MUCH, "yacht", 409)
    must(refused["error"]["code"] == "insufficient_balance", "the code insufficient_balance", refused)
    entries = ask(subject, "GET", f"/v1/users/{subject.name}/ledger", None, 200)["entries"]
    total = sum(entry["points"] for entry in entries)
    after = profile(subject, subject.name)["balance"]
    must(before == after == total, f"a balance of {before}, as the entries add up", (after, total))
    return f"{TOO_MUCH} points are refused, the balance stays {after}"


def _redeem(subject: Subject, points: int, reward: str, wanted: int) -> dict[str, Any]:
    body = {"points": points, "reward_id": reward, "idempotency_key": reward}
    path = f"/v1/users/{subject.name}/redemptions"
    answer: dict[str, Any] = ask(subject, "POST", path, body, wanted)
    return answer


def rows_arrive(subject: Subject) -> str:
    """The oldest day's event comes through the publisher and Firehose."""
    day = subject.days[0].isoformat()
    text = f"the event is in the lake, for {NOON} h of {day} (on AWS Firehose gathers rows for 5 minutes)"
    return f"found as {subject.until(lambda: _find_object(subject, day), text, 'lake')}"


def _find_object(subject: Subject, day: str) -> tuple[str | None, Any]:
    """Return the key of the new object that has this test's event, or None; and what was seen instead."""
    objects, count = lake_of(subject.stack), 0
    arrived = {moment.date().isoformat() for moment in (subject.began - SKEW, datetime.now(UTC) + SKEW)}
    for raw_object in raw_objects_of_partition(objects, Partition("events", day, NOON), arrived):
        if raw_object.modified < subject.began - SKEW:
            continue
        count += 1
        if f'"{subject.name}"'.encode() in readable_text(objects.get(raw_object.key)):
            return raw_object.key, None
    return None, f"{count} new objects without it"


def nightly(subject: Subject) -> str:
    """The state machine runs over the oldest day. It repairs nothing: it only looks."""
    stack, day = subject.stack, subject.days[0]
    execution = nightly_run.start(stack, day, day, repair=False, name=subject.name)
    subject.executions.append(execution)
    status = nightly_run.wait(stack, execution)
    must(status == "SUCCEEDED", "a nightly run that succeeds", f"{status}: {execution}")
    report = nightly_run.report_of(stack, execution)
    must(report["error"] is None, "a report without an error", report["error"])
    return f"over {day}: {report['counts']['users']} users, {report['counts']['different']} differ"


def warehouse(subject: Subject) -> str:
    """The oldest day's event is in the warehouse, once."""
    deployed = warehouse_of(subject.stack)
    if isinstance(deployed, NoWarehouse):
        raise StepSkipped("not deployed: the stack has no warehouse")
    rows = deployed.rows(EVENTS.format(user=subject.name, day=subject.days[0].isoformat()))
    must([int(row["events"]) for row in rows] == [1], "the one event of the day", rows)
    return "one query: the event of the day, once"


def redshift(subject: Subject) -> str:
    """What the warehouse's SQL relies on holds on this workgroup."""
    warehouse = warehouse_of(subject.stack)
    if isinstance(warehouse, NoWarehouse):
        raise StepSkipped("not deployed: the stack has no warehouse")
    holding, wrong = check_assumptions(warehouse)
    must(not wrong, "an answer as documented", wrong)
    if not isinstance(warehouse, DuckWarehouse):
        holding.append(COPY_ASSUMPTION)
    names = [*(assumption.name for assumption in ASSUMPTIONS), COPY_ASSUMPTION]
    unanswered = [name for name in names if name not in holding]
    doubt = f"; DuckDB cannot say whether {', '.join(unanswered)}" if unanswered else ""
    return f"{len(holding)} hold{doubt}"


def alarms(subject: Subject) -> str:
    """All alarms are OK. A new alarm is without data for some minutes, which are waited for."""
    states = alarm_states(subject.stack)
    if not states:
        raise StepSkipped("the stack has no alarms")

    def look() -> tuple[dict[str, str] | None, Any]:
        states = alarm_states(subject.stack)
        waiting = sorted(name for name, state in states.items() if state == NO_DATA)
        return (None if waiting else states), waiting

    try:
        states = subject.until(look, "alarms have data", "alarm")
    except TooLate:
        states = alarm_states(subject.stack)
    sounding = sorted(name for name, state in states.items() if state == SOUNDS)
    must(not sounding, "no alarm that sounds", sounding)
    silent = sum(state == NO_DATA for state in states.values())
    return f"{len(states) - silent} alarms OK" + (f", {silent} without data yet" if silent else "")
